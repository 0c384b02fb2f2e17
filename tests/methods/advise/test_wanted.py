"""A goal for a method that somebody chose: which epsilon is searched, and what is not read for it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from graphveil.errors import InputError
from graphveil.methods.advise.goal import GRID, Goal
from graphveil.methods.advise.wanted import budget_of, protected, wanted
from graphveil.progress import Progress
from tests.methods.advise.made import parts, sealed

PROTECTED = [
    ("label-pool", {"epsilon": 1.0}, {"labels"}),
    ("lpgnn", {"epsilon": 1.0}, {"features", "labels"}),
    ("links", {"epsilon_a": 1.0}, {"edges"}),
    ("links", {"epsilon_a": 1.0, "epsilon_x": None, "epsilon_y": 2.0}, {"features", "labels", "edges"}),
    ("solitude", {"epsilon_a": 1.0}, {"features", "edges"}),
    ("solitude", {"epsilon_a": 1.0, "epsilon_x": math.inf}, {"edges"}),
    ("class-sums", {"epsilon": 1.0}, {"edges"}),
    ("gap", {"epsilon": 1.0, "unit": "node"}, {"features", "labels", "edges"}),
    ("dp-mlp", {"epsilon": 1.0}, {"features", "labels", "edges"}),
    ("node-sums", {"epsilon": 1.0}, {"features", "labels", "edges"}),
    ("class-counts", {"epsilon_a": 1.0}, {"edges"}),
    ("heterorr", {"epsilon_a": 1.0, "epsilon_x": 1.0}, {"features", "edges"}),
]


@pytest.mark.parametrize(("method", "settings", "hidden"), PROTECTED)
def test_what_a_method_protects_is_not_read(method: str, settings: dict[str, Any], hidden: set[str]) -> None:
    assert set(protected(method, settings)) == hidden


@pytest.mark.parametrize(
    ("method", "budget"),
    [("label-pool", "epsilon"), ("class-sums", "epsilon"), ("links", "epsilon_a"), ("class-counts", "epsilon_a")],
)
def test_the_epsilon_that_is_searched(method: str, budget: str) -> None:
    assert budget_of(method, {}) == budget
    with pytest.raises(InputError, match="is what is searched"):
        budget_of(method, {budget: 1.0})


def test_a_method_that_spends_nothing_has_no_goal() -> None:
    with pytest.raises(InputError, match="spends no epsilon"):
        budget_of("gcn", {})


def test_a_goal_is_searched_without_reading_what_is_private() -> None:
    graph, told = parts("features", "labels", nodes=200), list[Progress]()
    found = wanted(
        "label-propagation",
        {},
        sealed(graph, "features", "labels"),
        Goal("accuracy", 0.9),
        declared=("features", "labels"),
        progress=told.append,
    )
    assert found.budget == "epsilon" and found.on == "made graphs" and told
    assert set(found.reached.tried) <= set(GRID) and "accuracy of at least 90 %" in found.sentence


def test_a_pilot_is_all_that_is_rehearsed_on() -> None:
    """The graph itself fails at any reading but that of its shape and of who has a label."""
    graph, pilot = parts("features", "labels"), parts(nodes=200)
    closed = sealed(graph, "features", "labels", "edges")
    found = wanted("label-propagation", {}, closed, Goal("accuracy", 0.3), declared=("labels",), pilot=pilot)
    assert "the pilot" in found.on and "declare public or already paid" in found.on and " s" in found.sentence
    assert found.reached.hopeful is not None
