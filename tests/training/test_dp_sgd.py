"""Private gradient descent against oracles: clipping, sampling, noise, refusals (checklist items 15 to 18)."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from graphveil.errors import BudgetError, InputError
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import SecureRandomness, SeededRandomness
from graphveil.training import PrivateDescent, PrivateSchedule, dp_sgd, train_privately
from graphveil.training.clipped_sum import MULTIPLES, Captured, GradientGrid, clipped_sum
from graphveil.training.dp_sgd import Recorder, linear_layers, poisson_batch, refuse_mixed_rows
from tests.mechanisms.samplers.scripted import Scripted

SCHEDULE = {"steps": 3, "rate": 0.5, "expected_batch": 32.0, "noise_multiplier": 1.0}


def perceptron(*widths: int, bias: bool = True, activation: type[nn.Module] = nn.SELU) -> nn.Sequential:
    torch.manual_seed(3)
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after, bias=bias), activation()]
    return nn.Sequential(*layers[:-1])


def samples(count: int, width: int, classes: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    return torch.randn(count, width, generator=generator), torch.randint(0, classes, (count,), generator=generator)


def captured(model: nn.Sequential, x: Tensor, y: Tensor) -> list[Captured]:
    layers = linear_layers(model)
    with Recorder(layers) as recorder:
        losses = nn.functional.cross_entropy(model(x), y, reduction="none")
        seen = recorder.seen
    deltas = torch.autograd.grad(losses.sum(), [output for _, output in seen])
    return [
        Captured(a.detach(), delta, layer.bias is not None)
        for layer, (a, _), delta in zip(layers, seen, deltas, strict=True)
    ]


def per_sample(model: nn.Sequential, x: Tensor, y: Tensor) -> Tensor:
    """Every sample's gradient by torch.func, [b, parameters]."""
    parameters = {name: value.detach() for name, value in model.named_parameters()}

    def loss(values: dict[str, Tensor], row: Tensor, label: Tensor) -> Tensor:
        return nn.functional.cross_entropy(torch.func.functional_call(model, values, (row[None],)), label[None])

    gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    return torch.cat([gradients[name].flatten(1) for name in parameters], 1)


@pytest.mark.parametrize(("widths", "bias"), [((5, 3), True), ((30, 16, 4), False), ((20, 16, 8, 3), True)])
def test_norms_are_those_of_vmap(widths: tuple[int, ...], bias: bool) -> None:
    """Checklist item 16: closed-form norms to 1e-5."""
    model, (x, y) = perceptron(*widths, bias=bias), samples(40, widths[0], widths[-1])
    layers = [(layer.deltas.double(), layer.inputs.double(), layer.bias) for layer in captured(model, x, y)]
    norms = sum(d.square().sum(1) * (a.square().sum(1) + b) for d, a, b in layers).sqrt()
    assert norms.numpy() == pytest.approx(per_sample(model, x, y).norm(dim=1).double().numpy(), rel=1e-5)


@pytest.mark.parametrize(("clip", "cap"), [(0.1, 1 << 10), (1.0, 1 << 13), (100.0, 1 << 10)])
def test_the_clipped_sum_is_that_of_vmap(clip: float, cap: int) -> None:
    """Within 5 % at the finest grid, 12 % at the coarsest, of the clipped float sum, where most samples are clipped.

    Where few are, what dither adds (it is unbiased) is small beside the noise, of 4,096 steps at these grids.
    """
    model, (x, y) = perceptron(60, 16, 4), samples(200, 60, 4)
    each = per_sample(model, x, y)
    wanted = (each * (clip / each.norm(dim=1, keepdim=True)).clamp(max=1.0)).sum(0).double()
    grid = GradientGrid(clip, cap)
    sums = torch.stack([clipped_sum(captured(model, x, y), grid, SeededRandomness(k)) for k in range(5)])
    error = sums.mean(0) * grid.step - wanted
    if clip <= 1.0:
        assert error.norm() / wanted.norm() < (0.05 if cap == 1 << 13 else 0.12)
    each_time = (sums * grid.step - wanted).square().mean().sqrt() / grid.step
    assert each_time < 0.05 * 4096


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("cap", [1 << 10, 1 << 12, 1 << 13])
def test_no_sample_adds_more_than_the_cap(cap: int, bias: bool) -> None:
    """Checklist item 16: the integer norm is at most the cap, exactly; also where dither would pass it."""
    model, (x, y) = perceptron(60, 32, 4, bias=bias), samples(64, 60, 4)
    x[:16] *= 1e4
    x[16:32] *= 1e-6
    x[32] = 0.0
    x[33] = 0.0
    x[33, 0] = 3e18
    x[34] = 1e-44
    seen = captured(model, x, y)
    largest = 0
    for row in range(64):
        single = [Captured(layer.inputs[row : row + 1], layer.deltas[row : row + 1], layer.bias) for layer in seen]
        for seed in range(10):
            whole = clipped_sum(single, GradientGrid(1e-3, cap), SeededRandomness(seed))
            assert torch.equal(whole, whole.round())
            norm = sum(int(value) ** 2 for value in whole.tolist() if value)
            assert norm <= cap**2
            largest = max(largest, norm)
    assert largest > (0.9 * cap) ** 2


