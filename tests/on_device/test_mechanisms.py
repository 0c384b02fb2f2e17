"""Mechanisms of simulations, and the device: the same integers, and likelihoods that are those of its answers.

Nothing here is drawn: the words of a device are looked up, and what a mechanism says of its answer is compared with the
number of words that give it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.device import DeviceError, Task, answer, answers
from graphveil.device.reports.exact import WORD
from graphveil.device.reports.features import STEPS, Features
from graphveil.device.reports.noise import Bits, number_of
from graphveil.mechanisms import AdjacencyRR, MultiBit, RandomizedResponse
from graphveil.mechanisms.base.reports import LabelReports, MultiBitReports
from graphveil.mechanisms.edges.degrees import NoisyDegree
from graphveil.mechanisms.edges.neighbour_lists import DegreeReports, EdgeReports
from graphveil.mechanisms.samplers.bits import bit_law
from graphveil.mechanisms.samplers.geometric import two_sided
from tests.on_device.signing import MOODS, at_most, degree, features, label, links, task_of

SECRETS = [place.to_bytes(32, "big") for place in range(1, 21)]
EPSILONS = ("0.01", "2.18", "40")
PEOPLE = 9


def sent(task: Task, number: int, values: dict[str, Any], secret: bytes) -> Bits:
    """The answer of the only field."""
    person = task.person(number, bytes(16))
    (report,) = answers(task, person, answer(task, person, values, secret).body)
    assert report is not None
    return report


@pytest.mark.parametrize(("epsilon", "sampled"), [("0.5", 1), ("4", 3), ("30", 6)])
def test_answers_of_features_have_the_likelihood_of_multi_bit(epsilon: str, sampled: int) -> None:
    law = MultiBit(epsilon=float(epsilon), dimension=6, low=-1.0, high=3.0, sampled=sampled)
    task = task_of({**features(epsilon), "sampled": sampled, "threshold": str(law.law.low)})
    field, values = task.fields[0], [-1.0, 3.0, 0.0, -0.0, 2.5, 1 / 3]
    assert isinstance(field, Features)
    for number, secret in enumerate(SECRETS[:12]):
        columns = field.coordinates(task.person(number, bytes(16)))
        bits = sent(task, number, {"features": values}, secret)
        report = MultiBitReports(torch.tensor([columns], dtype=torch.int32), torch.from_numpy(bits[None]))
        steps = [round((values[column] + 1) / 4 * STEPS) for column in columns]
        thresholds = [law.law.low + law.law.span * step // STEPS for step in steps]
        chances = [low if bit else WORD - low for low, bit in zip(thresholds, bits.tolist(), strict=True)]
        expected = sum(math.log(chance / WORD) for chance in chances) - math.log(math.comb(6, sampled))
        assert float(law.log_likelihood(report, torch.tensor([values], dtype=torch.float64))) == pytest.approx(expected)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_answers_of_labels_have_the_likelihood_of_randomized_response(epsilon: str) -> None:
    law, task = RandomizedResponse(epsilon=at_most(epsilon), classes=len(MOODS)), task_of(label(epsilon))
    for secret in SECRETS:
        for true, mood in enumerate(MOODS):
            label_report = number_of(sent(task, 0, {"label": mood}, secret))
            chance = WORD - 2 * law.share if label_report == true else law.share
            log_likelihood = law.log_likelihood(LabelReports(torch.tensor([label_report])), torch.tensor([true]))
            assert float(log_likelihood) == pytest.approx(math.log(chance / WORD))


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
def test_lists_of_everybody_have_the_likelihood_of_adjacency_rr(mode: str) -> None:
    """A whole collection: the devices' lists are reports that the mechanism takes, and it weighs each wrong bit."""
    law, task = AdjacencyRR(epsilon=1.0, nodes=PEOPLE, mode=mode), task_of(links(PEOPLE, "1", mode), people=PEOPLE)
    friends = {number: [(number + 1) % PEOPLE, (number - 1) % PEOPLE] for number in range(PEOPLE)}
    reports = [sent(task, number, {"links": friends[number]}, SECRETS[number]) for number in range(PEOPLE)]
    lists = [np.flatnonzero(reported_bits) for reported_bits in reports]
    starts = torch.tensor([0, *np.cumsum([len(friend_list) for friend_list in lists])])
    collected = EdgeReports(starts, torch.from_numpy(np.concatenate(lists).astype(np.int32)))
    edges = torch.tensor([[person, other] for person, friend_list in friends.items() for other in friend_list]).T
    log_likelihoods = law.log_likelihood(collected, edges)
    for number, bits in enumerate(reports):
        mine = [other for other in range(PEOPLE) if other != number and (mode != "lower" or other > number)]
        wrong = sum(bits[other] != (other in friends[number]) for other in mine)
        chances = wrong * math.log(law.threshold / WORD) + (len(mine) - wrong) * math.log1p(-law.threshold / WORD)
        assert float(log_likelihoods[number]) == pytest.approx(chances)


@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "3"])
def test_degrees_have_the_law_and_the_ends_of_noisy_degree(epsilon: str) -> None:
    """The digits of a task make the probabilities that the mechanism states, to all digits of a float."""
    field, rate = degree(PEOPLE, epsilon, "both"), two_sided(float(epsilon)).rate
    law, task = NoisyDegree(epsilon=float(epsilon), nodes=PEOPLE, mode="both"), task_of(field, people=PEOPLE)
    assert law.ends == (field["lowest"], field["highest"])
    odds = [Fraction(int(digit), 2**256 - int(digit)) for digit in field["digits"]]
    for place, odd in enumerate(odds):
        assert float(odd) == pytest.approx(math.exp(-rate * 2**place))
    assert int(field["overflow"]) / 2**256 == pytest.approx(math.exp(-rate * 2 ** len(odds)))
    for secret in SECRETS:
        level = number_of(sent(task, 4, {"links": [0, 8, 3]}, secret)) + field["lowest"]
        reports = DegreeReports(torch.full((PEOPLE,), level, dtype=torch.int32))
        expected = math.log(math.tanh(rate / 2)) - rate * abs(level - 3)
        log_likelihoods = law.log_likelihood(reports, torch.full((PEOPLE,), 3))
        assert log_likelihoods.tolist() == pytest.approx([expected] * PEOPLE)


@pytest.mark.parametrize("sampled", [1, 2, 6])
def test_a_share_of_epsilon_is_checked_for_each_coordinate(sampled: int) -> None:
    """A threshold for one bit at epsilon is refused where two bits are told."""
    low = str(bit_law(4.0, sampled).low)
    for more in range(1, 7):
        field = {**features("4"), "sampled": more, "threshold": low}
        if more <= sampled:
            task_of(field)
        else:
            with pytest.raises(DeviceError, match=r"^epsilon: "):
                task_of(field)
