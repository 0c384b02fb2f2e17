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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from graphveil.errors import InputError
from graphveil.privacy import Randomness
from graphveil.runtime.late import Tensor, nn, torch
from graphveil.runtime.progress import Progress, ProgressCallback
from graphveil.training.clip_tensor import WholeRows, on_device
from graphveil.training.clipped_sum import MULTIPLES, Captured, FloatArray, clipped_sum
from graphveil.training.noisy_updates import NoisyUpdates, PrivateSchedule
from graphveil.training.threads import one_thread

Loss: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"
# How many rows are put on grids at a time.
_ROWS_AT_ONCE: Final = 4096
# The least number of places of a batch on a device, where so many rows take little longer than a few.
_FEWEST_PLACES: Final = 1 << 13
# Places as a multiple of the expected batch, so that few samples of a batch share a place.
_PLACES_PER_EXPECTED: Final = 4


class PrivateDescent:
    """The private training of one model, step by step, that never takes more steps than its schedule declares. Raises
    InputError where the model mixes rows or has other parameters, or rows and targets do not match.

    Args:
        model: a perceptron whose parameters all are in `torch.nn.Linear` layers, each used once. Where they lie on
            another device than the CPU, everything but the choice of batches and the dither runs there.
        inputs: [n, d] float32, one row a sample: a tensor, or rows that are computed for each batch.
        targets: [n] or [n, c], one row a sample.
        schedule: steps, sampling, noise.
        loss: the loss of every row alone, [b]; default: cross entropy.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Tensor | Streamed,
        targets: Tensor,
        schedule: PrivateSchedule,
        *,
        loss: Loss | None = None,
    ) -> None:
        no_rows = rows_of(inputs, torch.arange(0))
        if no_rows.ndim != 2 or inputs.shape[0] != len(targets) or no_rows.dtype != torch.float32:
            raise InputError(f"inputs {list(inputs.shape)} and {len(targets)} targets", allowed="one float32 row each")
        self._layers = linear_layers(model)
        # Tested in training mode: a layer can mix rows in one mode only.
        model.train()
        refuse_mixed_rows(model, inputs.shape[1])
        self._device = self._layers[0].weight.device
        on_cpu, count = self._device.type == "cpu", len(targets)
        with one_thread():
            # The kernels of other devices are unknown: there every sample has a place of its own.
            multiples = (rows for rows in MULTIPLES if on_cpu and treats_rows_alike(model, inputs.shape[1], rows))
            self._multiple = next(multiples, None)
        self._places = (
            MULTIPLES[-1]
            if on_cpu
            else min(count, max(_FEWEST_PLACES, math.ceil(_PLACES_PER_EXPECTED * schedule.rate * count)))
        )
        self._inputs = inputs if isinstance(inputs, Streamed) else inputs.to(self._device)
        self._model, self._targets = model, targets.to(self._device)
        self._schedule, self._loss = schedule, loss or partial(torch.nn.functional.cross_entropy, reduction="none")
        self._parameters = [p for layer in self._layers for p in (layer.weight, layer.bias) if p is not None]
        self._updates = NoisyUpdates(self._parameters, schedule)
        self._measured: dict[bool, FloatArray] = {}
        self._whole: dict[bool, WholeRows] = {}

    @property
    def steps_taken(self) -> int:
        """How many noisy gradients were released, counted before they are made."""
        return self._updates.released

    def step(self, randomness: Randomness) -> None:
        """One batch, one noisy gradient, one update. Raises BudgetError where all steps of the schedule are taken."""
        # Counted before data is read, so that a step that fails is not taken twice.
        self._updates.count()
        devices = [] if self._device.type == "cpu" else [self._device]
        with torch.random.fork_rng(devices=devices):
            # Dropout masks must be as secret as the noise: a known mask would tie a sample to its place in the batch.
            seed = int(randomness.uint64(1)[0] >> np.uint64(1))
            torch.default_generator.manual_seed(seed)
            if devices:
                # Seeds all generators of torch: dropout on a device uses that of the device.
                torch.manual_seed(seed)
            chosen = poisson_batch(len(self._targets), self._schedule.rate, randomness)
            total = self.clipped_sums(chosen, randomness)
            self._updates.add_noise(total, randomness)
            # The divisor is public: the number of samples in the batch would reveal who is in it.
            self._updates.apply(total.to(torch.float32).mul_(self._schedule.grid.step / self._schedule.expected_batch))

    def state(self) -> dict[str, Any]:
        """Weights, optimiser and the count of steps, to go on later; no randomness is in it."""
        return {"model": self._model.state_dict(), **self._updates.state()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`; steps taken since then stay taken, and the noise to come is fresh."""
        self._model.load_state_dict(state["model"])
        self._updates.resume(state)

    def clipped_sums(self, chosen: Tensor, randomness: Randomness) -> Tensor:
        """Add up the clipped gradients of some samples: what one of them can change, before noise. Returns the sums of
        all parameters [P], whole numbers of steps of `PrivateSchedule.grid`.

        Args:
            chosen: the samples of a batch, int64 [b].
        """
        if not len(chosen):
            # Noise is added to it like to any other sum: an empty batch must not show.
            return torch.zeros(sum(parameter.numel() for parameter in self._parameters), device=self._device)
        with one_thread():
            return clipped_sum(self.captured(chosen), self._schedule.grid, randomness)

    def captured(self, chosen: Tensor) -> list[Captured]:
        """What every layer saw of the samples `chosen`, and the gradients of their losses by what it gave."""
        numbers = chosen.numpy()
        if self._multiple is not None:
            # Padded with repetitions that are not counted.
            padded = torch.from_numpy(np.append(numbers, np.full(-len(chosen) % self._multiple, numbers[0])))
            return self._passed(padded, slice(0, len(chosen)), chosen)
        if self._places >= len(self._targets):
            # All samples, each at a place of its own, whoever was chosen: only what is clipped is gathered.
            indices = on_device(numbers, self._device)
            return self._passed(None, indices, indices)
        batches = batches_by_slot(chosen, self._places)
        own = [numbers[of.numpy()] for _, of in batches]
        parts = [
            self._passed(rows, on_device(part % self._places, self._device), on_device(part, self._device))
            for (rows, _), part in zip(batches, own, strict=True)
        ]
        back = on_device(torch.cat([of for _, of in batches]).argsort().numpy(), self._device)
        return [Captured.joined(layer, back) for layer in zip(*parts, strict=True)]

    def _passed(self, samples: Tensor | None, places: slice | Tensor, chosen: Tensor) -> list[Captured]:
        """`captured` of the samples `chosen`, at `places` of a batch of `samples` or of all; the rest is padding."""
        rows, targets = self._inputs, self._targets
        if samples is not None or isinstance(rows, Streamed):
            samples = torch.arange(len(targets)) if samples is None else samples
            indices = on_device(samples.numpy(), self._device)
            rows = rows_of(rows, samples if isinstance(rows, Streamed) else indices).to(self._device)
            targets = targets.index_select(0, indices)
        with Recorder(self._layers) as recorder:
            losses = self._loss(self._model(rows), targets)
            seen = recorder.seen
        # With a mean as loss each gradient would be divided by the batch size, and clipping would bound nothing.
        if losses.shape != targets.shape[:1]:
            raise InputError(f"the loss gave {list(losses.shape)}", allowed="one number for each row")
        counts = torch.zeros_like(losses)
        counts[places] = 1.0
        # Gradients of the sum over chosen rows, so that each row has its own: a mean would depend on the batch size.
        deltas = torch.autograd.grad(losses, [output for _, output in seen], counts)
        captured = []
        for layer, (a, _), delta in zip(self._layers, seen, deltas, strict=True):
            bias = layer.bias is not None
            on_grids = self._on_grids(a, rows, bias, chosen)
            inputs = on_grids.whole if isinstance(on_grids, WholeRows) else a.detach()[places]
            captured.append(Captured(inputs, delta[places], bias, on_grids))
        return captured

    def _on_grids(self, seen: Tensor, rows: Tensor, bias: bool, chosen: Tensor) -> FloatArray | WholeRows | None:
        """The grids of the inputs of a layer that reads the rows of `inputs` themselves; computed once."""
        if seen is not rows:
            return None
        if rows.is_cpu:
            return self._grids(bias)[:, chosen.numpy()]
        return None if isinstance(self._inputs, Streamed) else self._stored(bias).rows(chosen)

    def _grids(self, bias: bool) -> FloatArray:
        """The grids [3, n] of all rows, for a layer with or without a bias, on the CPU."""
        if bias not in self._measured:
            from graphveil.training.clip_loop import measure_grids

            self._measured[bias] = np.concatenate(
                [measure_grids(rows.numpy(), bias) for rows in self._pieces()], axis=1
            )
        return self._measured[bias]

    def _stored(self, bias: bool) -> WholeRows:
        """The whole numbers of all rows, for a layer with or without a bias, on another device."""
        if bias not in self._whole:
            parts = [WholeRows.of(rows, bias).narrow() for rows in self._pieces()]
            self._whole[bias] = WholeRows.joined(parts)
        return self._whole[bias]

    def _pieces(self) -> Iterator[Tensor]:
        """All rows, some at a time, in memory of their own."""
        return (rows_of(self._inputs, part) for part in torch.split(torch.arange(len(self._targets)), _ROWS_AT_ONCE))