class Fixed:
    """Dither of which a sample gets the same wherever it stands in the batch: all words are equal."""

    void = None

    def uint64(self, count: int) -> np.ndarray:
        return np.full(count, 0x5A5A5A5A5A5A5A5A, np.uint64)

    def bytes(self, count: int) -> bytes:
        return b"\x5a" * count


@pytest.mark.parametrize("widths", [(60, 16, 4), (48, 64, 64, 7), (16, 1, 3)])
def test_removing_one_sample_moves_the_sum_by_its_own_part_only(widths: tuple[int, ...]) -> None:
    """Record and replay (checklist items 2 and 3): same dither, one sample less; the change is that sample, exactly."""
    model, (x, y) = perceptron(*widths), samples(200, widths[0], widths[-1])
    x[3] = torch.nan
    schedule = PrivateSchedule(**SCHEDULE)
    descent = PrivateDescent(model, x, y, schedule)
    everybody = torch.arange(200)
    whole = descent.clipped_sums(everybody, Fixed())
    for gone in (0, 3, 77, 199):
        rest = descent.clipped_sums(everybody[everybody != gone], Fixed())
        alone = descent.clipped_sums(torch.tensor([gone]), Fixed())
        assert torch.equal(whole - rest, alone)
        assert float(alone.norm()) <= schedule.grid.cap
    shuffled = descent.clipped_sums(torch.randperm(200, generator=torch.Generator().manual_seed(1)), Fixed())
    assert torch.equal(whole, shuffled)


@pytest.mark.parametrize(
    ("widths", "activation"),
    [
        ((60, 16, 4), nn.SELU),
        ((48, 64, 64, 7), nn.ELU),
        ((16, 1, 3), nn.Sigmoid),
        ((9, 3, 5), nn.Tanh),
        ((60, 16, 4), nn.GELU),
        ((48, 64, 64, 7), nn.Softplus),
        ((16, 1, 3), nn.ReLU),
    ],
)
def test_a_row_has_the_same_bits_in_every_batch(widths: tuple[int, ...], activation: type[nn.Module]) -> None:
    """What `clipped_sum` leans on: inputs and gradients of a sample do not depend on the others, bit for bit."""
    model, (x, y) = perceptron(*widths, activation=activation), samples(200, widths[0], widths[-1])
    check_same_bits(PrivateDescent(model, x, y, PrivateSchedule(**SCHEDULE)), 200)


