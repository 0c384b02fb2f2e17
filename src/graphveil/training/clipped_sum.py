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

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.privacy import Randomness
from graphveil.runtime.late import Tensor, torch
from graphveil.training.clip_tensor import WholeRows, clipped, on_device, products

FloatArray = npt.NDArray[np.float64]

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
class OnGrids:
    """A layer's input rows on their grids: a = scale * whole, 1 = scale * unit; squared norms of both together."""

    whole: Tensor  # float32 [n, d]
    #: [3, n]: scale, unit, squares; squares are infinite, and `whole` zero, of a row whose length is not finite.
    grids: FloatArray

    @staticmethod
    def of(rows: Tensor, bias: bool, *, inside: bool = False) -> OnGrids:
        """Put every row on a grid of its own: a power of 2 that makes it, the 1 of the bias included, 2^5 to 2^6 long.

        Args:
            bias: whether the layer has one, whose input is 1.
            inside: write the whole numbers over the rows.
        """
        from graphveil.training.clip_loop import measure

        rows = rows.contiguous()
        placed = OnGrids(rows if inside else torch.empty_like(rows), np.empty((3, len(rows))))
        measure(rows.numpy(), bias, placed.whole.numpy(), placed.grids)
        return placed

    @staticmethod
    def over(rows: Tensor, grids: FloatArray) -> OnGrids:
        """Write over rows [n, d] what `of` would find, given their grids."""
        from graphveil.training.clip_loop import round_rows

        round_rows(rows.numpy(), grids)
        return OnGrids(rows, grids)


@dataclass(frozen=True)
class Captured:
    """What a layer saw of a batch: inputs [b, in], gradients by outputs [b, out], bias, grids if measured."""

    inputs: Tensor
    deltas: Tensor
    bias: bool
    on_grids: OnGrids | WholeRows | None = None

    @staticmethod
    def joined(parts: Sequence[Captured], order: Tensor) -> Captured:
        """Return the rows of several batches on another device in one, in some order, int64 [b]."""
        inputs, deltas = (torch.cat([getattr(part, name) for part in parts])[order] for name in ("inputs", "deltas"))
        grids = [part.on_grids for part in parts if isinstance(part.on_grids, WholeRows)]
        whole = WholeRows.joined(grids).rows(order) if len(grids) == len(parts) else None
        return Captured(inputs, deltas, parts[0].bias, whole)


def clipped_sum(layers: Sequence[Captured], grid: GradientGrid, randomness: Randomness) -> Tensor:
    """The sum over the batch of every sample's clipped gradient [P], in whole steps of the grid as floats: of every
    layer its weights [out, in] and, where it has one, its bias [out]. A sample with a NaN or an infinity anywhere adds
    nothing.

    Args:
        layers: what each layer saw, rows in the same order, all on one device.
        randomness: the source of the dither, which must be secret like the noise.
    """
    if not layers[0].deltas.is_cpu:
        return _clipped_there(layers, grid, randomness)
    from graphveil.training.clip_loop import clip

    inputs = [
        layer.on_grids if isinstance(layer.on_grids, OnGrids) else OnGrids.of(layer.inputs, layer.bias)
        for layer in layers
    ]
    widths = [layer.deltas.shape[1] for layer in layers]
    # A copy, even of one layer's: it is overwritten.
    deltas = torch.cat([layer.deltas for layer in layers], 1)
    starts, grids = np.cumsum([0, *widths]), np.stack([rows.grids for rows in inputs], axis=1)
    units = clip(deltas.numpy(), starts, grids, _dither((len(deltas), starts[-1]), randomness), grid.step, grid.cap)
    # So many samples at most reach 2^24 in one entry, where float32 would begin to round: float64 holds their sum.
    piece = max(1, (_EXACT - 1) // grid.cap)
    shapes = [(width, rows.whole.shape[1]) for width, rows in zip(widths, inputs, strict=True)]
    size = sum(width * (columns + layer.bias) for (width, columns), layer in zip(shapes, layers, strict=True))
    rest = flat = torch.empty(size, dtype=torch.float32 if len(deltas) <= piece else torch.float64)
    parts = zip(
        shapes,
        torch.split(deltas, widths, 1),
        inputs,
        torch.split(torch.from_numpy(units), widths),
        layers,
        strict=True,
    )
    for shape, delta, rows, unit, layer in parts:
        # Into their places: to put sums side by side afterwards would be another pass over them.
        weights, rest = rest.tensor_split([math.prod(shape)])
        _products(delta, rows.whole, piece, weights.view(shape))
        if layer.bias:
            bias, rest = rest.tensor_split([shape[0]])
            bias.copy_(unit)
    return flat


def _products(deltas: Tensor, whole: Tensor, piece: int, out: Tensor) -> None:
    """Set `out` to the integer sums of outer products [out, in], of so many samples at a time."""
    if len(deltas) <= piece:
        torch.mm(deltas.T, whole, out=out)
        return
    out.zero_()
    for i in range(0, len(deltas), piece):
        out += deltas[i : i + piece].T @ whole[i : i + piece]


def _clipped_there(layers: Sequence[Captured], grid: GradientGrid, randomness: Randomness) -> Tensor:
    """`clipped_sum` of tensors on another device than the CPU, with the same dither."""
    deltas, widths = torch.cat([layer.deltas for layer in layers], 1), [layer.deltas.shape[1] for layer in layers]
    dither = on_device(_dither((len(deltas), sum(widths)), randomness).astype(np.int32), deltas.device)
    inputs = [
        layer.on_grids if isinstance(layer.on_grids, WholeRows) else WholeRows.of(layer.inputs, layer.bias)
        for layer in layers
    ]
    whole = clipped(deltas, widths, inputs, dither, grid.step, grid.cap)
    return products(whole, widths, inputs, [layer.bias for layer in layers])


def _dither(shape: tuple[int, int], randomness: Randomness) -> npt.NDArray[np.uint16]:
    count = shape[0] * shape[1]
    # 16 bits a number: dither needs to be secret and nearly uniform, and no privacy rests on its resolution.
    words = randomness.uint64(-(-count // 4)).view(np.uint16)[:count]
    return words.reshape(shape)
