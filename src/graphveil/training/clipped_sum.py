"""The sum of clipped per-sample gradients of linear layers, as exact integers and in two products a layer.

The gradient of one sample for a layer's weights is the outer product of delta, the gradient of its loss by the layer's
output, with a, the layer's input (1 appended for the bias), so its norm over all layers is in closed form

    |g|^2 = sum_l |delta_l|^2 (|a_l|^2 + 1)        (I. Goodfellow, https://arxiv.org/abs/1510.01799)

Both factors are put on integer grids, a by a power of 2 of its own and delta after clipping, such that every product
is a whole number of steps of one public grid. Clipping is judged by those integers: what one sample adds to the sum is
at most `cap` steps long, exactly. Products stay below 2^24, where float32 holds every integer, because a sum of b
samples has no entry above b cap: the sum is exact and free of order.

One sample's integers depend on that sample, the weights and secret dithering alone, provided that products,
activations and losses give a row the same bits whatever the other rows are. For that batches are padded to a multiple
of `ROWS` rows and go through the model on one thread: kernels treat the end of a piece of work otherwise than the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from graphveil.aggregation.grid import squared_lengths
from graphveil.privacy import Randomness
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


# The clipping of `clip_loop` in tensor arithmetic: all samples at once, on whatever device the tensors lie.
#
# Sums over a row are added up in one order, entry by entry, and everything else is of one entry alone: what a sample
# becomes depends neither on the others nor on its place among them. Nothing waits for the device.

#: Of a float64: its bits before the exponent, and what stands there for 2^0.
_FRACTION: Final = 52
_ONE: Final = 1023


@dataclass(frozen=True)
class WholeRows:
    """What a layer saw of a batch, on grids: [a | 1] = scale * whole, the 1 where it has a bias."""

    whole: Tensor  # float64 [b, in] or [b, in + 1]; zero in rows that are not sound
    scale: Tensor  # float64 [b], of the grids and the squared lengths of `whole`
    squares: Tensor  # float64 [b], of the grids and the squared lengths of `whole`
    sound: Tensor  # bool [b], whether a row is of finite length

    @staticmethod
    def of(rows: Tensor, bias: bool) -> WholeRows:
        """Put every row on a grid of its own, as `clipped_sum.input_lengths` does.

        Args:
            rows: float32 [b, in].
            bias: whether the layer has one, whose input is 1.
        """
        from graphveil.training.clip_loop import INPUT_BITS

        exact = (torch.cat([rows, rows.new_ones(len(rows), 1)], dim=1) if bias else rows).double()
        lengths = squared_lengths(exact)
        sound = lengths.isfinite()
        exponent = torch.frexp(torch.where(sound, lengths, 1.0).sqrt()).exponent.long()
        # By its bits: a device's power of 2 may be off by one in the last place.
        scale = (exponent - INPUT_BITS + _ONE << _FRACTION).view(torch.float64)
        whole = torch.where(sound[:, None], (exact / scale[:, None]).round(), 0.0)
        return WholeRows(whole, scale, squared_lengths(whole), sound)


def clipped(
    deltas: Sequence[Tensor], inputs: Sequence[WholeRows], dither: Sequence[Tensor], grid: GradientGrid
) -> list[Tensor]:
    """Return loss gradients as whole numbers, float32 [b, out] of each layer, such that no sample's products with its
    inputs are longer than the cap. A sample with a NaN or an infinity anywhere is zero.

    Args:
        deltas: of each layer, float32 [b, out].
        dither: uniform numbers of their shapes, of which 2^16 are 1.
    """
    from graphveil.training.clip_loop import SPREAD

    reach = [rows.scale / grid.step for rows in inputs]
    terms = zip(deltas, reach, inputs, strict=True)
    lengths = _total(squared_lengths(delta.double()) * by.square() * rows.squares for delta, by, rows in terms)
    rough = _total(delta.shape[1] * rows.squares / 6.0 for delta, rows in zip(deltas, inputs, strict=True))
    room = ((grid.cap - SPREAD) ** 2 - rough).clamp_min(grid.cap**2 / 4.0).sqrt()
    shrink = torch.where(lengths > 0, (room / lengths.sqrt()).clamp_max(1.0), 1.0)
    exact = [delta * (shrink * by).float()[:, None] for delta, by in zip(deltas, reach, strict=True)]
    near = [(part + moved * 2.0**-16).floor() for part, moved in zip(exact, dither, strict=True)]
    short = [part.trunc() for part in exact]
    usable = torch.stack([lengths.isfinite(), *(rows.sound for rows in inputs)]).all(dim=0)
    # On the integers that are added, not on the floats they came from: this is the sensitivity that noise pays for.
    first, second = (usable & fits(parts, inputs, grid.cap) for parts in (near, short))
    return [
        torch.where(first[:, None], rounded, torch.where(second[:, None], truncated, 0.0))
        for rounded, truncated in zip(near, short, strict=True)
    ]


def fits(parts: Sequence[Tensor], inputs: Sequence[WholeRows], cap: int) -> Tensor:
    """Return whether samples' products over all layers are at most `cap` steps long, exactly, bool [b]; false for NaN.

    Args:
        parts: whole numbers of each layer, [b, out].
        inputs: of the same layers.
    """
    length = _total(squared_lengths(part.double()) * rows.squares for part, rows in zip(parts, inputs, strict=True))
    return length <= float(cap) ** 2


def products(deltas: Tensor, inputs: WholeRows, bias: bool) -> list[Tensor]:
    """Return the integer sum of outer products, [weights [out, in]] or [weights, bias [out]], float64.

    Args:
        deltas: whole numbers [b, out].
    """
    # In float64: it holds every sum, and a device may be set to multiply float32 by eleven bits of each factor.
    sums = deltas.double().T @ inputs.whole
    return [sums[:, :-1], sums[:, -1]] if bias else [sums]


def _total(parts: Iterable[Tensor]) -> Tensor:
    """The sum over layers, in their order: a kernel's would have an order of its own."""
    return reduce(torch.add, parts)


FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: Three times two of the longest vectors (AVX-512), which kernels of torch take at a time; also whole tiles of matrix
#: products, of 24 rows and fewer: with 16, 32 or 48 those of AVX2 depend on how many tiles there are.
ROWS: Final = 96
_EXACT: Final = 1 << 24


@dataclass(frozen=True)
class GradientGrid:
    """Gradients of norm `clip` are `cap` steps long."""

    clip: float
    cap: int

    @property
    def step(self) -> float:
        """The length of one step, in the unit of the gradient."""
        return self.clip / self.cap


@dataclass(frozen=True)
class Lengths:
    """A layer's input rows on their grids: a = scale * whole, 1 = scale * unit; squared norms of both together."""

    scale: FloatArray
    unit: FloatArray
    squares: FloatArray
    sound: BoolArray

    def of(self, rows: npt.NDArray[np.int64]) -> Lengths:
        return Lengths(self.scale[rows], self.unit[rows], self.squares[rows], self.sound[rows])

    @staticmethod
    def joined(parts: Sequence[Lengths]) -> Lengths:
        """Those of rows one part after the other."""
        fields = ("scale", "unit", "squares", "sound")
        return Lengths(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))


@dataclass(frozen=True)
class Captured:
    """What a layer saw of a batch: inputs [b, in], loss gradients by outputs [b, out], bias, lengths if measured."""

    inputs: Tensor
    deltas: Tensor
    bias: bool
    lengths: Lengths | None = None


