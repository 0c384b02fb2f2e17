"""What answers are expected to say: figures of a formula, next to what noisy votes and means really give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from graphveil.collection.task.expected import Surroundings, expected, vote_accuracy
from graphveil.device.reports.exact import DIGIT, WORD
from graphveil.device.reports.label import Label
from graphveil.device.task import Task
from tests.on_device.signing import degree, features, label, links, task_of

PEOPLE = 12


def field(epsilon: str, classes: int = 3) -> Label:
    (own,) = (each for each in task_of(label(epsilon), people=PEOPLE).fields if isinstance(each, Label))
    assert len(own.classes) == classes
    return own


def test_ends_of_the_vote() -> None:
    label_field = field("3")
    assert vote_accuracy(label_field, 0.0, Surroundings()) == pytest.approx(1 / 3)
    assert vote_accuracy(label_field, 1.0, Surroundings(500.0, 1.0)) == pytest.approx(1.0, abs=1e-9)
    # Neighbours that say nothing of a person give chance.
    assert vote_accuracy(label_field, 1.0, Surroundings(20.0, 1 / 3)) == pytest.approx(1 / 3, abs=1e-9)
    # A task without a label predicts nothing.
    figures = expected(task_of(features("1"), people=PEOPLE), 5, Surroundings())
    assert figures["accuracy"] is None and [mean["field"] for mean in figures["means"]] == ["features"]


def error(task: Task, kind: str, answered: int) -> float:
    means: list[dict[str, Any]] = expected(task, answered, Surroundings())["means"]
    return float(next(mean["error"] for mean in means if mean["field"] == kind))


def test_errors_of_means_hold_95_percent_and_are_not_wide() -> None:
    """By the laws of whole counts, at the worst share; whole votes make steps."""
    answered, task = 200, task_of(features("1"), label("1"), links(PEOPLE, "1"), degree(PEOPLE, "1"), people=PEOPLE)
    fields: tuple[Any, ...] = task.fields
    bits, mood, lists, numbers = fields
    other, wrong, low = (int(threshold) / WORD for threshold in (mood.share, lists.threshold, bits.threshold))
    share = answered * bits.sampled // len(bits.names)
    laws = {
        "label": (answered, 0.5, 100 / answered / (1 - 3 * other)),
        "features": (share, 0.5, (bits.high - bits.low) / share / (1 - 2 * low)),
        "links": (answered * (PEOPLE - 1), wrong, 1 / answered / (1 - 2 * wrong)),
    }
    for kind, (trials, chance, unit) in laws.items():
        off = np.abs(np.arange(trials + 1) - trials * chance) * unit
        mass, width = stats.binom.pmf(np.arange(trials + 1), trials, chance), error(task, kind, answered)
        assert 0.94 < mass[off <= width].sum() < 0.97 and mass[off <= width / 2].sum() < 0.8, kind
    ratio = int(numbers.digits[0]) / (DIGIT - int(numbers.digits[0]))
    deviation = math.sqrt(2 * ratio / answered) / (1 - ratio)
    assert error(task, "degree", answered) == pytest.approx(1.96 * deviation, rel=1e-3)
