"""Links that similar answers, influence and published graphs betray; alike friends do not count."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from graphveil.attacks import linkteller
from graphveil.attacks.influence import influence_gcn, influences, reached
from graphveil.attacks.pairs import belief_figures, pairs_of, true_adjacency
from graphveil.attacks.release_edges import as_it_is, common_neighbours, entries_of, published_edges, with_public_edges
from graphveil.attacks.service import deployed, service_of
from graphveil.attacks.stolen_links import DISTANCES, distances, link_stealing, perceptron, public_network
from graphveil.errors import InputError
from graphveil.graphs import draw_private, random_split
from graphveil.methods import GAP, HeteroRR
from graphveil.privacy import SeededRandomness
from tests.attacks import made


@cache
def control() -> Any:
    return perceptron(made.graph())


def test_a_plain_network_leaks_more_than_likeness() -> None:
    result = link_stealing(made.plain(), made.graph())
    assert result.baseline is not None and result.auc.low > result.baseline > 0.5
    assert result.figures["auc above no edges"] == pytest.approx(result.auc.mean - result.baseline)
    assert result.limit is None


def test_without_edges_nothing_is_above_the_control() -> None:
    result = link_stealing(control(), made.graph(), without_edges=control())
    assert result.auc.mean == result.baseline and not result.beats_limit


def test_a_constant_is_a_coin_and_a_planted_leak_is_caught() -> None:
    constant = link_stealing(made.Constant(), made.graph(), without_edges=control())
    assert constant.auc.low <= 0.5 <= constant.auc.high
    leaky = link_stealing(made.Leaky(), made.graph(), similarity="braycurtis", without_edges=control())
    assert leaky.baseline is not None and leaky.auc.low > leaky.baseline


def test_distances_are_those_of_each_pair() -> None:
    pairs = pairs_of(made.graph(), targets=40, seed=1)
    answers = torch.rand(300, 3, dtype=torch.float64).numpy()
    measured = distances(answers, pairs, DISTANCES)
    first, second = pairs.ends()
    for column, name in enumerate(DISTANCES):
        exact = cdist(answers, answers, name)[first, second]
        assert np.allclose(measured[:, column], exact)


def test_refusals() -> None:
    with pytest.raises(InputError, match="similarity"):
        link_stealing(made.Constant(), made.graph(), similarity="taste")
    with pytest.raises(InputError, match="known"):
        link_stealing(made.Constant(), made.graph(), known_share=1.0)
    with pytest.raises(InputError, match="known"):
        link_stealing(made.Constant(), made.graph(), known_share=0.5, shadow=(made.Leaky(), made.graph()))
    with pytest.raises(InputError, match="too few edges"):
        link_stealing(made.Constant(), made.graph(), known_share=0.01, without_edges=made.Constant())


class Friends:
    """A graph of a few people, as far as attacks look at it.

    Args:
        edges: as they are listed; an undirected friendship in both directions.
        public: mask over the edges.
    """

    def __init__(self, nodes: int, edges: list[tuple[int, int]], public: list[bool] | None = None) -> None:
        self.num_nodes = nodes
        self.edge_index = torch.tensor(edges).reshape(-1, 2).T
        self.public_edges = None if public is None else torch.tensor(public)

    def get(self, name: str) -> object:
        return getattr(self, name)


def both_ways(edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [*edges, *((b, a) for a, b in edges)]


def edges_of(pairs: object) -> set[tuple[int, int]]:
    first, second = pairs.ends()  # type: ignore[attr-defined]
    return {(int(a), int(b)) for a, b, edge in zip(first, second, pairs.edge, strict=True) if edge}  # type: ignore[attr-defined]


RING = [(node, (node + 1) % 6) for node in range(6)]


def test_every_pair_of_a_small_graph_is_judged_once() -> None:
    pairs = pairs_of(Friends(6, both_ways(RING)))
    assert len(pairs.edge) == 15
    assert (pairs.first < pairs.second).all()
    assert edges_of(pairs) == {tuple(sorted(edge)) for edge in RING}
    assert pairs.split(np.arange(15.0))[0].size == 6


def test_an_edge_listed_one_way_is_one_relationship() -> None:
    one_way = Friends(6, RING)
    assert edges_of(pairs_of(one_way)) == edges_of(pairs_of(Friends(6, both_ways(RING))))
    assert (true_adjacency(one_way).toarray() == true_adjacency(Friends(6, both_ways(RING))).toarray()).all()


def test_public_pairs_are_no_secret_whichever_way_they_are_listed() -> None:
    public = [edge == (0, 1) or edge == (3, 2) for edge in both_ways(RING)]
    pairs = pairs_of(Friends(6, both_ways(RING), public))
    assert len(pairs.edge) == 13
    assert edges_of(pairs) == {(1, 2), (3, 4), (4, 5), (0, 5)}


def test_where_every_pair_is_an_edge_there_is_nothing_to_tell_edges_from() -> None:
    everybody = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    with pytest.raises(InputError, match="all pairs of 4 nodes are edges; allowed: some pairs without an edge"):
        pairs_of(Friends(4, both_ways(everybody)))


@pytest.mark.parametrize("edges", [[], [(0, 1)]])
def test_fewer_than_two_private_edges_leave_nothing_to_tell_apart(edges: list[tuple[int, int]]) -> None:
    with pytest.raises(
        InputError,
        match=rf"attack: {len(edges)} private edges? among 5 nodes; allowed: 2 private edges or more; no more nodes",
    ):
        pairs_of(Friends(5, both_ways(edges)))
    with pytest.raises(InputError, match="0 private edges"):
        pairs_of(Friends(6, both_ways(RING), [True] * 12))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1000), st.booleans()), min_size=2, max_size=30, unique_by=lambda pair: pair[0]),
    st.floats(0.1, 4),
)
def test_figures_of_a_belief_are_counted(judged: list[tuple[int, bool]], belief: float) -> None:
    """Scores without ties: the best k are called edges, k at least one and no more than there are."""
    if not any(edge for _, edge in judged):
        return
    scores, edge = np.array([score for score, _ in judged], float), np.array([edge for _, edge in judged])
    true = int(edge.sum())
    called = min(max(1, round(belief * true)), len(judged))
    hits = sum(is_edge for _, is_edge in sorted(judged, reverse=True)[:called])
    figures = belief_figures(scores, edge, (belief,))
    assert figures[f"precision at belief {belief:g}"] == hits / called
    assert figures[f"recall at belief {belief:g}"] == hits / true
    assert figures[f"f1 at belief {belief:g}"] == pytest.approx(2 * hits / (called + true))


@pytest.mark.slow  # attacks on trained networks
@pytest.mark.parametrize("how", ["known", "shadow"])
def test_what_is_learned_carries_over(how: str) -> None:
    lessons = {"known": {"known_share": 0.5}, "shadow": {"shadow": (made.Leaky(), made.graph(200, seed=8))}}
    result = link_stealing(made.Leaky(), made.graph(), without_edges=control(), **lessons[how])  # type: ignore[arg-type]
    assert result.auc.low > 0.6 and "learned" in result.target


# ---- influence on answers ----


@pytest.mark.slow  # attacks on trained networks
@pytest.mark.parametrize("model", ["gcn", "sage", "gat"])
def test_a_plain_network_gives_its_edges_away(model: str) -> None:
    result = linkteller(made.plain(model), made.graph(), targets=150)
    assert (
        ("by the derivative" in result.notes[1]) == (model == "gcn") != ("queries of the simulation" in result.notes[1])
    )
    assert result.auc.low > 0.9 and result.limit is None
    assert result.figures["f1 at belief 1"] > 0.2


def test_a_network_without_edges_gives_nothing_away() -> None:
    result = linkteller(made.plain("mlp"), made.graph(), targets=100)
    assert result.auc.mean == 0.5 and result.baseline == 0.5


def test_differences_agree_with_the_closed_form() -> None:
    nodes = np.arange(0, 300, 3)
    network = deployed(made.plain(), made.graph())
    exact = influence_gcn(network, nodes)
    influence, queries = influences(service_of(made.plain(), made.graph()), nodes)
    assert queries < len(nodes)
    assert np.abs(influence - exact).max() < 1e-3 * exact.max()
    assert ((exact > 0) <= (influence > 0)).all()
    wrong, _ = influences(service_of(made.plain(), made.graph()), nodes, step=0.5)
    assert np.abs(wrong - exact).max() > 1e-2 * exact.max()  # so coarse a difference is turned down


def test_reach_is_what_a_walk_reaches() -> None:
    adjacency = service_of(made.plain(), made.graph()).adjacency
    assert adjacency is not None
    walk = np.linalg.matrix_power(adjacency.toarray().T + np.eye(300, dtype=int), 2)
    nodes = np.arange(50, 90)
    assert np.array_equal(reached(adjacency, nodes, 2).toarray() > 0, walk[np.ix_(nodes, nodes)] > 0)


def test_the_planted_leak_is_caught_and_a_constant_is_not() -> None:
    leaky = linkteller(made.Leaky(), made.graph(), targets=60)
    assert leaky.auc.low > 0.8
    constant = linkteller(made.Constant(), made.graph(), targets=60)
    assert constant.auc.low <= 0.5 <= constant.auc.high and "change nothing" in constant.notes[0]


@pytest.mark.parametrize(
    ("ids", "note"), [(True, "change nothing"), (False, "refuses to be asked with other features")]
)
def test_a_curator_tells_nothing_of_other_features(ids: bool, note: str) -> None:
    """People whom ids name are answered from what was published; without ids, other features can be other people's."""
    graph = copy.copy(made.graph())
    if ids:
        graph.ids = list(range(graph.num_nodes))
    method = GAP(epsilon=4.0, epochs=3, hidden=4)
    method.fit(graph, split=random_split(graph, 0), randomness=SeededRandomness(1))
    before = method.ledger
    result = linkteller(method, graph, targets=100)
    assert result.auc.mean == 0.5 and note in result.notes[0] and method.ledger == before
    assert result.limit is not None and result.epsilon == pytest.approx(4.0) and not result.beats_limit


