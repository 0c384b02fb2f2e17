"""How much a number of answers would say: from the task's thresholds and how many answered, and from no answer.

Of means the law of the noise gives the error. Of predictions it gives it under two assumptions about the graph, which
the collector does not have:

    everybody has k neighbours on average (Poisson), each of whom has a person's own class with chance h and every other
    class alike;  a share r of them answers, and says the class truly with chance p, each other one with q

    votes for the true class ~ Poisson(k r s),  s = h p + (1 - h) q        for each other class ~ Poisson(k r t)
    accuracy of the class with most votes, ties drawn by lot = sum over a of P(a) (F(a)^c - F(a-1)^c) / (c f(a))

with f and F the law of another class's votes and c the number of classes: of m others that reach a as well, one in
m + 1 ties is won. That is the plainest vote; what reads features or looks further does better. `graphveil
plan` has no such figure: it tells of noise by degree, which takes the graph, and no accuracy.
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
    """What is assumed of people's neighbours.

    Args:
        neighbours: of a person, on average. alike: chance that a neighbour has the person's own class.
    """

    neighbours: float = 10.0
    alike: float = 0.8


def expected(task: Task, answered: int, around: Surroundings) -> dict[str, Any]:
    """Return what so many answers would say.

    Args:
        task: what is asked. answered: people. around: what is assumed of the graph.

    Returns:
        "means": of each field, what is estimated, by how much it errs (95%), None before anybody answered, and how wide
        its whole range is;
        "accuracy": None where no label is asked, else at the present participation and at that of everybody.
    """
    means = [told for one in task.fields for told in _means(one, answered, task.people)]
    label = next((one for one in task.fields if isinstance(one, Label)), None)
    if label is None:
        return {"means": means, "accuracy": None}
    assumed = {"neighbours": around.neighbours, "alike": around.alike}
    now, whole = (vote_accuracy(label, share, around) for share in (answered / task.people, 1.0))
    return {"means": means, "accuracy": {**assumed, "now": now, "everybody": whole, "chance": 1 / len(label.classes)}}


def vote_accuracy(label: Label, share: float, around: Surroundings) -> float:
    """Return how often the class that most of a person's neighbours say is the person's own.

    Args:
        label: the field. share: of people who answered. around: what is assumed of neighbours.
    """
    classes, other = len(label.classes), label.share / WORD
    kept = 1 - (classes - 1) * other
    unlike = (1 - around.alike) / (classes - 1)
    true = around.alike * kept + (1 - around.alike) * other
    false = unlike * kept + (1 - unlike) * other
    votes = around.neighbours * share
    own, others = votes * true, votes * false
    # Beyond so many votes lies less than 1e-12 of the law.
    counts = np.arange(int(stats.poisson.isf(1e-12, max(own, others))) + 2)
    below, upto = stats.poisson.cdf(counts - 1, others), stats.poisson.cdf(counts, others)
    equal = np.maximum(upto - below, np.finfo(float).tiny)
    won = np.where(upto > below, (upto**classes - below**classes) / (classes * equal), upto ** (classes - 1))
    return float(stats.poisson.pmf(counts, own) @ won)


def _means(one: Field, answered: int, people: int) -> Iterator[dict[str, Any]]:
    def told(what: str, deviation: float, unit: str, whole: float) -> dict[str, Any]:
        error = _NORMAL * deviation / math.sqrt(answered) if answered else None
        return {"field": one.kind, "what": what, "unit": unit, "error": error, "whole": whole}

    if isinstance(one, Features):
        width = one.high - one.low
        # At most: a bit is either end, its estimate lies half the range by this factor beside the middle.
        factor = 1 / (1 - 2 * one.threshold / WORD)
        asked = one.sampled / len(one.names)
        unit = f"of {one.low:g} to {one.high:g}"
        yield told("mean of one feature", width / 2 * factor / math.sqrt(asked), unit, width)
    elif isinstance(one, Label):
        yield told("share of one class", _share_deviation(one), "points", 100.0)
    elif isinstance(one, Links):
        wrong = one.threshold / WORD
        per_list = math.sqrt((people - 1) * wrong * (1 - wrong)) / (1 - 2 * wrong)
        yield told("links in a person's list, on average", per_list, "links", people - 1)
    else:
        digits = [int(digit) for digit in one.digits]
        ratio = digits[0] / (DIGIT - digits[0]) if digits else one.overflow / DIGIT
        yield told("links of a person, on average", math.sqrt(2 * ratio) / (1 - ratio), "links", people - 1)


def _share_deviation(label: Label) -> float:
    """Standard deviation in points, at most, of the share of a class that one answer estimates."""
    classes, other = len(label.classes), label.share / WORD
    kept = 1 - (classes - 1) * other
    # Whatever the true shares: an answer names a class with a chance from q to p, and a half is the worst.
    chance = min(max(0.5, other), kept)
    return 100 * math.sqrt(chance * (1 - chance)) / (kept - other)