def clipped_sum(layers: Sequence[Captured], grid: GradientGrid, randomness: Randomness) -> list[list[Tensor]]:
    """The sum over the batch of every sample's clipped gradient, for every layer [sum for the weights [out, in]] or
    [weights, bias [out]], in whole steps of the grid as floats. A sample with a NaN or an infinity anywhere adds
    nothing.

    Args:
        layers: what each layer saw, rows in the same order, all on one device.
        randomness: the source of the dither, which must be secret like the noise.
    """
    if not layers[0].deltas.is_cpu:
        return _clipped_there(layers, grid, randomness)
    from graphveil.training.clip_loop import clip

    inputs = [layer.lengths or input_lengths(layer.inputs, layer.bias) for layer in layers]
    widths = [layer.deltas.shape[1] for layer in layers]
    # A copy, even of one layer's: it is overwritten.
    deltas = torch.cat([layer.deltas for layer in layers], 1)
    scale, squares = (np.stack([getattr(lengths, name) for lengths in inputs]) for name in ("scale", "squares"))
    starts, sound = np.cumsum([0, *widths]), np.stack([lengths.sound for lengths in inputs])
    clip(
        deltas.numpy(),
        starts,
        scale,
        squares,
        sound,
        _dither((len(deltas), starts[-1]), randomness),
        grid.step,
        grid.cap,
    )
    return [
        _products(layer, lengths, delta, grid.cap)
        for layer, lengths, delta in zip(layers, inputs, torch.split(deltas, widths, 1), strict=True)
    ]


def input_lengths(rows: Tensor, bias: bool) -> Lengths:
    """Every row on a grid of its own: a power of 2 that makes the row, the 1 of the bias included, 2^5 to 2^6 long.

    Args:
        rows: float32 [n, d].
        bias: whether the layer has one, whose input is 1.
    """
    from graphveil.training.clip_loop import measure

    count = len(rows)
    lengths = Lengths(np.empty(count), np.empty(count), np.empty(count), np.empty(count, np.bool_))
    measure(rows.numpy(), bias, lengths.scale, lengths.unit, lengths.squares, lengths.sound)
    return lengths


def _clipped_there(layers: Sequence[Captured], grid: GradientGrid, randomness: Randomness) -> list[list[Tensor]]:
    """`clipped_sum` of tensors on another device than the CPU, with the same dither."""
    widths = [layer.deltas.shape[1] for layer in layers]
    dither = _dither((len(layers[0].deltas), sum(widths)), randomness).astype(np.float32)
    moved = torch.split(torch.from_numpy(dither).to(layers[0].deltas.device), widths, 1)
    inputs = [WholeRows.of(layer.inputs, layer.bias) for layer in layers]
    deltas = clipped([layer.deltas for layer in layers], inputs, moved, grid)
    return [products(delta, seen, layer.bias) for delta, seen, layer in zip(deltas, inputs, layers, strict=True)]


def _whole(rows: Tensor, lengths: Lengths) -> Tensor:
    from graphveil.training.clip_loop import rounded

    whole = torch.empty_like(rows)
    rounded(rows.numpy(), lengths.scale, lengths.sound, whole.numpy())
    return whole


def _products(layer: Captured, inputs: Lengths, deltas: Tensor, cap: int) -> list[Tensor]:
    """The integer sums of outer products, in pieces so short that float32 holds every partial sum."""
    # So many samples at most reach 2^24 in one entry, where float32 would begin to round.
    piece = max(1, (_EXACT - 1) // cap)
    whole = _whole(layer.inputs, inputs)
    unit = torch.from_numpy(inputs.unit.astype(np.float32))
    sums = [
        [deltas[i : i + piece].T @ whole[i : i + piece], deltas[i : i + piece].T @ unit[i : i + piece]]
        for i in range(0, max(1, len(deltas)), piece)
    ]
    # Several pieces may pass 2^24 together: float64 holds their sum.
    total = [torch.stack(parts).double().sum(0) if len(sums) > 1 else parts[0] for parts in zip(*sums, strict=True)]
    return total if layer.bias else total[:1]


def _dither(shape: tuple[int, int], randomness: Randomness) -> npt.NDArray[np.uint16]:
    count = shape[0] * shape[1]
    # 16 bits a number: dither needs to be secret and nearly uniform, and no privacy rests on its resolution.
    words = randomness.uint64(-(-count // 4)).view(np.uint16)[:count]
    return words.reshape(shape)
