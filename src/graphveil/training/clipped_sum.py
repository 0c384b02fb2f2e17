"""The sum of clipped per-sample gradients of linear layers, as exact integers and in two products a layer.

The gradient of one sample for a layer's weights is the outer product of delta, the gradient of its loss by the layer's
output, with a, the layer's input (1 appended for the bias), so its norm over all layers is in closed form

    |g|^2 = sum_l |delta_l|^2 (|a_l|^2 + 1)        (I. Goodfellow, https://arxiv.org/abs/1510.01799)

Both factors are put on integer grids, a by a power of 2 of its own and delta after clipping, such that every product
is a whole number of steps of one public grid. Clipping is judged by those integers: what one sample adds to the sum is
at most `cap` steps long, exactly. The sum of integers is exact and free of order, whatever the batch holds: products
stay below 2^24, where float32 holds every integer, because a sum of b samples has no entry above b cap.

One sample's integers depend on that sample, the weights and secret dithering alone, provided that products,
activations and losses give a row the same bits whatever the other rows are. For that batches are padded to a multiple
of `ROWS` rows and go through the model on one thread: kernels treat the end of a piece of work, theirs or a thread's,
otherwise than the rest, and may differ there in the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from graphveil.late import torch
from graphveil.privacy import Randomness

if TYPE_CHECKING:
    from torch import Tensor


FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: Three times two of the longest vectors (AVX-512), which kernels of torch take at a time; also whole tiles of matrix
#: products, of 24 rows and fewer: with 16, 32 or 48 those of AVX2 depend on how many tiles there are.
ROWS: Final = 96
# An input's integers have a norm of 2^5 to 2^6, give or take rounding: more would leave less for the deltas.
_INPUT_BITS: Final = 6
_BLOCK: Final = 4096
_EXACT: Final = 1 << 24
# Room for what dither does to the length: its mean, a sixth a coordinate, apart; some two deviations.
_SPREAD: Final = 48.0


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
    """A layer's input rows on their grids: a = scale * whole, 1 = scale * ones; squared norms of both together."""

    scale: FloatArray
    ones: FloatArray
    squares: FloatArray
    sound: BoolArray

    def of(self, rows: npt.NDArray[np.int64]) -> Lengths:
        """Those of some of the rows."""
        return Lengths(self.scale[rows], self.ones[rows], self.squares[rows], self.sound[rows])


@dataclass(frozen=True)
class Captured:
    """What one linear layer saw of a batch: inputs [b, in], loss gradients by outputs [b, out], has it a bias.

    `lengths` are those of the inputs where somebody knows them already.
    """

    inputs: Tensor
    deltas: Tensor
    bias: bool
    lengths: Lengths | None = None


def clipped_sum(layers: Sequence[Captured], grid: GradientGrid, randomness: Randomness) -> list[list[Tensor]]:
    """The sum over the batch of every sample's clipped gradient, in whole steps of the grid.

    Args:
        layers: what each layer saw, rows in the same order, on the CPU.
        grid: the grid and the clipping norm.
        randomness: the source of the dither, which must be secret like the noise.

    Returns:
        For every layer [sum for the weights [out, in]] or [weights, bias [out]], whole numbers as floats. A sample
        with a NaN or an infinity anywhere adds nothing.
    """
    inputs = [layer.lengths or _lengths(layer.inputs, layer.bias) for layer in layers]
    deltas = _clip(inputs, [layer.deltas for layer in layers], grid, randomness)
    return [
        _products(layer, found, delta, grid.cap) for layer, found, delta in zip(layers, inputs, deltas, strict=True)
    ]


def gradient_norms(layers: Sequence[Captured]) -> FloatArray:
    """The norm of every sample's gradient over all layers, float64 [b], before any clipping or rounding."""
    squares = [_norms(layer.deltas) ** 2 * (_norms(layer.inputs) ** 2 + float(layer.bias)) for layer in layers]
    norms: FloatArray = np.sqrt(np.sum(squares, axis=0))
    return norms


def input_lengths(rows: Tensor, bias: bool) -> Lengths:
    """Every row on a grid of its own: a power of 2 that makes the row, the 1 of the bias included, 2^5 to 2^6 long.

    Args:
        rows: float32 [n, d].
        bias: whether the layer has one, whose input is 1.
    """
    parts = [_lengths(part, bias) for part in torch.split(rows, _BLOCK)] or [_lengths(rows, bias)]
    fields = ("scale", "ones", "squares", "sound")
    return Lengths(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))


def _lengths(rows: Tensor, bias: bool) -> Lengths:
    norms = np.sqrt(_norms(rows) ** 2 + float(bias))
    sound = np.isfinite(norms)
    # A power of 2, so that scaling is exact and only the rounding to whole numbers loses anything.
    exponent = np.frexp(np.where(sound, norms, 1.0))[1]
    scale = np.ldexp(1.0, exponent - _INPUT_BITS)
    ones = np.rint(1.0 / scale) if bias else np.zeros_like(scale)
    return Lengths(scale, ones, _whole_squares(_whole(rows, scale, sound)) + ones**2, sound)


