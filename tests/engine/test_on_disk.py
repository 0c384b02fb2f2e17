"""Graphs on disk: the bits of those in memory, and hardly any memory."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from graphveil.aggregation import (
    PerturbedSum,
    ReceiverRows,
    normalised,
    propagate,
    propagate_privately,
    store_propagation,
    stored_propagation,
)
from graphveil.aggregation.sparse import starts_type
from graphveil.engine import LOCAL, Engine, Mapped, create, room_beside
from graphveil.errors import InputError
from graphveil.graphs import normalise_edges
from graphveil.privacy import SeededRandomness

NODES, COLUMNS = 160_000, 64
#: Of one array [n, c].
WHOLE = 4 * NODES * COLUMNS


@pytest.fixture(scope="module")
def edges() -> np.ndarray:
    source, target = np.random.default_rng(0).integers(0, NODES - 1, (2, 2 * NODES))
    return normalise_edges(source, target, NODES, directed=False)[0].numpy()


@pytest.fixture(scope="module")
def place(edges: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Edges and features on disk."""
    folder = tmp_path_factory.mktemp("graph")
    create(folder / "edges.npy", edges.shape, np.int64)[:] = edges
    x = create(folder / "x.npy", (NODES, COLUMNS), np.float32)
    np.random.default_rng(1).standard_normal(out=x, dtype=np.float32)
    return folder


def of(place: Path, name: str, arrays: int = 1) -> list[np.ndarray]:
    """New arrays [n, c] on disk."""
    return [create(place / f"{name} {number}.npy", (NODES, COLUMNS), np.float32) for number in range(arrays)]


