"""What a device answers has the integers of the mechanism it stands for, and noise of its own for each value.

Chi-square statistics of counts against exact probabilities; each is refused above its 1 - 1e-6 quantile, so a test of a
right device fails once in a million runs. The noise follows from secrets that are fixed here, so none fails by chance.
"""

from __future__ import annotations

import numpy as np
import scipy.stats

from graphveil.device import answer, answers
from graphveil.mechanisms import MultiBit
from tests.on_device.signing import features, label, links, task_of

FALSE_ALARM = 1e-6
PEOPLE = 12


def secrets(count: int) -> list[bytes]:
    return [place.to_bytes(32, "big") for place in range(1, count + 1)]


def far(seen: np.ndarray, chances: np.ndarray) -> bool:
    """Whether counts are refused."""
    expected = chances * seen.sum()
    statistic = float(((seen - expected) ** 2 / expected).sum())
    return statistic > scipy.stats.chi2.isf(FALSE_ALARM, len(seen) - 1)


def test_two_values_share_no_noise_and_one_value_keeps_its_own() -> None:
    """Of one device: equal values give equal bodies, and answers to two values agree as often as chance has it."""
    task = task_of(features("4", 1), label(), links(PEOPLE, mode="both"))
    person = task.person(2, bytes(16))
    agree = 0
    for own in secrets(600):
        first, again = (answer(task, person, {"features": [0.0], "label": "sad", "links": [1]}, own) for _ in range(2))
        assert first == again
        other = answer(task, person, {"features": [1.0]}, own)
        first_bits, two = (answers(task, person, body.body)[0] for body in (first, other))
        agree += int(first_bits[0] == two[0])
    law = MultiBit(epsilon=4.0, dimension=1, low=-1.0, high=3.0).law
    chances = law.thresholds(np.array([0.25, 0.5])) / 2.0**64
    both = float(chances[0] * chances[1] + (1 - chances[0]) * (1 - chances[1]))
    assert not far(np.array([agree, 600 - agree]), np.array([both, 1 - both]))


def test_a_new_friend_redraws_one_bit_alone() -> None:
    task = task_of(links(PEOPLE, mode="both"))
    person = task.person(0, bytes(16))
    for own in secrets(50):
        before, after = (answers(task, person, answer(task, person, {"links": list(named)}, own).body)[0]
                         for named in ((1, 2), (1, 2, 7)))  # fmt: skip
        assert set(np.flatnonzero(before != after).tolist()) <= {7}
