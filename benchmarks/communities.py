"""Communities of public edges: our Louvain beside scikit-network's and NetworkX's, on modularity, on use and on time.

    pip install scikit-network networkx
    python benchmarks/communities.py --data social-1000 cora facebook100-caltech36 facebook facebook100-wisconsin87

A library that is not installed is left out. A fifth of the edges is held back; communities come from the others.

modularity: of one division of the whole graph, mean of `--seeds` seeds, and the CPU seconds of one.
nats: what the whole tree (communities inside communities, joined, cut where degree does better) says of the edges held
back, with the exact density of each block that is kept at epsilon 1, over one density for all pairs; and the seconds of
the tree. It is what the communities are for.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from graphveil.graphs import load_graph
from graphveil.hierarchy import choose_blocks, collapse_by_support, log_likelihood, pair_tree
from graphveil.hierarchy.communities import louvain, nested_communities
from graphveil.hierarchy.community_tree import adjacency_of, tree_of_communities
from graphveil.hierarchy.worthwhile import numbered

SHARE, SMALLEST = 0.2, 4
Division = Callable[[csr_matrix, int], np.ndarray]


def main() -> None:
    """Print a line for each graph and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", default=["social-1000", "facebook100-caltech36"])
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    ways = available()
    for name in chosen.data:
        graph = load_graph(name, chosen.data_root)
        edges = graph.edge_index.numpy()
        pairs = edges[:, edges[0] < edges[1]]
        held = np.random.default_rng(0).random(pairs.shape[1]) < SHARE
        print(f"{name}: {graph.num_nodes:,} nodes, {pairs.shape[1]:,} edges", flush=True)
        for way in ways:
            print(line(way, ways[way], graph.num_nodes, pairs[:, ~held], pairs[:, held], chosen.seeds), flush=True)


def available() -> dict[str, Division | None]:
    """What can be compared here; None stands for ours, which divides all communities of a level at once."""
    ways: dict[str, Division | None] = {"ours": None}
    if find_spec("sknetwork"):
        ways["scikit-network"] = by_scikit_network
    if find_spec("networkx"):
        ways["networkx"] = by_networkx
    for name in {"scikit-network", "networkx"} - set(ways):
        print(f"{name} is left out: pip install {name}")
    return ways


def line(way: str, divide: Division | None, nodes: int, public: np.ndarray, held: np.ndarray, seeds: int) -> str:
    """Modularity, nats and seconds of one way on one graph."""
    adjacency, quality, nats, seconds = adjacency_of(nodes, public), [], [], np.zeros(2)
    once(divide, adjacency_of(8, np.array([[0, 1, 4, 5], [1, 2, 5, 6]])), 0)  # compiled and loaded before
    for seed in range(seeds):
        start = time.process_time()
        groups = once(divide, adjacency, seed)
        seconds[0] += (time.process_time() - start) / seeds
        quality.append(modularity(adjacency, groups))
        start = time.process_time()
        levels = levels_of(divide, adjacency, seed)
        tree = tree_of_communities(public, adjacency, levels, like=np.zeros(nodes, np.int64))
        seconds[1] += (time.process_time() - start) / seeds
        nats.append(explained(tree, public, held))
    return (
        f"  {way:<15} modularity {np.mean(quality):.4f} in {seconds[0]:>7.3f} s"
        f"   held back {np.mean(nats):>9,.0f} nats (seeds {min(nats):,.0f} to {max(nats):,.0f}) in {seconds[1]:>7.2f} s"
    )


def once(divide: Division | None, adjacency: csr_matrix, seed: int) -> np.ndarray:
    """One division of the whole graph."""
    if divide is None:
        return louvain(adjacency, np.zeros(adjacency.shape[0], np.int64), np.random.default_rng(seed))
    return divide(adjacency, seed)


def levels_of(divide: Division | None, adjacency: csr_matrix, seed: int) -> list[np.ndarray]:
    """Nested partitions, each community divided again until none comes apart."""
    if divide is None:
        return nested_communities(adjacency, smallest=SMALLEST, rng=np.random.default_rng(seed))
    levels = [np.zeros(adjacency.shape[0], np.int64)]
    while True:
        groups, inner = levels[-1], np.zeros(adjacency.shape[0], np.int64)
        order = np.argsort(groups, kind="stable")
        for members in np.split(order, np.cumsum(np.bincount(groups))[:-1]):
            part = adjacency[members][:, members]
            if len(members) >= SMALLEST and part.nnz:
                inner[members] = divide(part, seed)
        finer = numbered(groups, inner)
        if finer.max() == groups.max():
            return levels
        levels.append(finer)


def by_scikit_network(adjacency: csr_matrix, seed: int) -> np.ndarray:
    """One division by scikit-network, nodes in random order."""
    louvain: Any = import_module("sknetwork.clustering").Louvain(shuffle_nodes=True, random_state=seed)
    return louvain.fit_predict(adjacency.astype(float))


def by_networkx(adjacency: csr_matrix, seed: int) -> np.ndarray:
    """One division by NetworkX."""
    networkx = import_module("networkx")
    result = np.zeros(adjacency.shape[0], np.int64)
    graph = networkx.from_scipy_sparse_array(adjacency)
    for number, members in enumerate(networkx.community.louvain_communities(graph, seed=seed)):
        result[list(members)] = number
    return result


def modularity(adjacency: csr_matrix, groups: np.ndarray) -> float:
    """Newman's modularity of a partition."""
    degree = np.asarray(adjacency.sum(axis=1), np.float64).ravel()
    source = np.repeat(groups, np.diff(adjacency.indptr))
    inside = adjacency.data[source == groups[adjacency.indices]].sum(dtype=np.float64)
    return float(inside / degree.sum() - ((np.bincount(groups, degree) / degree.sum()) ** 2).sum())


def explained(tree: Any, public: np.ndarray, held: np.ndarray) -> float:
    """Nats of the edges held back at the exact densities of the blocks kept at epsilon 1, over one density for all."""
    facts = pair_tree(tree, public=public)
    blocks = choose_blocks(facts, collapse_by_support(facts, 1.0))
    counts = blocks.counts(held)
    return log_likelihood(counts, blocks.pairs) - log_likelihood([counts.sum()], [blocks.pairs.sum()])


if __name__ == "__main__":
    main()