@contextmanager
def little_memory(room: int) -> Iterator[None]:
    """Refuse more than `room` bytes of memory of our own from now on; files that are mapped do not count."""
    resource = pytest.importorskip("resource")
    used = int(next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmData" in line).split()[1])
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (1024 * used + room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def test_p_on_disk_is_p(edges: np.ndarray, place: Path, tmp_path: Path) -> None:
    stored = store_propagation(Mapped(place / "edges.npy"), NODES, tmp_path / "p")
    expected = normalised(torch.from_numpy(edges), NODES)
    for rows in (stored.forward, stored_propagation(tmp_path / "p").backward):
        assert torch.equal(rows.starts, expected.forward.starts) and rows.starts.dtype == torch.int32
        assert torch.equal(rows.indices, expected.forward.indices)
        assert torch.equal(rows.values, expected.forward.values)
    assert (tmp_path / "p").stat().st_mode & 0o777 == 0o700
    with pytest.raises(InputError, match="there already"):
        store_propagation(edges, NODES, tmp_path / "p")


@pytest.mark.slow  # graphs of many blocks
@pytest.mark.parametrize("hops", [0, 2, 3])
def test_hops_from_file_to_file_are_those_in_memory(
    hops: int, edges: np.ndarray, place: Path, tmp_path: Path, engines: dict[str, Engine]
) -> None:
    p, x = normalised(torch.from_numpy(edges), NODES), torch.from_numpy(np.load(place / "x.npy"))
    stored, (out,) = store_propagation(edges, NODES, tmp_path / "p"), of(tmp_path, "out")
    for engine in engines.values() if hops == 2 else [LOCAL]:
        out[:] = 0
        result = propagate(stored, Mapped(place / "x.npy"), hops, engine=engine, out=out)
        assert torch.equal(result, propagate(p, x, hops))
        assert np.shares_memory(result.numpy(), out)
    assert {path.name for path in tmp_path.iterdir()} == {"p", "out 0.npy"}


def test_private_hops_from_file_to_file_are_those_in_memory(
    edges: np.ndarray, place: Path, tmp_path: Path, engines: dict[str, Engine]
) -> None:
    people = 20_000  # so many blocks as there are workers, and more
    x = create(tmp_path / "x.npy", (people, COLUMNS), np.float32)
    x[:] = np.load(place / "x.npy", mmap_mode="r")[:people]
    hops = PerturbedSum(sigmas=(8.0, 4.0))
    rows = ReceiverRows.of(torch.from_numpy(edges[:, (edges < people).all(axis=0)]), people)
    expected = propagate_privately(hops, rows, torch.from_numpy(np.asarray(x)), SeededRandomness(1))
    for name, engine in engines.items():
        out = [create(tmp_path / f"{name} {hop}.npy", x.shape, np.float32) for hop in range(3)]
        source = Mapped(tmp_path / "x.npy")
        results = propagate_privately(hops, rows, source, SeededRandomness(1), engine=engine, out=out)
        assert all(map(torch.equal, results, expected))


def works(work: Callable[[], object], room: int) -> bool:
    with little_memory(room):
        try:
            work()
        except (MemoryError, RuntimeError):
            return False
    return True


def what_works(place: Path, tmp_path: Path) -> list[bool]:
    """Hops and private hops with little memory: from file to file, then in memory."""
    p, x = store_propagation(Mapped(place / "edges.npy"), NODES, tmp_path / "p"), Mapped(place / "x.npy")
    rows, hidden = ReceiverRows(p.forward.starts, p.forward.indices), PerturbedSum(sigmas=(8.0, 8.0))
    (out,), private = of(tmp_path, "out"), of(tmp_path, "hop", 3)

    def hops(out: np.ndarray | None) -> object:
        return propagate(p, x, 2, out=out)

    def noisy(out: list[np.ndarray] | None) -> object:
        return propagate_privately(hidden, rows, x, SeededRandomness(1), out=out)

    # What is compiled, tabulated and kept by allocators is there after a first run.
    hops(out)
    noisy(private)
    tries = (lambda: hops(out), lambda: noisy(private), lambda: hops(None), lambda: noisy(None))
    return [works(work, WHOLE // 4) for work in tries]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory without files")
def test_no_array_of_the_graph_is_held_in_memory(place: Path, tmp_path: Path) -> None:
    """The same work in memory is refused under the same limit: the limit is felt.

    In a process of its own: what earlier tests freed may still be the allocator's, and would be room for whole arrays.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        result = process.submit(what_works, place, tmp_path).result(timeout=300)
    assert result == [True, True, False, False]


def test_edges_that_are_no_undirected_graph_in_order_are_refused(edges: np.ndarray, tmp_path: Path) -> None:
    wrong = {
        "another order": edges[:, ::-1],
        "without loops": np.array([[0], [0]]),
        "one direction only": edges[:, edges[0] < edges[1]],
        "does not exist": np.array([[0, NODES], [NODES, 0]]),
    }
    for says, given in wrong.items():
        with pytest.raises(InputError, match=says):
            store_propagation(given, NODES, tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_an_array_that_results_do_not_fit_into_is_refused(place: Path, tmp_path: Path) -> None:
    p, x = normalised(torch.tensor([[0, 1], [1, 0]]), 2), np.ones((2, 3), np.float32)
    for out in (np.zeros((2, 2), np.float32), np.zeros((2, 3))):
        with pytest.raises(InputError, match="out is"):
            propagate(p, x, 1, out=out)
    with pytest.raises(InputError, match="rows are"):
        propagate(p, x[:1], 1, out=x[:1].copy())
    array = create(tmp_path / "x.npy", x.shape, np.float32)
    for start, out in ((x, x), (torch.from_numpy(x), x), (Mapped(tmp_path / "x.npy"), array), (array, array[:])):
        with pytest.raises(InputError, match="out is what"):
            propagate(p, start, 1, out=out)
    rows, hidden = ReceiverRows.of(torch.tensor([[0, 1], [1, 0]]), 2), PerturbedSum(sigmas=(8.0,))
    with pytest.raises(InputError, match="1 arrays"):
        propagate_privately(hidden, rows, x, SeededRandomness(0), out=[x])


def test_work_in_between_lies_where_the_result_does(tmp_path: Path) -> None:
    array = create(tmp_path / "a.npy", (3, 2), np.float32)
    room = room_beside(array, (2, 2), np.int16)
    room[:] = 7
    assert isinstance(room, np.memmap) and int(room.sum()) == 28
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]
    assert not isinstance(room_beside(np.zeros(1), (2, 2), np.int16), np.memmap)


def test_places_among_2_to_the_31_entries_have_64_bits() -> None:
    assert starts_type(2**31 - 1) is np.int32 and starts_type(2**31) is np.int64
