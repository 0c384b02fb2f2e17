"""Rehearsals: what is trained on what, and the bands that are made of them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from graphveil.errors import InputError
from graphveil.graphs import social_graph
from graphveil.methods.advise.goal import GRID, Goal
from graphveil.methods.advise.rehearsal import Rehearsal, Trial, rehearse
from graphveil.methods.advise.wanted import budget_of, protected, wanted
from graphveil.methods.advise.worlds import World
from graphveil.methods.runs import experiment
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy import SeededRandomness
from graphveil.progress import Progress
from tests.methods.advise.made import parts, sealed

OVER = ("label-propagation", "majority")


def world(homophily: float = 0.8, seed: int = 1) -> World:
    graph = social_graph(200, average_degree=8, dimension=10, classes=3, homophily=homophily, apps=3, seed=seed)
    return World(f"homophily {homophily}", graph)


def spread(epsilon: float, *worlds: World, seeds: tuple[int, ...] = (0,)) -> Rehearsal:
    return rehearse("label-propagation", {"epsilon_y": epsilon}, worlds, ("majority",), seeds=seeds)


def test_every_world_is_met_with_every_seed_and_progress_says_where_it_is() -> None:
    told: list[Progress] = []
    worlds, seeds = (world(), world(0.4)), (0, 1, 2)
    found = rehearse("label-propagation", {"epsilon_y": 2.0}, worlds, (), seeds=seeds, progress=told.append)
    assert [trial.world for trial in found.trials] == ["homophily 0.8"] * 3 + ["homophily 0.4"] * 3
    assert [(event.done, event.total) for event in told] == [(place, 6) for place in range(6)]
    assert {event.stage for event in told} == {"rehearsing label-propagation at epsilon 2"}
    assert len({trial.accuracy.mean for trial in found.trials[:3]}) > 1


def test_it_is_what_a_run_with_that_noise_reaches() -> None:
    """One accuracy of a rehearsal and of `experiment.run` on the same split, seed and noise."""
    (trial,) = spread(2.0, world()).trials
    run = experiment.run(
        "label-propagation",
        world().graph,
        settings={"epsilon_y": 2.0},
        controls=False,
        randomness=SeededRandomness(0),
    )
    assert trial.accuracy == run.scores.accuracy


@pytest.mark.slow
def test_lift_is_over_the_best_of_the_controls_that_count() -> None:
    (every,) = rehearse("label-pool", {"epsilon_y": 2.0}, [world()], ()).trials
    (some,) = rehearse("label-pool", {"epsilon_y": 2.0}, [world()], OVER).trials
    (weak,) = rehearse("label-pool", {"epsilon_y": 2.0}, [world()], ("majority",)).trials
    assert weak.control == "majority" and some.control in OVER
    assert every.lift.mean <= some.lift.mean <= weak.lift.mean
    assert every.accuracy == some.accuracy == weak.accuracy


def trial(mean: float, half: float, accuracy: float = 0.5) -> Trial:
    lift = Interval(mean, mean - half, mean + half, (mean,))
    return Trial("made", Interval(accuracy, accuracy - half, accuracy + half, (accuracy,)), lift, "majority")


def test_a_band_reaches_from_the_least_to_the_greatest_end_of_all_intervals() -> None:
    found = Rehearsal((trial(0.1, 0.02, 0.5), trial(0.3, 0.05, 0.7), trial(0.2, 0.2, 0.6)))
    lift, accuracy = found.band("lift"), found.band("accuracy")
    assert (lift.low, lift.high) == (pytest.approx(0.0), pytest.approx(0.4))
    assert (accuracy.low, accuracy.high) == (pytest.approx(0.4), pytest.approx(0.8))


# ---- a goal for a method that somebody chose ----


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
