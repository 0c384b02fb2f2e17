"""The clipping of `clip_loop` in two kernels: put rows on their grids, and clip gradients, one program for each row.

Every program does the same in the same order: the result for a sample depends neither on the other samples nor on its
position. Nothing waits for the device.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from graphveil.privacy.source.chacha_kernel import EXACT

#: Of a float64: bits of the fraction, and the exponent of 2^0; adding and subtracting the last rounds to integers.
_FRACTION = tl.constexpr(52)
_ONE = tl.constexpr(1023)
_WHOLE = tl.constexpr(1.5 * 2.0**52)


@triton.jit
def _power_of_two(exponent):
    return ((exponent + _ONE) << _FRACTION).to(tl.float64, bitcast=True)


@triton.jit
def _put_on_grids(rows, whole, scales, squares, columns, stride, units, BITS: tl.constexpr, WIDE: tl.constexpr):
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, WIDE)
    valid = column < columns + units
    values = tl.load(rows + row * stride + column, mask=column < columns, other=0.0).to(tl.float64)
    values = tl.where((column >= columns) & valid, 1.0, values)
    length = tl.sum(values * values, axis=0)
    finite = length < float("inf")
    # The exponent of the square root, from that of the squared length.
    exponent = (((length.to(tl.int64, bitcast=True) >> _FRACTION) & 2047) - _ONE + 2) >> 1
    exponent = tl.where(finite & (length > 0), exponent, 0)
    numbers = (tl.where(finite, values, 0.0) * _power_of_two(BITS - exponent) + _WHOLE) - _WHOLE
    tl.store(whole + row * (columns + units) + column, numbers, mask=valid)
    tl.store(scales + row, _power_of_two(exponent - BITS))
    # Sums of whole numbers: exact in any order.
    tl.store(squares + row, tl.where(finite, tl.sum(numbers * numbers, axis=0), float("inf")))


@torch.library.custom_op("graphveil::put_on_grids", mutates_args=())
def put_on_grids(rows: Tensor, bias: bool, bits: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return whole numbers float64 [b, d] or, with the 1 of a bias, [b, d + 1], scale and squares of `WholeRows` [b].

    Args:
        rows: float32 [b, d], entries of a row side by side.
        bias: whether the layer has one, whose input is 1.
        bits: a row is 2^(bits - 1) to 2^bits long.
    """
    count, columns = rows.shape
    whole = torch.empty(count, columns + bias, dtype=torch.float64, device=rows.device)
    scale, squares = (torch.empty(count, dtype=torch.float64, device=rows.device) for _ in range(2))
    padded_columns = triton.next_power_of_2(columns + bias)
    if count:
        _put_on_grids[(count,)](
            rows, whole, scale, squares, columns, rows.stride(0), int(bias),
            BITS=bits, WIDE=padded_columns, num_warps=4, **EXACT,
        )  # fmt: skip
    return whole, scale, squares


@triton.jit
def _fits(numbers, squares, CAP: tl.constexpr):
    """Whether whole numbers are at most CAP long, exactly: their sums are exact up to 2^53, in any order."""
    exact = numbers.to(tl.float64)
    return tl.sum(exact * exact * squares, axis=0) <= CAP * CAP


@triton.jit
def _clip(
    deltas, scales, squares, owners, dither, out, layers, columns,
    STEP: tl.constexpr, CAP: tl.constexpr, ROOM: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, WIDE)
    valid = column < columns
    owner = tl.load(owners + column, mask=valid, other=0)
    scale = tl.load(scales + row * layers + owner, mask=valid, other=0.0)
    square = tl.load(squares + row * layers + owner, mask=valid, other=0.0)
    delta = tl.load(deltas + row * columns + column, mask=valid, other=0.0)
    dither_words = tl.load(dither + row * columns + column, mask=valid, other=0).to(tl.float32)
    usable = tl.min(((square < float("inf")) & (tl.abs(delta) < float("inf"))).to(tl.int32), axis=0) > 0
    # A row with NaN or an infinity is set to zero before it enters any product.
    delta, square = tl.where(usable, delta, 0.0), tl.where(usable, square, 0.0)
    weighted = delta.to(tl.float64) * scale
    length = tl.sum(weighted * weighted * square, axis=0)
    room = tl.sqrt(tl.maximum(ROOM * ROOM - tl.sum(square, axis=0) / 6.0, CAP * CAP / 4.0))
    shrink = tl.where(length > 0, tl.minimum(room * STEP / tl.sqrt(tl.where(length > 0, length, 1.0)), 1.0), 1.0)
    exact = delta * (shrink / STEP * scale).to(tl.float32)
    dithered, truncated = (
        tl.floor(exact + dither_words * 0.0000152587890625),
        tl.where(exact < 0, tl.ceil(exact), tl.floor(exact)),
    )
    # On the integers that are added, not on the floats they came from: this is the sensitivity that noise pays for.
    fallback = tl.where(usable & _fits(truncated, square, CAP), truncated, 0.0)
    tl.store(
        out + row * columns + column, tl.where(usable & _fits(dithered, square, CAP), dithered, fallback), mask=valid
    )


@torch.library.custom_op("graphveil::clip_gradients", mutates_args=())
def clip_gradients(
    deltas: Tensor,
    scales: Tensor,
    squares: Tensor,
    owners: Tensor,
    dither: Tensor,
    step: float,
    cap: int,
    spread: float,
) -> Tensor:
    """Return loss gradients as whole numbers, float32 [b, k], such that no sample's products with its inputs are longer
    than the cap. A sample with a NaN or an infinity anywhere is zero.

    Args:
        deltas: of all layers side by side, float32 [b, k].
        scales, squares: of the inputs of each layer, float64 [b, layers].
        owners: the layer of each column, int32 [k].
        dither: uniform whole numbers below 2^16, int32 [b, k].
        step, cap: of the grid.
        spread: the margin for the effect of dither on the length.
    """
    out = torch.empty_like(deltas)
    if out.numel():
        _clip[(len(deltas),)](
            deltas, scales, squares, owners, dither, out, scales.shape[1], deltas.shape[1],
            # As compile-time constants: runtime arguments would have only 32 bits.
            STEP=step, CAP=float(cap), ROOM=cap - spread, WIDE=triton.next_power_of_2(deltas.shape[1]),
            num_warps=4, **EXACT,
        )  # fmt: skip
    return out
