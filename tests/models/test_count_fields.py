"""Likelihoods of noisy counts: by hand on small tables, right on a graph that has the law, quiet where nothing is."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from graphveil.mechanisms import NoisyCounts
from graphveil.models.count_fields import CountedNeighbours, count_fields
from graphveil.privacy import SeededRandomness

CLASSES = 3


def counted(
    people: int, rate: float, *, private: float, public: float, seed: int = 0, uneven: bool = True
) -> tuple[CountedNeighbours, torch.Tensor]:
    """Rows of people who have four times as many neighbours of their own class as of each other one, and classes."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, CLASSES, people)
    mean = np.ones((CLASSES, CLASSES)) + 3 * np.eye(CLASSES)
    degree = rng.gamma(4.0, 0.25, people)[:, None] if uneven else np.ones((people, 1))
    true, known = (rng.poisson(size * degree * mean[label] / mean[0].sum()) for size in (private, public))
    noise = NoisyCounts(epsilon=rate)
    sent = noise.randomize(torch.from_numpy(true.reshape(-1)), randomness=SeededRandomness(seed))
    rows = sent.view(people, CLASSES).float(), torch.from_numpy(known).float()
    return CountedNeighbours(*rows, rate), torch.from_numpy(label)


def by_hand(row: np.ndarray, expected: np.ndarray, rate: float) -> float:
    """log of the sum over all true counts, to 400."""
    true = np.arange(400)
    total = 0.0
    for noisy, mean in zip(row, expected, strict=True):
        noise = np.tanh(rate / 2) * np.exp(-rate * np.abs(noisy - true))
        total += math.log(float((stats.poisson.pmf(true, mean) * noise).sum()))
    return total


@pytest.mark.parametrize("rate", [0.25, 4.0])
def test_a_field_is_the_likelihood_of_its_row(rate: float) -> None:
    """With everybody of one degree: differences between classes are those of the sum over all true counts."""
    table, label = counted(400, rate, private=12.0, public=3.0, uneven=False)
    train = torch.arange(300)
    field = count_fields(table, label, train)
    member = torch.nn.functional.one_hot(label[train], CLASSES).double()
    size = member.sum(dim=0)[:, None]
    known = (member.T @ table.public[train].double() / size).numpy()
    found = (member.T @ table.private[train].double() / size).numpy()
    expected = known / known.sum(axis=1, keepdims=True) * found.sum(axis=1, keepdims=True)
    noise = table.variance / size.numpy()
    beyond = np.maximum((found - expected) ** 2 - noise, 0).mean()
    rates = expected + (found - expected) * beyond / (beyond + noise)
    for node in range(300, 330):
        likely = [
            by_hand(table.private[node].numpy(), rates[a], rate)
            + stats.poisson.logpmf(table.public[node].numpy(), known[a]).sum()
            for a in range(CLASSES)
        ]
        gaps = field[node].double().numpy() - field[node, 0].item()
        assert gaps == pytest.approx(np.array(likely) - likely[0], abs=2e-3)


def test_rows_far_from_every_class_stay_finite() -> None:
    table, label = counted(200, 3.0, private=4.0, public=1.0)
    table.private[150] = torch.tensor([5000.0, -5000.0, 0.0])
    field = count_fields(table, label, torch.arange(100))
    assert torch.isfinite(field).all()
    assert int(field[150].argmax()) == 0
    table, label = counted(200, 1.0, private=6.0, public=0.0)  # no public edges, and nobody of a class trains
    assert torch.isfinite(count_fields(table, torch.where(label == 2, 0, label), torch.arange(100))).all()
