"""How accurate results from a number of answers would be, computed from the task's thresholds and without any answer.

The law of the noise gives the error of means. For predictions it takes two assumptions about the graph, which the
collector does not have:

    everybody has k neighbours on average (Poisson), each of whom has a person's own class with chance h and every other
    class alike;  a share r of them answers, and says the class truly with chance p, each other one with q

    votes for the true class ~ Poisson(k r s),  s = h p + (1 - h) q        for each other class ~ Poisson(k r t)
    accuracy of the class with most votes, ties drawn by lot = sum over a of P(a) (F(a)^c - F(a-1)^c) / (c f(a))

with f and F the law of another class's votes and c the number of classes: if m other classes reach a as well, one in
m + 1 ties is won. This is the plainest vote; methods that read features or more hops do better. `graphveil plan` has no
such figure: it states noise by degree, for which it needs the graph, and no accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from graphveil.device.reports.exact import DIGIT, WORD
from graphveil.device.reports.features import Features
from graphveil.device.reports.label import Label
from graphveil.device.reports.links import Links
from graphveil.device.task import Field, Task

#: Standard deviations in an interval of 95%.
_NORMAL = 1.96


@dataclass(frozen=True)
class Surroundings:
    """How many neighbours people have on average, and the chance that one has the person's own class: assumptions."""

    neighbours: float = 10.0
    alike: float = 0.8


def expected(task: Task, answered: int, around: Surroundings) -> dict[str, Any]:
    """Return the accuracy of results from so many answers. "means": for each field the estimate, its error (95%; None
    before anybody answered) and its whole range; "accuracy": None where no label is asked, else now and at full
    participation.

    Args:
        around: the assumptions about the graph.
    """
    means = [row for field in task.fields for row in _means(field, answered, task.people)]
    label = next((field for field in task.fields if isinstance(field, Label)), None)
    if label is None:
        return {"means": means, "accuracy": None}
    assumed = {"neighbours": around.neighbours, "alike": around.alike}
    now, everybody = (vote_accuracy(label, share, around) for share in (answered / task.people, 1.0))
    return {
        "means": means,
        "accuracy": {**assumed, "now": now, "everybody": everybody, "chance": 1 / len(label.classes)},
    }


def vote_accuracy(label: Label, share: float, around: Surroundings) -> float:
    """Return how often the class that most of a person's neighbours report is the person's own.

    Args:
        share: of people who answered.
        around: the assumptions about neighbours.
    """
    classes, other = len(label.classes), label.share / WORD
    truth = 1 - (classes - 1) * other
    unlike = (1 - around.alike) / (classes - 1)
    true = around.alike * truth + (1 - around.alike) * other
    false = unlike * truth + (1 - unlike) * other
    votes = around.neighbours * share
    own_votes, other_votes = votes * true, votes * false
    # Beyond so many votes lies less than 1e-12 of the law.
    counts = np.arange(int(stats.poisson.isf(1e-12, max(own_votes, other_votes))) + 2)
    below, upto = stats.poisson.cdf(counts - 1, other_votes), stats.poisson.cdf(counts, other_votes)
    equal = np.maximum(upto - below, np.finfo(float).tiny)
    won = np.where(upto > below, (upto**classes - below**classes) / (classes * equal), upto ** (classes - 1))
    return float(stats.poisson.pmf(counts, own_votes) @ won)


def _means(field: Field, answered: int, people: int) -> Iterator[dict[str, Any]]:
    def mean_row(what: str, deviation: float, unit: str, whole: float) -> dict[str, Any]:
        error = _NORMAL * deviation / math.sqrt(answered) if answered else None
        return {"field": field.kind, "what": what, "unit": unit, "error": error, "whole": whole}

    if isinstance(field, Features):
        width = field.high - field.low
        # At most: a bit stands for either end, so its estimate is half the range times this factor from the middle.
        factor = 1 / (1 - 2 * field.threshold / WORD)
        share = field.sampled / len(field.names)
        unit = f"of {field.low:g} to {field.high:g}"
        yield mean_row("mean of one feature", width / 2 * factor / math.sqrt(share), unit, width)
    elif isinstance(field, Label):
        classes, other = len(field.classes), field.share / WORD
        truth = 1 - (classes - 1) * other
        # The worst of all true shares: an answer names a class with a chance from q to p, and 1/2 errs most.
        chance = min(max(0.5, other), truth)
        yield mean_row("share of one class", 100 * math.sqrt(chance * (1 - chance)) / (truth - other), "points", 100.0)
    elif isinstance(field, Links):
        wrong = field.threshold / WORD
        per_list = math.sqrt((people - 1) * wrong * (1 - wrong)) / (1 - 2 * wrong)
        yield mean_row("links in a person's list, on average", per_list, "links", people - 1)
    else:
        digits = [int(digit) for digit in field.digits]
        ratio = digits[0] / (DIGIT - digits[0]) if digits else field.overflow / DIGIT
        yield mean_row("links of a person, on average", math.sqrt(2 * ratio) / (1 - ratio), "links", people - 1)