def test_a_row_has_the_same_bits_whatever_the_threads_and_under_a_loss_of_several_labels() -> None:
    """So many numbers that torch would share them out, in pieces that end anywhere."""

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none").sum(1)

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        x, _ = samples(700, 40, 4)
        labels = (x[:, :4] > 0).float()
        descent = PrivateDescent(perceptron(40, 97, 4), x, labels, PrivateSchedule(**SCHEDULE), loss=loss)
        check_same_bits(descent, 700)
        descent.clipped_sums(torch.arange(5), Fixed())
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_a_place_of_its_own_gives_the_same_bits_where_products_treat_places_in_other_ways() -> None:
    x, y = samples(400, 20, 3)
    descent = PrivateDescent(perceptron(20, 16, 3), x, y, PrivateSchedule(**SCHEDULE))
    usual = descent.captured(torch.arange(5, 390))
    descent._multiple = None
    check_same_bits(descent, 400)
    for left, right in zip(descent.captured(torch.arange(5, 390)), usual, strict=True):
        assert torch.allclose(left.deltas, right.deltas, atol=1e-6)
    for batch in (torch.arange(400), torch.tensor([399, 7, 103, 199]), torch.tensor([3])):
        seen = torch.cat([own for _, own in dp_sgd.batches_by_slot(batch)])
        assert sorted(seen.tolist()) == list(range(len(batch)))
        for rows, own in dp_sgd.batches_by_slot(batch):
            assert torch.equal(rows[batch[own] % MULTIPLES[-1]], batch[own])


def check_same_bits(descent: PrivateDescent, count: int) -> None:
    """In batches of many sizes and orders a sample's rows are those of the whole batch."""

    def seen(batch: Tensor) -> list[Captured]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dp_sgd, "clipped_sum", lambda layers, grid, randomness: layers)
            return descent.clipped_sums(batch, Fixed())  # type: ignore[return-value]

    shuffled = torch.randperm(count, generator=torch.Generator().manual_seed(2))
    batches = [*(torch.arange(size) for size in (1, 2, 3, 5, 33, count - 1)), torch.arange(150, count), shuffled]
    whole = seen(torch.arange(count))
    for batch in batches:
        for part, all_ in zip(seen(batch), whole, strict=True):
            assert torch.equal(part.inputs, all_.inputs[batch])
            assert torch.equal(part.deltas, all_.deltas[batch])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e30])
def test_broken_samples_add_nothing(bad: float) -> None:
    """Checklist item 16: NaN or infinite samples contribute zero and the weights stay finite."""
    model, (x, y) = perceptron(30, 16, 4), samples(64, 30, 4)
    clean = clipped_sum(captured(model, x[1:], y[1:]), GradientGrid(1.0, 1 << 13), Fixed())
    x[0, 3] = bad
    dirty = clipped_sum(captured(model, x, y), GradientGrid(1.0, 1 << 13), Fixed())
    assert torch.equal(dirty, clean) or bad == 1e30
    train_privately(model, x, y, PrivateSchedule(**SCHEDULE), randomness=SeededRandomness(0))
    assert all(bool(torch.isfinite(parameter).all()) for parameter in model.parameters())


def residuals(rate: float, multiplier: float, steps: int) -> np.ndarray:
    """Noise of `steps` steps on samples without gradient, divided by what it should be."""
    model = nn.Linear(500, 4)
    x = torch.full((10, 500), torch.nan)
    schedule = PrivateSchedule(
        steps=steps, rate=rate, expected_batch=8.0, noise_multiplier=multiplier, clip=0.5, optimiser="sgd"
    )
    descent = PrivateDescent(model, x, torch.zeros(10, dtype=torch.int64), schedule)
    randomness, noise = SeededRandomness(8), []
    for _ in range(steps):
        for parameter in model.parameters():
            parameter.grad = None
        descent.step(randomness)
        assert all(parameter.grad is not None for parameter in model.parameters()), "a step gave no noise"
        noise += [parameter.grad.flatten().numpy() for parameter in model.parameters()]
    return np.concatenate(noise) * 8.0 / (0.5 * multiplier)


@pytest.mark.parametrize(("rate", "multiplier"), [(0.05, 0.7), (1.0, 3.0), (1e-9, 20.0)])
def test_noise_is_normal_and_there_in_empty_batches(rate: float, multiplier: float) -> None:
    """Checklist items 15 and 18: Kolmogorov-Smirnov at a false alarm rate of 1e-6; half and sqrt(2) are rejected."""
    noise = residuals(rate, multiplier, 30)
    assert stats.kstest(noise, "norm").pvalue > 1e-6
    for wrong in (0.5, math.sqrt(2), 0.95):
        assert stats.kstest(noise / wrong, "norm").pvalue < 1e-6


