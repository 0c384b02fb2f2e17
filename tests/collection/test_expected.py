"""What answers are expected to say: figures of a formula, next to what noisy votes and means really give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from graphveil.collection.expected import Surroundings, expected, vote_accuracy
from graphveil.device.exact import DIGIT, WORD
from graphveil.device.label import Label
from graphveil.device.task import Task
from tests.on_device.signing import degree, features, label, links, task_of

PEOPLE = 12


def field(epsilon: str, classes: int = 3) -> Label:
    one = next(one for one in task_of(label(epsilon), people=PEOPLE).fields if isinstance(one, Label))
    assert len(one.classes) == classes
    return one


def voted(one: Label, share: float, around: Surroundings, people: int, seed: int) -> float:
    """How often a vote of simulated neighbours is right."""
    rng, classes = np.random.default_rng(seed), len(one.classes)
    other = one.share / WORD
    told = np.zeros((people, classes))
    for person in range(people):
        answered = rng.binomial(rng.poisson(around.neighbours), share)
        own = np.where(rng.random(answered) < around.alike, 0, rng.integers(1, classes, answered))
        says = np.where(rng.random(answered) < classes * other, rng.integers(0, classes, answered), own)
        told[person] = np.bincount(says, minlength=classes)
    return float((told + rng.random(told.shape) * 0.5).argmax(axis=1).__eq__(0).mean())


@pytest.mark.slow  # processes, or many people
@pytest.mark.parametrize(
    ("epsilon", "around", "share"),
    [("1", Surroundings(6.0, 0.8), 1.0), ("3", Surroundings(2.5, 0.6), 0.3), ("1", Surroundings(2.5, 0.6), 0.05)],
)
def test_the_vote_is_right_as_often_as_the_formula_says(epsilon: str, share: float, around: Surroundings) -> None:
    """A false alarm of one in a million for each: 4.9 standard deviations."""
    people, one = 20_000, field(epsilon)
    told = vote_accuracy(one, share, around)
    margin = 4.9 * math.sqrt(told * (1 - told) / people)
    assert abs(voted(one, share, around, people, seed=3) - told) < margin
    # A channel that lies twice as often is told apart.
    if share == 1.0:
        noisier = Label(one.classes, one.epsilon, one.share * 2)
        assert abs(voted(noisier, share, around, people, seed=3) - told) > margin


def test_ends_of_the_vote() -> None:
    one = field("3")
    assert vote_accuracy(one, 0.0, Surroundings()) == pytest.approx(1 / 3)
    assert vote_accuracy(one, 1.0, Surroundings(500.0, 1.0)) == pytest.approx(1.0, abs=1e-9)
    # Neighbours that say nothing of a person give chance.
    assert vote_accuracy(one, 1.0, Surroundings(20.0, 1 / 3)) == pytest.approx(1 / 3, abs=1e-9)
    # A task without a label predicts nothing.
    told = expected(task_of(features("1"), people=PEOPLE), 5, Surroundings())
    assert told["accuracy"] is None and [mean["field"] for mean in told["means"]] == ["features"]


def error(task: Task, kind: str, answered: int) -> float:
    told: list[dict[str, Any]] = expected(task, answered, Surroundings())["means"]
    return float(next(one["error"] for one in told if one["field"] == kind))


def test_errors_of_means_hold_95_percent_and_are_not_wide() -> None:
    """Of 4,000 collections each; coverage 95% within 4.9 standard deviations, and less at half the width."""
    task = task_of(features("1"), label("1"), links(PEOPLE, "1"), degree(PEOPLE, "1"), people=PEOPLE)
    rng, runs, answered = np.random.default_rng(5), 4_000, 200
    one = field("1")
    other = one.share / WORD
    kept = 1 - 2 * other
    # The worst share: an answer names the class half of the time, where it can.
    chance = min(max(0.5, other), kept)
    true = (chance - other) / (kept - other)
    found = rng.binomial(answered, chance, runs) / answered
    off = np.abs((found - other) / (kept - other) - true) * 100
    covers(off, error(task, "label", answered))
    asked = next(field for field in task.fields if field.kind == "features")
    low = asked.threshold / WORD
    votes = rng.binomial(answered * asked.sampled // len(asked.names), 0.5, runs)
    count = answered * asked.sampled // len(asked.names)
    off = np.abs((asked.high - asked.low) / 2 * (2 * votes / count - 1) / (1 - 2 * low))
    covers(off, error(task, "features", answered))
    lists = next(field for field in task.fields if field.kind == "links")
    wrong = lists.threshold / WORD
    says = rng.binomial(answered * (PEOPLE - 1), wrong, runs) / answered
    off = np.abs((says - (PEOPLE - 1) * wrong) / (1 - 2 * wrong))
    covers(off, error(task, "links", answered))
    numbers = next(field for field in task.fields if field.kind == "degree")
    ratio = int(numbers.digits[0]) / (DIGIT - int(numbers.digits[0]))
    noise = rng.geometric(1 - ratio, (runs, answered)) - rng.geometric(1 - ratio, (runs, answered))
    covers(np.abs(noise.mean(axis=1)), error(task, "degree", answered))


def covers(off: np.ndarray, width: float) -> None:
    spread = 4.9 * math.sqrt(0.95 * 0.05 / len(off))
    # Whole votes make steps: a little more than chance allows.
    assert 0.95 - spread - 0.01 < (off <= width).mean() < 0.95 + spread + 0.02
    assert (off <= width / 2).mean() < 0.8
