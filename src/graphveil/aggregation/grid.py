"""Rows on a public integer grid, never longer than their cap.

    v = trunc(scale * x),    |v|^2 <= (cap 2^bits)^2  exactly, in integers

Float rows of norm 1 overshoot 1 (by 1.5e-7 in float32), and sums of floats depend on their order; both break a bound on
what one edge can change.  Truncation towards zero never lengthens a row, and integers add up exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from graphveil.aggregation.names import require_bits
from graphveil.aggregation.shared import as_tensor, room
from graphveil.engine import Blocks, LocalEngine, room_beside
from graphveil.errors import InputError
from graphveil.runtime.checks import require_number
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


# Room for the two roundings of a float32 product and for the norm's in float64, both relative.
_SAFETY: Final = 1 - 2.0**-21
_BLOCK: Final = 512
#: From more values than this on torch takes longer than loading the compiled loop.
LOOP_PAYS_FROM: Final = 1 << 22
_LARGEST_SCALE: Final = float(np.finfo(np.float32).max)
# Beyond this length the scale of a row would lose digits.
_LONGEST_ROW: Final = 1e30


@dataclass(frozen=True)
class GridRows:
    values: Tensor  # float32 or int16 [n, c], whole numbers; the squares of a row add up to at most (cap 2^bits)^2
    cap: float  # the longest row, in the unit of the input
    bits: int  # a row of length cap is 2^bits steps long

    @property
    def step(self) -> float:
        """One step in the unit of the input."""
        return self.cap * 2.0**-self.bits

    def dense(self) -> Tensor:
        """Return the rows in the unit of the input, float32 [n, c]."""
        return self.values * self.step

    def room(self, beside: npt.NDArray[Any]) -> GridRows:
        """Return memory for as many rows of the same grid: on disk if the array `beside` is, else in memory."""
        kind = np.int16 if self.values.dtype == torch.int16 else np.float32
        rows, columns = self.values.shape
        return GridRows(_new_rows(rows, columns, kind, beside), self.cap, self.bits)


def quantise(
    x: Tensor,
    *,
    cap: float = 1.0,
    bits: int = 10,
    normalise: bool = True,
    narrow: bool = False,
    beside: npt.NDArray[Any] | None = None,
    over: GridRows | None = None,
) -> GridRows:
    """Put rows [n, c] on the grid: each row is scaled by itself to length `cap`, and truncated towards zero.
    A row with a NaN or an infinite entry, or longer than 1e30, becomes zero. Raises InputError where x is no float
    matrix, or cap or bits are outside their range.

    Args:
        normalise: lengthen rows shorter than the cap too; otherwise only longer ones are scaled.
        narrow: return int16 where it holds a row of the cap's length, half the memory; otherwise float32.
        beside: an array; if it lies on disk, the rows do too. None: in memory.
        over: rows of the same shape and grid, whose memory is reused; None: new memory.
    """
    if x.dim() != 2 or not x.is_floating_point():
        raise InputError(f"rows are a {x.dtype} tensor of shape {tuple(x.shape)}", allowed="a float matrix [n, c]")
    require_number("(0, inf)", cap=cap)
    require_bits(bits)
    narrow, shortest = narrow and 1 << bits <= np.iinfo(np.int16).max, 0.0 if normalise else cap
    if not x.is_cpu:
        return GridRows(_scaled_on_device(x, 2.0**bits * _SAFETY, shortest, narrow=narrow), cap, bits)
    kind = np.int16 if narrow else np.float32
    values = _new_rows(int(x.shape[0]), int(x.shape[1]), kind, beside) if over is None else over.values
    if loop_pays(x):
        _each_block(x.shape, lambda rows: put_block(x[rows], values[rows], bits, shortest))
    else:
        for own in _row_slices(x):
            values[own] = _on_grid(x[own].detach().float(), 2.0**bits * _SAFETY, shortest)
    return GridRows(values, cap, bits)


def put_block(x: Tensor, out: Tensor, bits: int, shortest: float = 0.0) -> None:
    """Put rows on the grid as `quantise` does, by a compiled loop in this thread.

    Args:
        shortest: shorter rows are scaled as if they had this length.
    """
    from graphveil.aggregation.loops import put_on_grid

    rows = x.detach().float().contiguous().numpy()
    put_on_grid(rows, 2.0**bits * _SAFETY, shortest, _LONGEST_ROW, _LARGEST_SCALE, out.numpy())


def _scaled_on_device(x: Tensor, steps: float, shortest: float, *, narrow: bool = False) -> Tensor:
    """Put rows on the grid, or scale them to length 1 if `steps` is 0, on the device where they lie."""
    from graphveil.aggregation.hop_kernel import scale_rows

    rows: Tensor = scale_rows(x.detach().float().contiguous(), steps, shortest, _LONGEST_ROW, _LARGEST_SCALE, narrow)
    return rows


def _new_rows(rows: int, columns: int, kind: npt.DTypeLike, beside: npt.NDArray[Any] | None) -> Tensor:
    if beside is not None and getattr(beside, "filename", None) is not None:
        return torch.from_numpy(room_beside(beside, (rows, columns), kind))
    # Aligned to a cache line: rows are read in random order, and touch as few lines as possible.
    return torch.from_numpy(room(rows, columns, kind))


def _on_grid(block: Tensor, steps: float, shortest: float) -> Tensor:
    """Return rows [n, c] scaled to so many steps and truncated; shorter rows are scaled as if `shortest` long."""
    lengths = _lengths(block)
    # A NaN length fails both comparisons, so such a row sends zeros: NaN would reveal all its neighbours.
    usable = (lengths > 0) & (lengths < _LONGEST_ROW)
    scale = torch.where(usable, (steps / lengths.clamp(min=shortest)).clamp(max=_LARGEST_SCALE), 0.0).float()
    # Towards zero: rounding up any coordinate could make the row longer than the sensitivity counts.
    rows = torch.mul(block, scale[:, None]).trunc_()
    if not bool(usable.all()):
        # Written over, since NaN times 0 is NaN.
        rows[~usable] = 0.0
    return rows


def unit_rows(x: Tensor, *, out: npt.NDArray[np.float32] | None = None) -> Tensor:
    """Return rows [n, c] scaled to length 1, float32; rows that `quantise` makes zero are zero. For values that are
    released or public: the lengths are right up to rounding only.

    Args:
        out: float32 [n, c] that they are written into block by block; may be the memory of x, or on disk.
    """
    if loop_pays(x):
        unit = as_tensor(np.empty(tuple(x.shape), np.float32) if out is None else out)
        _each_block(x.shape, lambda rows: unit_block(unit[rows].copy_(x[rows].detach())))
        return unit
    if not x.is_cpu:
        return _scaled_on_device(x, 0.0, 0.0)
    rows = x.detach().float()
    result = torch.empty_like(rows)
    for own in _row_slices(rows):
        lengths = _lengths(rows[own])
        usable = (lengths > 0) & (lengths < _LONGEST_ROW)
        torch.div(rows[own], torch.where(usable, lengths, 1.0).float()[:, None], out=result[own])
        if not bool(usable.all()):
            result[own][~usable] = 0.0
    if out is None:
        return result
    out[:] = result.numpy()
    return as_tensor(out)


def unit_block(rows: Tensor) -> None:
    """Scale float32 rows [n, c] to length 1, in place, by a compiled loop, in this thread."""
    from graphveil.aggregation.loops import scale_to_one

    scale_to_one(rows.numpy(), _LONGEST_ROW)


def loop_pays(x: Tensor) -> bool:
    """Whether a compiled loop pays: torch would take longer over these rows than the compiler takes to load."""
    return x.is_cpu and x.numel() > LOOP_PAYS_FROM


def _each_block(shape: Sequence[int], task: Callable[[slice], object]) -> None:
    """Run a task on the rows of arrays [n, c], block by block, in as many threads as torch has."""
    for _ in LocalEngine(torch.get_num_threads()).map_blocks(lambda block: task(block.rows), Blocks.of(*shape)):
        pass


def _row_slices(rows: Tensor) -> Iterator[slice]:
    """Slices of so many rows that they stay in a core's cache."""
    return (slice(start, start + _BLOCK) for start in range(0, len(rows), _BLOCK))


def _lengths(rows: Tensor) -> Tensor:
    """L2 lengths [n] of rows [n, c], float64, with the same bits on every processor. In float64: a squared float32
    entry may overflow float32, and a length that is rounded down would let a row exceed its cap.
    """
    return squared_lengths(rows.double()).sqrt_()


def squared_lengths(rows: Tensor) -> Tensor:
    """Return the sums [n] of squares of float64 rows [n, c]: the same bits on every processor and in any batch."""
    squares = rows.square()
    # Halves are added entry by entry, since the order of a kernel's sum differs between processors. The row is halved
    # as if zeros filled it up to the next power of 2.
    while (columns := squares.shape[1]) > 1:
        half = 1 << (columns - 1).bit_length() - 1
        squares[:, : columns - half] += squares[:, half:]
        squares = squares[:, :half]
    return squares.sum(dim=1)
