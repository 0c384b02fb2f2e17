"""PPI in GraphSAINT's layout and MIR-Flickr in HeteroRR's, on made files."""

from __future__ import annotations

import numpy as np
import pytest

from graphveil.errors import DataError, MissingDataError
from graphveil.graphs import load_graph, validate
from tests.graphs.published_made import flickr, saint


def test_graphsaint_files_are_one_graph(tmp_path):
    saint(tmp_path)
    graph = validate(load_graph("ppi-graphsaint", tmp_path))
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graph.y.shape == (4, 121)
    assert graph.y.argmax(dim=1).tolist() == [0, 1, 2, 3]
    assert (graph.schema.low, graph.schema.high) == (0.0, 1.0)
    assert graph.test_mask.tolist() == [False, False, True, False]


def test_standardised_features_are_clipped_to_a_fixed_range(tmp_path):
    folder = saint(tmp_path)
    np.save(folder / "feats.npy", np.full((4, 50), 7.5))
    graph = validate(load_graph("ppi-graphsaint", tmp_path))
    assert float(graph.x.max()) == 4.0
    assert "clipped 200 feature values" in graph.schema.notes[0]


@pytest.mark.parametrize(
    "file, content",
    [
        ("role.json", b"{}"),
        ("role.json", b'{"tr": [-1], "va": [1], "te": [2]}'),
        ("class_map.json", b'{"9": [0]}'),
        ("class_map.json", b'{"-1": [0]}'),
        ("feats.npy", b"no"),
        ("adj_full.npz", b"no"),
    ],
)
def test_damaged_graphsaint_files_are_refused(tmp_path, file, content):
    (saint(tmp_path) / file).write_bytes(content)
    with pytest.raises(DataError, match="files of 'ppi-graphsaint' cannot be read"):
        load_graph("ppi-graphsaint", tmp_path)


def test_absent_graphsaint_files_are_named(tmp_path):
    with pytest.raises(MissingDataError, match=r"adj_full.npz, class_map.json, feats.npy"):
        load_graph("ppi-graphsaint", tmp_path)


def test_flickr_links_are_public_or_private(tmp_path):
    flickr(tmp_path)
    graph = validate(load_graph("mir-flickr", tmp_path))
    assert graph.y.tolist() == [1, 0, 0, 1]
    assert graph.schema.classes == ("no people", "people")
    assert graph.edge_index.tolist() == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    assert graph.public_edges.tolist() == [False, False, False, True, False, True]  # listed as both: private
    assert "2 edges are private" in graph.schema.notes[-1]
    assert float(graph.x.max()) == 4.0
    assert "no published bound" in graph.schema.source
    assert graph.val_mask.tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    "links, said",
    [
        ("0 9 1\n", r"link 0 is \[0, 9, 1\]"),
        ("0 1 2\n", "and 0 or 1"),
        ("0 1\n", "has 2 columns"),
        ("a b c\n", "not a list of links"),
    ],
)
def test_wrong_links_are_refused(tmp_path, links, said):
    flickr(tmp_path, links)
    with pytest.raises(DataError, match=said):
        load_graph("mir-flickr", tmp_path)


def test_files_that_disagree_are_refused(tmp_path):
    folder = flickr(tmp_path)
    np.save(folder / "feat/mask_va.npy", np.array([0, 1]))
    with pytest.raises(DataError, match="the same number of images"):
        load_graph("mir-flickr", tmp_path)
    (folder / "mir.csv").write_text("id,people\na,maybe\n")
    with pytest.raises(DataError, match=r"row 0 has people = .maybe."):
        load_graph("mir-flickr", tmp_path)


def test_one_set_of_embeddings_is_asked_for(tmp_path):
    folder = flickr(tmp_path)
    np.save(folder / "feat/other.npy", np.ones((4, 3)))
    with pytest.raises(MissingDataError, match=r"other.npy, resnet.npy where one file"):
        load_graph("mir-flickr", tmp_path)
    with pytest.raises(MissingDataError, match=r"mir\.csv"):
        load_graph("mir-flickr", tmp_path / "nowhere")
