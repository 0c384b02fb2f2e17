"""What every private training has in common: a public schedule, and updates that see noisy sums alone.

Source: M. Abadi et al., "Deep Learning with Differential Privacy", CCS 2016, https://arxiv.org/abs/1607.00133v2,
Algorithm 1.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Final

from graphveil.errors import BudgetError, NoiseError
from graphveil.mechanisms.samplers.rounded_normal import FineNormal, RoundedNormal, reach_of
from graphveil.privacy import BlockKey, BlockNoise, Descent, Randomness
from graphveil.runtime.checks import require_choice, require_number
from graphveil.runtime.late import Tensor, torch
from graphveil.training.clipped_sum import GradientGrid

if TYPE_CHECKING:
    from graphveil.mechanisms.samplers.normal_kernel import NormalKernel


# The most that one unit moves a clipped sum, in clipping norms: the gradients of two samples may both reverse.
_LARGEST_MOVE: Final = 4.0
# Noise of larger multipliers uses `FineNormal`, whose table does not grow with it.
_LARGEST_TABLED: Final = 160.0
# The deviation of the noise in steps, whose table then fits a core's cache; fewest and most steps of a gradient.
_STEPS_OF_NOISE: Final = 1 << 12
_COARSEST: Final = 1 << 10
_FINEST: Final = 1 << 13
_OPTIMISERS: Final = ("adam", "sgd")
#: How many draws are made at once, 4 MB of noise: waits for a device are rarer, and on a CPU the table stays cached.
_DRAWS_AT_ONCE: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class PrivateSchedule:
    """How long and with how much noise to train; all public."""

    steps: int  # the number of noisy gradients, and so of updates
    rate: float  # the probability with which a batch has a sample, in (0, 1]
    expected_batch: float  # the public divisor: rate times the number of samples, where that is public
    noise_multiplier: float  # standard deviation of the noise in units of `clip`, from 0.01 to 10^6
    clip: float = 1.0  # the L2 norm to which a sample's gradient is clipped
    learning_rate: float = 0.01
    optimiser: str = "adam"  # "adam" or "sgd"
    momentum: float = 0.0  # of "sgd"

    def __post_init__(self) -> None:
        Descent(steps=self.steps, rate=self.rate)
        require_number("(0, inf)", expected_batch=self.expected_batch, noise_multiplier=self.noise_multiplier)
        require_number("(0, inf)", clip=self.clip, learning_rate=self.learning_rate)
        if not 0.01 <= self.noise_multiplier <= 1e6:
            raise NoiseError(
                f"the noise would be {self.noise_multiplier:.3g} clipping norms (noise_multiplier)",
                allowed="a number in [0.01, 1000000]",
            )
        require_choice(_OPTIMISERS, optimiser=self.optimiser)
        require_number("[0, 1)", momentum=self.momentum)

    @property
    def grid(self) -> GradientGrid:
        """The grid of clipped gradients: as fine as the noise's table allows."""
        # Coarser where noise is large, so that its deviation stays at about 2^12 steps and its table small.
        steps = min(_FINEST, max(_COARSEST, _STEPS_OF_NOISE / self.noise_multiplier))
        return GradientGrid(self.clip, 1 << math.floor(math.log2(steps)))

    @property
    def noise(self) -> RoundedNormal | FineNormal:
        """The noise of one coordinate, in steps of the grid."""
        # Rounded up by a few ulps: the product must not fall below the noise that was paid for.
        sigma = self.noise_multiplier * self.grid.cap * (1 + 1e-15)
        if self.noise_multiplier > _LARGEST_TABLED:
            return FineNormal(sigma)
        return RoundedNormal(sigma, math.ceil(reach_of(_LARGEST_MOVE / self.noise_multiplier) * sigma))

    def price(self, epsilon: float, delta: float, parameters: int) -> tuple[float, float]:
        """What a pipeline with this training costs where exact normal noise would cost (epsilon, delta).

        Args:
            parameters: of the model; one sample can change all of them in every step.
        """
        shift = _LARGEST_MOVE / self.noise_multiplier
        return self.noise.price(epsilon, delta, parameters * self.steps, shift=shift)

    def part(self, name: str = "training") -> Descent:
        """The training as a part of a pipeline; its noise there is `noise_multiplier`."""
        return Descent(steps=self.steps, rate=self.rate, name=name)


