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


@pytest.mark.parametrize(
    ("seconds", "best"),
    [({1: 4.0, 2: 2.0, 4: 1.0}, 4), ({1: 1.0, 2: 0.95, 4: 0.93}, 1), ({1: 1.0, 2: 3.0, 4: 0.5}, 4)],
    ids=["the fastest wins", "more must win clearly", "a slow middle hides no fast end"],
)
def test_threads_are_chosen_by_time(seconds: dict[int, float], best: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(monkeypatch, seconds) == best == torch.get_num_threads()


def test_one_core_means_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: range(1), raising=False)
    assert fastest_threads(lambda: None, repeats=1) == 1
