"""How long randomizing the relationships of a large graph takes, what memory it needs and how much comes out.

    python benchmarks/edges.py [--nodes 100000] [--degree 20] [--dense-nodes 4000] [--scratch FOLDER]

Every row runs in a process of its own, which reads the graph from a file; figures are the least CPU seconds of three
runs and the peak of memory above what the process held before. The baseline is the usual one: a nodes x nodes matrix
of uniform float32 numbers of torch, compared with the flip probability. It is not private against somebody who knows
the generator, and a flip probability below 2^-24 comes out as 0. It needs 10 bytes for each pair, so that it is run at
a size where that fits; the last column scales it to the size of the other rows.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from graphveil.mechanisms import AdjacencyRR, DegreePreservingRR
from graphveil.privacy import SecureRandomness

EPSILONS = (12.0, 8.0, 6.0)
RUNS = 3


def random_graph(nodes: int, degree: int) -> torch.Tensor:
    """An undirected graph with this average degree, int64 [2, E]."""
    pairs = np.random.default_rng(0).integers(0, nodes, (2, nodes * degree // 2))
    pairs = np.sort(pairs[:, pairs[0] != pairs[1]], axis=0)
    keys = np.unique(pairs[0] * nodes + pairs[1])
    pairs = np.stack([keys // nodes, keys % nodes])
    return torch.from_numpy(np.concatenate([pairs, pairs[::-1]], axis=1))


def dense(edge_index: torch.Tensor, nodes: int, epsilon: float) -> int:
    """Randomized response with one coin for each entry of a dense adjacency; how many entries are 1."""
    bits = torch.zeros((nodes, nodes), dtype=torch.bool)
    bits[edge_index[0], edge_index[1]] = True
    bits ^= torch.rand((nodes, nodes)) < 1 / (math.exp(epsilon) + 1)
    bits.fill_diagonal_(False)
    return int(bits.sum())


def job(kind: str, edge_index: torch.Tensor, nodes: int, epsilon: float) -> Callable[[], int]:
    """What one row runs; it returns how many entries came out."""
    if kind == "dense":
        return lambda: dense(edge_index, nodes, epsilon)
    name, mode = kind.split(", ")
    build = {"flips": AdjacencyRR, "degree-preserving": DegreePreservingRR}[name]
    mechanism = build(epsilon=epsilon, nodes=nodes, mode=mode)
    return lambda: len(mechanism.randomize(edge_index, randomness=SecureRandomness()).to_tensors()["columns"])


def measure(kind: str, file: str, nodes: int, epsilon: float) -> dict[str, float]:
    """Least CPU seconds of three runs, peak memory in MB above the start, entries out; in this process."""
    job(kind, random_graph(100, 4), 100, epsilon)()  # whatever is loaded once
    edge_index = torch.from_numpy(np.load(file))
    run, seconds, before = job(kind, edge_index, nodes, epsilon), [], memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    for _ in range(RUNS):
        start = time.process_time()
        out = run()
        seconds.append(time.process_time() - start)
    return {"seconds": min(seconds), "megabytes": memory("VmHWM") - before, "out": out}


def memory(field: str) -> float:
    """A line of this process's status, in MB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024 / 1e6


def measured_apart(kind: str, file: Path, nodes: int, epsilon: float) -> dict[str, float]:
    """`measure` in a fresh process."""
    request = json.dumps([kind, str(file), nodes, epsilon])
    done = subprocess.run([sys.executable, __file__, "--row", request], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def table(nodes: int, degree: int, dense_nodes: int, folder: Path) -> None:
    large, small = folder / "large.npy", folder / "small.npy"
    np.save(large, random_graph(nodes, degree).numpy())
    np.save(small, random_graph(dense_nodes, degree).numpy())
    print(f"{'what':<28}{'nodes':>9}{'epsilon':>9}{'CPU s':>9}{'peak MB':>9}{'entries out':>13}  scaled to {nodes:,}")
    for epsilon in EPSILONS:
        for kind in ("flips, lower", "flips, both", "degree-preserving, both"):
            print(line(kind, nodes, epsilon, measured_apart(kind, large, nodes, epsilon)), flush=True)
        row = measured_apart("flips, both", small, dense_nodes, epsilon)
        print(line("flips, both, small", dense_nodes, epsilon, row), flush=True)
        row, scale = measured_apart("dense", small, dense_nodes, epsilon), (nodes / dense_nodes) ** 2
        scaled = f"  {row['seconds'] * scale:,.0f} s, {row['megabytes'] * scale / 1e3:,.0f} GB"
        print(line("dense coins (baseline)", dense_nodes, epsilon, row) + scaled, flush=True)


def line(what: str, nodes: int, epsilon: float, row: dict[str, float]) -> str:
    return f"{what:<28}{nodes:>9,}{epsilon:>9g}{row['seconds']:>9.3f}{row['megabytes']:>9.1f}{int(row['out']):>13,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--degree", type=int, default=20)
    parser.add_argument("--dense-nodes", type=int, default=4_000)
    parser.add_argument("--scratch", type=Path, default=None)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        print(json.dumps(measure(*json.loads(arguments.row))))
    else:
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
            table(arguments.nodes, arguments.degree, arguments.dense_nodes, Path(folder))


if __name__ == "__main__":
    main()
