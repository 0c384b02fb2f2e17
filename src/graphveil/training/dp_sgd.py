"""Private gradient descent for perceptrons: Poisson batches, clipped per-sample gradients, secure integer noise.

    g_t = step * ( sum_{i in batch} clip(g_i) + Z ) / expected batch,   Z = round(N(0, (multiplier cap)^2))

Source: M. Abadi et al., "Deep Learning with Differential Privacy", CCS 2016, https://arxiv.org/abs/1607.00133v2,
Algorithm 1. The sum is exact (`clipped_sum.py`), and the noise is added on its grid before anything else sees it, so
that the Gaussian mechanism's exact curve holds for every step. Optimisers see the noisy gradient only.

Privacy is for adding or removing one sample. One batch holds a sample with probability `rate`, exactly and
independently of the others; the divisor is public; an empty batch is noise, and is counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.errors import BudgetError, InputError
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import Descent, Randomness
from graphveil.progress import Progress, ProgressCallback
from graphveil.training.clipped_sum import ROWS, Captured, GradientGrid, Lengths, clipped_sum, input_lengths
from graphveil.training.row_checks import Recorder, linear_layers, refuse_mixed_rows, treats_rows_alike
from graphveil.training.threads import one_thread

Loss = Callable[[Tensor, Tensor], Tensor]

# Noise ends at this many standard deviations, which `PrivateSchedule.price` charges.
_CUT: Final = 12.0
# The noise's deviation in steps, whose table then fits a core's cache; least and most steps of a clipped gradient.
_STEPS_OF_NOISE: Final = 1 << 12
_COARSEST: Final = 1 << 10
_FINEST: Final = 1 << 13
_OPTIMISERS: Final = ("adam", "sgd")


@dataclass(frozen=True, kw_only=True)
class PrivateSchedule:
    """How long and with how much noise to train; all public.

    Args:
        steps: the number of noisy gradients, and so of updates.
        rate: the probability with which a batch has a sample, in (0, 1].
        expected_batch: the public divisor: rate times the number of samples, where that is public.
        noise_multiplier: standard deviation of the noise in units of `clip`, from 0.05 to 160.
        clip: the L2 norm to which a sample's gradient is clipped.
        learning_rate: of the optimiser.
        optimiser: "adam" or "sgd".
        momentum: of "sgd".

    Raises:
        InputError: a number is outside its range.
    """

    steps: int
    rate: float
    expected_batch: float
    noise_multiplier: float
    clip: float = 1.0
    learning_rate: float = 0.01
    optimiser: str = "adam"
    momentum: float = 0.0

    def __post_init__(self) -> None:
        Descent(steps=self.steps, rate=self.rate)
        for name in ("expected_batch", "noise_multiplier", "clip", "learning_rate"):
            value = getattr(self, name)
            if not 0.0 < value < math.inf:
                raise InputError(f"{name} is {value!r}", allowed="a finite number above 0")
        if not 0.05 <= self.noise_multiplier <= 160.0:
            raise InputError(f"noise_multiplier is {self.noise_multiplier!r}", allowed="a number in [0.05, 160]")
        if self.optimiser not in _OPTIMISERS:
            raise InputError(f"optimiser is {self.optimiser!r}", allowed=", ".join(_OPTIMISERS))
        if not 0.0 <= self.momentum < 1.0:
            raise InputError(f"momentum is {self.momentum!r}", allowed="a number in [0, 1)")

    @property
    def grid(self) -> GradientGrid:
        """The grid of clipped gradients: as fine as the noise's table allows."""
        steps = min(_FINEST, max(_COARSEST, _STEPS_OF_NOISE / self.noise_multiplier))
        return GradientGrid(self.clip, 1 << math.floor(math.log2(steps)))

    @property
    def noise(self) -> RoundedNormal:
        """The noise of one coordinate, in steps of the grid."""
        sigma = self.noise_multiplier * self.grid.cap * (1 + 1e-15)
        return RoundedNormal(sigma, math.ceil(_CUT * sigma))

    def price(self, epsilon: float, delta: float, parameters: int) -> tuple[float, float]:
        """What a pipeline with this training costs where exact normal noise would cost (epsilon, delta).

        Args:
            parameters: of the model; one sample can change all of them in every step.
        """
        return self.noise.price(epsilon, delta, parameters * self.steps)

    def part(self, name: str = "training") -> Descent:
        """The training as a part of a pipeline; its noise there is `noise_multiplier`."""
        return Descent(steps=self.steps, rate=self.rate, name=name)