def test_batches_are_poisson() -> None:
    """Checklist item 15: sizes by chi-square against the binomial law, and inclusion of each sample."""
    randomness = SeededRandomness(2)
    batches = [poisson_batch(60, 0.2, randomness) for _ in range(5000)]
    sizes = np.array([len(batch) for batch in batches])
    law = stats.binom(60, 0.2)
    edges = np.arange(5, 21)
    seen = np.histogram(sizes, np.concatenate([[-1], edges, [61]]))[0]
    expected = np.diff(law.cdf(np.concatenate([[-1], edges - 1, [61]]))) * len(sizes)
    assert stats.chisquare(seen, expected).pvalue > 1e-6
    assert stats.chisquare(np.bincount(torch.cat(batches).numpy(), minlength=60)).pvalue > 1e-6
    shuffled = np.full(5000, 12)
    assert stats.chisquare(np.histogram(shuffled, np.concatenate([[-1], edges, [61]]))[0], expected).pvalue < 1e-6
    assert poisson_batch(7, 1.0, randomness).tolist() == list(range(7))


def test_a_sample_is_never_likelier_than_is_charged() -> None:
    """Of the 2^64 outcomes at most rate 2^64 put a sample into the batch: the one behind them does not."""
    rate, first = 0.25 + 2.0**-20, 1 << 14
    sixteen = np.array([0, first - 1, first, first, first + 1, 2**16 - 1, first, 0], np.uint16).view(np.uint64)
    rest = [(2**44 - 1) << 16, 2**44 << 16, 2**64 - 1]
    assert poisson_batch(8, rate, Scripted([*sixteen.tolist(), *rest])).tolist() == [0, 1, 2, 7]


def test_steps_executed_are_steps_charged() -> None:
    """Checklist item 15: no step beyond those declared, none uncounted, and a resumed run goes on counting."""
    model, (x, y) = perceptron(30, 16, 4), samples(64, 30, 4)
    schedule = PrivateSchedule(**SCHEDULE)
    descent = PrivateDescent(model, x, y, schedule)
    descent.step(SecureRandomness())
    state = descent.state()
    other = PrivateDescent(perceptron(30, 16, 4), x, y, schedule)
    other.resume(state)
    assert other.steps_taken == 1
    other.step(SecureRandomness())
    other.step(SecureRandomness())
    with pytest.raises(BudgetError, match="all 3 private steps"):
        other.step(SecureRandomness())
    descent.step(SecureRandomness())
    descent.resume(state)
    assert descent.steps_taken == 2
    assert schedule.part("encoder").steps == 3


def test_resuming_does_not_replay_noise() -> None:
    """Checklist item 17: the same state and weights, another noise; no randomness is stored."""
    model, (x, y) = perceptron(30, 16, 4), samples(64, 30, 4)
    descent = PrivateDescent(model, x, y, PrivateSchedule(**SCHEDULE))
    descent.step(SecureRandomness())
    state = {key: value for key, value in descent.state().items() if key != "steps"}
    saved = {"model": {name: value.clone() for name, value in state["model"].items()}, "optimiser": state["optimiser"]}
    results = []
    for _ in range(2):
        fresh = perceptron(30, 16, 4)
        again = PrivateDescent(fresh, x, y, PrivateSchedule(**SCHEDULE))
        again.resume({**saved, "steps": 1})
        again.step(SecureRandomness())
        results.append(next(fresh.parameters()).grad.clone())
    assert not torch.equal(*results)
    assert set(descent.state()) == {"model", "optimiser", "steps"}


def test_dropout_is_drawn_in_secret() -> None:
    model = nn.Sequential(nn.Linear(30, 16), nn.Dropout(0.5), nn.Linear(16, 4))
    x, y = samples(64, 30, 4)
    descent = PrivateDescent(model, x, y, PrivateSchedule(**{**SCHEDULE, "rate": 1.0}))
    masks = []
    handle = model[1].register_forward_hook(lambda _module, _inputs, output: masks.append(output == 0))
    for _ in range(2):
        torch.manual_seed(0)
        descent.step(SecureRandomness())
    torch.manual_seed(0)
    PrivateDescent(model, x, y, PrivateSchedule(**{**SCHEDULE, "rate": 1.0})).step(SecureRandomness())
    handle.remove()
    assert not torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[-1]), "the first masks of two runs are the same"
    torch.manual_seed(0)
    first = torch.rand(1)
    torch.manual_seed(0)
    descent.step(SecureRandomness())
    assert torch.equal(first, torch.rand(1))