def batches_by_slot(chosen: Tensor, places: int = MULTIPLES[-1]) -> list[tuple[Tensor, Tensor]]:
    """Batches of `places` samples in which the place of a sample is its number modulo `places`, whatever else was
    chosen. For processors whose products depend on the place in a batch, or on its length. Returns for each batch the
    samples [places], and the indices in `chosen` of those that count; an empty place repeats a sample.

    Args:
        chosen: int64 [b], at least one.
        places: the length of every batch.
    """
    slots, batches = chosen % places, []
    order = torch.argsort(slots, stable=True)
    starts = torch.searchsorted(slots[order], slots[order])
    turn = torch.empty_like(order)
    turn[order] = torch.arange(len(order)) - starts
    for number in range(int(turn.max()) + 1):
        own = (turn == number).nonzero().squeeze(1)
        samples = chosen[:1].repeat(places)
        samples[slots[own]] = chosen[own]
        batches.append((samples, own))
    return batches


def poisson_batch(count: int, rate: float, randomness: Randomness) -> Tensor:
    """The samples of one batch, each in it with probability floor(2^64 rate) / 2^64, independently. Returns int64 [b],
    rising; b may be 0.

    Args:
        count: n, the number of samples.
        rate: the probability, in (0, 1].
        randomness: 16 bits of it a sample, unless the rate is 1, and 64 for a sample that they do not decide.
    """
    if rate >= 1.0:
        return torch.arange(count)
    # Rounded down: a sample must never be in a batch with more than the probability that is charged.
    first, rest = divmod(math.floor(rate * 2.0**64), 1 << 48)
    words = randomness.uint64(-(-count // 4)).view(np.uint16)[:count]
    chosen = words < first
    # The first 16 bits of a 64-bit number decide the comparison, the other 48 only where the first 16 are equal.
    undecided = np.flatnonzero(words == first)
    chosen[undecided] = randomness.uint64(undecided.size) >> np.uint64(16) < np.uint64(rest)
    return torch.from_numpy(np.flatnonzero(chosen))


def train_privately(
    model: nn.Module,
    inputs: Tensor | Streamed,
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

    See `PrivateDescent` for the other arguments and for what is refused.
    """
    descent = PrivateDescent(model, inputs, targets, schedule, loss=loss)
    for step in range(1, schedule.steps + 1):
        descent.step(randomness)
        if progress is not None:
            progress(Progress(step, schedule.steps))
    return descent.steps_taken


@dataclass(frozen=True)
class Streamed:
    """float32 rows [n, d], a few at a time."""

    shape: tuple[int, int]  # n and d
    #: the rows [m, d] of some indices, int64 [m], in memory of their own; the same bits whichever other rows are
    #: requested.
    make: Callable[[Tensor], Tensor]


def rows_of(inputs: Tensor | Streamed, places: Tensor) -> Tensor:
    """Return some rows [m, d]."""
    return (
        inputs.make(places) if isinstance(inputs, Streamed) else torch.index_select(inputs, 0, places.to(inputs.device))
    )


_PROBES = 7
# Rows of the whole batch with which smaller batches are compared: a multiple of each of `MULTIPLES`.
_BATCH_ROWS: Final = 672


def linear_layers(model: nn.Module) -> list[nn.Linear]:
    """The linear layers of a model. Raises InputError unless they hold all parameters, each in one layer, and no module
    normalises the batch.
    """
    norms = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.instancenorm._InstanceNorm)
    for name, module in model.named_modules():
        if isinstance(module, norms):
            raise InputError(f"{name or 'the model'} is {type(module).__name__}", remedy="use no batch normalisation")
    # `type` and not `isinstance`: a subclass may compute something else, for which the closed form is wrong.
    layers = [module for module in model.modules() if type(module) is torch.nn.Linear]
    ids = [id(p) for layer in layers for p in layer.parameters(recurse=False)]
    for name, parameter in model.named_parameters():
        if ids.count(id(parameter)) != 1 or not parameter.requires_grad or parameter.dtype != torch.float32:
            raise InputError(
                f"parameter {name!r} cannot be trained privately",
                allowed="float32 parameters of torch.nn.Linear, each in one layer and trainable",
            )
    if not layers:
        raise InputError("the model has no linear layer")
    return layers


def refuse_mixed_rows(model: nn.Module, dimension: int) -> None:
    """Change one row of a public random batch at a time and refuse a model whose other outputs move, or whose rows are
    not kept apart.

    Args:
        dimension: columns of the model's input.
    """
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(_PROBES, dimension, generator=generator)
    before = _outputs(model, rows, 0)
    if before.ndim != 2 or len(before) != _PROBES:
        raise InputError(
            f"{_PROBES} input rows gave outputs {list(before.shape)}", allowed="one row for each input row"
        )
    for row in range(_PROBES):
        unchanged = torch.arange(_PROBES) != row
        # A large row, a negated row and NaN: each reveals layers that the others do not.
        for value in (torch.full((dimension,), 1e3), -rows[row], torch.full((dimension,), torch.nan)):
            changed = rows.clone()
            changed[row] = value
            after = _outputs(model, changed, 0)
            if not torch.allclose(after[unchanged], before[unchanged], rtol=1e-5, atol=1e-6):
                raise InputError(
                    "changing one input row moves the outputs of others",
                    where=type(model).__name__,
                    remedy="use layers that treat rows independently: else clipping one gradient protects nothing",
                )


def treats_rows_alike(model: nn.Module, dimension: int, rows: int) -> bool:
    """Whether a row's outputs and gradients have the same bits in public random batches of some times `rows` rows.
    Matrix products of some processors round otherwise in batches of another length, or at their end.

    Args:
        model: a perceptron.
        dimension: d, columns of its rows.
    """
    generator, training = torch.Generator().manual_seed(0), model.training
    layers = linear_layers(model.eval())
    count = _BATCH_ROWS
    x = torch.randn(count, dimension, generator=generator)
    slopes = torch.randn(count, max(layer.out_features for layer in layers), generator=generator)

    def seen(batch: Tensor) -> list[Tensor]:
        with Recorder(layers) as recorder:
            logits = model(x[batch])
            outputs = [output for _, output in recorder.seen]
        tensors = [*outputs, *torch.autograd.grad((logits * slopes[batch, : logits.shape[1]]).sum(), outputs)]
        return [tensor.detach() for tensor in tensors]

    # Bit for bit: a last bit that depends on the batch is a trace of who else was in it.
    whole, alike = seen(torch.arange(count)), True
    for size in (size for size in (1, 2, 3, 5, 7, 11, 13, 17, 19) if size * rows <= count):
        batch = torch.randperm(count, generator=generator)[: size * rows]
        alike &= all(torch.equal(part, whole_part[batch]) for part, whole_part in zip(seen(batch), whole, strict=True))
    model.train(training)
    return alike


def _outputs(model: nn.Module, rows: Tensor, seed: int) -> Tensor:
    """The outputs in the model's present mode, dropout frozen, its buffers and the global generator untouched."""
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    # The same dropout masks before and after: otherwise other masks would look like mixed rows.
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        outputs: Tensor = model(rows.to(next(model.parameters()).device))
    for name, value in model.named_buffers():
        value.copy_(buffers[name])
    return outputs


class Recorder:
    """Keeps what every linear layer sees in one forward pass; a context manager that leaves no hook behind."""

    def __init__(self, layers: list[nn.Linear]) -> None:
        self._layers = layers

    def __enter__(self) -> Recorder:
        self._seen: dict[int, tuple[Tensor, Tensor]] = {}

        def keep(number: int, _: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            if number in self._seen:
                raise InputError("a linear layer is used twice in one pass", remedy="give each use its own layer")
            if inputs[0].ndim != 2:
                raise InputError(f"a linear layer sees {inputs[0].ndim} axes", allowed="2: rows and columns")
            self._seen[number] = (inputs[0], output)

        numbered = enumerate(self._layers)
        self._handles = [layer.register_forward_hook(partial(keep, number)) for number, layer in numbered]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    @property
    def seen(self) -> list[tuple[Tensor, Tensor]]:
        """(input, output) of every layer, in their order. Raises InputError where a layer was not used."""
        if len(self._seen) != len(self._layers):
            raise InputError("a linear layer of the model is not used", remedy="leave it out of the model")
        return [self._seen[number] for number in range(len(self._layers))]