class PrivateDescent:
    """The private training of one model, step by step, that never takes more steps than its schedule declares.

    Args:
        model: a perceptron whose parameters all are in `torch.nn.Linear` layers, each used once, on the CPU.
        inputs: [n, d] float32, one row a sample.
        targets: [n] or [n, c], one row a sample.
        schedule: steps, sampling, noise.
        loss: the loss of every row alone, [b]; default: cross entropy.

    Raises:
        InputError: the model mixes rows or has other parameters, or rows and targets do not match.
    """

    def __init__(
        self, model: nn.Module, inputs: Tensor, targets: Tensor, schedule: PrivateSchedule, *, loss: Loss | None = None
    ) -> None:
        if inputs.ndim != 2 or len(inputs) != len(targets) or inputs.dtype != torch.float32:
            raise InputError(f"inputs {list(inputs.shape)} and {len(targets)} targets", allowed="one float32 row each")
        self._layers = linear_layers(model)
        model.train()
        refuse_mixed_rows(model, inputs.shape[1])
        with one_thread():
            self._even = treats_rows_alike(model, inputs.shape[1], ROWS)
        self._model, self._inputs, self._targets = model, inputs, targets
        self._schedule, self._loss = schedule, loss or _cross_entropy
        self._noise = schedule.noise
        self._parameters = [p for layer in self._layers for p in (layer.weight, layer.bias) if p is not None]
        self._optimiser = make_optimiser(model, schedule)
        self._lengths: dict[bool, Lengths] = {}
        self._taken = 0

    @property
    def steps_taken(self) -> int:
        """How many noisy gradients were released, counted before they are made."""
        return self._taken

    def step(self, randomness: Randomness) -> None:
        """One batch, one noisy gradient, one update.

        Raises:
            BudgetError: all steps of the schedule are taken.
        """
        if self._taken >= self._schedule.steps:
            raise BudgetError(
                f"all {self._schedule.steps} private steps are taken", remedy="declare more steps before training"
            )
        self._taken += 1
        with torch.random.fork_rng(devices=[]):
            # Dropout's masks must be as secret as the noise: known ones would tie a sample to its place in the batch.
            torch.default_generator.manual_seed(int(randomness.uint64(1)[0] >> np.uint64(1)))
            self._step(randomness)

    def _step(self, randomness: Randomness) -> None:
        chosen = poisson_batch(len(self._inputs), self._schedule.rate, randomness)
        flat = torch.cat([total.flatten() for sums in self.clipped_sums(chosen, randomness) for total in sums])
        self._add_noise(flat, randomness)
        gradient = flat.to(torch.float32).mul_(self._schedule.grid.step / self._schedule.expected_batch)
        parts = torch.split(gradient, [parameter.numel() for parameter in self._parameters])
        for parameter, part in zip(self._parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)
        self._optimiser.step()

    def state(self) -> dict[str, Any]:
        """Weights, optimiser and the count of steps, to go on later; no randomness is in it."""
        return {"model": self._model.state_dict(), "optimiser": self._optimiser.state_dict(), "steps": self._taken}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`; steps taken since then stay taken, and the noise to come is fresh."""
        self._model.load_state_dict(state["model"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._taken = max(self._taken, int(state["steps"]))

    def _known(self, layer: nn.Linear, seen: Tensor, rows: Tensor, chosen: Tensor) -> Lengths | None:
        """The lengths of what a layer saw, where it saw the rows of `inputs` as they are; measured once."""
        if seen.data_ptr() != rows.data_ptr() or seen.shape != rows.shape or seen.stride() != rows.stride():
            return None
        bias = layer.bias is not None
        if bias not in self._lengths:
            self._lengths[bias] = input_lengths(self._inputs, bias)
        return self._lengths[bias].of(chosen.numpy())

    def _add_noise(self, totals: Tensor, randomness: Randomness) -> None:
        """Noise on every coordinate, in place; sums of several pieces are float64 and take it as integers."""
        if totals.dtype == torch.float32:
            self._noise.add_to(totals.numpy(), randomness)
        else:
            totals += torch.from_numpy(self._noise.draw(totals.numel(), randomness))

    def clipped_sums(self, chosen: Tensor, randomness: Randomness) -> list[list[Tensor]]:
        """Add up the clipped gradients of some samples: what one of them can change, before noise.

        Args:
            chosen: the samples of a batch, int64 [b].
            randomness: decides the dither of the grid.

        Returns:
            For each layer the sums of weight and bias, whole numbers of steps of `PrivateSchedule.grid`.
        """
        if not len(chosen):
            return [[torch.zeros(parameter.shape) for parameter in self._parameters]]
        with one_thread():
            return clipped_sum(self.captured(chosen), self._schedule.grid, randomness)

    def captured(self, chosen: Tensor) -> list[Captured]:
        """What every layer saw of the samples `chosen`, and the gradients of their losses by what it gave."""
        if self._even:
            padded = torch.cat([chosen, chosen[:1].expand(-len(chosen) % ROWS)])  # repeats a sample that does not count
            return self._passed(padded, slice(0, len(chosen)))
        parts = [(own, self._passed(rows, chosen[own] % ROWS)) for rows, own in by_slot(chosen)]
        back = torch.cat([own for own, _ in parts]).argsort()
        layers = zip(*(part for _, part in parts), strict=True)
        return [
            Captured(torch.cat([p.inputs for p in one])[back], torch.cat([p.deltas for p in one])[back], one[0].bias)
            for one in layers
        ]

    def _passed(self, samples: Tensor, places: slice | Tensor) -> list[Captured]:
        """The same of the samples at some places of a batch; the others fill it up."""
        rows = self._inputs.index_select(0, samples)
        with Recorder(self._layers) as recorder:
            losses = self._loss(self._model(rows), self._targets.index_select(0, samples))
            seen = recorder.seen
        if losses.shape != samples.shape:
            raise InputError(f"the loss gave {list(losses.shape)}", allowed="one number for each row")
        deltas = torch.autograd.grad(losses[places].sum(), [output for _, output in seen])
        return [
            Captured(a[places], delta[places], layer.bias is not None, self._known(layer, a, rows, samples[places]))
            for layer, (a, _), delta in zip(self._layers, seen, deltas, strict=True)
        ]


def by_slot(chosen: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Batches of `ROWS` samples in which a sample's place is its number modulo ROWS, whatever else was chosen.

    For processors whose products treat the places of a batch, or batches of other lengths, in other ways.

    Returns:
        For each batch the samples [ROWS], and which of `chosen` they are; a place that nobody has repeats a sample.
    """
    slots, batches = chosen % ROWS, []
    order = torch.argsort(slots, stable=True)
    starts = torch.searchsorted(slots[order], slots[order])
    turn = torch.empty_like(order)
    turn[order] = torch.arange(len(order)) - starts
    for number in range(int(turn.max()) + 1):
        own = (turn == number).nonzero().squeeze(1)
        samples = chosen[:1].repeat(ROWS)
        samples[slots[own]] = chosen[own]
        batches.append((samples, own))
    return batches


def poisson_batch(count: int, rate: float, randomness: Randomness) -> Tensor:
    """The samples of one batch, int64, each in it with probability floor(2^64 rate) / 2^64, independently."""
    if rate >= 1.0:
        return torch.arange(count)
    threshold = np.uint64(math.floor(rate * 2.0**64))
    return torch.from_numpy(np.flatnonzero(randomness.uint64(count) < threshold))


def train_privately(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    schedule: PrivateSchedule,
    *,
    randomness: Randomness,
    loss: Loss | None = None,
    progress: ProgressCallback | None = None,
) -> int:
    """Train `model` in place for all steps of the schedule and return their number; the last weights are kept.

    Args:
        randomness: decides batches, dropout, dither and noise.
        progress: hears of every step.

    See `PrivateDescent` for the other arguments and for what is refused.
    """
    descent = PrivateDescent(model, inputs, targets, schedule, loss=loss)
    for step in range(1, schedule.steps + 1):
        descent.step(randomness)
        if progress is not None:
            progress(Progress(step, schedule.steps))
    return descent.steps_taken


def make_optimiser(model: nn.Module, schedule: PrivateSchedule) -> torch.optim.Optimizer:
    """Return the optimiser that a schedule names."""
    if schedule.optimiser == "adam":
        return torch.optim.Adam(model.parameters(), lr=schedule.learning_rate, fused=True)
    return torch.optim.SGD(model.parameters(), lr=schedule.learning_rate, momentum=schedule.momentum)


def _cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(logits, targets, reduction="none")
