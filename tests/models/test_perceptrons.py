"""The curator's perceptrons: slopes written by hand, and stages that go on from one another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from graphveil.models.perceptrons import Encoder, HopClassifier, Stage, selu, unit

X = torch.randn(7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("made", [selu, unit])
def test_slopes_equal_finite_differences(made: Callable[[Tensor], Tensor]) -> None:
    assert torch.autograd.gradcheck(made, X.clone().requires_grad_())


def test_selu_and_its_slope_are_those_of_torch_also_for_slices_of_a_gradient() -> None:
    both = []
    for law in (selu, functional.selu):
        x = (4 * X).requires_grad_()
        torch.cat([law(x), x * x], dim=1).square().sum().backward()
        both.append((law(x).detach(), x.grad))
    (value, slope), (value2, slope2) = both
    assert torch.equal(value, value2)
    assert slope is not None and slope2 is not None
    assert torch.allclose(slope, slope2, rtol=1e-12)


def test_unit_rows_have_length_one_and_zero_rows_stay_zero() -> None:
    x = X.clone()
    x[2] = 0.0
    lengths = unit(x).norm(dim=1)
    assert torch.allclose(lengths[torch.arange(7) != 2], torch.ones(6, dtype=torch.float64))
    assert lengths[2] == 0.0


@pytest.mark.parametrize("batch_norm", [False, True])
def test_heads_are_over_the_features(batch_norm: bool) -> None:
    x = X.float()
    for model in (
        Encoder(5, 4, 3, batch_norm=batch_norm),
        HopClassifier([2, 3], 4, 3, batch_norm=batch_norm),
        Stage([2, 3], 4, 3, batch_norm=batch_norm),
    ):
        model.eval()
        assert torch.equal(model(x), model.head(model.features(x)))
        assert model(x).shape == (7, 3)
