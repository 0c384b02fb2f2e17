"""Averaging: a person who reports the same value again and again with fresh noise wears its protection off.

    score = sum over reports of  log Pr[report | other value] - log Pr[report | one value]

which no adversary can better (Neyman and Pearson).  k fresh reports cost k epsilon; a device that answers with the
report of the first time (a permanent response: Erlingsson, Pihur, Korolova, "RAPPOR", CCS 2014, section 3) costs
epsilon once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphveil.attacks.limits import Limit
from graphveil.attacks.result import AttackResult, auc_of, judge
from graphveil.errors import InputError
from graphveil.privacy import Randomness

Device = Callable[[Tensor, int], Any]


def averaging(
    mechanism: Any,
    *,
    randomness: Randomness,
    rounds: int = 21,
    people: int = 500,
    device: Device | None = None,
    seed: int = 0,
) -> AttackResult:
    """Return how well `rounds` reports of an unchanged value tell two values apart.

    The limit is that of *one* report, which is what each person was promised; fresh noise goes beyond it.

    Args:
        mechanism: a local one, with `randomize` and `log_likelihood`.
        randomness: of the reports.
        people: how many hold each of the two values: both ends of the range, or the first two classes.
        device: (values, round) -> reports, what a device sends in each round; default: fresh noise every time.

    Raises:
        InputError: for fewer than one round or two people.
    """
    if rounds < 1 or people < 2:
        raise InputError(f"{rounds} rounds of {people} people", where="averaging", allowed="1 and 2 or more")
    send = device or (lambda held, _: mechanism.randomize(held, randomness=randomness))
    one, other = _extremes(mechanism, people)
    total = np.zeros((2, people))
    figures = {}
    for number in range(1, rounds + 1):
        for side, held in enumerate((one, other)):
            reports = send(held, number)
            ratio = mechanism.log_likelihood(reports, other) - mechanism.log_likelihood(reports, one)
            total[side] += ratio.numpy()
        if number in (1, 5, 21, 101):
            figures[f"auc after {number}"] = auc_of(total[1], total[0])
    promised = mechanism.guarantee
    note = f"one report of {promised.unit}; {rounds} fresh ones cost {rounds * promised.epsilon:g}"
    return judge(
        "averaging",
        f"which of two values a person holds, after {rounds} reports",
        total[1],
        total[0],
        limit=Limit(promised.epsilon, promised.delta, note),
        seed=seed,
        baseline=figures["auc after 1"],
        baseline_note="one report",
        figures=figures,
    )


def _extremes(mechanism: Any, people: int) -> tuple[Tensor, Tensor]:
    """Return the two values that are farthest apart, each held by everybody."""
    classes = getattr(mechanism, "classes", None)
    if classes is not None:
        return torch.zeros(people, dtype=torch.int64), torch.ones(people, dtype=torch.int64)
    shape = (people, mechanism.dimension)
    return torch.full(shape, float(mechanism.low)), torch.full(shape, float(mechanism.high))
