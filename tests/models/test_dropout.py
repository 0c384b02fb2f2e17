"""Dropout from raw bytes against the law it promises."""

from __future__ import annotations

import pytest
import torch

from graphveil.models.dropout import dropout

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


def test_entries_are_dropped_independently() -> None:
    """Neighbours in memory, and every eighth of them, are uncorrelated within five deviations."""
    torch.manual_seed(1)
    kept = (dropout(torch.ones(N), 0.5, True) != 0).double() - 0.5
    for shift in (1, 2, 7, 8, 64):
        correlation = float((kept[shift:] * kept[:-shift]).mean() * 4)
        assert abs(correlation) < 5 / N**0.5


def test_nothing_is_dropped_outside_training_or_at_rate_0() -> None:
    x = torch.randn(7, 3)
    assert dropout(x, 0.5, False) is x
    assert dropout(x, 0.0, True) is x


def test_the_generator_decides_and_shapes_and_gradients_are_kept() -> None:
    x = torch.randn(5, 3, requires_grad=True)
    outs = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        outs.append(dropout(x, 0.5, True))
    assert torch.equal(outs[0], outs[1])
    assert not torch.equal(outs[0], outs[2])
    outs[0].sum().backward()
    assert torch.allclose(x.grad, (outs[0] != 0) * 2.0)


@pytest.mark.parametrize("rate", [0.001, 0.997, 0.9999])
def test_rates_near_the_ends_give_finite_numbers(rate: float) -> None:
    assert bool(dropout(torch.ones(1000), rate, True).isfinite().all())
