"""What an epsilon allows an adversary: the law's edges, and which guarantee speaks of which secret."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.attacks.limits import Limit, bound, limit_of, limit_of_answers, nothing
from graphveil.methods.registry import build_method
from graphveil.privacy import Guarantee

EPSILONS, DELTAS = st.floats(0.0, 800.0), st.floats(0.0, 0.5)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(EPSILONS, DELTAS)
def test_the_bound_is_a_curve_of_a_test(epsilon: float, delta: float) -> None:
    """In [0, 1], never falling, never below guessing."""
    grid = np.linspace(0, 1, 101)
    curve = bound(grid, epsilon, delta)
    assert (curve >= grid - 1e-12).all() and (curve <= 1).all() and (np.diff(curve) >= -1e-12).all()


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.floats(0.0, 8.0), DELTAS)
def test_what_one_side_may_do_the_other_may(epsilon: float, delta: float) -> None:
    """A point (f, t) turned over is (1 - t, 1 - f)."""
    grid = np.linspace(0, 1, 101)
    assert (bound(1 - bound(grid, epsilon, delta), epsilon, delta) >= 1 - grid - 1e-9).all()


def test_the_ends_of_the_bound() -> None:
    zero, one = np.array([0.0]), np.array([1.0])
    assert bound(zero, 1.0, 0.0)[0] == 0.0, "without false alarms nobody is certain"
    assert bound(zero, 1.0, 0.01)[0] == pytest.approx(0.01) and bound(one, 1.0, 0.0)[0] == 1.0
    assert bound(zero, 0.0, 0.0)[0] == 0.0 and bound(np.array([0.3]), 0.0, 0.0)[0] == pytest.approx(0.3)
    assert bound(np.array([0.0, 0.5]), math.inf, 0.0).tolist() == [1.0, 1.0]
    assert bound(np.array([1e-300]), 750.0, 0.0)[0] == 1.0, "no overflow"
    assert bound(zero, 1.0, 1.0)[0] == 1.0


def test_the_advantage_of_nothing_at_all_is_delta() -> None:
    assert Limit(0.0, 0.0, "").advantage == 0.0
    assert Limit(math.log(3), 0.0, "").advantage == pytest.approx(0.5)  # (3 - 1) / (3 + 1)
    grid = np.linspace(0, 1, 5001)
    best = float((bound(grid, 2.0, 0.01) - grid).max())
    assert Limit(2.0, 0.01, "").advantage == pytest.approx(best, abs=2e-3)
    assert Limit(0.0, 0.2, "").advantage == pytest.approx(0.2)
    assert Limit(900.0, 0.3, "").advantage == 1.0
    assert nothing("why").advantage is None and not nothing("why").exists and nothing("why").note == "why"


@dataclass(frozen=True)
class Stated:
    """A fitted method, by what it states."""

    guarantee: Guarantee
    epsilon_relationship: float | None = None
    privacy: Any = None


def of(name: str, **chosen: Any) -> Stated:
    """What a method promises before it has seen anybody."""
    from graphveil.graphs import load_graph
    from graphveil.methods.runs.plan import plan

    graph = load_graph("social-100")
    method = build_method(name, chosen, len(graph.schema.classes))
    return Stated(plan(name, graph, chosen).guarantee, privacy=getattr(method, "privacy", None))


def test_each_secret_is_bound_by_the_part_that_covers_it_and_not_by_the_sum() -> None:
    both = of("lpgnn", epsilon_x=1.0, epsilon_y=2.0)
    assert both.guarantee.epsilon == pytest.approx(3.0)
    assert limit_of(both, "features").epsilon == pytest.approx(1.0)
    assert limit_of(both, "label").epsilon == pytest.approx(2.0)
    for secret in ("edge", "node"):
        assert not limit_of(both, secret).exists
        assert "outside what the method protects" in limit_of(both, secret).note
    public = of("lpgnn", epsilon_x=math.inf, epsilon_y=2.0)
    assert limit_of(public, "label").epsilon == pytest.approx(2.0) and not limit_of(public, "features").exists
    for secret in ("edge", "node", "features", "label"):
        assert limit_of(of("gcn"), secret) == nothing("the method protects nothing")


def test_an_edge_is_bound_by_the_price_of_the_relationship() -> None:
    gap = of("gap", epsilon=1.0)
    assert limit_of(gap, "edge").epsilon == pytest.approx(1.0)
    dearer = replace(gap, epsilon_relationship=1.5)
    assert limit_of(dearer, "edge").epsilon == 1.5 and "one relationship" in limit_of(dearer, "edge").note
    assert not limit_of(replace(gap, epsilon_relationship=math.inf), "edge").exists
    assert not limit_of(dearer, "features").exists and not limit_of(dearer, "label").exists


def test_a_node_is_bound_with_all_its_parts() -> None:
    node = of("gap", epsilon=8.0, unit="node", degree_bound=5)
    for secret in ("node", "features", "label"):
        assert limit_of(node, secret).epsilon == pytest.approx(8.0)


def test_an_edge_between_two_nodes_stands_in_two_lists_unless_degrees_are_promised() -> None:
    """Group privacy for two: twice epsilon, and delta (1 + e^epsilon)."""
    cut = of("gap", epsilon=2.0, delta=1e-4, unit="node", degree_bound=5)
    found = limit_of(cut, "edge")
    assert found.epsilon == pytest.approx(4.0) and found.delta == pytest.approx(1e-4 * (1 + math.exp(2.0)))
    huge = replace(cut, guarantee=replace(cut.guarantee, epsilon=800.0))
    assert limit_of(huge, "edge").delta == 1.0
    assert not limit_of(replace(cut, guarantee=replace(cut.guarantee, epsilon=math.inf)), "edge").exists
    promised = of("gap", epsilon=2.0, unit="node", degree_bound=5, rule="declared")
    assert limit_of(promised, "edge").epsilon == pytest.approx(2.0)


def test_the_answer_about_a_node_is_not_bound_by_joint_privacy() -> None:
    node, local = of("gap", epsilon=8.0, unit="node", degree_bound=5), of("lpgnn", epsilon_x=1.0, epsilon_y=2.0)
    assert not limit_of_answers(node).exists and "everybody else's view" in limit_of_answers(node).note
    assert limit_of_answers(local) == limit_of(local, "features")


def test_reproducible_noise_is_attacked_as_if_it_were_not() -> None:
    both = of("lpgnn", epsilon_x=1.0, epsilon_y=2.0)
    void = replace(both, guarantee=replace(both.guarantee, void="seed 3", parts=both.guarantee.parts))
    assert limit_of(void, "label").epsilon == pytest.approx(2.0)
    assert "void: seed 3" in limit_of(void, "label").note and "void" not in limit_of(both, "label").note
    assert "void: seed 3" in limit_of(void, "edge").note and "void" not in limit_of(both, "edge").note


def test_what_states_no_guarantee_has_no_limit() -> None:
    assert limit_of(SimpleNamespace(), "edge") == nothing("the method states no guarantee")
    assert limit_of(SimpleNamespace(guarantee=None), "label").note == "the method states no guarantee"
