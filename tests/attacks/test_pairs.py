"""The pairs that attacks on edges judge: each once, public ones left out, and figures by counting."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.attacks.pairs import belief_figures, pairs_of, true_adjacency
from graphveil.errors import InputError


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


def test_nodes_are_drawn_from_those_named_and_by_seed() -> None:
    complete = Friends(40, [(a, b) for a in range(40) for b in range(40) if a != b])
    among = np.arange(10, 40)
    found = [pairs_of(complete, targets=8, seed=seed, among=among).nodes for seed in (1, 1, 2)]
    assert np.array_equal(found[0], found[1]) and not np.array_equal(found[0], found[2])
    assert all(len(set(nodes)) == 8 and set(nodes) <= set(among) and (np.diff(nodes) > 0).all() for nodes in found)


@pytest.mark.parametrize("edges", [[], [(0, 1)]])
def test_fewer_than_two_private_edges_leave_nothing_to_tell_apart(edges: list[tuple[int, int]]) -> None:
    with pytest.raises(
        InputError,
        match=rf"attack: {len(edges)} private edges among 5 nodes; allowed: 2 private edges or more; no more nodes",
    ):
        pairs_of(Friends(5, both_ways(edges)))


def test_the_last_private_edges_may_be_public() -> None:
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


def test_a_constant_score_finds_what_chance_finds() -> None:
    """Edges first in the list: calling ties in order would find all of them. 5.5 deviations of 500 draws of 1,000."""
    edge = np.arange(1000) < 500
    found = belief_figures(np.zeros(1000), edge, (1.0,))["precision at belief 1"]
    assert abs(found - 0.5) < 5.5 * np.sqrt(0.25 / 500 * 0.5)


def test_a_graph_that_names_no_public_edges_has_none() -> None:
    plain = SimpleNamespace(num_nodes=6, edge_index=torch.tensor(both_ways(RING)).T)
    assert edges_of(pairs_of(plain)) == edges_of(pairs_of(Friends(6, both_ways(RING))))
