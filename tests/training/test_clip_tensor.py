"""Clipping by kernels, which the interpreter runs, against the compiled loops, and in Python's whole numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

import tests.pretended  # noqa: F401  (kernels are run by the interpreter)
from graphveil.training.clip_loop import clip, fits, measure_grids, squared_length
from graphveil.training.clip_tensor import WholeRows, clip_deltas, products
from graphveil.training.clipped_sum import GradientGrid, _outer_sums
from graphveil.training.outer_loop import multiply, pack

GRID = GradientGrid(1e-3, 1 << 10)
WIDTHS = (13, 6)


def rows(width: int, seed: int) -> Tensor:
    """Of usual length, tiny, huge, empty, and no numbers at all."""
    x = torch.randn(40, width, generator=torch.Generator().manual_seed(seed))
    x[5:10] *= 1e-30
    x[10:15] *= 1e15
    x[15] = 0.0
    x[16, 2], x[17, 0], x[18, 1] = torch.nan, torch.inf, -torch.inf
    return x


@pytest.mark.parametrize("bias", [True, False])
def test_grids_are_those_of_the_loops(bias: bool) -> None:
    inputs = rows(13, 1)
    grids = measure_grids(inputs.numpy(), bias)
    assert np.isinf(grids[2]).nonzero()[0].tolist() == [16, 17, 18]
    measured = WholeRows.of(inputs, bias)
    sound = np.isfinite(grids[2])
    assert np.array_equal(measured.squares.isfinite().numpy(), sound) and bool(measured.whole.isfinite().all())
    assert np.array_equal(torch.stack([measured.scale, measured.squares]).numpy()[:, sound], grids[::2, sound])
    whole = np.rint(inputs.numpy() / grids[0][:, None])
    expected = np.column_stack([whole, grids[1]]) if bias else whole
    assert np.array_equal(measured.whole.numpy()[sound], expected[sound])
    some = torch.tensor([3, 19, 12])
    assert torch.equal(measured.narrow().rows(some).whole.double(), measured.whole[some])


def layers() -> tuple[Tensor, list[WholeRows], Tensor]:
    """Gradients by outputs, what the layers saw, and dither."""
    deltas = torch.cat([rows(width, seed + 3) for seed, width in enumerate(WIDTHS)], dim=1)
    deltas[30:] *= 1e-4
    drawn = torch.Generator().manual_seed(9)
    dither = torch.randint(0, 1 << 16, (40, sum(WIDTHS)), generator=drawn, dtype=torch.int32)
    return deltas, seen_rows(torch.arange(40)), dither


def seen_rows(chosen: Tensor) -> list[WholeRows]:
    """What two layers saw; rows that are no numbers stand at other places than such gradients."""
    return [WholeRows.of(rows(width, seed).roll(5, 0)[chosen], True) for seed, width in enumerate((20, 9))]


def test_gradients_are_those_of_the_loops() -> None:
    """Lengths are added up in another order: in these rows no last bit of theirs decides."""
    deltas, inputs, dither = layers()
    gradients = clip_deltas(deltas, WIDTHS, inputs, dither, GRID.step, GRID.cap)
    expected, starts = deltas.numpy().copy(), np.cumsum([0, *WIDTHS])
    scale, squares = (np.stack([getattr(rows, name).numpy() for rows in inputs]) for name in ("scale", "squares"))
    units = np.stack([rows.whole[:, -1].numpy() for rows in inputs])
    grids, moved = np.stack([scale, units, squares]), dither.numpy().astype(np.uint16)
    biases = clip(expected, starts, grids, moved, GRID.step, GRID.cap)
    assert np.array_equal(gradients.numpy(), expected)
    assert gradients[:5].any() and gradients[30:].any() and not gradients[16:19].any() and not gradients[21:24].any()
    sums = products(gradients, WIDTHS, inputs, [True, True])
    assert sums[13 * 20 : 13 * 21].tolist() == biases[:13].tolist() and sums[-6:].tolist() == biases[13:].tolist()


def test_what_dither_would_lengthen_past_the_cap_is_cut_off() -> None:
    """Short inputs with dither of nearly a step in every coordinate: rounded down, the gradient fits."""
    inputs = WholeRows.of(torch.ones(1, 1), False)
    delta = torch.full((1, 50), GRID.clip / math.sqrt(50))
    moved = clip_deltas(delta, [50], [inputs], torch.full((1, 50), 65535, dtype=torch.int32), GRID.step, GRID.cap)
    assert set(moved.flatten().tolist()) == {4.0}
    assert 50 * 5.0**2 * float(inputs.squares[0]) > GRID.cap**2


def test_a_sample_is_the_same_whoever_stands_beside_it_and_sums_are_exact() -> None:
    deltas, inputs, dither = layers()
    whole = clip_deltas(deltas, WIDTHS, inputs, dither, GRID.step, GRID.cap)
    chosen = torch.randperm(40, generator=torch.Generator().manual_seed(4))[:17]
    some = clip_deltas(deltas[chosen], WIDTHS, seen_rows(chosen), dither[chosen], GRID.step, GRID.cap)
    assert torch.equal(some, whole[chosen])
    # 4,000 samples of nearly 2^13 steps each: float32 would round their sum.
    seen = [WholeRows.of(torch.ones(1, 1), True).rows(torch.zeros(4000, dtype=torch.int64))]
    sums = products(torch.full((4000, 3), 255.0), [3], seen, [True])
    assert sums.shape == (6,) and set(sums.tolist()) == {4000 * 255 * float(seen[0].whole[0, 0])}
    assert float(sums[0]) > 1 << 24


GENERATOR = np.random.default_rng(0)
ROWS = np.concatenate(
    [
        GENERATOR.normal(size=(6, 13)),
        1e-30 * GENERATOR.normal(size=(2, 13)),
        1e15 * GENERATOR.normal(size=(2, 13)),
        np.zeros((1, 13)),
    ]
).astype(np.float32)


@pytest.mark.parametrize("bias", [True, False])
def test_a_grid_is_a_power_of_two_that_makes_the_row_so_long(bias: bool) -> None:
    scale, unit, squares = measure_grids(ROWS, bias)
    assert set(np.frexp(scale)[0]) == {0.5}
    whole = np.rint(ROWS.astype(np.float64) / scale[:, None])
    assert np.array_equal(unit, np.rint(1 / scale) if bias else np.zeros(len(ROWS)))
    assert np.array_equal(squares, (whole**2).sum(1) + unit**2)
    assert ((squares[:-1] > 30**2) & (squares[:-1] < 66**2)).all()
    packed = pack(ROWS, (1 / scale).astype(np.float32))[:, :13]
    both = np.stack([packed.astype(np.int16), packed >> 16], 1).reshape(-1, 13)
    assert np.array_equal(both, np.append(whole, np.zeros((1, 13)), 0))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (8, 32), (6, 16), (7, 65), (64, 100)])
@pytest.mark.parametrize("count", [1, 2, 33])
def test_sums_of_outer_products_are_those_of_integers(
    kind: type[np.generic], shape: tuple[int, int], count: int
) -> None:
    """Also of the largest numbers, where some samples count as zeros, and of columns that stand between others."""
    deltas = GENERATOR.integers(-8192, 8193, (count, shape[0] + 5)).astype(np.float32)
    whole = GENERATOR.integers(-66, 67, (count, shape[1])).astype(np.float32)
    counts = np.ones(count, np.float32)
    if count > 2:
        whole[5], whole[-1], counts[5], counts[-1] = np.nan, np.inf, 0.0, 0.0
    out = np.full(shape, np.nan, kind)
    multiply(pack(deltas, np.ones(count, np.float32)), 3, pack(whole, counts), out)
    sound = counts > 0
    wanted = deltas[sound, 3 : 3 + shape[0]].astype(np.int64).T @ whole[sound].astype(np.int64)
    assert np.array_equal(out, wanted.astype(kind))


def test_a_batch_too_large_for_sums_of_32_bits_is_summed_in_pieces() -> None:
    """Three pieces of two samples each and one; as in one piece."""
    deltas, whole = (pack(GENERATOR.integers(-99, 99, (7, 9)).astype(np.float32), np.ones(7, np.float32)) for _ in "12")
    once, pieces = np.empty((9, 9)), np.empty((9, 9))
    multiply(deltas, 0, whole, once)
    _outer_sums(deltas, 0, whole, pieces, 1)
    assert np.array_equal(once, pieces)


def test_what_fits_is_judged_over_all_layers_together() -> None:
    row, starts = np.array([3, 4, 0, 5], np.float32), np.array([0, 2, 4])
    assert fits(row, starts, np.array([4.0, 1.0]), 12)  # 100 + 25 and 144
    assert not fits(row, starts, np.array([4.0, 1.0]), 11)
    assert fits(row, starts, np.array([3.84, 1.0]), 11)
    assert not fits(np.array([np.nan, 0, 0, 0], np.float32), starts, np.array([1.0, 1.0]), 1 << 13)


@pytest.mark.slow  # seconds
@pytest.mark.parametrize("dither", [0, 1 << 15, (1 << 16) - 1])
def test_short_gradients_are_rounded_by_their_dither_and_long_ones_to_the_cap(dither: int) -> None:
    """At dithers of nothing, a half and nearly one; each row by itself, whatever the others are."""
    deltas, starts = GENERATOR.normal(size=(40, 9)).astype(np.float32), np.array([0, 5, 9])
    deltas[20:] *= 1e5
    grids, moved = np.stack([np.ones((2, 40)), np.ones((2, 40)), np.full((2, 40), 1000.0)]), np.full((40, 9), dither)
    moved = moved.astype(np.uint16)
    whole = deltas.copy()
    units = clip(whole, starts, grids, moved, 0.5, 1 << 10)
    assert np.array_equal(units, whole.sum(0, dtype=np.float64))
    assert np.array_equal(whole[:20], np.floor(deltas[:20] * 2 + np.float32(dither / 65536)))
    lengths = (whole[20:].astype(np.int64) ** 2).sum(1) * 1000
    assert lengths.max() <= 1 << 20 and lengths.min() > (0.8 * 1024) ** 2
    alone = deltas[31:32].copy()
    clip(alone, starts, grids[:, :, :1].copy(), moved[:1], 0.5, 1 << 10)
    assert np.array_equal(alone, whole[31:32])
    grids[2, 1, 31] = np.inf
    clip(deltas, starts, grids, moved, 0.5, 1 << 10)
    assert not deltas[31].any() and np.array_equal(np.delete(deltas, 31, 0), np.delete(whole, 31, 0))


@pytest.mark.parametrize("width", [0, 1, 3, 4, 7, 64, 135])
def test_four_sums_side_by_side_are_one(width: int) -> None:
    row = GENERATOR.integers(-4096, 4096, width).astype(np.float32)
    assert squared_length(row) == sum(int(value) ** 2 for value in row)
