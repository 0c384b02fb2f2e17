"""The compiled loops of `clipped_sum`: put rows on their grids, and clip gradients on integers, sample by sample.

Each sample is processed alone and in a fixed order, so its result cannot depend on other samples.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from graphveil.runtime.compiled import compiled

# The integers of an input have a norm of 2^5 to 2^6, up to rounding: more bits would leave fewer for the deltas.
INPUT_BITS = 6
# A margin for the effect of dither on the length beyond its mean of a sixth a coordinate: about two deviations.
SPREAD = 48.0


@compiled
def squared_length(row: npt.NDArray[np.float32]) -> float:
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
    """Set a row to zero; an assignment would take the compiler a second longer."""
    for j in range(row.size):
        row[j] = 0.0


@compiled
def measure_grids(rows: npt.NDArray[np.float32], bias: bool) -> npt.NDArray[np.float64]:
    """Return a grid of its own for every row [3, b]: a power of 2 on which the row, the 1 of a bias included, is 2^5 to
    2^6 steps long.

        row = scale * whole        1 = scale * unit, or no bias: 0        squares = |whole|^2 + unit^2

    `squares` is not finite where the row cannot be put on a grid; it then counts as zeros.

    Args:
        rows: [b, d].
        bias: whether the layer has one, whose input is 1.
    """
    grids, whole = np.empty((3, len(rows))), np.empty(rows.shape[1], np.float32)
    for i in range(len(rows)):
        length = squared_length(rows[i]) + (1.0 if bias else 0.0)
        finite = math.isfinite(length)
        # A power of 2, so that scaling is exact and only the rounding to whole numbers loses anything.
        exponent = math.frexp(math.sqrt(length) if finite else 1.0)[1]
        scale = math.ldexp(1.0, exponent - INPUT_BITS)
        unit = np.rint(1.0 / scale) if bias else 0.0
        grids[0, i], grids[1, i], grids[2, i] = scale, unit, math.inf
        if finite:
            factor = np.float32(1.0 / scale)
            for j in range(whole.size):
                whole[j] = np.rint(rows[i, j] * factor)
            grids[2, i] = squared_length(whole) + unit * unit
    return grids


@compiled
def fits(
    row: npt.NDArray[np.float32], starts: npt.NDArray[np.int64], squares: npt.NDArray[np.float64], cap: int
) -> bool:
    """Whether one sample's product over all layers is at most `cap` steps long, exactly; false for NaN.

    Args:
        row: its whole numbers of all layers side by side [k].
        starts, cap: as for `clip`.
        squares: squared lengths of the inputs of its layers [layers].
    """
    total = 0.0
    for k in range(squares.size):
        total += squared_length(row[starts[k] : starts[k + 1]]) * squares[k]
    return bool(total <= np.float64(cap) ** 2)


@compiled
def clip(
    deltas: npt.NDArray[np.float32],
    starts: npt.NDArray[np.int64],
    grids: npt.NDArray[np.float64],
    dither: npt.NDArray[np.uint16],
    step: float,
    cap: int,
) -> npt.NDArray[np.float64]:
    """Turn loss gradients into whole numbers, none above `cap`, such that no sample's products with its inputs are
    longer than `cap`. Returns the sum of their products with the units of biases [k].

    Args:
        deltas: of all layers side by side [b, k]; overwritten.
        starts: the first column of each layer, and k.
        grids: of the layers' inputs [3, layers, b].
        dither: uniform whole numbers below 2^16 [b, k].
        step: the length of a step of the grid.
        cap: the longest gradient, in steps.
    """
    exact, units = np.empty(deltas.shape[1], np.float32), np.zeros(deltas.shape[1])
    scale, unit, squares = grids[0], grids[1], grids[2]
    for i in range(len(deltas)):
        length, dither_effect = 0.0, 0.0
        for k in range(len(scale)):
            part = deltas[i, starts[k] : starts[k + 1]]
            length += squared_length(part) * (scale[k, i] / step) ** 2 * squares[k, i]
            dither_effect += part.size * squares[k, i] / 6.0
        # NaN or an infinity in a row, also in the gradient of the loss, makes the length infinite or NaN.
        if not math.isfinite(length):
            clear(deltas[i])
            continue
        # Dither adds about a sixth a coordinate to the squared length: with this margin most samples fit at once.
        room = math.sqrt(max((cap - SPREAD) ** 2 - dither_effect, cap**2 / 4.0))
        shrink = min(1.0, room / math.sqrt(length)) if length > 0.0 else 1.0
        for k in range(len(scale)):
            part, scaled = deltas[i, starts[k] : starts[k + 1]], exact[starts[k] : starts[k + 1]]
            dither_words, factor = dither[i, starts[k] : starts[k + 1]], np.float32(shrink * scale[k, i] / step)
            for j in range(part.size):
                scaled[j] = part[j] * factor
                part[j] = np.floor(scaled[j] + np.float32(dither_words[j]) * np.float32(2.0**-16))
        # On the integers that are added, not on the floats they came from: this is the sensitivity that noise pays for.
        if not fits(deltas[i], starts, squares[:, i], cap):
            # With the margin above truncated values fit; a sample that still does not, with NaN too, is left out.
            for j in range(exact.size):
                deltas[i, j] = np.trunc(exact[j])
            if not fits(deltas[i], starts, squares[:, i], cap):
                clear(deltas[i])
        for k in range(len(scale)):
            part, total, factor = deltas[i, starts[k] : starts[k + 1]], units[starts[k] : starts[k + 1]], unit[k, i]
            if squares[k, i] == 0.0:
                # A zero input bounds nothing, but the product with it is zero.
                clear(part)
            for j in range(part.size):
                total[j] += np.float64(part[j]) * factor
    return units
