"""How long a curator's release of protected pairs takes on a large graph, in what memory, and what comes out.

    python benchmarks/releases_speed.py [--nodes 1000000] [--degree 20] [--scratch FOLDER]

All nodes and edges are private. Every row runs once in a process of its own, which reads the edges from a file: CPU
seconds, the peak of memory above what the process held with the edges, released edges, and how many of them are true.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from graphveil.ascending import contains, distinct
from graphveil.mechanisms import EdgeRand, LapGraph, NoisyCounts, PairDomain
from graphveil.privacy import SecureRandomness

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


def measure(kind: str, epsilon: float, file: str, nodes: int) -> dict[str, float]:
    """One row, in this process."""
    run(kind, epsilon, random_pairs(100, 4), 100)  # whatever is loaded once
    pairs = torch.from_numpy(np.load(file))
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    start, wall = time.process_time(), time.perf_counter()
    out = run(kind, epsilon, pairs, nodes)
    found = {"cpu": time.process_time() - start, "wall": time.perf_counter() - wall}
    found |= {"megabytes": memory("VmHWM") - before, "out": out.numel() if out.ndim == 1 else out.shape[1]}
    if out.ndim == 2:
        domain = PairDomain(nodes)
        true, sent = distinct(domain.rank(pairs).numpy()), domain.rank(out).numpy()
        found["precision"] = float(contains(true, sent).mean())
    return found


def memory(field: str) -> float:
    """A line of this process's status, in MB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024 / 1e6


def in_own_process(*words: object) -> dict[str, float]:
    """`measure` with these arguments in a fresh process."""
    call = [sys.executable, __file__, "--row", *map(str, words)]
    done = subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    if "--row" in sys.argv:
        kind, epsilon, file, nodes = sys.argv[sys.argv.index("--row") + 1 :]
        print(json.dumps(measure(kind, float(epsilon), file, int(nodes))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--degree", type=int, default=20)
    parser.add_argument("--scratch", default=None, help="where the edges are kept meanwhile")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        file = f"{folder}/pairs.npy"
        pairs = random_pairs(options.nodes, options.degree)
        np.save(file, pairs.numpy())
        print(
            f"{options.nodes:,} nodes, {pairs.shape[1]:,} edges ({Path(file).stat().st_size / 1e6:,.0f} MB)", flush=True
        )
        print("| release | epsilon | CPU seconds | wall | peak MB | released | of them true |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for kind, epsilon in ROWS:
            row = in_own_process(kind, epsilon, file, options.nodes)
            true = f"{row['precision']:.3f}" if "precision" in row else ""
            shown = f"{row['cpu']:.1f} | {row['wall']:.1f} | {row['megabytes']:,.0f} | {row['out']:,.0f}"
            print(f"| {kind} | {epsilon:g} | {shown} | {true} |", flush=True)


if __name__ == "__main__":
    main()
