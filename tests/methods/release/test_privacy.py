"""The price of publishing a graph, and what its guarantee leans on; nothing is released here."""

from __future__ import annotations

import math
from typing import Any

import pytest

from graphveil.hierarchy.markov import ASYMPTOTIC
from graphveil.mechanisms import PairDomain
from graphveil.methods.release.names import CHAINS, EDGE_METHODS
from graphveil.methods.release.privacy import ReleasePrivacy
from tests.methods import made

DOMAIN = PairDomain(made.NODES, None, None)


def privacy(edges: str, **changes: Any) -> ReleasePrivacy:
    return ReleasePrivacy(**{"epsilon_x": math.inf, "epsilon_a": 3.0, "edges": edges, **changes})


@pytest.mark.parametrize("share", [0.01, 0.25, 0.99])
@pytest.mark.parametrize("edges", EDGE_METHODS)
def test_what_the_steps_on_private_edges_cost_adds_up_to_their_epsilon(edges: str, share: float) -> None:
    budgets = privacy(edges, tree_share=share).edge_budgets()
    assert math.fsum(budgets.values()) == pytest.approx(3.0, rel=1e-12) and all(budgets.values())
    if edges in CHAINS:
        assert budgets["tree"] == pytest.approx(3.0 * share)


@pytest.mark.parametrize("edges", EDGE_METHODS)
def test_a_tree_from_a_markov_chain_is_called_asymptotic_first_of_all(edges: str) -> None:
    found = privacy(edges).guarantee(made.graph(20).schema, DOMAIN)
    assert (found.assumes[0] == ASYMPTOTIC) == (edges in CHAINS) == (ASYMPTOTIC in found.assumes)
    assert found.epsilon == 3.0
