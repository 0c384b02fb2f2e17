"""What runs on a GPU, on a GPU: skipped where torch finds none, where `tests/methods/test_engines.py` pretends one."""

from __future__ import annotations

import pytest
import torch

from graphveil.aggregation import PerturbedSum, ReceiverRows, propagate_privately, quantise, unit_rows
from graphveil.errors import InputError
from graphveil.mechanisms.samplers.normal_kernel import NormalKernel
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import BlockNoise, SeededRandomness
from graphveil.privacy.source.chacha_kernel import cipher_numbers, keys_on
from graphveil.privacy.source.randomness import open_stream
from graphveil.training import PrivateDescent, PrivateSchedule
from tests.methods.on_gpu import METHODS, fitted
from tests.training.test_dp_sgd import SCHEDULE, Fixed, perceptron, samples

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")


def test_words_and_draws_are_those_of_the_cpu() -> None:
    keys = list(BlockNoise(SeededRandomness(1)).keys(3))
    numbers = cipher_numbers(keys_on(keys, "cuda"), 1, 5, 10_001).cpu()
    noise, drawn = RoundedNormal(300.0, 3600), torch.zeros(3, 10_001, device="cuda")
    NormalKernel.of(noise, "cuda").add_to(drawn, keys, size=10_001)
    for key, words, draws in zip(keys, numbers, drawn.cpu(), strict=True):
        assert words.numpy().tobytes() == open_stream(key.key, 1, block=5).update(bytes(4 * 10_001))
        assert draws.tolist() == noise.draw(10_001, key.stream()).tolist()


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
    assert all(torch.equal(rows.cpu(), other) for rows, other in zip(there, here, strict=True))


def test_removing_one_sample_moves_a_clipped_sum_by_its_own_part_only() -> None:
    """What the price of private training leans on: no kernel ties a sample's bits to who else is in the batch."""
    x, y = samples(9000, 300, 7)
    schedule = PrivateSchedule(**{**SCHEDULE, "rate": 0.02})
    descent = PrivateDescent(perceptron(300, 64, 64, 7).to("cuda"), x, y, schedule)
    everybody = torch.randperm(9000, generator=torch.Generator().manual_seed(1))[:500].sort().values
    whole = descent.clipped_sums(everybody, Fixed())
    for gone in everybody[::50]:
        rest, alone = (descent.clipped_sums(own, Fixed()) for own in (everybody[everybody != gone], gone[None]))
        assert torch.equal(whole - rest, alone)
        assert 0 < float(alone.norm()) <= schedule.grid.cap


@pytest.mark.parametrize("name", METHODS)
def test_a_fit_promises_what_the_cpu_does_and_begins_with_the_same_loss(name: str) -> None:
    """What is exact, and what one step rounds: later ones of a training drift apart, and say nothing of either."""
    here, there = (fitted(name, device, epochs=1) for device in ("cpu", "cuda"))
    assert there.guarantee == here.guarantee
    for other, own in zip(there.history[:1], here.history[:1], strict=True):
        assert other.loss == pytest.approx(own.loss, rel=1e-4)
    assert torch.as_tensor(there.predict_proba()).isfinite().all()


@pytest.mark.parametrize("name", ["label-propagation", "label-pool", "link-beliefs"])
def test_what_no_network_is_trained_for_ends_alike(name: str) -> None:
    """Convex searches and sums: rounding alone tells them apart."""
    here, there = (torch.as_tensor(fitted(name, device, epochs=1).predict_proba()) for device in ("cpu", "cuda"))
    assert torch.allclose(there, here, atol=1e-3)


@pytest.mark.parametrize("columns", [7, 64])
def test_rows_on_the_grid_have_the_bits_of_the_cpu(columns: int) -> None:
    x = torch.randn(5000, columns, generator=torch.Generator().manual_seed(1))
    x[3], x[4, 0], x[5, 1], x[6] = 0.0, torch.nan, torch.inf, x[6] * 1e-3
    for normalise in (True, False):
        here, there = (quantise(x.to(d), bits=10, normalise=normalise).values for d in ("cpu", "cuda"))
        assert torch.equal(there.cpu().float(), here.float())
    assert torch.equal(unit_rows(x.to("cuda")).cpu(), unit_rows(x))


def test_a_captured_step_is_refused() -> None:
    """A CUDA graph that is run again would add the same noise to other data."""
    noise, key = NormalKernel.of(RoundedNormal(300.0, 3600), "cuda"), list(BlockNoise(SeededRandomness(1)).keys(1))
    totals, graph = torch.zeros(100, device="cuda"), torch.cuda.CUDAGraph()
    with pytest.raises(InputError, match="noise inside a CUDA graph"), torch.cuda.graph(graph):
        noise.add_to(totals, key, size=100)
