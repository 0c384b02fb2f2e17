"""What a curator's release of protected pairs costs on a large graph next to numpy drawing the same noise, and its use.

    python benchmarks/releases_speed.py [--nodes 1000000] [--degree 20] [--scratch FOLDER]

All nodes and edges are private. Every row runs in a process of its own, which reads the edges from a file: CPU seconds
of ours and of plain numpy, in turns, the least of `--repeats`; our peak of memory above what the process held with the
edges; released edges, and how many of them are true. "plain" visits no pair that stays out either, but draws floats
from numpy's own generator and checks nothing. `releases_before.py` compares with how the same was done before.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from graphveil.mechanisms import EdgeRand, LapGraph, NoisyCounts, PairDomain
from graphveil.privacy import SecureRandomness
from graphveil.runtime.sorted_arrays import contains, distinct
from timing import in_turns, processor, ratio

ROWS = (
    ("edge-rand", 12.0),
    ("edge-rand", 10.0),
    ("lap-graph", 12.0),
    ("lap-graph", 10.0),
    ("lap-graph", 8.0),
    ("lap-graph", 1.0),
    ("noisy counts", 1.0),
)


def random_pairs(nodes: int, degree: int) -> torch.Tensor:
    """The edges of a random graph with about this average degree, int64 [2, m], u < v, in random order."""
    pairs = np.sort(np.random.default_rng(0).integers(0, nodes, (2, nodes * degree // 2)), axis=0)
    return torch.from_numpy(pairs[:, pairs[0] != pairs[1]])


def run(kind: str, epsilon: float, pairs: torch.Tensor, nodes: int) -> torch.Tensor:
    """What one row releases."""
    if kind == "noisy counts":
        counts = torch.ones(nodes * 10, dtype=torch.int64)
        return NoisyCounts(epsilon=epsilon).randomize(counts, randomness=SecureRandomness())
    build = {"edge-rand": EdgeRand, "lap-graph": LapGraph}[kind]
    return build(epsilon=epsilon, domain=PairDomain(nodes)).randomize(pairs, randomness=SecureRandomness())


def plain(kind: str, epsilon: float, pairs: torch.Tensor, nodes: int) -> np.ndarray:
    """The same by numpy: pairs [2, m], or counts."""
    generator = np.random.default_rng()
    if kind == "noisy counts":
        return np.rint(1 + generator.laplace(scale=1 / epsilon, size=nodes * 10)).astype(np.int64)
    true = np.sort(pairs[0].numpy() * nodes + pairs[1].numpy())
    true = true[np.concatenate([[True], true[1:] > true[:-1]])]
    places = nodes * (nodes - 1) // 2
    figures = (plain_edge_rand if kind == "edge-rand" else plain_lap_graph)(true, places, epsilon, generator)
    figures.sort()
    return np.stack([figures // nodes, figures % nodes])


def plain_edge_rand(true: np.ndarray, places: int, epsilon: float, generator: np.random.Generator) -> np.ndarray:
    """Edges that stay, and skips from one false one to the next."""
    replaced = 2 / (math.exp(epsilon) + 1)
    expected = places * replaced / 2
    false = np.cumsum(generator.geometric(replaced / 2, int(expected + 6 * math.sqrt(expected) + 10))) - 1
    false = false[: np.searchsorted(false, places)]
    false = false[true[np.searchsorted(true[:-1], false)] != false]
    return np.concatenate([true[generator.random(len(true)) >= replaced / 2], false])


def plain_lap_graph(true: np.ndarray, places: int, epsilon: float, generator: np.random.Generator) -> np.ndarray:
    """The places of the largest noisy cells, of which those without an edge are drawn above a threshold alone."""
    share = 0.01 * epsilon
    scale = 1 / (epsilon - share)
    wanted = len(true) + round(generator.laplace(scale=1 / share))
    threshold = scale * math.log(places / (2 * wanted))
    zeros = generator.integers(0, places, generator.binomial(places, math.exp(-threshold / scale) / 2))
    levels = np.concatenate(
        [1 + generator.laplace(scale=scale, size=len(true)), threshold + generator.exponential(scale, len(zeros))]
    )
    return np.concatenate([true, zeros])[np.argpartition(-levels, wanted)[:wanted]]


def measure(kind: str, epsilon: float, file: str, nodes: int, repeats: int) -> dict[str, float]:
    """One row, in this process."""
    run(kind, epsilon, random_pairs(100, 4), 100)  # whatever is loaded once
    pairs = torch.from_numpy(np.load(file))
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    out = run(kind, epsilon, pairs, nodes)
    figures = {"megabytes": memory("VmHWM") - before, "out": out.numel() if out.ndim == 1 else out.shape[1]}
    if out.ndim == 2:
        domain = PairDomain(nodes)
        true, sent = distinct(domain.rank(pairs).numpy()), domain.rank(out).numpy()
        figures["precision"] = float(contains(true, sent).mean())
        del true, sent
    del out
    programs = (lambda: run(kind, epsilon, pairs, nodes)), (lambda: plain(kind, epsilon, pairs, nodes))
    figures["ours"], figures["plain"] = in_turns(*programs, repeats=repeats)
    return figures


def memory(field: str) -> float:
    """A line of this process's status, in MB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024 / 1e6


def in_own_process(*words: object) -> dict[str, float]:
    """`measure` with these arguments in a fresh process."""
    call = [sys.executable, __file__, "--row", *map(str, words)]
    done = subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    if "--row" in sys.argv:
        kind, epsilon, file, nodes, repeats = sys.argv[sys.argv.index("--row") + 1 :]
        print(json.dumps(measure(kind, float(epsilon), file, int(nodes), int(repeats))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--degree", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scratch", default=None, help="where the edges are kept meanwhile")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        file = f"{folder}/pairs.npy"
        pairs = random_pairs(options.nodes, options.degree)
        np.save(file, pairs.numpy())
        print(f"{processor()}, one thread; {options.nodes:,} nodes, {pairs.shape[1]:,} edges")
        print("| release | epsilon | ours / plain | CPU s, ours / plain | peak MB, ours | released | of them true |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        del pairs
        for kind, epsilon in ROWS:
            row = in_own_process(kind, epsilon, file, options.nodes, options.repeats)
            true = f"{row['precision']:.2g}" if "precision" in row else ""
            cells = f"{ratio(row['ours'], row['plain'])} | {row['ours']:.2f} / {row['plain']:.2f}"
            print(
                f"| {kind} | {epsilon:g} | {cells} | {row['megabytes']:,.0f} | {row['out']:,.0f} | {true} |", flush=True
            )


if __name__ == "__main__":
    main()
