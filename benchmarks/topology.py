"""Seconds and memory of making P of a graph's edges, beside the products of SciPy's matrices that give the same bits.

    python benchmarks/topology.py --nodes 1000000 --edges 10000000

CPU seconds of one thread, in turns, the least of `--repeats`; memory beside the edges, at its peak, of one more run.
Edges as a graph holds them: sorted, undirected, without twins.  "gcn" and "mean" together are what LPGNN with a
GraphSAGE network trains on.
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import scipy.sparse as sp
import torch

from graphveil.aggregation import SparseMatrix, from_scipy
from graphveil.aggregation.propagation import Adjacency, Normalisation
from timing import in_turns, processor

KINDS: tuple[Normalisation, ...] = ("gcn", "mean")


def main() -> None:
    """Time both ways and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    edges = random_edges(chosen.nodes, chosen.edges)
    print(f"{processor()}; {chosen.nodes:,} nodes, {edges.shape[1]:,} entries; CPU seconds, and MB at the peak")
    print(f"{'':>12}{'scipy':>16}{'ours':>16}")
    for kinds in (("gcn",), ("mean",), KINDS):
        runs = [partial(way, edges, chosen.nodes, kinds) for way in (by_scipy, ours)]
        theirs, mine = zip(in_turns(*runs, repeats=chosen.repeats), map(peak, runs), strict=True)
        row = "".join(f"{seconds:>8.2f}{memory:>8,.0f}" for seconds, memory in (theirs, mine))
        print(f"{' and '.join(kinds):>12}{row}   {theirs[0] / mine[0]:.1f} times the speed")


def random_edges(nodes: int, edges: int) -> np.ndarray:
    """Return undirected edges int64 [2, E] without loops and twins, sorted, from pairs drawn at random."""
    source, target = np.random.default_rng(0).integers(0, nodes, (2, edges))
    keys = np.concatenate([source * nodes + target, target * nodes + source])
    del source, target
    keys.sort()
    keys = keys[np.concatenate([[True], keys[1:] > keys[:-1]])]
    pairs = np.stack([keys // nodes, keys % nodes])
    return pairs[:, pairs[0] != pairs[1]]


def ours(edges: np.ndarray, nodes: int, kinds: Sequence[Normalisation]) -> list[SparseMatrix]:
    """Return a P of each kind, of one adjacency."""
    adjacency = Adjacency.of(edges, nodes)
    return [adjacency.normalised(kind) for kind in kinds]


def by_scipy(edges: np.ndarray, nodes: int, kinds: Sequence[Normalisation]) -> list[SparseMatrix]:
    """Return a P of each kind, each of a matrix of its own."""
    pairs = []
    for kind in kinds:
        source, target = edges
        keep = source != target
        values = np.ones(source.size, dtype=np.float32)
        a = sp.csr_matrix((values[keep], (target[keep], source[keep])), shape=(nodes, nodes))
        a.data[:] = 1.0
        a.eliminate_zeros()
        degrees = np.asarray(a.sum(axis=1)).ravel().clip(1)
        sent = np.asarray(a.sum(axis=0)).ravel().clip(1)
        if kind == "mean":
            p = sp.diags_array(1 / degrees) @ a
        else:
            p = sp.diags_array(1 / np.sqrt(degrees)) @ a @ sp.diags_array(1 / np.sqrt(sent))
        pairs.append(from_scipy(p, symmetric=kind == "gcn" and (a != a.T).nnz == 0))
    return pairs


def peak(run: Callable[[], object]) -> float:
    """Return the most memory that the arrays of a run hold, MB."""
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


if __name__ == "__main__":
    main()
