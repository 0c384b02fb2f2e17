"""Influence finds the edges of what answers openly, and nothing where answers do not depend on the question."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphveil.attacks import linkteller
from graphveil.attacks.influence import influence_gcn, influences, reached
from graphveil.attacks.pairs import pairs_of
from graphveil.attacks.service import deployed, service_of
from graphveil.errors import InputError
from graphveil.graphs import random_split
from graphveil.methods import GAP
from graphveil.privacy import SeededRandomness
from tests.attacks import made


@pytest.mark.slow  # attacks on trained networks
@pytest.mark.parametrize("model", ["gcn", "sage", "gat"])
def test_a_plain_network_gives_its_edges_away(model: str) -> None:
    found = linkteller(made.plain(model), made.graph(), targets=150)
    assert (
        ("by the derivative" in found.notes[1]) == (model == "gcn") != ("queries of the simulation" in found.notes[1])
    )
    assert found.auc.low > 0.9 and found.limit is None
    assert found.figures["f1 at belief 1"] > 0.2


def test_a_network_without_edges_gives_nothing_away() -> None:
    found = linkteller(made.plain("mlp"), made.graph(), targets=100)
    assert found.auc.mean == 0.5 and found.baseline == 0.5


def test_differences_agree_with_the_closed_form() -> None:
    nodes = np.arange(0, 300, 3)
    network = deployed(made.plain(), made.graph())
    exact = influence_gcn(network, nodes)
    found, queries = influences(service_of(made.plain(), made.graph()), nodes)
    assert queries < len(nodes)
    assert np.abs(found - exact).max() < 1e-3 * exact.max()
    assert ((exact > 0) <= (found > 0)).all()
    wrong, _ = influences(service_of(made.plain(), made.graph()), nodes, step=0.5)
    assert np.abs(wrong - exact).max() > 1e-2 * exact.max()  # so coarse a difference is turned down


def test_effects_in_parts_are_the_effects_of_each_node_alone() -> None:
    network, nodes = deployed(made.plain(), made.graph()), np.arange(0, 300, 2)
    together = influence_gcn(network, nodes)
    for place in (0, 63, 64, 149):
        chosen = np.array([nodes[place], nodes[0], nodes[63], nodes[64], nodes[149]])
        alone = influence_gcn(network, chosen)[0]
        assert alone == pytest.approx(together[place][[place, 0, 63, 64, 149]], abs=1e-12)


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


def test_a_curator_answers_from_its_cache() -> None:
    method = GAP(epsilon=4.0, epochs=3, hidden=4)
    method.fit(made.graph(), split=random_split(made.graph(), 0), randomness=SeededRandomness(1))
    before = method.ledger
    found = linkteller(method, made.graph(), targets=100)
    assert found.auc.mean == 0.5 and "change nothing" in found.notes[0] and method.ledger == before
    assert found.limit is not None and found.epsilon == pytest.approx(4.0) and not found.beats_limit


def test_refusals() -> None:
    service = service_of(made.plain(), made.graph())
    with pytest.raises(InputError, match="step"):
        influences(service, np.arange(3), step=0.0)
    with pytest.raises(InputError, match="closed form"):
        influence_gcn(deployed(made.plain("sage"), made.graph()), np.arange(3))
    empty = made.graph().clone()
    empty.edge_index = torch.empty(2, 0, dtype=torch.int64)
    with pytest.raises(InputError, match="private edges"):
        pairs_of(empty)
