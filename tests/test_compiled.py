"""Loops are compiled, and where no disk takes the machine code they are compiled again."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from graphveil import compiled


def doubled(number: int) -> int:
    return 2 * number


def test_a_loop_says_what_it_says_in_python() -> None:
    assert compiled.compiled(doubled)(21) == 42


def test_a_disk_that_takes_nothing_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_cache(*args: Any, **options: Any) -> Any:
        if options.get("cache"):

            def refuse(loop: Any) -> Any:
                raise RuntimeError("cannot cache function: no locator available")

            return refuse
        return numba.njit(*args, **options)

    monkeypatch.setattr(compiled, "njit", without_cache)
    assert compiled.compiled(doubled)(21) == 42


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
