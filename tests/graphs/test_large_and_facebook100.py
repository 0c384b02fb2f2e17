"""PPI, Reddit, ogbn-arxiv and Facebook100 on made files in the published formats."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_matrix, save_npz

from graphveil.errors import DataError, InputError, MissingDataError
from graphveil.files.columns import Category, blocks_of, width_of
from graphveil.graphs import load_graph, validate
from tests.graphs.published_made import flickr, ppi, saint, university


@pytest.mark.parametrize("kind, low, high", [(np.uint8, 0.0, 1.0), (np.float64, -4.0, 4.0)])
def test_ppi_is_one_graph_with_several_labels_a_node(tmp_path, kind, low, high):
    graph = validate(load_graph("ppi", ppi(tmp_path, kind)))
    assert graph.num_nodes == 6
    assert graph.y.shape == (6, 121)
    assert (graph.schema.low, graph.schema.high) == (low, high)
    assert graph.edge_index.tolist() == [[0, 0, 1, 1, 2, 2, 3, 4], [1, 2, 0, 2, 0, 1, 4, 3]]
    assert graph.train_mask.tolist() == [True] * 3 + [False] * 3
    assert graph.test_mask.tolist() == [False] * 5 + [True]
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
    near = load_graph("facebook100-made1-2004-2005", tmp_path)
    assert (near.edge_index.tolist(), near.y.tolist()) == ([[0, 1], [1, 0]], [1, 0])
    with pytest.raises(InputError, match="at least two, the first one first"):
        load_graph("facebook100-made1-2009-2005", tmp_path)


def test_facebook100_declares_the_same_whatever_the_codes(tmp_path):
    schema = load_graph("facebook100-made1", university(tmp_path / "a", [[1, 1, 1, 1, 1, 2004, 1]] * 3)).schema
    other = load_graph("facebook100-made1", university(tmp_path / "b", [[2**31 - 1] * 7] * 3)).schema
    assert all(getattr(schema, name) == getattr(other, name) for name in ("dimension", "low", "high", "classes"))


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
    with pytest.raises(MissingDataError, match="only no mat file"):
        load_graph("facebook100-other", tmp_path / "nowhere")


# ---- the profile fields of Facebook100 as declared categories, and what can be asked about them ----


NAMES = ("status", "gender", "major", "minor", "housing", "year", "school")
GRAPHS = {
    "facebook100-made7": ("status", "gender", "major", "minor", "housing", "school"),
    "facebook100-made7-gender": ("status", "major", "minor", "housing", "year", "school"),
    "facebook100-made7-2004-2009": ("status", "gender", "major", "minor", "housing"),
}
#: status, gender, major, minor, housing, year, school of seven people; 0 stands for an empty field.
PEOPLE = np.array(
    [
        [1, 1, 11, 0, 90, 2006, 5000],
        [2, 2, 12, 3, 91, 2005, 5001],
        [1, 0, 13, 0, 0, 2009, 5002],
        [5, 2, 0, 0, 0, 2004, 0],
        [1, 1, 300, 256, 257, 2007, 1024],
        [0, 2, 11, 0, 90, 2008, 5000],
        [9, 1, 11, 0, 90, 2008, 5000],
    ]
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return university(tmp_path_factory.mktemp("made"), PEOPLE.tolist(), "Made7")


@pytest.mark.parametrize("name", GRAPHS)
def test_every_field_but_the_label_is_a_column_whose_block_holds_the_codes_of_the_file(root: Path, name: str) -> None:
    """Whatever is read back from a block is the code modulo the number of buckets, and nothing where it is empty."""
    graph = load_graph(name, root=root)
    schema, x = graph.schema, graph.x.to_dense().numpy()
    assert tuple(column.name for column in schema.columns) == GRAPHS[name]
    assert width_of(schema.columns) == schema.dimension
    for column, block in zip(schema.columns, blocks_of(schema.columns), strict=True):
        assert isinstance(column.kind, Category) and column.kind.empty
        codes, size = PEOPLE[:, NAMES.index(column.name)], column.kind.width
        values = np.where(x[:, block].sum(axis=1) > 0, x[:, block].argmax(axis=1), -1)
        assert values.tolist() == np.where(codes > 0, codes % size, -1).tolist(), column.name


# ---- pPI in GraphSAINT's layout and MIR-Flickr in HeteroRR's, on made files ----


def test_graphsaint_files_are_one_graph(tmp_path):
    folder = saint(tmp_path)
    graph = validate(load_graph("ppi-graphsaint", tmp_path))
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graph.y.shape == (4, 121)
    assert graph.y.argmax(dim=1).tolist() == [0, 1, 2, 3]
    assert (graph.schema.low, graph.schema.high) == (0.0, 1.0)
    assert graph.test_mask.tolist() == [False, False, True, False]
    np.save(folder / "feats.npy", np.full((4, 50), 7.5))
    standardised = validate(load_graph("ppi-graphsaint", tmp_path))
    assert float(standardised.x.max()) == 4.0
    assert "clipped 200 feature values" in standardised.schema.notes[0]


def test_flickr_links_are_public_or_private(tmp_path):
    flickr(tmp_path)
    graph = validate(load_graph("mir-flickr", tmp_path))
    assert graph.y.tolist() == [1, 0, 0, 1]
    assert graph.schema.classes == ("no people", "people")
    assert graph.edge_index.tolist() == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    assert graph.public_edges.tolist() == [False, False, False, True, False, True]  # listed as both: private
    assert "taken by friends: 2 edges" in graph.schema.notes[-1]
    assert float(graph.x.max()) == 4.0
    assert "no published bound" in graph.schema.source
    assert graph.val_mask.tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    "links, message",
    [("0 9 1\n", r"link 0 is \[0, 9, 1\]"), ("0 1 2\n", "and 0 or 1"), ("a b c\n", "not a list of links")],
)
def test_wrong_links_are_refused(tmp_path, links, message):
    flickr(tmp_path, links)
    with pytest.raises(DataError, match=message):
        load_graph("mir-flickr", tmp_path)


@pytest.mark.parametrize(
    "damage, refusal, message",
    [
        (lambda folder: np.save(folder / "feat/mask_va.npy", np.array([0, 1])), DataError, "the same number of images"),
        (lambda folder: (folder / "mir.csv").write_text("id,people\na,x\n"), DataError, r"people of row 0 is .x."),
        (lambda folder: np.save(folder / "feat/b.npy", [1]), MissingDataError, "b.npy, resnet.npy where one file"),
        (lambda folder: (folder / "mir.pairs").unlink(), MissingDataError, "none where one file"),
    ],
)
def test_flickr_files_that_disagree_or_are_not_the_only_ones_are_refused(tmp_path, damage, refusal, message):
    damage(flickr(tmp_path))
    with pytest.raises(refusal, match=message):
        load_graph("mir-flickr", tmp_path)


@pytest.mark.parametrize(
    "file, content",
    [
        ("role.json", b'{"tr": [-1], "va": [1], "te": [2]}'),
        ("class_map.json", b'{"9": [0]}'),
        ("feats.npy", b"no"),
        ("adj_full.npz", b"no"),
    ],
)
def test_damaged_graphsaint_files_are_refused(tmp_path, file, content):
    (saint(tmp_path) / file).write_bytes(content)
    with pytest.raises(DataError, match="files of 'ppi-graphsaint' cannot be read"):
        load_graph("ppi-graphsaint", tmp_path)
