"""Averaging: a person who reports the same value again and again with fresh noise wears the protection down.

    score = sum over reports of  log Pr[report | other value] - log Pr[report | one value]

which no adversary can better (Neyman and Pearson).  k fresh reports cost k epsilon; a device that derives its noise
from a secret and the value (`mechanisms.permanent`) answers with the report of the first time: epsilon, once.
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
from graphveil.mechanisms import CategoryMechanism, permanent_reports
from graphveil.mechanisms.permanent import Reporter
from graphveil.privacy import PermanentRandomness, Randomness
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.source.derived import SECRET_BYTES
from graphveil.runtime.words import count_of

Device = Callable[[Tensor, int], Any]


def averaging(
    mechanism: Reporter,
    *,
    randomness: Randomness,
    rounds: int = 21,
    people: int = 500,
    device: Device | None = None,
    permanent: bool = False,
    seed: int = 0,
) -> AttackResult:
    """Return how well `rounds` reports of an unchanged value tell two values apart. The limit is that of *one* report,
    which is what each person was promised; fresh noise goes beyond it.

    Args:
        people: how many hold each of the two values: both ends of the range, or the first two classes.
        device: (values, round) -> reports, what a device sends in each round; default: fresh noise every time.
        permanent: every person's device has a secret and sends permanent reports.

    Raises:
        InputError: fewer than one round or two people, or a device beside permanent ones.
    """
    if rounds < 1 or people < 2:
        raise InputError(
            f"{count_of(rounds, 'round')} of {count_of(people, 'person')}", where="averaging", allowed="1 and 2 or more"
        )
    if permanent and device is not None:
        raise InputError("a device and permanent devices were both given", where="averaging", allowed="one of the two")
    # The worst pair of inputs: at any other two the reports are harder to tell apart.
    first, second = extremes(mechanism, people)
    if permanent:
        device = _permanent(mechanism, first, second, randomness)
    send = device or (lambda values, _: mechanism.randomize(values, randomness=randomness))
    total = np.zeros((2, people))
    figures = {}
    for number in range(1, rounds + 1):
        for side, values in enumerate((first, second)):
            reports = send(values, number)
            # The sum of log likelihood ratios is the best test there is (Neyman and Pearson).
            ratio = mechanism.log_likelihood(reports, second) - mechanism.log_likelihood(reports, first)
            total[side] += ratio.numpy()
        # A few rounds only: each costs an AUC over all people.
        if number in (1, 5, 21, 101):
            figures[f"auc after {number}"] = auc_of(total[1], total[0])
    promised = mechanism.guarantee
    cost = (
        f"{rounds} permanent ones cost no more"
        if permanent
        else f"{rounds} fresh ones cost {rounded_up(rounds * promised.epsilon)}"
    )
    note = f"one report of {promised.unit.text}; {cost}"
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


def _permanent(mechanism: Reporter, first: Tensor, second: Tensor, randomness: Randomness) -> Device:
    """Return devices that answer an equal value with an equal report, each by a secret of its own."""
    groups = {
        id(values): [PermanentRandomness(randomness.bytes(SECRET_BYTES), "averaging") for _ in values]
        for values in (first, second)
    }
    return lambda values, _: permanent_reports(mechanism, values, groups[id(values)], field="value")


def extremes(mechanism: Reporter, people: int) -> tuple[Tensor, Tensor]:
    """Return the two values that are farthest apart, each held by everybody: classes 0 and 1 [people], int64, or rows
    of the lowest and the highest feature value [people, d].

    Args:
        mechanism: of labels or of features.
        people: how many hold each value.
    """
    if isinstance(mechanism, CategoryMechanism):
        return torch.zeros(people, dtype=torch.int64), torch.ones(people, dtype=torch.int64)
    shape = (people, mechanism.dimension)
    return torch.full(shape, float(mechanism.domain.low)), torch.full(shape, float(mechanism.domain.high))
