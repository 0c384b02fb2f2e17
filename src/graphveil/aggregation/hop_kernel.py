"""The kernels of a private hop on a GPU: rows put on the grid or scaled to length 1, and messages added up exactly.

A program adds up the messages of some receivers in 32-bit integers. Receivers of very many messages are processed in
pieces, whose sums are added up in 64 bits: sums of whole numbers are exact in any order.
"""

from __future__ import annotations

from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from graphveil.privacy.source.chacha_kernel import EXACT

#: The most messages of a piece: with more, one program would still run long after all others are done.
PIECE: Final = 512
#: The most columns, and the most numbers, that a program adds up.
_COLUMNS: Final = 128
_NUMBERS: Final = 1024


@triton.jit
def _lengths(rows, ROWS: tl.constexpr, WIDE: tl.constexpr, FOLDS: tl.constexpr):
    """L2 lengths [ROWS] of rows [ROWS, WIDE], float64, by halves as `grid.squared_lengths` adds them up."""
    squares = rows.to(tl.float64)
    squares *= squares
    for fold in tl.static_range(FOLDS):
        # Exact in either order: the sum of two numbers commutes.
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
    valid = (row < rows)[:, None] & (column < columns)[None, :]
    values = tl.load(x + place, mask=valid, other=0.0)
    lengths = _lengths(values, ROWS, WIDE, FOLDS)
    # A NaN length fails both comparisons; such a row is zero before it meets any other number.
    usable = (lengths > 0) & (lengths < LONGEST)
    values, lengths = tl.where(usable[:, None], values, 0.0), tl.where(usable, lengths, 1.0)
    if STEPS > 0:
        scale = tl.minimum(STEPS / tl.maximum(lengths, SHORTEST), LARGEST).to(tl.float32)
        scaled = (values * scale[:, None]).to(tl.int32)
    else:
        scaled = tl.div_rn(values, tl.zeros_like(values) + lengths.to(tl.float32)[:, None])
    tl.store(out + place, scaled.to(out.dtype.element_ty), mask=valid)


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
    padded_columns = triton.next_power_of_2(max(1, columns))
    rows_per_program = max(1, _NUMBERS // padded_columns)
    if out.numel():
        _scaled[(triton.cdiv(rows, rows_per_program),)](
            x, out, rows, columns,
            # As compile-time constants: runtime arguments would have only 32 bits.
            STEPS=steps, SHORTEST=shortest, LONGEST=longest, LARGEST=largest,
            ROWS=rows_per_program, WIDE=padded_columns, FOLDS=padded_columns.bit_length() - 1, num_warps=4, **EXACT,
        )  # fmt: skip
    return out


@triton.jit
def _messages(senders, weights, values, at, valid, columns, column, WEIGHTED: tl.constexpr):
    """Weighted rows of the senders at positions `at`, int32 [m, c]; zeros where `valid` is false."""
    sender = tl.load(senders + at, mask=valid, other=0).to(tl.int64)
    place = sender[:, None] * columns + column[None, :]
    message = tl.load(values + place, mask=valid[:, None] & (column < columns)[None, :], other=0).to(tl.int32)
    if WEIGHTED:
        message *= tl.load(weights + at, mask=valid, other=0).to(tl.int32)[:, None]
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
    """Return sums float32 [rows, c], the receivers with more than `most` messages (whose sums are 0), and the totals of
    these, int64 [long rows, c].

    Args:
        starts: receiver u has `senders[starts[u]:starts[u + 1]]`, int32 or int64 [rows + 1].
        senders: rows of `values`, int32.
        weights: whole numbers, float32, one a sender, or None where all are 1.
        values: whole numbers [n, c], int16 or float32; `most` messages add up to at most 2^24.
    """
    rows, columns = len(starts) - 1, values.shape[1]
    columns_per_program = min(_COLUMNS, triton.next_power_of_2(max(1, columns)))
    constants: dict[str, Any] = {
        "WEIGHTED": weights is not None,
        "ROWS": max(1, _NUMBERS // columns_per_program),
        "COLUMNS": columns_per_program,
    }
    sums = torch.empty(rows, columns, device=values.device)
    column_programs = triton.cdiv(columns, columns_per_program)
    if sums.numel():
        grid = triton.cdiv(rows, constants["ROWS"]), column_programs
        _rows[grid](starts, senders, weights, values, sums, rows, columns, most, **constants, num_warps=4, **EXACT)
    long = torch.nonzero(torch.diff(starts) > most).ravel()
    totals = torch.zeros(len(long), columns, dtype=torch.int64, device=values.device)
    if totals.numel():
        firsts, stops, owners = _cut(starts[long].long(), starts[long + 1].long(), most)
        _pieces[len(firsts), column_programs](
            firsts, stops, owners, senders, weights, values, totals, columns, **constants, num_warps=4, **EXACT
        )
    return sums, long, totals


def _cut(first: Tensor, stop: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """Where each piece of some rows begins and ends, and the index of its row."""
    pieces = -((first - stop) // most)
    owner = torch.repeat_interleave(torch.arange(len(first), device=first.device), pieces)
    ordinal = torch.arange(len(owner), device=first.device) - (torch.cumsum(pieces, 0) - pieces)[owner]
    begin = first[owner] + ordinal * most
    return begin, torch.minimum(begin + most, stop[owner]), owner
