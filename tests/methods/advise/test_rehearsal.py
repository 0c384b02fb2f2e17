"""Rehearsals: what is trained on what, and the bands that are made of them."""

from __future__ import annotations

import math

import pytest

from graphveil.graphs import social_graph
from graphveil.methods.advise.rehearsal import Rehearsal, Trial, rehearse
from graphveil.methods.advise.worlds import World
from graphveil.methods.runs import experiment
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy import SeededRandomness
from graphveil.progress import Progress

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


def test_lift_is_over_the_best_of_the_controls_that_count() -> None:
    (every,) = rehearse("label-pool", {"epsilon_y": 2.0}, [world()], ()).trials
    (some,) = rehearse("label-pool", {"epsilon_y": 2.0}, [world()], OVER).trials
    (weak,) = rehearse("label-pool", {"epsilon_y": 2.0}, [world()], ("majority",)).trials
    assert weak.control == "majority" and some.control in OVER
    assert every.lift.mean <= some.lift.mean <= weak.lift.mean
    assert every.accuracy == some.accuracy == weak.accuracy


def test_more_epsilon_brings_more_where_labels_follow_contacts() -> None:
    lifts = [spread(epsilon, world(0.9), seeds=(0, 1, 2)).band("lift") for epsilon in (0.1, 6.0)]
    assert lifts[0].low < lifts[1].low and lifts[1].low > 0.1


def trial(mean: float, half: float, accuracy: float = 0.5) -> Trial:
    lift = Interval(mean, mean - half, mean + half, (mean,))
    return Trial("made", Interval(accuracy, accuracy - half, accuracy + half, (accuracy,)), lift, "majority")


def test_a_band_reaches_from_the_least_to_the_greatest_end_of_all_intervals() -> None:
    found = Rehearsal((trial(0.1, 0.02, 0.5), trial(0.3, 0.05, 0.7), trial(0.2, 0.2, 0.6)))
    lift, accuracy = found.band("lift"), found.band("accuracy")
    assert (lift.low, lift.high) == (pytest.approx(0.0), pytest.approx(0.4))
    assert (accuracy.low, accuracy.high) == (pytest.approx(0.4), pytest.approx(0.8))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epsilon_y": 2.5}, "rehearsing label-propagation at epsilon 2.5"),
        ({"epsilon": 1.0}, "rehearsing label-propagation at epsilon 1"),
        ({"epsilon_y": math.inf}, "rehearsing label-propagation"),
    ],
)
def test_progress_names_the_epsilon_where_there_is_one(settings: dict[str, float], said: str) -> None:
    told: list[Progress] = []
    rehearse("label-propagation", settings, [world()], ("majority",), progress=told.append)
    assert told[0].stage == said