def test_refusals_of_influence() -> None:
    service = service_of(made.plain(), made.graph())
    with pytest.raises(InputError, match="step"):
        influences(service, np.arange(3), step=0.0)
    with pytest.raises(InputError, match="closed form"):
        influence_gcn(deployed(made.plain("sage"), made.graph()), np.arange(3))


# ---- what a published graph lists ----


def truth() -> Any:
    return draw_private(made.graph(), 0.4, 1)


def published(epsilon: float = 2.0, edges: str = "edge-rand", seed: int = 3) -> Any:
    maker = HeteroRR(epsilon_x=float("inf"), epsilon_a=epsilon, edges=edges)
    return maker.release(truth(), randomness=SeededRandomness(seed))


@pytest.mark.parametrize("edges", [pytest.param("public-tree", marks=pytest.mark.slow), "edge-rand", "lap-graph"])
def test_made_edges_tell_no_more_than_epsilon_allows(edges: str) -> None:
    result = published_edges(made.graph(), published(edges=edges))
    assert result.epsilon == 2.0 and result.limit is not None and result.limit < 0.1
    assert not result.beats_limit


def test_true_edges_under_a_promise_are_caught_and_give_themselves_away_without_one() -> None:
    """The wrong scale: the truth, sold as a release at epsilon 2."""
    leaking = copy.copy(published())
    leaking.edge_index, leaking.public_edges = truth().edge_index, truth().public_edges
    result = published_edges(made.graph(), leaking)
    assert result.auc.mean == 1.0 and result.beats_limit
    result = published_edges(made.graph(), as_it_is(made.graph(), published()))
    assert result.auc.mean == 1.0 and result.limit is None and not result.beats_limit
    assert result.figures == {"edges listed": 1.0, "others listed": 0.0}


