"""Every named set that lies under GRAPHVEIL_DATA: published counts, one conformance suite, memory."""

from __future__ import annotations

import pytest
import torch

from graphveil.errors import MissingDataError
from graphveil.graphs import NAMES, data_root, describe, load_graph, random_split, validate
from graphveil.runtime.late import quiet

# name: nodes, undirected edges without self-loops, features, classes, range
COUNTS = {
    "cora": (2_708, 5_278, 1_433, 7),
    "citeseer": (3_327, 4_552, 3_703, 6),
    "citeseer-lcc": (2_110, 3_668, 3_703, 6),
    "pubmed": (19_717, 44_324, 500, 3),
    "cora-ml": (2_995, 8_158, 2_879, 7),
    "amazon-computers": (13_752, 245_861, 767, 10),
    "coauthor-physics": (34_493, 247_962, 8_415, 5),
    "facebook": (22_470, 170_823, 4_714, 4),
    "twitch-de": (9_498, 153_138, 3_170, 2),
    "twitch-en": (7_126, 35_324, 3_170, 2),
    "twitch-es": (4_648, 59_382, 3_170, 2),
    "twitch-ru": (4_385, 37_304, 3_170, 2),
    "ppi": (14_755, 222_109, 50, 121),
    "ppi-graphsaint": (14_755, 222_109, 50, 121),
    "facebook100-caltech36": (769, 16_656, 1_804, 6),
    "facebook100-harvard1": (15_126, 824_617, 1_804, 6),
    "facebook100-wisconsin87": (23_842, 835_952, 1_804, 6),
    "digits": (1_797, 12_292, 32, 10),
    "social": (5_000, 50_000, 1_000, 8),
}
MASKS = {
    "cora": (140, 500, 1000),
    "citeseer": (120, 500, 1000),
    "pubmed": (60, 500, 1000),
    "ppi": (9716, 1825, 3214),
    "ppi-graphsaint": (9716, 1825, 3214),
}
DENSE = {"pubmed", "amazon-computers", "digits"}


def published(name: str):
    try:
        return load_graph(name, download=False)
    except MissingDataError as absent:
        pytest.skip(f"{name} does not lie under GRAPHVEIL_DATA ({absent.where})")


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_conformance(name):
    graph = validate(published(name))
    nodes, edges, features, classes = COUNTS[name]
    assert graph.num_nodes == nodes
    assert graph.edge_index.shape[1] == 2 * edges
    assert tuple(graph.x.shape) == (nodes, features)
    assert graph.schema.dimension == features
    assert len(graph.schema.classes) == classes
    assert graph.x.layout == (torch.strided if name in DENSE else torch.sparse_csr)
    assert graph.schema.private == ("features", "labels")
    assert graph.schema.source
    assert any("edges" in note for note in graph.schema.notes)
    assert "data owner" in str(describe(graph)["warning"])
    if name in MASKS:
        masks = (graph.train_mask, graph.val_mask, graph.test_mask)
        assert tuple(int(mask.sum()) for mask in masks) == MASKS[name]
    labelled = int((graph.y >= 0).sum()) if graph.y.dim() == 1 else nodes
    split = random_split(graph, 0)
    assert int((split.train | split.val | split.test).sum()) == labelled


def test_every_name_is_known_here():
    further = "amazon-photo coauthor-cs dblp lastfm mir-flickr reddit ogbn-arxiv twitch-fr twitch-pt"
    assert set(NAMES) == {name for name in COUNTS if not name.startswith("facebook100")} | set(further.split())


@pytest.mark.parametrize("name, folder", [("cora", "Cora"), ("citeseer", "CiteSeer"), ("pubmed", "PubMed")])
def test_the_same_planetoid_graph_as_through_pyg(name, folder):
    graph = published(name)
    with quiet():
        from torch_geometric.io import read_planetoid_data
        from torch_geometric.utils import to_undirected

        data = read_planetoid_data(str(data_root() / "pyg/Planetoid" / folder / "raw"), name)
    data.edge_index = to_undirected(data.edge_index)
    assert torch.equal(graph.x.to_dense(), data.x.to_dense())
    for part in ("y", "edge_index", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(getattr(graph, part), data[part])