class StepNoise:
    """Noise for a sequence of sums: one secret for all, a key for each step, drawn on the device of the sums.

        secret  = 32 bytes of the source of randomness        noise of step t = `RoundedNormal` by the t-th key

    No draw depends on a sum, so the noise of several steps is drawn together, with the same bits on every device.
    Formal guarantees: as `BlockNoise`. No two sums get the same noise, also where a process is forked between them: the
    child is refused.

    Args:
        at_once: how many draws are made together.
    """

    def __init__(self, law: RoundedNormal | FineNormal, *, at_once: int = _DRAWS_AT_ONCE) -> None:
        self._law, self._at_once = law, at_once
        self._source: Randomness | None = None
        self._keys: Iterator[BlockKey] = iter(())
        self._kernel: NormalKernel | None = None
        self._drawn_ahead: list[Tensor] = []
        self._memory: Tensor | None = None
        self._process = os.getpid()

    def add_to(self, totals: Tensor, randomness: Randomness, *, steps: int) -> None:
        """Add the next noise to every entry, in place.

        Args:
            totals: [P] whole numbers, float32 where they fit its 24 bits, else float64; contiguous.
            randomness: the source of the secret; another source starts with a new secret.
            steps: sums of this shape still to come.
        """
        if randomness is not self._source:
            secret = BlockNoise(randomness)
            self._source, self._keys, self._drawn_ahead = randomness, (secret.key("step", step) for step in count()), []
        if isinstance(self._law, FineNormal):
            noise = self._law.draw(totals.numel(), next(self._keys).stream())
            # Added in float64, where the sum is exact: rounding the noise before adding would not be post-processing.
            totals.copy_(totals.double() + torch.from_numpy(noise).view_as(totals).to(totals.device))
            return
        # A forked process has a copy of the noise drawn ahead: it must ask for a new key, which is refused.
        if not self._drawn_ahead or os.getpid() != self._process:
            self._drawn_ahead = self._draw_ahead(self._law, totals, min(steps, self._at_once // max(1, totals.numel())))
        totals += self._drawn_ahead.pop()

    def _draw_ahead(self, law: RoundedNormal, totals: Tensor, steps: int) -> list[Tensor]:
        """The noise of some steps, the last one first, on the device of the sums."""
        keys = list(islice(self._keys, max(1, steps)))
        # Memory is reused: all noise in it has been added, and large allocations are slow.
        shape = (len(keys), totals.numel())
        if self._memory is None or self._memory.shape != shape or self._memory.device != totals.device:
            self._memory = torch.empty(shape, device=totals.device)
        noise = self._memory.zero_()
        if totals.is_cpu:
            for key, draws in zip(keys, noise.numpy(), strict=True):
                law.add_to(draws, key.stream())
        else:
            from graphveil.mechanisms.samplers.normal_kernel import NormalKernel

            self._kernel = self._kernel or NormalKernel.of(law, totals.device)
            self._kernel.add_to(noise, keys, size=totals.numel())
        return list(noise.unbind())[::-1]


class NoisyUpdates:
    """The updates of one private training: counted before they are made, and made of noisy sums.

    Args:
        parameters: what is trained, in the order of their parts in a flat gradient.
        samples: how many clipped gradients of a sum one protected unit can change.
    """

    def __init__(self, parameters: Iterable[Tensor], schedule: PrivateSchedule, *, samples: int = 1) -> None:
        self.schedule, self.samples = schedule, samples
        self._parameters = list(parameters)
        self._noise, rate = StepNoise(schedule.noise), schedule.learning_rate
        self._optimiser: torch.optim.Optimizer = (
            torch.optim.Adam(self._parameters, lr=rate, fused=True)
            if schedule.optimiser == "adam"
            else torch.optim.SGD(self._parameters, lr=rate, momentum=schedule.momentum)
        )
        self._released = 0

    @property
    def released(self) -> int:
        """How many noisy gradients were released, counted before they are made."""
        return self._released

    def count(self) -> None:
        """Count a step that is about to read data. Raises BudgetError where all steps of the schedule are taken."""
        if self._released >= self.schedule.steps:
            raise BudgetError(
                f"all {self.schedule.steps} private steps are taken", remedy="declare more steps before training"
            )
        # Before the data is read: a step that fails half-way is still paid for.
        self._released += 1

    def add_noise(self, totals: Tensor, randomness: Randomness) -> None:
        """Add noise to every coordinate, in place.

        Args:
            totals: [P] sums in whole steps of the grid: float32 where they fit its 24 bits, else float64.
        """
        self._noise.add_to(totals, randomness, steps=self.schedule.steps - self._released + 1)

    def apply(self, gradient: Tensor) -> None:
        """Give the optimiser a noisy gradient, float32 [P]."""
        parts = torch.split(gradient, [parameter.numel() for parameter in self._parameters])
        for parameter, part in zip(self._parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)
        self._optimiser.step()

    def take(self, total: Tensor, randomness: Randomness, *, protect: bool = True) -> None:
        """Add noise to a batch's sum, an empty one's too, and give the optimiser its part of the expected batch.

        Args:
            total: float64 [P] in whole steps of the grid; changed in place.
            protect: False leaves the noise out.
        """
        # An empty batch gets noise too: a step without noise would reveal that it was empty.
        if protect:
            self.add_noise(total, randomness)
        # The divisor is public: the number of targets in the batch would reveal who is in it.
        self.apply((total * (self.schedule.grid.step / self.schedule.expected_batch)).float())

    def state(self) -> dict[str, Any]:
        """The optimiser's memory and the count of steps; no randomness is in it."""
        return {"optimiser": self._optimiser.state_dict(), "steps": self._released}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`; steps taken since then stay taken."""
        self._optimiser.load_state_dict(state["optimiser"])
        # Never fewer: the steps of an interrupted run have been released, whatever an older checkpoint says.
        self._released = max(self._released, int(state["steps"]))


class LaterMean:
    """The mean of parameters over the later half of a training: post-processing of released values."""

    def __init__(self, parameters: Iterable[Tensor], updates: NoisyUpdates) -> None:
        self._parameters, self._updates = [parameter.detach() for parameter in parameters], updates
        self._means, self._averaged = [torch.zeros_like(parameter) for parameter in self._parameters], 0

    def follow(self) -> None:
        if 2 * self._updates.released > self._updates.schedule.steps:
            self._averaged += 1
            for mean, parameter in zip(self._means, self._parameters, strict=True):
                mean += (parameter - mean) / self._averaged

    @property
    def values(self) -> list[Tensor]:
        """The means; the parameters as they are where no later half has begun."""
        return self._means if self._averaged else self._parameters
