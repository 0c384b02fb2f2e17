"""Microseconds of one Markov step over trees, and how they grow with the number of nodes.

    python benchmarks/markov.py

Made graphs of ten edges a node: an edge joins two leaves of a balanced tree whose lowest common ancestor is k levels
up with probability falling by 1.3 with k, so that every level has edges to count; nodes are numbered at random.  CPU
time of one thread, compiled before, best of `--repeats`.  Two chains start at that balanced tree: "joint" has a fifth
of the edges private (epsilon 1) and is held near it by the public ones; "private" has all of them private (epsilon 1),
accepts nearly everything and drifts to ever deeper trees.  "looks" are the edges and leaves gone through and the
places dealt out in a step: its cost before caches have their say.  "depth" is the mean depth of a leaf after the run,
in units of log2 n.  The authors' figures are those of their own C++ tool with all edges private, -O2, measured before
on a machine like this one.  The exponents are those of powers of n fitted to the columns.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from graphveil.hierarchy import Dendrogram, balanced_dendrogram
from graphveil.hierarchy.chain import BLOCK, Chain, Layer, open_chain
from graphveil.hierarchy.markov import private_weight
from graphveil.privacy import SecureRandomness

#: nodes -> microseconds a step of the authors' tool, lowest and highest.
AUTHORS = {500: (34, 34), 1000: (30, 50), 2000: (55, 55), 4000: (81, 91), 8000: (136, 175)}
SIZES = (500, 1000, 2000, 4000, 8000, 20_000, 50_000, 100_000)
DEGREE, SHARE, EPSILON = 10, 0.2, 1.0


def main() -> None:
    """Time both chains at every size and print the table and the exponents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    timed(made(64, SHARE)[0], 1)
    print(f"{'':>18}{'joint':>32}{'private':>32}{'authors':>10}{'times':>8}")
    titles = ("us", "looks", "taken", "depth")
    print(f"{'nodes':>8}{'edges':>10}" + "".join(f"{title:>8}" for title in 2 * titles))
    columns: dict[str, list[float]] = {name: [] for name in ("joint us", "joint looks", "private us", "private looks")}
    for nodes in chosen.nodes:
        row = f"{nodes:>8,}{made(nodes, 1.0)[1]:>10,}"
        for name, share in (("joint", SHARE), ("private", 1.0)):
            seconds, looks, accepted, depth = timed(made(nodes, share)[0], chosen.repeats)
            columns[f"{name} us"].append(1e6 * seconds)
            columns[f"{name} looks"].append(looks)
            row += f"{1e6 * seconds:>8.2f}{looks:>8.1f}{accepted:>8.2f}{depth:>8.2f}"
        low, high = AUTHORS.get(nodes, (0, 0))
        if low:
            row += f"{f'{low}-{high}' if low < high else low:>10}{low / columns['private us'][-1]:>8.0f}"
        print(row, flush=True)
    for name, values in columns.items():
        slope = np.polyfit(np.log(chosen.nodes), np.log(values), 1)[0] if len(values) > 1 else float("nan")
        print(f"{name} grow as n^{slope:.2f}")


def made(nodes: int, share: float) -> tuple[Chain, int]:
    """Return a chain at the balanced tree of a made graph with that share of its edges private, and the edges."""
    rng = np.random.default_rng(nodes)
    levels = np.arange(1, nodes.bit_length())
    weights = 1.3**-levels
    one = rng.integers(nodes, size=2 * nodes * DEGREE)
    span = 1 << rng.choice(levels, len(one), p=weights / weights.sum())
    other = one // span * span + rng.integers(span)
    low, high = np.minimum(one, other), np.maximum(one, other)
    keys = rng.permutation(np.unique((low * nodes + high)[(low < high) & (high < nodes)]))[: nodes * DEGREE // 2]
    edges, private = np.stack([keys // nodes, keys % nodes]), rng.random(len(keys)) < share
    names = rng.permutation(nodes)
    edges = names[edges]
    layers = [Layer(part, np.ones(nodes, np.bool_)) for part in (edges[:, ~private], edges[:, private])]
    tree = balanced_dendrogram(names)
    return open_chain(tree, *layers, private_weight(EPSILON, nodes)), len(keys)


def timed(chain: Chain, repeats: int) -> tuple[float, float, float, float]:
    """Return CPU seconds and looks of a step, the share accepted, and the mean depth of a leaf beside log2 n."""
    nodes, randomness = len(chain.edges.middle), SecureRandomness()
    steps, best, accepted = max(2 * nodes, 4 * BLOCK), float("inf"), 0
    for done in range(0, steps, BLOCK):
        chain.walk(min(BLOCK, steps - done), randomness)
    chain.tree.effort[:] = 0
    for _ in range(repeats):
        start = time.process_time()
        accepted = sum(chain.walk(min(BLOCK, steps - done), randomness) for done in range(0, steps, BLOCK))
        best = min(best, (time.process_time() - start) / steps)
    looks = float(chain.tree.effort.sum()) / (repeats * steps)
    return best, looks, accepted / steps, mean_depth(chain.dendrogram()) / np.log2(nodes)


def mean_depth(tree: Dendrogram) -> float:
    """Return the mean number of inner nodes above a leaf."""
    depth = np.zeros(tree.nodes, np.int64)
    for node in range(tree.root - 1, -1, -1):
        depth[node] = depth[tree.parent[node]] + 1
    return float(depth[: tree.leaves].mean())


if __name__ == "__main__":
    main()
