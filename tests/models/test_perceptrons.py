"""The curator's perceptrons: slopes written by hand, and stages that go on from one another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from graphveil.models.dropout import dropout
from graphveil.models.perceptrons import selu, unit

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


N = 200_000


@pytest.mark.parametrize("rate", [0.25, 0.9])
def test_entries_are_dropped_at_the_rate_and_the_rest_is_scaled_up(rate: float) -> None:
    """The share dropped is within five deviations of the rounded rate (false alarm 6e-7); 1.1 times the rate is not."""
    torch.manual_seed(0)
    rounded = round(rate * 256) / 256
    out = dropout(torch.ones(N), rate, True)
    share = float((out == 0).float().mean())
    error = 5 * (rounded * (1 - rounded) / N) ** 0.5
    assert abs(share - rounded) < error
    assert abs(share - 1.1 * rounded) > error
    assert torch.allclose(out[out != 0], torch.tensor(1 / (1 - rounded)))


def test_the_generator_decides_and_shapes_and_gradients_are_kept() -> None:
    x = torch.randn(5, 3, requires_grad=True)
    outs = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        outs.append(dropout(x, 0.5, True))
    assert torch.equal(outs[0], outs[1])
    assert not torch.equal(outs[0], outs[2])
    assert dropout(x, 0.5, False) is x and dropout(x, 0.0, True) is x
    assert all(bool(dropout(torch.ones(1000), rate, True).isfinite().all()) for rate in (0.001, 0.997, 0.9999))
    outs[0].sum().backward()
    assert torch.allclose(x.grad, (outs[0] != 0) * 2.0)
