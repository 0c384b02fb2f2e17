"""Mechanisms for a category side by side, and what several questions cost together: all in closed form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphveil.mechanisms.base.category import CategoryMechanism
from graphveil.mechanisms.catalogue import catalogue
from graphveil.mechanisms.labels.choice import best_category
from graphveil.mechanisms.mixed import best_sample, sampled_variance


@dataclass(frozen=True)
class CategoryRow:
    """One mechanism at one epsilon and number of answers.

    Args:
        mechanism: its name in the catalogue.
        epsilon: of one report.
        answers: how many there are.
        total_variance: of all coordinates of the one-hot estimate together.
        report_bytes: size of one report.
        best: whether questions with so many answers are asked through it.
    """

    mechanism: str
    epsilon: float
    answers: int
    total_variance: float
    report_bytes: float
    best: bool


@dataclass(frozen=True)
class TogetherRow:
    """All questions under one epsilon, see `mixed`.

    Args:
        epsilon: of one person.
        questions: how many there are.
        drawn: how many of them each person is asked, for the least variance.
        epsilon_each: of one answer.
        total_variance: of all estimates of one person together.
    """

    epsilon: float
    questions: int
    drawn: int
    epsilon_each: float
    total_variance: float


def compare_categories(epsilons: Sequence[float], answers: Sequence[int]) -> list[CategoryRow]:
    """Every mechanism of a category, the least variance first at each epsilon and number of answers.

    Args:
        epsilons: of one report.
        answers: how many answers a question has, each 2 to 4096.

    Raises:
        InputError: a parameter is outside its range.

    >>> [row.mechanism for row in compare_categories((1.0,), (8,)) if row.best]
    ['subset-selection']
    """
    return [row for epsilon in epsilons for count in answers for row in _ranked(epsilon, count)]


def compare_together(epsilons: Sequence[float], answers: Sequence[int]) -> list[TogetherRow]:
    """What the questions cost under one budget; nothing where there is one.

    Args:
        epsilons: of one person.
        answers: how many answers each question has.
    """
    return [_together(epsilon, tuple(answers)) for epsilon in epsilons] if len(answers) > 1 else []


def _ranked(epsilon: float, answers: int) -> list[CategoryRow]:
    best = type(best_category(epsilon, answers))
    rows = [
        CategoryRow(name, epsilon, answers, built.law.total_variance, built.report_bytes, isinstance(built, best))
        for name, built in _built(epsilon, answers)
    ]
    # The chosen mechanism comes before those that are equal up to rounding.
    return sorted(rows, key=lambda row: (not row.best, row.total_variance))


def _built(epsilon: float, answers: int) -> Iterator[tuple[str, CategoryMechanism[Any]]]:
    for info in catalogue():
        if info.kind == "labels":
            yield info.name, info.mechanism(epsilon=epsilon, classes=answers)


def _together(epsilon: float, answers: tuple[int, ...]) -> TogetherRow:
    drawn = best_sample(epsilon, answers)
    return TogetherRow(epsilon, len(answers), drawn, epsilon / drawn, sampled_variance(epsilon, answers, drawn))