def test_noise_for_a_far_larger_epsilon_than_promised_is_caught() -> None:
    loose, promised = published(12.0, "edge-rand"), published(1.0, "edge-rand")
    loose.release = promised.release
    assert published_edges(made.graph(), loose).beats_limit
    assert not published_edges(made.graph(), published(1.0, "edge-rand")).beats_limit


def test_public_edges_are_no_secret() -> None:
    marked = with_public_edges(made.graph(), published())
    assert torch.equal(marked.public_edges, truth().public_edges)
    result = published_edges(made.graph(), published())
    assert result.positives == int((~truth().public_edges).sum()) // 2


def test_the_control_leaves_the_pair_itself_out() -> None:
    served = published()
    pairs = pairs_of(with_public_edges(made.graph(), served))
    adjacency = true_adjacency(served).tolil()
    place = int(np.flatnonzero(entries_of(adjacency.tocsr(), pairs))[0])
    i, j = (int(end[place]) for end in pairs.ends())
    without = adjacency.copy()
    without[i, j] = without[j, i] = 0
    scores = []
    for a in (adjacency.tocsr(), without.tocsr()):
        scored = common_neighbours(a, pairs, entries_of(a, pairs))
        scores.append(np.floor(scored[place]))  # the tie-break is scaled by the largest of all pairs
    assert scores[0] == scores[1]
    assert entries_of(without.tocsr(), pairs)[place] == 0.0


def test_another_graph_is_no_truth() -> None:
    with pytest.raises(InputError, match="the truth has 200 nodes"):
        published_edges(made.graph(200, seed=8), published())
    served, other = published(), copy.copy(made.graph())
    served.ids, other.ids = [f"{row}" for row in range(300)], [f"{row}" for row in reversed(range(300))]
    with pytest.raises(InputError, match="other node ids"):
        published_edges(other, served)


@pytest.mark.slow  # attacks on trained networks
def test_link_stealing_on_a_release_is_held_against_its_public_edges() -> None:
    served, split = published(), random_split(made.graph(), 0)
    control = public_network(served, split=split)
    graph = with_public_edges(made.graph(), served)
    result = link_stealing(control, graph, without_edges=control, without="public edges", split=split)
    assert result.auc.mean == result.baseline and result.baseline_note == "public edges"
    bare = copy.copy(served)
    bare.public_edges = None
    assert public_network(bare, split=split).released is not None
