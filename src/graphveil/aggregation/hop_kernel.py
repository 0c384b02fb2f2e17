"""The kernels of a private hop on a GPU: rows put on the grid or scaled to length 1, and messages added up exactly.

A program adds up the messages of some receivers in 32-bit integers. Receivers of very many messages are worked on in
pieces, whose sums are added up in 64 bits: in whole numbers no order changes anything.
"""

from __future__ import annotations

from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from graphveil.privacy.source.chacha_kernel import EXACT

#: Messages of a piece at most: with more, one program would work long after all others are done.
PIECE: Final = 512
#: Columns that a program adds up, at most, and its numbers.
_COLUMNS: Final = 128
_NUMBERS: Final = 1024


@triton.jit
def _lengths(rows, ROWS: tl.constexpr, WIDE: tl.constexpr, FOLDS: tl.constexpr):
    """L2 lengths [ROWS] of rows [ROWS, WIDE], float64, by halves as `grid.squared_lengths` adds them up."""
    squares = rows.to(tl.float64)
    squares *= squares
    for fold in tl.static_range(FOLDS):
        # Two numbers have one sum, whichever comes first.
        squares = tl.sum(tl.reshape(squares, [ROWS, 2, WIDE >> (fold + 1)]), axis=1)
    return tl.sqrt(tl.reshape(squares, [ROWS]))


@triton.jit
def _scaled(
    x, out, rows, columns,
    STEPS: tl.constexpr, SHORTEST: tl.constexpr, LONGEST: tl.constexpr, LARGEST: tl.constexpr,
    ROWS: tl.constexpr, WIDE: tl.constexpr, FOLDS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDE)
    place = row.to(tl.int64)[:, None] * columns + column[None, :]
    there = (row < rows)[:, None] & (column < columns)[None, :]
    values = tl.load(x + place, mask=there, other=0.0)
    long = _lengths(values, ROWS, WIDE, FOLDS)
    # A NaN length fails both comparisons; such a row is zero before it meets any other number.
    usable = (long > 0) & (long < LONGEST)
    values, long = tl.where(usable[:, None], values, 0.0), tl.where(usable, long, 1.0)
    if STEPS > 0:
        scale = tl.minimum(STEPS / tl.maximum(long, SHORTEST), LARGEST).to(tl.float32)
        scaled = (values * scale[:, None]).to(tl.int32)
    else:
        scaled = tl.div_rn(values, tl.zeros_like(values) + long.to(tl.float32)[:, None])
    tl.store(out + place, scaled.to(out.dtype.element_ty), mask=there)


