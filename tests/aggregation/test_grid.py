"""Rows on the grid: never too long, towards zero, blind to what is not a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphveil.aggregation import grid, quantise, unit_rows
from graphveil.engine import create
from graphveil.errors import InputError

ANY = arrays.arrays(np.float32, (5, 7), elements=st.floats(width=32, allow_nan=True, allow_infinity=True))


def integer_norms(values: Tensor) -> list[int]:
    """Sums of squares, in Python's whole numbers."""
    return [sum(int(v) ** 2 for v in row) for row in values.tolist()]


def many_rows(seed: int = 0) -> Tensor:
    """Rows of all scales and shapes, float32 [n, 33]."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(4000, 33, generator=generator)
    x[1000:2000] *= torch.logspace(-38, 25, 1000)[:, None]
    x[2000:3000, 1:] = 0.0
    x[3000:] = x[3000:].sign()
    # Scaled to length 2^20 its entries are so close to 2^20 and 1 that float32 cannot tell them apart.
    x[3999] = torch.tensor([2.0**20, 1.0] + [0.0] * 31)
    return x


@pytest.mark.parametrize("bits", [1, 7, 10, 16, 20])
def test_no_row_is_longer_than_its_cap_in_whole_numbers(bits: int) -> None:
    """Checklist item 16, exactly; and rows lose at most a step a coordinate."""
    x = many_rows()
    rows = quantise(x, bits=bits)
    assert max(integer_norms(rows.values)) <= 4**bits
    assert torch.equal(rows.values, rows.values.round())
    lengths = x.double().norm(dim=1, keepdim=True)
    usable = (lengths > 1e-30).ravel()
    exact = (x.double() / lengths)[usable]
    lost = exact * 2**bits - rows.values[usable]
    assert bool((lost.sign() * exact.sign() >= 0).all())
    assert float(lost.abs().max()) <= 1 + 2**bits * 1e-6


def test_narrow_rows_are_the_same_where_they_fit() -> None:
    x = many_rows()
    for bits, kind in ((1, torch.int16), (14, torch.int16), (15, torch.float32)):
        narrow = quantise(x, bits=bits, narrow=True).values
        assert narrow.dtype == kind and torch.equal(narrow.float(), quantise(x, bits=bits).values)


@settings(deadline=None, max_examples=200)
@given(ANY, st.integers(1, 20), st.booleans())
def test_whatever_comes_in_a_row_on_the_grid_comes_out(x: np.ndarray, bits: int, normalise: bool) -> None:
    values = quantise(torch.from_numpy(x), bits=bits, normalise=normalise).values
    assert bool(values.isfinite().all())
    assert max(integer_norms(values)) <= 4**bits


SETTINGS = (
    {},
    {"bits": 1},
    {"bits": 20},
    {"narrow": True},
    {"narrow": True, "bits": 14},
    {"cap": 0.5},
    {"cap": 2.0, "normalise": False},
    {"cap": 1e-30, "normalise": False, "bits": 20},
    {"cap": 1e30, "normalise": False, "narrow": True},
)


def both_roads(work: Callable[[], Tensor]) -> tuple[Tensor, Tensor]:
    """What torch and what the compiled loop make of some rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid, "LOOP_PAYS_FROM", -1)
        by_loop = work()
    return work(), by_loop


def alike(pair: tuple[Tensor, Tensor]) -> bool:
    """Bit for bit: a zero has a sign as well."""
    first, second = (rows.contiguous().numpy() for rows in pair)
    return first.dtype == second.dtype and first.tobytes() == second.tobytes()


@settings(deadline=None, max_examples=100)
@given(ANY)
def test_whatever_comes_in_the_loop_finds_what_torch_does(x: np.ndarray) -> None:
    rows = torch.from_numpy(x)
    for setting in SETTINGS:
        assert alike(both_roads(lambda: quantise(rows, **setting).values))  # noqa: B023
    assert alike(both_roads(lambda: unit_rows(rows)))


@pytest.mark.parametrize("columns", [0, 1, 2, 3, 16, 31, 32, 33, 64, 100])
def test_the_loop_finds_the_bits_of_torch(columns: int, tmp_path: Path, threads: Callable[[int], None]) -> None:
    """At every length and width, in any layout and precision, in several blocks and threads, in place and on disk."""
    rows = many_rows()[:, torch.arange(columns) % 33] * torch.linspace(0.5, 2.0, columns)
    rows[5::7] = math.nan
    for x in (rows, rows.double(), rows.half(), rows.T.contiguous().T, rows[::3], rows[:0]):
        for count in (1, 3):
            threads(count)
            for setting in SETTINGS if x is rows else SETTINGS[:1]:
                assert alike(both_roads(lambda: quantise(x, **setting).values))  # noqa: B023
            assert alike(both_roads(lambda: unit_rows(x)))  # noqa: B023
    if columns:
        stored = create(tmp_path / "x.npy", tuple(rows.shape), np.float32)

        def in_place(out: np.ndarray) -> Tensor:
            out[:] = rows.numpy()
            return unit_rows(torch.from_numpy(out), out=out).clone()

        for out in (stored, np.empty_like(stored)):
            assert alike(both_roads(lambda: in_place(out)))  # noqa: B023
            assert alike((unit_rows(rows), in_place(out)))


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Sets how many threads torch has; as before when the test ends."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e38])
def test_a_bad_entry_makes_its_row_zero_and_no_other(bad: float) -> None:
    x = torch.ones(1100, 3)
    clean = quantise(x)
    x[700, 1] = bad
    grid = quantise(x)
    assert grid.values[700].tolist() == [0, 0, 0]
    intact = torch.arange(1100) != 700
    assert torch.equal(grid.values[intact], clean.values[intact])
    assert unit_rows(x)[700].tolist() == [0, 0, 0]
    assert torch.allclose(unit_rows(x)[intact].norm(dim=1), torch.ones(1099))
    assert torch.equal(quantise(x[690:800]).values, grid.values[690:800])


def test_short_rows_stay_short_without_normalising() -> None:
    x = torch.tensor([[0.3, 0.0], [0.0, -8.0], [0.0, 0.0]])
    rows = quantise(x, cap=2.0, bits=10, normalise=False)
    assert torch.allclose(rows.dense(), torch.tensor([[0.3, 0.0], [0.0, -2.0], [0.0, 0.0]]), atol=2 * rows.step)
    assert integer_norms(rows.values)[2] == 0


@pytest.mark.parametrize("settings", [{"bits": 0}, {"bits": 21}, {"bits": 2.0}, {"cap": 0.0}, {"cap": math.nan}])
def test_bad_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InputError):
        quantise(torch.ones(2, 2), **settings)  # type: ignore[arg-type]
    for x in (torch.ones(3), torch.ones(2, 2, dtype=torch.int64)):
        with pytest.raises(InputError, match="a float matrix"):
            quantise(x)