class Mixing(nn.Module):
    """A linear layer after which rows are mixed, in several ways."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.linear, self.how = nn.Linear(6, 6), how

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.linear(x)
        if self.how == "mean":
            return h - h.mean(0)
        if self.how == "softmax":
            return h.softmax(0)
        if self.how == "attention":
            return (h @ h.T).softmax(1) @ h
        if self.how == "neighbour":
            return torch.cat([h[1:], h[:1]])
        if self.how == "pool":
            return h.sum(0, keepdim=True)
        return h


@pytest.mark.parametrize("how", ["mean", "softmax", "attention", "neighbour", "pool"])
def test_layers_that_mix_rows_are_refused(how: str) -> None:
    with pytest.raises(InputError, match=r"moves the outputs of others|input rows gave"):
        refuse_mixed_rows(Mixing(how), 6)
    refuse_mixed_rows(Mixing("none"), 6)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)), "BatchNorm1d"),
        (nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6, affine=False)), "BatchNorm1d"),
        (nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6)), "cannot be trained privately"),
        (nn.Sequential(nn.Linear(6, 6).double()), "cannot be trained privately"),
        (nn.Sequential(nn.SELU()), "no linear layer"),
    ],
)
def test_other_parameters_are_refused(model: nn.Module, message: str) -> None:
    with pytest.raises(InputError, match=message):
        linear_layers(model)


def test_layers_used_twice_or_never_and_losses_that_mix_rows_are_refused() -> None:
    layer = nn.Linear(6, 6)
    x, y = samples(64, 6, 6)
    schedule = PrivateSchedule(**{**SCHEDULE, "rate": 1.0})
    with pytest.raises(InputError, match="used twice"):
        PrivateDescent(nn.Sequential(layer, layer), x, y, schedule).step(SeededRandomness(0))
    idle = Mixing("none")
    idle.idle = nn.Linear(6, 6)
    with pytest.raises(InputError, match="not used"):
        PrivateDescent(idle, x, y, schedule).step(SeededRandomness(0))
    descent = PrivateDescent(
        nn.Linear(6, 6), x, y, PrivateSchedule(**{**SCHEDULE, "rate": 1.0}), loss=nn.functional.cross_entropy
    )
    with pytest.raises(InputError, match="the loss gave"):
        descent.step(SeededRandomness(0))
    with pytest.raises(InputError, match="inputs"):
        PrivateDescent(nn.Linear(6, 6), x[:3], y, PrivateSchedule(**SCHEDULE))


@pytest.mark.parametrize(
    "change",
    [
        {"steps": 0},
        {"rate": 0.0},
        {"rate": math.nan},
        {"expected_batch": 0.0},
        {"noise_multiplier": 0.0},
        {"noise_multiplier": math.nan},
        {"noise_multiplier": 0.009},
        {"noise_multiplier": 1e7},
        {"clip": math.inf},
        {"learning_rate": -1.0},
        {"optimiser": "adamw"},
        {"momentum": 1.0},
    ],
)
def test_bad_schedules_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        PrivateSchedule(**{**SCHEDULE, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize("multiplier", [0.05, 0.3, 1.0, 7.0, 160.0])
def test_the_grid_keeps_the_noise_within_the_table(multiplier: float) -> None:
    schedule = PrivateSchedule(**{**SCHEDULE, "noise_multiplier": multiplier})
    assert 1 << 10 <= schedule.grid.cap <= 1 << 13
    assert schedule.noise.sigma >= multiplier * schedule.grid.cap
    assert schedule.noise.limit < 1 << 21 and schedule.noise.sigma >= 10
    epsilon, delta = schedule.price(1.0, 1e-5, 96_391)
    assert 1.0 < epsilon < 1.0 + 1e-5 and 1e-5 < delta < 1e-5 * (1 + 1e-5)
    assert epsilon - 1.0 == pytest.approx(2e-12 * 96_391 * SCHEDULE["steps"])
    assert isinstance(schedule.noise, RoundedNormal)
