"""The compiled loops of `clipped_sum`: rows put on their grids, and gradients clipped on integers, sample by sample.

Each sample is worked on alone and in one order, so what it becomes cannot depend on the others.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from graphveil.runtime.compiled import compiled

# An input's integers have a norm of 2^5 to 2^6, give or take rounding: more would leave less for the deltas.
INPUT_BITS = 6
# Room for what dither does to the length: its mean, a sixth a coordinate, apart; some two deviations.
SPREAD = 48.0


@compiled
def squared(row: npt.NDArray[np.float32]) -> float:
    """Return the sum of the squares of a row, in four sums side by side: in one, each addition waits for the last."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    fours = row.size // 4
    for j in range(fours):
        a += np.float64(row[4 * j]) * np.float64(row[4 * j])
        b += np.float64(row[4 * j + 1]) * np.float64(row[4 * j + 1])
        c += np.float64(row[4 * j + 2]) * np.float64(row[4 * j + 2])
        d += np.float64(row[4 * j + 3]) * np.float64(row[4 * j + 3])
    for j in range(4 * fours, row.size):
        a += np.float64(row[j]) * np.float64(row[j])
    return (a + b) + (c + d)


@compiled
def clear(row: npt.NDArray[np.float32]) -> None:
    """Set a row to zero: as an assignment it would take the compiler a second."""
    for j in range(row.size):
        row[j] = 0.0


@compiled
def measure(
    rows: npt.NDArray[np.float32],
    bias: bool,
    scale: npt.NDArray[np.float64],
    unit: npt.NDArray[np.float64],
    squares: npt.NDArray[np.float64],
    sound: npt.NDArray[np.bool_],
) -> None:
    """Find the grid of every row and how long its whole numbers are; a bias reads 1 beside them.

    Args:
        rows: [b, d].
        scale, unit, squares, sound: of `Lengths`, each [b]; set.
    """
    width = rows.shape[1]
    whole = np.empty(width, np.float32)
    for i in range(len(rows)):
        length = squared(rows[i]) + (1.0 if bias else 0.0)
        sound[i] = math.isfinite(length)
        # A power of 2, so that scaling is exact and only the rounding to whole numbers loses anything.
        exponent = math.frexp(math.sqrt(length) if sound[i] else 1.0)[1]
        scale[i] = math.ldexp(1.0, exponent - INPUT_BITS)
        unit[i] = np.rint(1.0 / scale[i]) if bias else 0.0
        factor = np.float32(1.0 / scale[i]) if sound[i] else np.float32(0.0)
        for j in range(width):
            whole[j] = np.rint(rows[i, j] * factor)
        # A row that is not sound adds nothing, so its number does not matter.
        squares[i] = squared(whole) + unit[i] * unit[i]


@compiled
def rounded(
    rows: npt.NDArray[np.float32],
    scale: npt.NDArray[np.float64],
    sound: npt.NDArray[np.bool_],
    whole: npt.NDArray[np.float32],
) -> None:
    """Set `whole` [b, d] to `rows` [b, d] as whole numbers of their grids; those that are not sound are zero."""
    for i in range(len(rows)):
        factor = np.float32(1.0 / scale[i])
        if sound[i]:
            for j in range(rows.shape[1]):
                whole[i, j] = np.rint(rows[i, j] * factor)
        else:
            clear(whole[i])


@compiled
def fits(
    row: npt.NDArray[np.float32], starts: npt.NDArray[np.int64], squares: npt.NDArray[np.float64], cap: int
) -> bool:
    """Whether one sample's product over all layers is at most `cap` steps long, exactly; false for NaN.

    Args:
        row: its whole numbers of all layers side by side [k].
        starts, cap: as for `clip`.
        squares: squared lengths of what its layers saw [layers].
    """
    total = 0.0
    for k in range(squares.size):
        total += squared(row[starts[k] : starts[k + 1]]) * squares[k]
    return bool(total <= np.float64(cap) ** 2)


@compiled
def clip(
    deltas: npt.NDArray[np.float32],
    starts: npt.NDArray[np.int64],
    scale: npt.NDArray[np.float64],
    squares: npt.NDArray[np.float64],
    sound: npt.NDArray[np.bool_],
    dither: npt.NDArray[np.uint16],
    step: float,
    cap: int,
) -> None:
    """Turn loss gradients into whole numbers, such that no sample's products with its inputs are longer than `cap`.

    Args:
        deltas: of all layers side by side [b, k]; overwritten.
        starts: the first column of each layer, and k.
        scale, squares, sound: of the layers' inputs [layers, b].
        dither: uniform numbers [b, k], of which 2^16 are 1.
        step: the length of a step of the grid.
        cap: the longest gradient, in steps.
    """
    exact = np.empty(deltas.shape[1], np.float32)
    for i in range(len(deltas)):
        length, rough, fine = 0.0, 0.0, True
        for k in range(len(scale)):
            part = deltas[i, starts[k] : starts[k + 1]]
            length += squared(part) * (scale[k, i] / step) ** 2 * squares[k, i]
            rough += part.size * squares[k, i] / 6.0
            fine &= sound[k, i]
        if not (fine and math.isfinite(length)):
            clear(deltas[i])
            continue
        # Dither lengthens a vector by about a sixth a coordinate in squares: most samples then fit at the first try.
        room = math.sqrt(max((cap - SPREAD) ** 2 - rough, cap**2 / 4.0))
        shrink = min(1.0, room / math.sqrt(length)) if length > 0.0 else 1.0
        for k in range(len(scale)):
            part, scaled = deltas[i, starts[k] : starts[k + 1]], exact[starts[k] : starts[k + 1]]
            moved, factor = dither[i, starts[k] : starts[k + 1]], np.float32(shrink * scale[k, i] / step)
            for j in range(part.size):
                scaled[j] = part[j] * factor
                part[j] = np.floor(scaled[j] + np.float32(moved[j]) * np.float32(2.0**-16))
        # On the integers that are added, not on the floats they came from: this is the sensitivity that noise pays for.
        if not fits(deltas[i], starts, squares[:, i], cap):
            # The room above makes the truncated ones fit; what still does not, NaN included, is left out.
            for j in range(exact.size):
                deltas[i, j] = np.trunc(exact[j])
            if not fits(deltas[i], starts, squares[:, i], cap):
                clear(deltas[i])
