"""The private hop where tensors lie on a GPU: the bits of the CPU, with everything on one device."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import PerturbedSum, ReceiverRows, propagate_privately, quantise
from graphveil.aggregation.perturbed import noisy_sums
from graphveil.engine import Blocks
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import BlockNoise, SeededRandomness
from tests.pretended import pretended_gpu

N, COLUMNS = 300, 7
HOP = PerturbedSum(unit="edge", sigmas=(8.0, 4.0), bits=10)


def rows(weighted: bool = False) -> ReceiverRows:
    """Ten edges a node, and one node that hears everybody: with weights its sum is cut into pieces."""
    drawn = torch.Generator().manual_seed(0)
    edges = torch.unique(torch.randint(0, N, (2, 10 * N), generator=drawn), dim=1)
    edges = torch.cat([edges[:, edges[1] != 7], torch.stack([torch.arange(N), torch.full((N,), 7)])], dim=1)
    weights = torch.rand(edges.shape[1], generator=drawn) if weighted else None
    return ReceiverRows.of(edges, N, weights=weights, weight_bits=10)


def features() -> Tensor:
    x = torch.randn(N, COLUMNS, generator=torch.Generator().manual_seed(1))
    x[3], x[4, 0], x[5, 1] = 0.0, float("nan"), float("inf")
    return x


@pytest.mark.slow  # large graphs
@pytest.mark.parametrize("weighted", [False, True])
def test_a_hop_has_the_same_bits(weighted: bool) -> None:
    edges, hop = rows(weighted), replace(HOP, sigmas=(1.0,), bits=6)
    expected = hop.perturb(edges, features(), 1, SeededRandomness(3))
    assert bool(len(edges.sums(quantise(features(), bits=6)).long)) == weighted
    with pretended_gpu() as gpu:
        sums = hop.perturb(edges, features().to("cuda"), 1, SeededRandomness(3))
        assert gpu.holds(sums)
        assert torch.equal(sums.cpu(), expected)
        other = hop.perturb(edges, features().to("cuda"), 1, SeededRandomness(4))
        assert not torch.equal(other.cpu(), expected)


def test_hops_one_after_the_other_have_the_same_bits() -> None:
    """What is normalised between them too: the lengths of rows are the same on every processor."""
    for hop in (HOP, replace(HOP, sigmas=(0.0, 4.0))):
        expected = propagate_privately(hop, rows(), features(), SeededRandomness(3))
        with pretended_gpu():
            layers = propagate_privately(hop, rows(), features().to("cuda"), SeededRandomness(3))
            assert all(torch.equal(layer.cpu(), other) for layer, other in zip(layers, expected, strict=True))


def test_blocks_of_all_lengths_have_the_noise_of_their_own_key() -> None:
    """Seventeen blocks and a shorter one: more than are worked on at once."""
    noise, blocks = RoundedNormal(50.0, 600), Blocks(N, 17)
    grid = quantise(features(), bits=10)
    keys = list(BlockNoise(SeededRandomness(5)).keys(len(blocks)))
    assert len(blocks) == 18
    expected = noisy_sums(rows(), grid, None, blocks, ())
    for block, key in zip(blocks, keys, strict=True):
        here = expected[block.rows]
        here += torch.from_numpy(noise.draw(here.numel(), key.stream())).view_as(here)
    assert torch.equal(noisy_sums(rows(), grid, noise, blocks, keys), expected)
    swapped = [*keys[1:], keys[0]]
    assert not torch.equal(noisy_sums(rows(), grid, noise, blocks, swapped), expected)
