"""The thread count that measures fastest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from graphveil.training import fastest_threads, threads


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def measure(monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float]) -> int:
    """The choice on a machine of four cores where each thread count takes the given time."""
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: range(4), raising=False)
    monkeypatch.setattr(threads, "_time", lambda _: seconds[torch.get_num_threads()])
    return fastest_threads(lambda: None)


def test_the_fastest_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(monkeypatch, {1: 4.0, 2: 2.0, 4: 1.0}) == 4
    assert torch.get_num_threads() == 4


def test_more_threads_must_win_clearly(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(monkeypatch, {1: 1.0, 2: 0.95, 4: 0.93}) == 1
    assert torch.get_num_threads() == 1


def test_a_slow_middle_does_not_hide_a_fast_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(monkeypatch, {1: 1.0, 2: 3.0, 4: 0.5}) == 4


def test_one_core_means_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: range(1), raising=False)
    assert fastest_threads(lambda: None, repeats=1) == 1
