"""What the server makes of rows before it trains on them, and that a dense graph teaches every mode."""

from __future__ import annotations

import math

import pytest
import torch

from graphveil.federation.core.networks import apart
from graphveil.federation.estimator import VFGNN
from graphveil.graphs import Graph, random_split, social_graph
from graphveil.privacy import SeededRandomness


@pytest.mark.parametrize("length", [1.0, 4.0])
def test_rows_lose_what_they_share_and_keep_their_lengths_beside_each_other(length: float) -> None:
    own = torch.randn(500, 8, generator=torch.Generator().manual_seed(0))
    own = own - own.mean(dim=0)
    rows = apart(100.0 + 0.01 * own, length)
    assert torch.allclose(rows, own * (length / own.square().sum(dim=1).mean().sqrt()), atol=1e-2)


def test_noise_does_not_count_as_length() -> None:
    """Signal of length 1 under noise of length 8: after all, the signal has the length that was asked for."""
    generator = torch.Generator().manual_seed(1)
    own = torch.nn.functional.normalize(torch.randn(4000, 16, generator=generator), dim=1)
    noise = 2.0 * torch.randn(4000, 16, generator=generator)
    factor = apart(own + noise, 4.0, noise=2.0 * math.sqrt(16)).norm() / (own + noise).norm()
    assert float(factor) == pytest.approx(4.0, rel=0.2)
    assert bool(apart(noise, 4.0, noise=100.0).isfinite().all())


def test_gradients_pass_by_one_factor() -> None:
    rows = torch.randn(50, 4, generator=torch.Generator().manual_seed(2)).requires_grad_()
    slope = torch.randn(50, 4, generator=torch.Generator().manual_seed(3))
    apart(rows, 1.0).backward(slope)  # type: ignore[no-untyped-call]
    assert rows.grad is not None
    centred = slope - slope.mean(dim=0)
    assert torch.allclose(rows.grad / rows.grad.norm(), centred / centred.norm(), atol=1e-5)


def dense() -> Graph:
    """Three classes of people who know 45 of 200 each, most of them of their own class."""
    return social_graph(200, 45, 40, 3, apps=8, seed=5)


@pytest.mark.parametrize("mode", ["shared-linear", "individual", "guesses"])
def test_a_dense_graph_teaches_every_mode_as_it_is_first_typed(mode: str) -> None:
    """Two hops make all rows nearly alike: with what they share left in, shared-linear names one class for all."""
    graph = dense()
    split = random_split(graph, 0)
    model = VFGNN(epsilon=math.inf, mode=mode, epochs=60, width=16).fit(
        graph, split=split, randomness=SeededRandomness(0)
    )
    assert model.score(graph, split.test) > 0.8
