"""What runs on a GPU, on a GPU: skipped where torch finds none, where `tests/methods/test_on_gpu.py` pretends one."""

from __future__ import annotations

import pytest
import torch

from graphveil.aggregation import PerturbedSum, ReceiverRows, propagate_privately
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.mechanisms.samplers.rounded_tensor import NormalTensors
from graphveil.privacy import BlockNoise, SeededRandomness
from graphveil.privacy.aes_words import KeyStreams
from tests.methods.on_gpu import METHODS, fitted

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")


def test_words_and_draws_are_those_of_the_cpu() -> None:
    keys = list(BlockNoise(SeededRandomness(1)).keys(3))
    here, there = (KeyStreams.of(keys, device).numbers(8, 10_001) for device in ("cpu", "cuda"))
    assert torch.equal(there.cpu(), here)
    drawn = NormalTensors.of(RoundedNormal(300.0, 3600), "cuda").draw(10_001, keys)
    for key, row in zip(keys, drawn.cpu(), strict=True):
        assert row.tolist() == RoundedNormal(300.0, 3600).draw(10_001, key.stream()).tolist()


@pytest.mark.parametrize("weighted", [False, True])
def test_hops_have_the_bits_of_the_cpu(weighted: bool) -> None:
    """Enough rows for several blocks, and one that hears everybody."""
    nodes, drawn = 20_000, torch.Generator().manual_seed(0)
    edges = torch.unique(torch.randint(0, nodes, (2, 10 * nodes), generator=drawn), dim=1)
    edges = torch.cat([edges[:, edges[1] != 7], torch.stack([torch.arange(nodes), torch.full((nodes,), 7)])], dim=1)
    weights = torch.rand(edges.shape[1], generator=drawn) if weighted else None
    rows = ReceiverRows.of(edges, nodes, weights=weights)
    x = torch.randn(nodes, 33, generator=drawn)
    perturbed = PerturbedSum(unit="edge", sigmas=(8.0, 4.0))
    here, there = (propagate_privately(perturbed, rows, x.to(d), SeededRandomness(3)) for d in ("cpu", "cuda"))
    assert all(torch.equal(one.cpu(), other) for one, other in zip(there, here, strict=True))


@pytest.mark.parametrize("name", METHODS)
def test_predictions_are_near_those_of_the_cpu(name: str) -> None:
    """Rounding alone tells them apart; dropout is drawn by another generator, and left out."""
    here, there = (fitted(name, device, epochs=5).predict_proba() for device in ("cpu", "cuda"))
    assert torch.allclose(torch.as_tensor(there), torch.as_tensor(here), atol=0.02)
