"""What a device answers has the law of the mechanism it stands for, and the integers.

Chi-square statistics of counts against exact probabilities; each is refused above its 1 - 1e-6 quantile, so a test of a
right device fails once in a million runs. The noise follows from secrets that are fixed here, so none fails by chance.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from graphveil.device import answer, answers
from graphveil.device.bits import number_of
from graphveil.device.features import STEPS, Features
from graphveil.mechanisms import AdjacencyRR, MultiBit, RandomizedResponse
from graphveil.mechanisms.edges.degrees import NoisyDegree
from tests.on_device.signing import MOODS, degree, features, label, links, opening_of, task_of

FALSE_ALARM = 1e-6
PEOPLE = 12


def secrets(count: int) -> list[bytes]:
    return [place.to_bytes(32, "big") for place in range(1, count + 1)]


def far(seen: np.ndarray, chances: np.ndarray) -> bool:
    """Whether counts are refused."""
    expected = chances * seen.sum()
    statistic = float(((seen - expected) ** 2 / expected).sum())
    return statistic > scipy.stats.chi2.isf(FALSE_ALARM, len(seen) - 1)


def test_thresholds_of_features_are_those_of_the_mechanism() -> None:
    law = MultiBit(epsilon=4.0, dimension=6).law
    field = Features.of(features())
    fractions = np.array([0.0, 2.0**-32, 0.25, 1 / 3, 0.5, 1 - 2.0**-32, 1.0])
    steps = np.rint(fractions * STEPS).astype(np.uint64)
    assert field.thresholds(steps).tolist() == law.thresholds(fractions).tolist()


def test_a_label_has_the_law_of_randomized_response() -> None:
    task = task_of(label())
    person, law = task.person(0, opening_of(task).nonce(1)), RandomizedResponse(epsilon=1.0, classes=3)
    sent = [answers(task, person, answer(task, person, {"label": "glad"}, own).body)[0] for own in secrets(4000)]
    counts = np.bincount([number_of(bits) for bits in sent], minlength=3)
    assert not far(counts, law.transition()[MOODS.index("glad")].numpy())
    weaker = RandomizedResponse(epsilon=1.3, classes=3).transition()[MOODS.index("glad")].numpy()
    assert far(counts, weaker)


@pytest.mark.parametrize("value", [-1.0, 0.0, 2.9])
def test_a_feature_has_the_law_of_multi_bit(value: float) -> None:
    task = task_of(features("4", 1))
    person, law = task.person(3, bytes(16)), MultiBit(epsilon=4.0, dimension=1, low=-1.0, high=3.0)
    sent = [answers(task, person, answer(task, person, {"features": [value]}, own).body)[0] for own in secrets(3000)]
    one = float(law.law.thresholds(np.array([(value + 1) / 4]))[0]) / 2**64
    counts = np.bincount([int(bits[0]) for bits in sent], minlength=2)
    assert not far(counts, np.array([1 - one, one]))
    assert far(counts, np.array([0.5, 0.5])) or value == 0.0


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
def test_lists_have_the_law_of_adjacency_rr(mode: str) -> None:
    """Wrong bits are counted over everybody for whom the person answers; everybody else stays 0."""
    task = task_of(links(PEOPLE, mode=mode))
    person, law = task.person(4, bytes(16)), AdjacencyRR(epsilon=2.0, nodes=PEOPLE, mode=mode)
    true = np.zeros(PEOPLE, np.uint8)
    true[[1, 5, 9]] = 1
    sent = np.array([
        answers(task, person, answer(task, person, {"links": [9, 1, 5]}, own).body)[0] for own in secrets(2000)
    ])  # fmt: skip
    mine = [other for other in range(PEOPLE) if other != 4 and (mode != "lower" or other > 4)]
    others = [other for other in range(PEOPLE) if other not in mine]
    assert not sent[:, others].any()
    wrong = int((sent[:, mine] != true[mine]).sum())
    counts = np.array([2000 * len(mine) - wrong, wrong])
    assert not far(counts, np.array([1 - law.flip, law.flip]))
    assert far(counts, np.array([1 - 1.2 * law.flip, 1.2 * law.flip]))


def test_a_degree_has_the_law_of_noisy_degree() -> None:
    task = task_of(degree(PEOPLE, "1", "both"))
    person, law = task.person(0, bytes(16)), NoisyDegree(epsilon=1.0, nodes=PEOPLE, mode="both")
    lowest, own = law.ends[0], {"links": [1, 2, 3]}
    sent = [answers(task, person, answer(task, person, own, secret).body)[0] for secret in secrets(3000)]
    levels = np.array([number_of(bits) + lowest for bits in sent])
    chances = np.array([(1 - np.exp(-1)) / (1 + np.exp(-1)) * np.exp(-abs(z - 3)) for z in range(-1, 8)])
    counts = np.array([(levels == z).sum() for z in range(-1, 8)] + [((levels < -1) | (levels > 7)).sum()])
    assert not far(counts, np.append(chances, 1 - chances.sum()))
    assert far(np.roll(counts, 1), np.append(chances, 1 - chances.sum()))


def test_two_values_share_no_noise_and_one_value_keeps_its_own() -> None:
    """Of one device: equal values give equal bodies, and answers to two values agree as often as chance has it."""
    task = task_of(features("4", 1), label(), links(PEOPLE, mode="both"))
    person = task.person(2, bytes(16))
    agree = 0
    for own in secrets(2000):
        first, again = (answer(task, person, {"features": [0.0], "label": "sad", "links": [1]}, own) for _ in range(2))
        assert first == again
        other = answer(task, person, {"features": [1.0]}, own)
        one, two = (answers(task, person, body.body)[0] for body in (first, other))
        agree += int(one[0] == two[0])
    law = MultiBit(epsilon=4.0, dimension=1, low=-1.0, high=3.0).law
    ones = law.thresholds(np.array([0.25, 0.5])) / 2.0**64
    both = float(ones[0] * ones[1] + (1 - ones[0]) * (1 - ones[1]))
    assert not far(np.array([agree, 2000 - agree]), np.array([both, 1 - both]))


def test_a_new_friend_redraws_one_bit_alone() -> None:
    task = task_of(links(PEOPLE, mode="both"))
    person = task.person(0, bytes(16))
    for own in secrets(50):
        before, after = (answers(task, person, answer(task, person, {"links": list(named)}, own).body)[0]
                         for named in ((1, 2), (1, 2, 7)))  # fmt: skip
        assert set(np.flatnonzero(before != after).tolist()) <= {7}
