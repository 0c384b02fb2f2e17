"""What randomizing the relationships of a large graph costs next to numpy drawing the same noise, and in what memory.

    python benchmarks/edges.py [--nodes 100000] [--degree 20] [--dense-nodes 4000] [--scratch FOLDER]

Every row runs in a process of its own, which reads the graph from a file; both programs take turns in it, and the least
CPU seconds of three runs count. "plain" skips from one flipped bit to the next with numpy's own generator, checks
nothing, and protects nobody who faces somebody that knows the generator. Memory is the peak of ours above what the
process held before.

The second table is the usual way: a nodes x nodes matrix of uniform float32 numbers of torch, compared with the flip
probability. A probability below 2^-24 comes out as 0, and each pair needs 10 bytes, so that it is run at a size where
that fits.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from graphveil.mechanisms import AdjacencyRR, DegreePreservingRR
from graphveil.privacy import SecureRandomness
from timing import in_turns, processor, ratio

EPSILONS = (12.0, 8.0, 6.0)
RUNS = 3
#: The part of epsilon that a degree takes.
DEGREE_SHARE = 0.1


def main() -> None:
    """Print both tables, or the figures of one row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--degree", type=int, default=20)
    parser.add_argument("--dense-nodes", type=int, default=4_000)
    parser.add_argument("--scratch", type=Path, default=None)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.row:
        print(json.dumps(measure(*json.loads(chosen.row))))
        return
    with tempfile.TemporaryDirectory(dir=chosen.scratch) as folder:
        kinds = ("flips, lower", "flips, both", "degree-preserving, both")
        table("plain", kinds, chosen.nodes, chosen.degree, Path(folder))
        table("dense", ("flips, both",), chosen.dense_nodes, chosen.degree, Path(folder))


def table(rival: str, kinds: tuple[str, ...], nodes: int, degree: int, folder: Path) -> None:
    """Print one table."""
    file = folder / f"{nodes}.npy"
    np.save(file, random_graph(nodes, degree).numpy())
    print(f"\n{processor()}, one thread; {nodes:,} users, average degree {degree}")
    print(f"| list epsilon | mechanism | ours / {rival} | CPU s, ours / {rival} | peak MB, ours | entries out |")
    print("| --- | --- | --- | --- | --- | --- |")
    for epsilon in EPSILONS:
        for kind in kinds:
            row = measured_apart(kind, rival, str(file), nodes, epsilon)
            mine, theirs = row["ours"], row["rival"]
            cells = f"{ratio(mine, theirs)} | {mine:.3g} / {theirs:.3g} | {row['megabytes']:.0f} | {int(row['out']):,}"
            print(f"| {epsilon:g} | {kind} | {cells} |", flush=True)


def random_graph(nodes: int, degree: int) -> torch.Tensor:
    """An undirected graph with this average degree, int64 [2, E]."""
    pairs = np.random.default_rng(0).integers(0, nodes, (2, nodes * degree // 2))
    pairs = np.sort(pairs[:, pairs[0] != pairs[1]], axis=0)
    keys = np.unique(pairs[0] * nodes + pairs[1])
    pairs = np.stack([keys // nodes, keys % nodes])
    return torch.from_numpy(np.concatenate([pairs, pairs[::-1]], axis=1))


def measured_apart(*request: object) -> dict[str, float]:
    """`measure` in a fresh process."""
    command = [sys.executable, __file__, "--row", json.dumps(request)]
    figures: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return figures


def measure(kind: str, rival: str, file: str, nodes: int, epsilon: float) -> dict[str, float]:
    """CPU seconds of both, our peak memory in MB above the start, and the entries that come out."""
    ours(kind, random_graph(100, 4), 100, epsilon)()  # whatever is loaded once
    edge_index = torch.from_numpy(np.load(file))
    mine = ours(kind, edge_index, nodes, epsilon)
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    out = mine()
    megabytes = memory("VmHWM") - before
    theirs = {"plain": plain, "dense": dense}[rival]
    seconds = in_turns(mine, lambda: theirs(kind, edge_index, nodes, epsilon), repeats=RUNS)
    return {"ours": seconds[0], "rival": seconds[1], "megabytes": megabytes, "out": out}


def ours(kind: str, edge_index: torch.Tensor, nodes: int, epsilon: float) -> Callable[[], int]:
    """What makes our reports and returns how many entries came out."""
    name, mode = kind.split(", ")
    build = {"flips": AdjacencyRR, "degree-preserving": DegreePreservingRR}[name]
    mechanism = build(epsilon=epsilon, nodes=nodes, mode=mode)
    return lambda: len(mechanism.randomize(edge_index, randomness=SecureRandomness()).to_tensors()["columns"])


def plain(kind: str, edge_index: torch.Tensor, nodes: int, epsilon: float) -> int:
    """The same by numpy: skips to the next flipped bit, and degrees that thin the lists; how many entries come out."""
    generator, (users, named) = np.random.default_rng(), edge_index.numpy()
    thinned, places = kind.startswith("degree"), nodes * nodes
    flip = 1 / (math.exp(epsilon * (1 - DEGREE_SHARE * thinned)) + 1)
    true = np.sort(users * nodes + named)
    # A lower id answers for half of the places: which of them does not matter to the time.
    if kind.endswith("lower"):
        true, places = true[: len(true) // 2], places // 2
    expected = places * flip
    false = np.cumsum(generator.geometric(flip, int(expected + 6 * math.sqrt(expected) + 10))) - 1
    false = false[: np.searchsorted(false, places)]
    false = false[true[np.searchsorted(true[:-1], false)] != false]
    figures = np.concatenate([true[generator.random(len(true)) >= flip], false])
    figures.sort()
    owners, columns = figures // nodes, figures % nodes
    if thinned:
        degrees = np.bincount(users, minlength=nodes) + generator.laplace(
            scale=1 / (DEGREE_SHARE * epsilon), size=nodes
        )
        share = degrees.clip(1) / (degrees.clip(1) * (1 - 2 * flip) + (nodes - 1) * flip)
        columns = columns[generator.random(len(columns)) < share[owners]]
    np.searchsorted(owners, np.arange(nodes + 1))  # where each list begins
    return len(columns.astype(np.int32))


def dense(kind: str, edge_index: torch.Tensor, nodes: int, epsilon: float) -> int:
    """One coin for each entry of a dense adjacency; how many entries are 1."""
    bits = torch.zeros((nodes, nodes), dtype=torch.bool)
    bits[edge_index[0], edge_index[1]] = True
    bits ^= torch.rand((nodes, nodes)) < 1 / (math.exp(epsilon) + 1)
    bits.fill_diagonal_(False)
    return int(bits.sum())


def memory(field: str) -> float:
    """A line of this process's status, in MB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024 / 1e6


if __name__ == "__main__":
    main()
