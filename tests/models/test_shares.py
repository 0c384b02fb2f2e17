"""Softmax with classes as rows: torch's own in value and slope, also of views and of logits that overflow."""

from __future__ import annotations

import pytest
import torch

from graphveil.models.shares import class_softmax


@pytest.mark.parametrize("shape", [(1, 1), (5, 2), (200, 7), (0, 3)])
def test_values_and_slopes_of_torchs_own(shape: tuple[int, int]) -> None:
    logits = 100 * torch.randn(shape, generator=torch.Generator().manual_seed(0))
    weights = torch.rand(shape, generator=torch.Generator().manual_seed(1))
    slopes = []
    for softmax in (class_softmax, lambda x: torch.softmax(x, dim=1)):
        x = logits.clone().requires_grad_()
        (softmax(x) * weights).sum().backward()  # type: ignore[no-untyped-call]
        slopes.append(x.grad)
    assert torch.allclose(class_softmax(logits), torch.softmax(logits, dim=1), atol=1e-6)
    assert torch.allclose(slopes[0], slopes[1], atol=1e-6)


def test_views_are_read_as_what_they_mean() -> None:
    logits = torch.randn(3, 8, generator=torch.Generator().manual_seed(2)).T
    assert torch.allclose(class_softmax(logits), torch.softmax(logits.contiguous(), dim=1), atol=1e-6)


def test_scores_that_overflow_alone_stay_shares() -> None:
    found = class_softmax(torch.tensor([[1e4, 1e4, -1e4]]))
    assert found.tolist() == [[0.5, 0.5, 0.0]]
