"""PPI, Reddit, ogbn-arxiv and Facebook100 on made files in the published formats."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from scipy.sparse import coo_matrix, save_npz

from graphveil.errors import DataError, InputError, MissingDataError
from graphveil.graphs import load_graph, validate
from tests.graphs.published_made import ppi, university


@pytest.mark.parametrize("kind, low, high", [(np.uint8, 0.0, 1.0), (np.float64, -4.0, 4.0)])
def test_ppi_is_one_graph_with_several_labels_a_node(tmp_path, kind, low, high):
    graph = validate(load_graph("ppi", ppi(tmp_path, kind)))
    assert graph.num_nodes == 6
    assert graph.y.shape == (6, 121)
    assert (graph.schema.low, graph.schema.high) == (low, high)
    assert graph.edge_index.tolist() == [[0, 0, 1, 1, 2, 2, 3, 4], [1, 2, 0, 2, 0, 1, 4, 3]]
    assert graph.train_mask.tolist() == [True] * 3 + [False] * 3
    assert graph.test_mask.tolist() == [False] * 5 + [True]


def test_damaged_ppi_is_refused(tmp_path):
    ppi(tmp_path, np.uint8)
    (tmp_path / "pyg/PPI/raw/valid_graph.json").write_text('{"links": [{"source": 0, "target": 7}]}')
    with pytest.raises(DataError, match=r"valid_graph.json joins nodes outside"):
        load_graph("ppi", tmp_path)


def test_reddit(tmp_path):
    folder = tmp_path / "pyg/Reddit/raw"
    folder.mkdir(parents=True)
    np.savez(
        folder / "reddit_data.npz",
        feature=np.full((3, 602), 5.0),
        label=np.array([0, 40, 3]),
        node_types=np.array([1, 2, 3]),
    )
    save_npz(folder / "reddit_graph.npz", coo_matrix(([1, 1], ([0, 1], [1, 2])), shape=(3, 3)))
    graph = validate(load_graph("reddit", tmp_path))
    assert graph.edge_index.shape == (2, 4)
    assert graph.val_mask.tolist() == [False, True, False]
    assert float(graph.x.max()) == 4.0
    (folder / "reddit_graph.npz").write_bytes(b"no")
    with pytest.raises(DataError, match="the files of 'reddit' cannot be read"):
        load_graph("reddit", tmp_path)


def test_arxiv(tmp_path):
    content = {
        "raw/edge.csv.gz": "0,1\n1,2\n",
        "raw/node-feat.csv.gz": "\n".join(",".join(["0.5"] * 128) for _ in range(3)),
        "raw/node-label.csv.gz": "0\n39\n7\n",
        "split/time/train.csv.gz": "2\n",
        "split/time/valid.csv.gz": "0\n",
        "split/time/test.csv.gz": "1\n",
    }
    for name, text in content.items():
        file = tmp_path / "ogb/ogbn_arxiv" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(text.encode()))
    graph = validate(load_graph("ogbn-arxiv", tmp_path))
    assert graph.x.shape == (3, 128)
    assert graph.y.tolist() == [0, 39, 7]
    assert graph.train_mask.tolist() == [False, False, True]
    assert graph.edge_index.shape == (2, 4)
    (tmp_path / "ogb/ogbn_arxiv/raw/edge.csv.gz").write_bytes(b"no")
    with pytest.raises(DataError, match="the files of 'ogbn-arxiv' cannot be read"):
        load_graph("ogbn-arxiv", tmp_path)


def test_facebook100(tmp_path):
    fields = [
        [1, 2, 270, 0, 95, 2004, 50379],
        [0, 0, 0, 0, 0, 2009, 0],
        [6, 1, 14, 14, 0, 1999, 1],
        [1, 1, 1, 1, 1, 0, 1],
    ]
    graph = validate(load_graph("facebook100-made1", university(tmp_path, fields)))
    assert graph.schema.classes == ("2004", "2005", "2006", "2007", "2008", "2009")
    assert graph.y.tolist() == [0, 5, -1, -1]
    assert graph.x.shape == (4, 8 + 4 + 256 * 3 + 1024)
    row = graph.x.to_dense()[0].nonzero().flatten().tolist()
    assert row == [1, 8 + 2, 12 + 270 % 256, 12 + 512 + 95, 12 + 768 + 50379 % 1024]
    assert graph.x.to_dense()[1].sum() == 0


def test_facebook100_of_some_class_years_is_the_people_of_those_years(tmp_path):
    fields = [
        [1, 2, 270, 0, 95, 2005, 50379],
        [1, 1, 1, 1, 1, 2004, 1],
        [6, 1, 14, 14, 0, 2009, 1],
        [1, 1, 1, 1, 1, 0, 1],
        [1, 1, 1, 1, 1, 2006, 1],
    ]
    graph = validate(load_graph("facebook100-made1-2005-2009", university(tmp_path, fields)))
    assert graph.schema.name == "facebook100-made1-2005-2009"
    assert graph.schema.classes == ("2005", "2006", "2007", "2008", "2009")
    assert graph.y.tolist() == [0, 4, 1]
    # The path 0-1-2-3-4 loses nodes 1 and 3: nobody who is left knows anybody who is left.
    assert graph.num_nodes == 3 and graph.edge_index.shape == (2, 0)
    assert graph.x.shape == (3, 8 + 4 + 256 * 3)
    assert graph.x.to_dense()[0].nonzero().flatten().tolist() == [1, 8 + 2, 12 + 270 % 256, 12 + 512 + 95]
    assert any("2 nodes of other class years are left out" in note for note in graph.schema.notes)
    everybody = load_graph("facebook100-made1", tmp_path)
    assert (everybody.num_nodes, len(everybody.schema.classes)) == (5, 6)


def test_facebook100_of_some_class_years_keeps_edges_between_them(tmp_path):
    fields = [[1] * 5 + [year, 1] for year in (2005, 2006, 2006, 2001)]
    graph = load_graph("facebook100-made1-2005-2006", university(tmp_path, fields))
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graph.y.tolist() == [0, 1, 1]


@pytest.mark.parametrize("years", ["2009-2005", "2005-2005"])
def test_facebook100_years_that_are_no_range_are_refused(tmp_path, years):
    root = university(tmp_path, [[1] * 7] * 2)
    with pytest.raises(InputError, match="at least two, the first one first"):
        load_graph(f"facebook100-made1-{years}", root)


def test_facebook100_declares_the_same_whatever_the_codes(tmp_path):
    one = load_graph("facebook100-made1", university(tmp_path / "a", [[1, 1, 1, 1, 1, 2004, 1]] * 3)).schema
    big = [[2**31 - 1] * 5 + [2**31 - 1, 2**31 - 1]] * 3
    other = load_graph("facebook100-made1", university(tmp_path / "b", big)).schema
    assert (one.dimension, one.low, one.high, one.classes) == (
        other.dimension,
        other.low,
        other.high,
        other.classes,
    )


def test_facebook100_asked_for_gender_hides_it_from_the_features(tmp_path):
    fields = [[1, 2, 270, 0, 95, 2005, 1], [1, 1, 1, 1, 1, 0, 1], [6, 0, 14, 14, 0, 2009, 1], [6, 3, 1, 1, 1, 2009, 1]]
    graph = validate(load_graph("facebook100-made1-gender", university(tmp_path, fields)))
    assert graph.schema.name == "facebook100-made1-gender" and graph.schema.classes == ("gender 1", "gender 2")
    assert graph.y.tolist() == [1, 0, -1, -1]
    assert graph.x.shape == (4, 8 + 256 * 3 + 64 + 1024)
    assert graph.x.to_dense()[0].nonzero().flatten().tolist() == [1, 8 + 14, 520 + 95, 776 + 2005 % 64, 840 + 1]
    other = [[row[0], 3 - row[1] if row[1] in (1, 2) else row[1], *row[2:]] for row in fields]
    swapped = load_graph("facebook100-made1-gender", university(tmp_path / "swapped", other))
    assert swapped.y.tolist() == [0, 1, -1, -1]
    assert (swapped.x.to_dense() == graph.x.to_dense()).all()


def test_facebook100_in_the_layout_of_linkx(tmp_path):
    fields = [[1, 2, 270, 0, 95, 2005, 1], [1, 1, 1, 1, 1, 2004, 1], [6, 1, 14, 14, 0, 2009, 1]]
    own = load_graph("facebook100-made1", university(tmp_path / "own", fields))
    there = tmp_path / "pyg/LINKX/made1/raw"
    there.mkdir(parents=True)
    (tmp_path / "own/facebook100/Made1.mat").rename(there / "data.mat")
    graph = validate(load_graph("facebook100-made1", tmp_path))
    assert (graph.x.to_dense() == own.x.to_dense()).all() and graph.y.tolist() == own.y.tolist()
    assert graph.schema == own.schema
    with pytest.raises(MissingDataError, match="no file for 'other', only made1"):
        load_graph("facebook100-other-gender", tmp_path)


def test_facebook100_names_what_is_there(tmp_path):
    university(tmp_path, [[1] * 7] * 2)
    with pytest.raises(MissingDataError, match=r"facebook100: no file for 'other', only Made1; put"):
        load_graph("facebook100-other", tmp_path)
    with pytest.raises(MissingDataError, match="only no mat file"):
        load_graph("facebook100-other", tmp_path / "nowhere")


def test_a_damaged_mat_file_is_refused(tmp_path):
    (tmp_path / "facebook100").mkdir()
    (tmp_path / "facebook100/Bad.mat").write_bytes(b"no" * 100)
    with pytest.raises(DataError, match=r"Bad.mat: is not a Facebook100 file .*allowed: A, local_info"):
        load_graph("facebook100-bad", tmp_path)
