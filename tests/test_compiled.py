"""Loops are compiled, and where no disk takes the machine code they are compiled again."""

from __future__ import annotations

from typing import Any

import numba
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
