"""How long randomizing a collection takes and what memory it needs on top of its input.

    python benchmarks/randomize.py [--users 1000000] [--dimension 1433] [--scratch FOLDER]

Sparse rows hold 18 ones each; the memory-mapped file holds the same density in bytes and is made in the scratch
folder (1.4 GB at the default size). The baseline is multi-bit written plainly with numpy on dense blocks and numpy's
own generator: not private against somebody who knows the generator, and without any check of the values.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse

from graphveil.mechanisms import AnalyticGaussian, Laplace, MultiBit, OneBit, RandomizedResponse
from graphveil.privacy import SecureRandomness

ONES = 18


def sparse_rows(users: int, dimension: int) -> scipy.sparse.csr_matrix:
    """Random binary rows with `ONES` ones each."""
    stride = dimension // ONES
    columns = np.random.default_rng(0).integers(0, stride, (users, ONES), dtype=np.int32)
    columns += np.arange(ONES, dtype=np.int32) * np.int32(stride)
    starts = np.arange(0, users * ONES + 1, ONES, dtype=np.int32)
    data = np.ones(users * ONES, dtype=np.float32)
    return scipy.sparse.csr_matrix((data, columns.ravel(), starts), shape=(users, dimension))


def mapped_rows(rows: scipy.sparse.csr_matrix, folder: Path) -> np.ndarray:
    """The same rows as a file of bytes, one for each entry."""
    path = folder / "rows.npy"
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=rows.shape)
    for start in range(0, rows.shape[0], 10_000):
        file[start : start + 10_000] = rows[start : start + 10_000].toarray()
    file.flush()
    del file
    return np.load(path, mmap_mode="r")


def plain_numpy(rows: scipy.sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """One bit of one coordinate a user at epsilon 1, written as one would without this package."""
    generator = np.random.default_rng()
    users, dimension = rows.shape
    columns, bits = np.empty(users, np.int32), np.empty(users, bool)
    low = 1 / (np.e + 1)
    for start in range(0, users, 10_000):
        dense = rows[start : start + 10_000].toarray()
        picked = generator.integers(0, dimension, len(dense))
        chance = low + dense[np.arange(len(dense)), picked] * (1 - 2 * low)
        columns[start : start + 10_000] = picked
        bits[start : start + 10_000] = generator.random(len(dense)) < chance
    return columns, bits


def measure(run: Callable[[], object]) -> tuple[float, float]:
    """Best seconds of three runs, and the peak of newly allocated memory in MB, result included."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return min(seconds), peak


def runs(users: int, dimension: int, folder: Path) -> Iterator[tuple[str, int, Callable[[], object]]]:
    """(name, numbers randomized, what to run)."""
    sparse = sparse_rows(users, dimension)
    mapped = mapped_rows(sparse, folder)
    few = sparse[: max(1, min(users, 10_000_000 // dimension))]
    labels = np.random.default_rng(1).integers(0, 7, users)
    shape = {"dimension": dimension}

    def job(mechanism: object, values: object) -> Callable[[], object]:
        return lambda: mechanism.randomize(values, randomness=SecureRandomness())  # type: ignore[attr-defined]

    yield "multi-bit, sparse", users, job(MultiBit(epsilon=1.0, **shape), sparse)
    yield "multi-bit, memory-mapped", users, job(MultiBit(epsilon=1.0, **shape), mapped)
    yield "multi-bit, sparse, epsilon 20", users, job(MultiBit(epsilon=20.0, **shape), sparse)
    yield "plain numpy multi-bit, sparse", users, lambda: plain_numpy(sparse)
    yield "randomized response, 7 classes", users, job(RandomizedResponse(epsilon=1.0, classes=7), labels)
    yield "one-bit", few.shape[0], job(OneBit(epsilon=1.0, **shape), few)
    yield "laplace", few.shape[0], job(Laplace(epsilon=1.0, **shape), few)
    gaussian = AnalyticGaussian(epsilon=1.0, delta=1e-10, **shape)
    yield "analytic gaussian", few.shape[0], job(gaussian, few)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=1433)
    parser.add_argument("--scratch", type=Path, default=None)
    arguments = parser.parse_args()
    print(f"{'mechanism':<32}{'users':>12}{'coordinates':>13}{'seconds':>10}{'peak MB':>9}")
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        for name, users, run in runs(arguments.users, arguments.dimension, Path(folder)):
            seconds, peak = measure(run)
            width = 1 if "response" in name else arguments.dimension
            print(f"{name:<32}{users:>12,}{width:>13,}{seconds:>10.2f}{peak:>9.1f}", flush=True)


if __name__ == "__main__":
    main()
