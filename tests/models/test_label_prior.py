"""Class shares and homophily from noisy labels."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphveil.mechanisms import RandomizedResponse
from graphveil.models.label_prior import HOMOPHILY, LEAST_SHARE, channel, class_shares, homophily
from graphveil.privacy import SeededRandomness

SHARES = torch.tensor([0.5, 0.3, 0.2])


def noisy(labels: Tensor, epsilon: float, seed: int = 3) -> Tensor:
    return RandomizedResponse(epsilon=epsilon, classes=3).randomize(labels, randomness=SeededRandomness(seed)).labels


def rates(epsilon: float) -> tuple[float, float]:
    mechanism = RandomizedResponse(epsilon=epsilon, classes=3)
    return mechanism.keep, mechanism.flip


def drawn(count: int, probabilities: Tensor) -> Tensor:
    return torch.multinomial(probabilities, count, replacement=True, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("classes", "epsilon"), [(2, 0.1), (3, 1.0), (40, 3.0), (7, 12.0)])
def test_each_row_of_the_channel_holds_all_reports_of_one_label(classes: int, epsilon: float) -> None:
    mechanism = RandomizedResponse(epsilon=epsilon, classes=classes)
    found = channel(classes, mechanism.keep, mechanism.flip)
    assert torch.allclose(found.sum(dim=1), torch.ones(classes), atol=1e-6)
    assert torch.allclose(found.double(), mechanism.transition().double(), atol=1e-7)


def test_class_shares_are_unbiased() -> None:
    """200,000 reports at epsilon 1: each share within 5 deviations (false alarm 2e-6); inverted at 1.5, not."""
    n = 200_000
    labels = drawn(n, SHARES)
    reports, truth = noisy(labels, 1.0), torch.bincount(labels, minlength=3) / n
    keep, flip = rates(1.0)
    error = 5 * 0.5 / math.sqrt(n) / (keep - flip)
    assert float((class_shares(reports, 3, keep, flip) - truth).abs().max()) < error
    assert float((class_shares(reports, 3, *rates(1.5)) - truth).abs().max()) > error


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-1, 4), min_size=1, max_size=60), st.floats(0.05, 14))
def test_class_shares_are_on_the_simplex(reports: list[int], epsilon: float) -> None:
    """Whatever was reported: they add up to 1, and no class is thought much rarer than declared."""
    mechanism = RandomizedResponse(epsilon=epsilon, classes=5)
    found = class_shares(torch.tensor(reports), 5, mechanism.keep, mechanism.flip)
    assert float(found.sum()) == pytest.approx(1, abs=1e-5)
    assert float(found.min()) > LEAST_SHARE / 5 * 0.83


def planted(h: float, edges: int) -> tuple[Tensor, Tensor, Tensor]:
    """Edges between nodes of their own whose classes follow (1 - h) pi pi^T + h diag(pi): source, target, labels."""
    joint = (1 - h) * SHARES[:, None] * SHARES + h * torch.diag(SHARES)
    pairs = drawn(edges, joint.flatten())
    first, second = torch.arange(edges), torch.arange(edges, 2 * edges)
    labels = torch.cat([pairs // 3, pairs % 3])
    return torch.cat([first, second]), torch.cat([second, first]), labels


@pytest.mark.parametrize("h", [0.65, 0.85])
def test_homophily_is_found(h: float) -> None:
    """100,000 edges at epsilon 2: within 0.03; inverted at epsilon 3, not.

    A pair of reports agrees or not (deviation at most 1/2) and the inverse of the channel stretches by 1/(p - q) at
    each end and 1/(1 - |pi|^2): a deviation of 0.006 (measured), so a false alarm has a chance of 6e-7.
    """
    source, target, labels = planted(h, 100_000)
    reports = noisy(labels, 2.0)
    assert homophily(source, target, reports, 3, *rates(2.0)) == pytest.approx(h, abs=0.03)
    assert homophily(source, target, reports, 3, *rates(3.0)) != pytest.approx(h, abs=0.03)


def test_homophily_stays_where_there_is_something_to_infer() -> None:
    nobody = torch.full((10,), -1)
    source, target = torch.arange(5), torch.arange(5, 10)
    assert homophily(source, target, nobody, 3, *rates(1.0)) == pytest.approx(sum(HOMOPHILY) / 2)
    for h in (0.0, 1.0):
        source, target, labels = planted(h, 2_000)
        assert homophily(source, target, labels, 3, *rates(8.0)) == HOMOPHILY[int(h)]
