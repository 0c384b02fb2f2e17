"""Loops are compiled, and where no disk takes the machine code they are compiled again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from graphveil.runtime import compiled
from tests.test_writing import files_of_at_most


def doubled(number: int) -> int:
    return 2 * number


def test_a_loop_says_what_it_says_in_python() -> None:
    assert compiled.compiled(doubled)(21) == 42


def test_a_place_that_takes_no_cache_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(loop: Any) -> Any:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(compiled, "_Cache", refuse)
    assert compiled.compiled(doubled)(21) == 42


def loop_in(folder: Path) -> Any:
    """A loop of a module in a folder, as another process has it."""
    file, names = folder / "loops.py", {"__name__": "loops"}
    file.write_text("def doubled(number):\n    return 2 * number\n")
    exec(compile(file.read_text(), str(file), "exec"), names)
    return compiled.compiled(names["doubled"])


def test_a_full_disk_or_a_damaged_file_of_the_cache_costs_a_compilation_and_nothing_else(tmp_path: Path) -> None:
    with files_of_at_most(100):
        assert loop_in(tmp_path)(21) == 42
    cached = tmp_path / "__pycache__"
    assert not list(cached.glob("*.nb?"))
    assert loop_in(tmp_path)(21) == 42
    for ending in ("nbi", "nbc"):
        (file,) = cached.glob(f"*.{ending}")
        file.write_bytes(b"")  # as a power cut can leave it
        assert loop_in(tmp_path)(21) == 42
        again = loop_in(tmp_path)
        assert again(21) == 42
        assert sum(again.stats.cache_hits.values()) == 1, "the next process has it again"


@compiled.compiled
def first_of_each_row(rows: np.ndarray) -> float:
    total = 0.0
    for i in range(rows.shape[0]):
        compiled.prefetch(rows, min(i + 1, rows.shape[0] - 1), 0)
        total += rows[i, 0]
    return total


def test_what_is_asked_for_early_is_read_as_it_stands() -> None:
    """Rows of several kinds, also one that is a part of a wider array and not contiguous."""
    rows = np.arange(12.0).reshape(4, 3)
    assert first_of_each_row(rows) == rows[:, 0].sum()
    assert first_of_each_row(rows[:, 1:]) == rows[:, 1].sum()


@compiled.compiled
def sum_of_some(columns: np.ndarray, weights: np.ndarray, x: np.ndarray, sums: np.ndarray, ahead: int) -> None:
    compiled.weighted_sum(columns, weights, x, sums, 1, 3, 0, 1, ahead, 4)


@pytest.mark.parametrize("ahead", [0, 1, 64])
def test_a_part_of_a_weighted_sum_of_rows_is_written_where_it_belongs(ahead: int) -> None:
    """Entries 1 and 2 of three, four columns from the second on; the rest of the row is left as it is."""
    x = np.arange(18, dtype=np.float32).reshape(3, 6)
    columns, weights = np.array([0, 2, 1], np.int32), np.array([100, 2, -1], np.float32)
    sums = np.full((2, 6), 7, np.float32)
    sum_of_some(columns, weights, x, sums, ahead)
    assert sums[0].tolist() == [7, *(2 * x[2] - x[1])[1:5], 7]
    assert (sums[1] == 7).all()


@compiled.compiled
def add_some(words: np.ndarray, table: np.ndarray, totals: np.ndarray) -> int:
    return int(compiled.add_looked_up(words, table, totals, 1, 30, 2, 3, 4))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_numbers_that_words_choose_are_added_where_they_belong(kind: type[np.generic]) -> None:
    """The first two bits are the entry, the next two the low bits; entry 3 is not decided, as the second bit says."""
    words = np.array([9, 0b0110, 0b1101, 0b1011, 0b0001, 9], np.uint32) << np.uint32(28)
    totals = np.full(6, 7, kind)
    assert add_some(words, np.array([-3, 5, 2, 1], np.int16), totals) == 0b0010
    assert totals.tolist() == [7, 7 + 22, 7, 7 + 11, 7 - 11, 7]


@pytest.mark.parametrize("wrong", ["totals", "words apart"])
def test_numbers_that_would_be_added_elsewhere_are_refused(wrong: str) -> None:
    words, totals = np.zeros(12, np.uint32), np.zeros(6, np.int32 if wrong == "totals" else np.int64)
    with pytest.raises(numba.TypingError, match="looked_up"):
        add_some(words[::2] if wrong == "words apart" else words, np.zeros(4, np.int16), totals)
    assert not totals.any()


@pytest.mark.parametrize("wrong", ["doubles", "columns apart"])
def test_a_weighted_sum_of_rows_that_are_read_otherwise_is_refused(wrong: str) -> None:
    x = np.ones((3, 6), np.float64 if wrong == "doubles" else np.float32)
    columns, weights, sums = np.zeros(3, np.int32), np.ones(3, np.float32), np.zeros((2, 6), np.float32)
    with pytest.raises(numba.TypingError, match="weighted"):
        sum_of_some(columns, weights, x if wrong == "doubles" else x[:, ::2], sums, 64)
    assert not sums.any()
