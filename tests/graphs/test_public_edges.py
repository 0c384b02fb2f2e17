"""Public edges and private nodes: read, written, drawn for experiments, and what is refused."""

from __future__ import annotations

import pytest
import torch

from graphveil.errors import DataError, InputError
from graphveil.graphs import describe, draw_private, from_pyg, load_graph, social_graph, to_pyg, validate, write_folder
from tests.graphs.made import NODES, TOML, folder, tiny_graph

KNOWN = TOML + 'public_edges = "seen"\n'


def edges(*rows: str) -> str:
    return "source,target,seen\n" + "".join(f"{row}\n" for row in rows)


def test_public_edges_are_read_in_both_directions(tmp_path):
    graph = validate(load_graph(folder(tmp_path, graph__toml=KNOWN, edges__csv=edges("b,a,yes", "b,c,False", "a,c,1"))))
    assert graph.edge_index.tolist() == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    assert graph.public_edges.tolist() == [True, True, True, False, True, False]
    assert graph.get("private_nodes") is None
    assert describe(graph)["known"] == {"public_edges": 2, "private_edges": 1, "private_nodes": 3}


def test_private_nodes_are_declared_and_no_feature_and_directed_edges_have_a_word_each(tmp_path):
    toml = KNOWN.replace("false", "true") + 'private_nodes = "member"\n'
    nodes = "id,h,w,label,member\na,1,2,cat,true\nb,3,4,dog,false\nc,5,6,,true\n"
    graph = load_graph(folder(tmp_path, graph__toml=toml, nodes__csv=nodes, edges__csv=edges("a,b,1", "b,a,0")))
    assert validate(graph).private_nodes.tolist() == [0, 2] and graph.x.shape == (3, 2)
    assert graph.public_edges.tolist() == [True, False]


@pytest.mark.parametrize(
    "rows, message",
    [
        (("a,b,1", "b,c,maybe"), r"edges.csv, line 3: seen is 'maybe'; allowed: true or false in every row"),
        (("a,b,1", "b,c,"), r"line 3: seen is None; allowed: true or false"),
        (("b,a,0", "a,b,1"), r"line 3: seen is '1', but another row lists the same edge as private; allowed: both"),
    ],
)
def test_refusals_of_the_column(tmp_path, rows, message):
    with pytest.raises(DataError, match=message):
        load_graph(folder(tmp_path, graph__toml=KNOWN, edges__csv=edges(*rows)))
    with pytest.raises(DataError, match="has no column 'seen'; allowed: its columns are source, target"):
        load_graph(folder(tmp_path, graph__toml=KNOWN))
    with pytest.raises(DataError, match="has no column 'member'"):
        load_graph(folder(tmp_path / "b", graph__toml=TOML + 'private_nodes = "member"\n', nodes__csv=NODES))


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_what_is_known_survives_the_round_trip(tmp_path, format):
    graph = draw_private(social_graph(80, 6.0, 20, 3), 0.3, seed=2)
    graph.private_nodes = torch.arange(0, 80, 2)
    again = validate(load_graph(write_folder(graph, tmp_path / "graph", format=format)))
    for part in ("edge_index", "public_edges", "private_nodes"):
        assert torch.equal(again[part], graph[part])
    graph.edge_index, graph.public_edges = graph.edge_index[:, :0], graph.public_edges[:0]
    assert load_graph(write_folder(graph, tmp_path / "bare", format=format)).public_edges.shape == (0,)


def test_a_graph_whose_edges_are_not_all_public_declares_edges_private(tmp_path):
    """Its other edges are for nobody: methods that hand the topology to a server, and pages, go by the declaration."""
    members = TOML + 'private_nodes = "member"\n'
    nodes = "id,h,w,label,member\na,1,2,cat,true\nb,3,4,dog,false\nc,5,6,,true\n"
    listed = folder(tmp_path / "listed", graph__toml=KNOWN, edges__csv=edges("a,c,1"))
    for place in (listed, folder(tmp_path / "members", graph__toml=members, nodes__csv=nodes)):
        graph = load_graph(place)
        assert graph.schema.private == ("features", "labels", "edges")
        schema = graph.schema.derived(private=("labels",))
        assert from_pyg(to_pyg(graph), schema=schema).schema.private == ("labels", "edges")
    assert draw_private(social_graph(80, 6.0, 20, 3), 0.3, seed=2).schema.private == ("features", "labels", "edges")


def test_drawing_private_edges():
    graph = social_graph(200, 8.0, 20, 3)
    drawn = validate(draw_private(graph, 0.25, seed=3))
    assert graph.get("public_edges") is None and "drew" not in " ".join(graph.schema.notes)
    assert int((~drawn.public_edges).sum()) == 2 * round(0.25 * graph.edge_index.shape[1] / 2)
    assert drawn.schema.notes[-1] == "drew 0.25 of the edges as private, with seed 3: an experiment"
    assert torch.equal(drawn.public_edges, draw_private(graph, 0.25, seed=3).public_edges)
    assert not torch.equal(drawn.public_edges, draw_private(graph, 0.25, seed=4).public_edges)
    assert not bool(draw_private(graph, 1.0, seed=3).public_edges.any())


@pytest.mark.parametrize("share", [0.0, 1.5, float("nan")])
def test_shares_that_are_none(share):
    with pytest.raises(InputError, match=r"allowed: a number in [(]0, 1[]]"):
        draw_private(tiny_graph(), share, seed=0)
    with pytest.raises(InputError, match="already declares which edges are public; leave out the share"):
        draw_private(draw_private(tiny_graph(), 0.5, seed=0), 0.5, seed=0)


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_no_part_of_private_edges_is_drawn_as_public(share):
    """All but the share would be published as it is, and under an epsilon that says nothing of it."""
    graph = social_graph(40, 5.0, 20, 3)
    graph.schema = graph.schema.derived(private=("edges",))
    with pytest.raises(InputError, match=r"declares its edges private, .* leave out the share: all of its edges are"):
        draw_private(graph, share, seed=0)
