"""The compiled loops of clipping against numpy, written out; and in Python's whole numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphveil.training.clip_loop import clip, fits, measure, rounded, squared

GENERATOR = np.random.default_rng(0)
ROWS = np.concatenate(
    [
        GENERATOR.normal(size=(6, 13)),
        1e-30 * GENERATOR.normal(size=(2, 13)),
        1e15 * GENERATOR.normal(size=(2, 13)),
        np.zeros((1, 13)),
    ]
).astype(np.float32)


def measured(rows: np.ndarray, *, bias: bool) -> tuple[np.ndarray, ...]:
    """Scale, ones, squares, sound of each row."""
    count = len(rows)
    found = np.empty(count), np.empty(count), np.empty(count), np.empty(count, np.bool_)
    measure(rows, bias, *found)
    return found


@pytest.mark.parametrize("width", [0, 1, 3, 4, 7, 64, 135])
def test_four_sums_side_by_side_are_one(width: int) -> None:
    row = GENERATOR.integers(-4096, 4096, width).astype(np.float32)
    assert squared(row) == sum(int(value) ** 2 for value in row)


@pytest.mark.parametrize("bias", [True, False])
def test_a_grid_is_a_power_of_two_that_makes_the_row_so_long(bias: bool) -> None:
    scale, ones, squares, sound = measured(ROWS, bias=bias)
    assert sound.all() and set(np.frexp(scale)[0]) == {0.5}
    whole = np.rint(ROWS.astype(np.float64) / scale[:, None])
    assert np.array_equal(ones, np.rint(1 / scale) if bias else np.zeros(len(ROWS)))
    assert np.array_equal(squares, (whole**2).sum(1) + ones**2)
    assert ((squares[:-1] > 30**2) & (squares[:-1] < 66**2)).all()
    found = np.empty_like(ROWS)
    rounded(ROWS, scale, sound, found)
    assert np.array_equal(found, whole)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_row_that_is_no_number_anywhere_is_not_sound_and_zero(bad: float) -> None:
    rows = ROWS.copy()
    rows[4, 7] = bad
    scale, _, _, sound = measured(rows, bias=True)
    assert np.flatnonzero(~sound).tolist() == [4]
    found = np.empty_like(rows)
    rounded(rows, scale, sound, found)
    assert not found[4].any() and found[3].any()


def test_what_fits_is_judged_over_all_layers_together() -> None:
    row, starts = np.array([3, 4, 0, 5], np.float32), np.array([0, 2, 4])
    assert fits(row, starts, np.array([4.0, 1.0]), 12)  # 100 + 25 and 144
    assert not fits(row, starts, np.array([4.0, 1.0]), 11)
    assert fits(row, starts, np.array([3.84, 1.0]), 11)
    assert not fits(np.array([np.nan, 0, 0, 0], np.float32), starts, np.array([1.0, 1.0]), 1 << 13)


@pytest.mark.parametrize("dither", [0, 1 << 15, (1 << 16) - 1])
def test_short_gradients_are_rounded_by_their_dither_and_long_ones_to_the_cap(dither: int) -> None:
    """At dithers of nothing, a half and nearly one; each row by itself, whatever the others are."""
    deltas, starts = GENERATOR.normal(size=(40, 9)).astype(np.float32), np.array([0, 5, 9])
    deltas[20:] *= 1e5
    scale, squares = np.ones((2, 40)), np.full((2, 40), 1000.0)
    sound, moved = np.ones((2, 40), np.bool_), np.full((40, 9), dither, np.uint16)
    whole = deltas.copy()
    clip(whole, starts, scale, squares, sound, moved, 0.5, 1 << 10)
    assert np.array_equal(whole[:20], np.floor(deltas[:20] * 2 + np.float32(dither / 65536)))
    lengths = (whole[20:].astype(np.int64) ** 2).sum(1) * 1000
    assert lengths.max() <= 1 << 20 and lengths.min() > (0.8 * 1024) ** 2
    alone = deltas[31:32].copy()
    clip(alone, starts, scale[:, :1], squares[:, :1], sound[:, :1], moved[:1], 0.5, 1 << 10)
    assert np.array_equal(alone, whole[31:32])
    sound[1, 31] = False
    clip(deltas, starts, scale, squares, sound, moved, 0.5, 1 << 10)
    assert not deltas[31].any() and np.array_equal(np.delete(deltas, 31, 0), np.delete(whole, 31, 0))
