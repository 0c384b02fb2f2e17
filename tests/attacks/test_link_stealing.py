"""Similar answers betray links; friends who are alike anyway do not count."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from graphveil.attacks import link_stealing
from graphveil.attacks.pairs import belief_figures, pairs_of, true_adjacency
from graphveil.attacks.stolen_links import DISTANCES, distances, perceptron
from graphveil.errors import InputError
from tests.attacks import made


@cache
def control() -> Any:
    return perceptron(made.graph())


def test_a_plain_network_leaks_more_than_likeness() -> None:
    found = link_stealing(made.plain(), made.graph())
    assert found.baseline is not None and found.auc.low > found.baseline > 0.5
    assert found.figures["auc above no edges"] == pytest.approx(found.auc.mean - found.baseline)
    assert found.limit is None


def test_without_edges_nothing_is_above_the_control() -> None:
    found = link_stealing(control(), made.graph(), without_edges=control())
    assert found.auc.mean == found.baseline and not found.beats_limit


def test_a_constant_is_a_coin_and_a_planted_leak_is_caught() -> None:
    constant = link_stealing(made.Constant(), made.graph(), without_edges=control())
    assert constant.auc.low <= 0.5 <= constant.auc.high
    leaky = link_stealing(made.Leaky(), made.graph(), similarity="braycurtis", without_edges=control())
    assert leaky.baseline is not None and leaky.auc.low > leaky.baseline


def test_distances_are_those_of_each_pair() -> None:
    pairs = pairs_of(made.graph(), targets=40, seed=1)
    answers = torch.rand(300, 3, dtype=torch.float64).numpy()
    found = distances(answers, pairs, DISTANCES)
    first, second = pairs.ends()
    for column, name in enumerate(DISTANCES):
        exact = cdist(answers, answers, name)[first, second]
        assert np.allclose(found[:, column], exact)


def test_refusals() -> None:
    with pytest.raises(InputError, match="similarity"):
        link_stealing(made.Constant(), made.graph(), similarity="taste")
    with pytest.raises(InputError, match="known"):
        link_stealing(made.Constant(), made.graph(), known=1.0)
    with pytest.raises(InputError, match="known"):
        link_stealing(made.Constant(), made.graph(), known=0.5, shadow=(made.Leaky(), made.graph()))
    with pytest.raises(InputError, match="too few edges"):
        link_stealing(made.Constant(), made.graph(), known=0.01, without_edges=made.Constant())


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


@pytest.mark.parametrize("edges", [[], [(0, 1)]])
def test_fewer_than_two_private_edges_leave_nothing_to_tell_apart(edges: list[tuple[int, int]]) -> None:
    with pytest.raises(
        InputError,
        match=rf"attack: {len(edges)} private edges among 5 nodes; allowed: 2 private edges or more; no more nodes",
    ):
        pairs_of(Friends(5, both_ways(edges)))
    with pytest.raises(InputError, match="0 private edges"):
        pairs_of(Friends(6, both_ways(RING), [True] * 12))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1000), st.booleans()), min_size=2, max_size=30, unique_by=lambda one: one[0]),
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
    found = belief_figures(scores, edge, (belief,))
    assert found[f"precision at belief {belief:g}"] == hits / called
    assert found[f"recall at belief {belief:g}"] == hits / true
    assert found[f"f1 at belief {belief:g}"] == pytest.approx(2 * hits / (called + true))


@pytest.mark.slow  # attacks on trained networks
@pytest.mark.parametrize("how", ["known", "shadow"])
def test_what_is_learned_carries_over(how: str) -> None:
    lessons = {"known": {"known": 0.5}, "shadow": {"shadow": (made.Leaky(), made.graph(200, seed=8))}}
    found = link_stealing(made.Leaky(), made.graph(), without_edges=control(), **lessons[how])  # type: ignore[arg-type]
    assert found.auc.low > 0.6 and "learned" in found.target
