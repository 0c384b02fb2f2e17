"""What is expected of a release before it is paid for: from public facts alone, and right where it was measured."""

from __future__ import annotations

import math

import pytest
import torch

from graphveil.mechanisms import PairDomain
from graphveil.methods.base.cost import ASSUMED_DEGREE
from graphveil.methods.release.outlook import Outlook, outlook_of
from graphveil.methods.release.privacy import ReleasePrivacy


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
    found = expected(edges, epsilon, 2708)
    assert found.lift == lift
    assert ("none" in found.sentence) == (not lift)


def test_more_epsilon_never_takes_an_expected_lift_away() -> None:
    for edges in ("edge-rand", "lap-graph", "class-counts"):
        found = [expected(edges, epsilon, 1000) for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)]
        assert sorted(one.lift for one in found) == [one.lift for one in found]
        assert [one.noise for one in found] == sorted((one.noise for one in found), reverse=True)


def test_public_edges_say_how_many_private_ones_to_assume() -> None:
    ring = torch.stack([torch.arange(99), torch.arange(1, 100)])
    wheel = torch.triu_indices(100, 100, offset=1)[:, :2000]
    privacy = ReleasePrivacy(math.inf, 1.0, edges="class-counts")
    assert outlook_of(privacy, PairDomain(100, None, ring), 3).neighbours == ASSUMED_DEGREE
    assert outlook_of(privacy, PairDomain(100, None, wheel), 3).neighbours == 40.0