@torch.library.custom_op("graphveil::scale_rows", mutates_args=())
def scale_rows(x: Tensor, steps: float, shortest: float, longest: float, largest: float, narrow: bool) -> Tensor:
    """Return rows scaled to length 1, float32 [n, c], or put on the grid, if steps are above 0.

    Args:
        x: float32 [n, c], contiguous.
        steps, shortest, longest, largest: as `loops.put_on_grid` takes them.
        narrow: rows on the grid are int16 in place of float32.
    """
    rows, columns = x.shape
    out = torch.empty(rows, columns, device=x.device, dtype=torch.int16 if narrow else torch.float32)
    wide = triton.next_power_of_2(max(1, columns))
    several = max(1, _NUMBERS // wide)
    if out.numel():
        _scaled[(triton.cdiv(rows, several),)](
            x, out, rows, columns,
            # Compiled in, since numbers that are handed over have 32 bits.
            STEPS=steps, SHORTEST=shortest, LONGEST=longest, LARGEST=largest,
            ROWS=several, WIDE=wide, FOLDS=wide.bit_length() - 1, num_warps=4, **EXACT,
        )  # fmt: skip
    return out


@triton.jit
def _messages(senders, weights, values, at, there, columns, column, WEIGHTED: tl.constexpr):
    """Weighted rows of the senders at some places, int32 [m, c]; zeros where nothing is there."""
    sender = tl.load(senders + at, mask=there, other=0).to(tl.int64)
    place = sender[:, None] * columns + column[None, :]
    message = tl.load(values + place, mask=there[:, None] & (column < columns)[None, :], other=0).to(tl.int32)
    if WEIGHTED:
        message *= tl.load(weights + at, mask=there, other=0).to(tl.int32)[:, None]
    return message


@triton.jit
def _rows(
    starts, senders, weights, values, sums, rows, columns, most,
    WEIGHTED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    first = tl.load(starts + row, mask=row < rows, other=0).to(tl.int64)
    count = tl.load(starts + row + 1, mask=row < rows, other=0).to(tl.int64) - first
    count = tl.where(count > most, 0, count)
    total = tl.zeros([ROWS, COLUMNS], tl.int32)
    for number in range(tl.max(count, axis=0)):
        total += _messages(senders, weights, values, first + number, number < count, columns, column, WEIGHTED)
    place = row.to(tl.int64)[:, None] * columns + column[None, :]
    tl.store(sums + place, total.to(tl.float32), mask=(row < rows)[:, None] & (column < columns)[None, :])


@triton.jit
def _pieces(
    firsts, stops, owners, senders, weights, values, totals, columns,
    WEIGHTED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    piece = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    first, stop = tl.load(firsts + piece), tl.load(stops + piece)
    total = tl.zeros([ROWS, COLUMNS], tl.int32)
    for number in range(0, stop - first, ROWS):
        at = first + number + tl.arange(0, ROWS)
        total += _messages(senders, weights, values, at, at < stop, columns, column, WEIGHTED)
    place = tl.load(owners + piece) * columns + column
    tl.atomic_add(totals + place, tl.sum(total, axis=0).to(tl.int64), mask=column < columns)


@torch.library.custom_op("graphveil::add_messages", mutates_args=())
def add_messages(
    starts: Tensor, senders: Tensor, weights: Tensor | None, values: Tensor, most: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return sums float32 [rows, c], which receivers hear more than `most` (their sums are 0), and the totals of those,
    int64 [long rows, c].

    Args:
        starts: receiver u hears `senders[starts[u]:starts[u + 1]]`, int32 or int64 [rows + 1].
        senders: rows of `values`, int32.
        weights: whole numbers, float32, one a sender, or None where all are 1.
        values: whole numbers [n, c], int16 or float32; `most` messages add up to at most 2^24.
    """
    rows, columns = len(starts) - 1, values.shape[1]
    wide = min(_COLUMNS, triton.next_power_of_2(max(1, columns)))
    shape: dict[str, Any] = {"WEIGHTED": weights is not None, "ROWS": max(1, _NUMBERS // wide), "COLUMNS": wide}
    sums = torch.empty(rows, columns, device=values.device)
    across = triton.cdiv(columns, wide)
    if sums.numel():
        grid = triton.cdiv(rows, shape["ROWS"]), across
        _rows[grid](starts, senders, weights, values, sums, rows, columns, most, **shape, num_warps=4, **EXACT)
    long = torch.nonzero(torch.diff(starts) > most).ravel()
    totals = torch.zeros(len(long), columns, dtype=torch.int64, device=values.device)
    if totals.numel():
        firsts, stops, owners = _cut(starts[long].long(), starts[long + 1].long(), most)
        _pieces[len(firsts), across](
            firsts, stops, owners, senders, weights, values, totals, columns, **shape, num_warps=4, **EXACT
        )
    return sums, long, totals


def _cut(first: Tensor, stop: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """Where each piece of some rows begins and ends, and whose it is."""
    pieces = -((first - stop) // most)
    owner = torch.repeat_interleave(torch.arange(len(first), device=first.device), pieces)
    ordinal = torch.arange(len(owner), device=first.device) - (torch.cumsum(pieces, 0) - pieces)[owner]
    begin = first[owner] + ordinal * most
    return begin, torch.minimum(begin + most, stop[owner]), owner