def _whole(rows: Tensor, scale: FloatArray, sound: BoolArray) -> Tensor:
    """The rows as whole numbers of their grids; those that are not sound are zero."""
    whole = (rows * _column(1.0 / scale)).round_()
    if not sound.all():
        whole[torch.from_numpy(~sound)] = 0.0
    return whole


def _clip(inputs: list[Lengths], deltas: list[Tensor], grid: GradientGrid, randomness: Randomness) -> list[Tensor]:
    """The integer deltas of clipped samples: dithered, or truncated toward zero where dither made them too long."""
    pairs = list(zip(deltas, inputs, strict=True))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        rough = sum(delta.shape[1] * found.squares for delta, found in pairs) / 6
        # Dither lengthens a vector by about a sixth a coordinate in squares: most samples then fit at the first try.
        room = np.sqrt(np.maximum((grid.cap - _SPREAD) ** 2 - rough, grid.cap**2 / 4))
        factors = [found.scale / grid.step for found in inputs]
        parts = [(_norms(d) * f) ** 2 * found.squares for (d, found), f in zip(pairs, factors, strict=True)]
        length = np.sqrt(np.sum(parts, axis=0))
        sound = np.isfinite(length) & np.all([found.sound for found in inputs], axis=0)
        # A sample with NaN is multiplied by 0 and overwritten below: 0 times NaN would still be NaN.
        shrink = np.where(sound, np.minimum(1.0, room / length), 0.0)
    exact = [delta * _column(shrink * factor) for delta, factor in zip(deltas, factors, strict=True)]
    if not sound.all():
        for values in exact:
            values[torch.from_numpy(~sound)] = 0.0
    rounded = [part.add_(values).floor_() for part, values in zip(_dither(exact, randomness), exact, strict=True)]
    fits = _fits(rounded, inputs, grid.cap)
    if not fits.all():
        # The room above makes the truncated ones fit; what does not all the same, be it NaN, is left out.
        for whole, values in zip(rounded, exact, strict=True):
            whole[torch.from_numpy(~fits)] = values[torch.from_numpy(~fits)].trunc()
        never = torch.from_numpy(~_fits(rounded, inputs, grid.cap))
        for whole in rounded:
            whole[never] = 0.0
    return rounded


def _fits(deltas: Sequence[Tensor], inputs: Sequence[Lengths], cap: int) -> BoolArray:
    """Whether every sample's product is at most `cap` steps long, exactly; false for NaN."""
    squares = [_whole_squares(delta) * found.squares for delta, found in zip(deltas, inputs, strict=True)]
    # On the integers that are added, not on the floats they came from: this is the sensitivity that noise pays for.
    fits: BoolArray = np.sum(squares, axis=0) <= float(cap) ** 2
    return fits


def _products(layer: Captured, inputs: Lengths, deltas: Tensor, cap: int) -> list[Tensor]:
    """The integer sums of outer products, in pieces so short that float32 holds every partial sum."""
    # So many samples at most reach 2^24 in one entry, where float32 would begin to round.
    piece = max(1, (_EXACT - 1) // cap)
    whole = _whole(layer.inputs, inputs.scale, inputs.sound)
    ones = torch.from_numpy(inputs.ones.astype(np.float32))
    sums = [
        [deltas[i : i + piece].T @ whole[i : i + piece], deltas[i : i + piece].T @ ones[i : i + piece]]
        for i in range(0, max(1, len(deltas)), piece)
    ]
    # Several pieces may pass 2^24 together: float64 holds their sum.
    total = [torch.stack(parts).double().sum(0) if len(sums) > 1 else parts[0] for parts in zip(*sums, strict=True)]
    return total if layer.bias else total[:1]


def _column(factors: FloatArray) -> Tensor:
    """[b] as float32 [b, 1]."""
    with np.errstate(over="ignore"):
        return torch.from_numpy(factors.astype(np.float32))[:, None]


def _norms(rows: Tensor) -> FloatArray:
    """L2 norms of rows, float64 [b]."""
    norms: FloatArray = torch.linalg.vector_norm(rows, dim=1).numpy().astype(np.float64)
    return norms


def _whole_squares(rows: Tensor) -> FloatArray:
    """Squared norms of rows of whole numbers, float64 [b], exact below 2^21.

    Sums of squares are exact there, and half a unit is more than what the root's rounding moves its square.
    """
    return np.rint(_norms(rows) ** 2)


def _dither(deltas: Sequence[Tensor], randomness: Randomness) -> list[Tensor]:
    """Uniform multiples of 2^-16 in [0, 1), as many as there are deltas."""
    sizes = [delta.numel() for delta in deltas]
    # 16 bits a number: dither needs to be secret and nearly uniform, and no privacy rests on its resolution.
    words = randomness.uint64(-(-sum(sizes) // 4)).view(np.uint16)[: sum(sizes)]
    uniform = torch.from_numpy(words.astype(np.float32)).mul_(2.0**-16)
    return [part.view_as(delta) for part, delta in zip(torch.split(uniform, sizes), deltas, strict=True)]
