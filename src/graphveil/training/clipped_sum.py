"""The sum of clipped per-sample gradients of linear layers, as exact integers and in two products a layer.

The gradient of one sample for a layer's weights is the outer product of delta, the gradient of its loss by the layer's
output, with a, the layer's input (1 appended for the bias), so its norm over all layers is in closed form

    |g|^2 = sum_l |delta_l|^2 (|a_l|^2 + 1)        (I. Goodfellow, https://arxiv.org/abs/1510.01799)

Both factors are put on integer grids, a by a power of 2 of its own and delta after clipping, such that every product
is a whole number of steps of one public grid. Clipping is judged by those integers: what one sample adds to the sum is
at most `cap` steps long, exactly. A sum of b samples has no entry above b cap: it is added up in integers, exact and
free of order.

One sample's integers depend on that sample, the weights and secret dithering alone, provided that products,
activations and losses give a row the same bits whatever the other rows are. Therefore batches are padded to a multiple
of so many rows and go through the model on one thread: kernels process the end of an array differently.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.privacy import Randomness
from graphveil.runtime.checks import require_whole
from graphveil.runtime.late import Tensor, torch
from graphveil.training.clip_tensor import WholeRows, clip_deltas, on_device, products

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]

#: Batches are padded to a multiple of the first of these that works. 32: two vectors of AVX-512, which torch's kernels
#: take at a time. 96: also whole tiles of 24 rows, since with 16, 32 or 48 rows matrix products of AVX2 depend on how
#: many tiles there are.
MULTIPLES: Final = (32, 96)
# No sum of a piece exceeds it.
_LARGEST_INT32: Final = (1 << 31) - 1
# Deltas are 16-bit numbers.
_LARGEST_INT16: Final = (1 << 15) - 1


@dataclass(frozen=True)
class GradientGrid:
    """Gradients of norm `clip` are `cap` steps long, at most 2^15 - 1."""

    clip: float
    cap: int

    def __post_init__(self) -> None:
        require_whole(1, _LARGEST_INT16, cap=self.cap)

    @property
    def step(self) -> float:
        """The length of one step, in the unit of the gradient."""
        return self.clip / self.cap


@dataclass(frozen=True)
class Captured:
    """What a layer saw of a batch: inputs [b, in], gradients by outputs [b, out], whether it has a bias, and, where
    they are computed already, the grids of the inputs [3, b] (`measure_grids`), or on other devices than the CPU their
    whole numbers.
    """

    inputs: Tensor
    deltas: Tensor
    bias: bool
    on_grids: FloatArray | WholeRows | None = None

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
        return _clipped_sum_on_device(layers, grid, randomness)
    from graphveil.training.clip_loop import clip, measure_grids
    from graphveil.training.outer_loop import pack

    inputs = [layer.inputs.contiguous().numpy() for layer in layers]
    grids = np.stack(
        [
            layer.on_grids if isinstance(layer.on_grids, np.ndarray) else measure_grids(rows, layer.bias)
            for layer, rows in zip(layers, inputs, strict=True)
        ],
        axis=1,
    )
    # `cat` copies, also for a single layer: the copy is overwritten.
    deltas = torch.cat([layer.deltas for layer in layers], 1).numpy()
    starts = np.cumsum([0, *(layer.deltas.shape[1] for layer in layers)])
    units = clip(deltas, starts, grids, _dither(deltas.shape, randomness), grid.step, grid.cap)
    packed = pack(deltas, np.ones(len(deltas), np.float32))
    factors = np.where(np.isfinite(grids[2]), 1.0 / grids[0], 0.0).astype(np.float32)
    # float32 holds every whole number up to 2^24.
    kind = torch.float32 if len(deltas) * grid.cap < 1 << 24 else torch.float64
    shapes = [(layer.deltas.shape[1], layer.inputs.shape[1]) for layer in layers]
    size = sum(width * (columns + layer.bias) for (width, columns), layer in zip(shapes, layers, strict=True))
    rest = flat = torch.empty(size, dtype=kind)
    for number, (layer, shape) in enumerate(zip(layers, shapes, strict=True)):
        # Directly into their places: joining sums afterwards would be another pass over them.
        weights, rest = rest.tensor_split([math.prod(shape)])
        whole = pack(inputs[number], factors[number])
        _outer_sums(packed, starts[number], whole, weights.view(shape).numpy(), _LARGEST_INT32 // grid.cap // 2)
        if layer.bias:
            bias, rest = rest.tensor_split([shape[0]])
            bias.copy_(torch.from_numpy(units[starts[number] : starts[number + 1]]))
    return flat


def _outer_sums(deltas: IntArray, first: int, whole: IntArray, out: np.ndarray, pairs: int) -> None:
    """Set `out` to the sums of outer products of packed arrays, of so many pairs of samples at a time."""
    from graphveil.training.outer_loop import multiply

    multiply(deltas[:pairs], first, whole[:pairs], out)
    for start in range(pairs, len(deltas), pairs):
        next_sums = np.empty_like(out)
        multiply(deltas[start : start + pairs], first, whole[start : start + pairs], next_sums)
        out += next_sums


def _clipped_sum_on_device(layers: Sequence[Captured], grid: GradientGrid, randomness: Randomness) -> Tensor:
    """`clipped_sum` of tensors on another device than the CPU, with the same dither."""
    deltas, widths = torch.cat([layer.deltas for layer in layers], 1), [layer.deltas.shape[1] for layer in layers]
    dither = on_device(_dither((len(deltas), sum(widths)), randomness).astype(np.int32), deltas.device)
    inputs = [
        layer.on_grids if isinstance(layer.on_grids, WholeRows) else WholeRows.of(layer.inputs, layer.bias)
        for layer in layers
    ]
    whole = clip_deltas(deltas, widths, inputs, dither, grid.step, grid.cap)
    return products(whole, widths, inputs, [layer.bias for layer in layers])


def _dither(shape: tuple[int, ...], randomness: Randomness) -> npt.NDArray[np.uint16]:
    count = shape[0] * shape[1]
    # 16 bits a number: dither must be secret and nearly uniform, but privacy does not depend on its resolution.
    words = randomness.uint64(-(-count // 4)).view(np.uint16)[:count]
    return words.reshape(shape)
