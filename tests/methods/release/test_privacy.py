"""The price of publishing a graph, and what its guarantee leans on; nothing is released here."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from graphveil.hierarchy.markov import ASYMPTOTIC
from graphveil.mechanisms import PairDomain
from graphveil.methods.base.cost import ASSUMED_DEGREE
from graphveil.methods.release.entries import CHAINS, EDGE_METHODS
from graphveil.methods.release.plan import Outlook, outlook_of
from graphveil.methods.release.privacy import ReleasePrivacy
from tests.methods import made

DOMAIN = PairDomain(made.NODES, None, None)
SCHEMA = made.graph(20).schema


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
    guarantee = privacy(edges).guarantee(SCHEMA, DOMAIN)
    assert (guarantee.assumes[0] == ASYMPTOTIC) == (edges in CHAINS) == (ASYMPTOTIC in guarantee.assumes)
    assert guarantee.epsilon == 3.0


def test_a_release_of_labels_says_that_it_shows_who_has_one() -> None:
    for epsilon_y in (1.0, math.inf):
        codes = {fact.code for fact in privacy("edge-rand", epsilon_y=epsilon_y).guarantee(SCHEMA, DOMAIN).assumes}
        assert ("labelled-public" in codes) == math.isfinite(epsilon_y)


# ---- what is expected of a release before it is paid for ----


def expected(edges: str, epsilon: float, nodes: int, classes: int = 7) -> Outlook:
    return outlook_of(ReleasePrivacy(math.inf, epsilon, edges=edges), PairDomain(nodes), classes)


@pytest.mark.parametrize("nodes", [500, 2708, 13752])
def test_noise_of_pairs_grows_with_the_graph_and_that_of_counts_does_not(nodes: int) -> None:
    pairs, counts = (expected(edges, 2.0, nodes).noise for edges in ("edge-rand", "class-counts"))
    assert pairs == pytest.approx((nodes - 1) / (math.exp(2.0) + 1))
    assert counts == pytest.approx(expected("class-counts", 2.0, 50).noise)


@pytest.mark.parametrize(
    ("edges", "epsilon", "lift"),
    [
        ("edge-rand", 8.0, True),
        ("edge-rand", 4.0, False),
        ("lap-graph", 8.0, True),
        ("lap-graph", 4.0, False),
        ("class-counts", 8.0, True),
        ("class-counts", 1.0, True),
        ("class-counts", 0.1, False),
        ("public-tree", 8.0, False),
    ],
)
def test_the_rule_says_of_cora_what_was_measured_there(edges: str, epsilon: float, lift: bool) -> None:
    """2,708 people and 7 classes; the figures are those of the panel in benchmarks/README.md."""
    rule = expected(edges, epsilon, 2708)
    assert rule.lift == lift
    assert ("none" in rule.sentence) == (not lift)


def test_public_edges_say_how_many_private_ones_to_assume() -> None:
    ring = torch.stack([torch.arange(99), torch.arange(1, 100)])
    wheel = torch.triu_indices(100, 100, offset=1)[:, :2000]
    privacy = ReleasePrivacy(math.inf, 1.0, edges="class-counts")
    assert outlook_of(privacy, PairDomain(100, None, ring), 3).neighbours == ASSUMED_DEGREE
    assert outlook_of(privacy, PairDomain(100, None, wheel), 3).neighbours == 40.0
