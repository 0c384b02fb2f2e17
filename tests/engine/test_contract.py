"""Four verbs, the same answers from each engine; arrays on disk; what is refused."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphveil.engine import Block, Blocks, Engine, LocalEngine, Mapped, RayEngine, create
from graphveil.errors import InputError


def scaled(block: Block, factor: int, rows: np.ndarray) -> np.ndarray:
    return rows[block.rows] * factor


def total(block: Block, rows: np.ndarray) -> int:
    return int(rows[block.rows].sum())


def test_blocks_cover_the_rows_once_whatever_their_number() -> None:
    for rows in (0, 1, 63, 64, 65, 1000):
        blocks = Blocks(rows, 64)
        assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(rows))
        assert [block.number for block in blocks] == list(range(len(blocks)))
    assert Blocks.of(10**7, 64).size == 4096 and Blocks.of(5, 10**9).size == 64


def test_all_engines_map_reduce_and_gather_alike(engines: dict[str, Engine]) -> None:
    rows, blocks = np.arange(3000, dtype=np.float64), Blocks(1000, 64)
    for engine in engines.values():
        shared = engine.put(rows[:1000])
        own = range(len(blocks))
        gathered = engine.gather(engine.map_blocks(scaled, blocks, shared, own), blocks, np.zeros(1000))
        assert np.array_equal(gathered, rows[:1000] * (np.arange(1000) // 64))
        assert engine.reduce(engine.map_blocks(total, blocks, shared), int.__add__) == sum(range(1000))


def test_arrays_on_disk_are_read_where_they_lie(engines: dict[str, Engine], tmp_path: Path) -> None:
    array = create(tmp_path / "rows.npy", (500,), np.int64)
    array[:] = np.arange(500)
    array.flush()
    assert (tmp_path / "rows.npy").stat().st_mode & 0o777 == 0o600
    for engine in engines.values():
        shared = engine.put(Mapped(tmp_path / "rows.npy"))
        assert engine.reduce(engine.map_blocks(total, Blocks(500, 100), shared), int.__add__) == 124_750
    with pytest.raises(InputError, match="there already"):
        create(tmp_path / "rows.npy", (1,), np.int64)
    with pytest.raises(InputError, match="cannot be opened"):
        Mapped(tmp_path / "none.npy").open()


def test_a_task_that_fails_ends_the_work(engines: dict[str, Engine]) -> None:
    for engine in engines.values():
        with pytest.raises(ZeroDivisionError):
            list(engine.map_blocks(divided, Blocks(10, 1)))


def divided(block: Block) -> float:
    return 1 / (3 - block.number)


def test_results_do_not_pile_up_before_a_slow_reader() -> None:
    begun: list[int] = []
    results = LocalEngine(2).map_blocks(lambda block: begun.append(block.number), Blocks(100, 1))
    next(results)
    assert len(begun) <= 5
    results.close()  # type: ignore[attr-defined]
    assert len(begun) <= 5 and threading.active_count() < 100


def killed_once(block: Block, where: str) -> np.ndarray:
    """The worker that meets block 3 first is killed in the middle of it."""
    flag = Path(where) / "killed"
    if block.number == 3 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return np.arange(block.start, block.stop)


@pytest.mark.slow
def test_the_block_of_a_killed_worker_is_done_again(ray: RayEngine, tmp_path: Path) -> None:
    blocks = Blocks(80, 10)
    own: Any = [str(tmp_path)] * len(blocks)
    results = ray.gather(ray.map_blocks(killed_once, blocks, (), own), blocks, np.zeros(80, np.int64))
    assert (tmp_path / "killed").exists() and np.array_equal(results, np.arange(80))


@pytest.mark.slow
def test_the_cluster_asks_for_its_token_and_tells_nobody(ray: RayEngine) -> None:
    assert ray.workers == 2
    assert os.environ["RAY_AUTH_MODE"] == "token" and os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


@pytest.mark.parametrize("workers", [0, -1, True, 1.5])
def test_an_engine_without_workers_is_refused(workers: Any) -> None:
    with pytest.raises(InputError, match="workers"):
        LocalEngine(workers)
