"""What randomizing a collection costs next to numpy drawing the same noise without protecting anybody, and its memory.

    python benchmarks/randomize.py [--users 1000000] [--dimension 1433] [--scratch FOLDER]

Sparse rows hold 18 ones each; the memory-mapped file holds the same density in bytes and is made in the scratch
folder (1.4 GB at the default size). "plain" is each mechanism written with numpy on blocks of dense rows: it checks no
value, and its generator is no cryptographic one. Both take turns, and the least CPU seconds of `--repeats` count;
memory is what ours allocates at the peak, reports included.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from graphveil.mechanisms import AnalyticGaussian, Laplace, MultiBit, OneBit, RandomizedResponse
from graphveil.privacy import SecureRandomness
from timing import in_turns, processor, ratio

ONES, BLOCK = 18, 10_000
Job = Callable[[], object]


def main() -> None:
    """Time every mechanism beside its plain copy and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=1433)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scratch", type=Path, default=None)
    chosen = parser.parse_args()
    print(f"{processor()}, one thread; epsilon 1")
    print("| mechanism | users x d | ours / plain numpy | CPU s, ours / plain | peak MB, ours |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(dir=chosen.scratch) as folder:
        for name, size, ours, plain in jobs(chosen.users, chosen.dimension, Path(folder)):
            mine, theirs = in_turns(ours, plain, repeats=chosen.repeats)
            print(
                f"| {name} | {size} | {ratio(mine, theirs)} | {mine:.3g} / {theirs:.3g} | {peak(ours):.0f} |",
                flush=True,
            )


def jobs(users: int, dimension: int, folder: Path) -> Iterator[tuple[str, str, Job, Job]]:
    """(name, size, ours, plain)."""
    sparse, few = sparse_rows(users, dimension), max(1, min(users, 10_000_000 // dimension))
    rows, labels = sparse[:few], np.random.default_rng(1).integers(0, 7, users)

    def ours(mechanism: Any, values: object) -> Job:
        return lambda: mechanism.randomize(values, randomness=SecureRandomness())

    def plain(draw: Callable[..., np.ndarray], *given: object) -> Job:
        return lambda: draw(np.random.default_rng(), *given)

    bits, size, small = (
        MultiBit(epsilon=1.0, dimension=dimension),
        f"{users:,} x {dimension:,}",
        f"{few:,} x {dimension:,}",
    )
    yield "multi-bit, sparse rows", size, ours(bits, sparse), plain(plain_multi_bit, sparse)
    mapped = mapped_rows(sparse, folder)
    yield "multi-bit, mapped bytes", size, ours(bits, mapped), plain(plain_multi_bit, mapped)
    response = RandomizedResponse(epsilon=1.0, classes=7)
    yield "randomized response, 7 classes", f"{users:,}", ours(response, labels), plain(plain_response, labels)
    yield "one-bit", small, ours(OneBit(epsilon=1.0, dimension=dimension), rows), plain(plain_one_bit, rows)
    yield "laplace", small, ours(Laplace(epsilon=1.0, dimension=dimension), rows), plain(plain_laplace, rows)
    gaussian = AnalyticGaussian(epsilon=1.0, delta=1e-10, dimension=dimension)
    yield "gaussian", small, ours(gaussian, rows), plain(plain_gaussian, rows, gaussian.sigma)


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
    for start in range(0, rows.shape[0], BLOCK):
        file[start : start + BLOCK] = dense(rows[start : start + BLOCK])
    file.flush()
    del file
    return np.load(path, mmap_mode="r")


def dense(rows: Any) -> np.ndarray:
    """Rows as an array."""
    return rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows)


def plain_multi_bit(generator: np.random.Generator, rows: Any) -> np.ndarray:
    """One bit of one coordinate a user, as epsilon 1 asks for: (coordinate, bit) [2, users]."""
    users, dimension = rows.shape
    bits, low = np.empty((2, users), np.int32), 1 / (math.e + 1)
    for start in range(0, users, BLOCK):
        block = dense(rows[start : start + BLOCK])
        picked = generator.integers(0, dimension, len(block))
        chance = low + block[np.arange(len(block)), picked] * (1 - 2 * low)
        bits[:, start : start + BLOCK] = picked, generator.random(len(block)) < chance
    return bits


def plain_response(generator: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """The label, or one of the six others."""
    truthful = generator.random(len(labels)) < math.e / (math.e + 6)
    return np.where(truthful, labels, (labels + generator.integers(1, 7, len(labels))) % 7)


def plain_one_bit(generator: np.random.Generator, rows: Any) -> np.ndarray:
    """A bit for every coordinate, each at a share of epsilon."""
    share = math.exp(1 / rows.shape[1])
    return generator.random(rows.shape) < (1 + dense(rows) * (share - 1)) / (share + 1)


def plain_laplace(generator: np.random.Generator, rows: Any) -> np.ndarray:
    """Laplace noise on every coordinate."""
    return dense(rows) + generator.laplace(scale=rows.shape[1], size=rows.shape)


def plain_gaussian(generator: np.random.Generator, rows: Any, sigma: float) -> np.ndarray:
    """Normal noise on every coordinate."""
    return dense(rows) + generator.normal(scale=sigma, size=rows.shape)


def peak(job: Job) -> float:
    """The most memory that the arrays of a job hold, in MB."""
    tracemalloc.start()
    job()
    most = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return most


if __name__ == "__main__":
    main()
