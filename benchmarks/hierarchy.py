"""What a tree of public edges tells about private ones, and what it costs at a million nodes.

    python benchmarks/hierarchy.py quality --data facebook100-caltech36 facebook100-wisconsin87
    python benchmarks/hierarchy.py scale --nodes 1000000

quality: a fifth of the edges is private. The gap is the log-likelihood of the private edges between one density for all
pairs and the exact density of every inner node of the tree; "closed" is the share of it that the released densities
close (the rest is noise and collapse). Edges drawn from them are compared with the true private ones, beside chance.
"scale" and "clamped" are the rule and the densities of the paper, "support" and "informed" ours; "random" is a random
tree. Means of five releases. "held back" needs no private edge: a fifth of the public edges takes the private ones'
place, for each way to make a tree; by it the default was chosen.

scale: each step's CPU time for `social`, average degree 20, a fifth of the edges private, in units of what SciPy takes
in the same run to make a sparse matrix of all edges; CPU seconds and the peak of memory beside it.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from scipy.sparse import csr_matrix

from graphveil.graphs import load_graph, social_graph
from graphveil.hierarchy import (
    Blocks,
    Dendrogram,
    NoisyBlocks,
    PairTree,
    balanced_dendrogram,
    choose_blocks,
    clamped_density,
    collapse_by_scale,
    collapse_by_support,
    informed_density,
    log_likelihood,
    pair_tree,
    predictive_log_likelihood,
    public_tree,
    release_counts,
    sample_edges,
)
from graphveil.hierarchy.community_tree import ranked_tree
from graphveil.mechanisms import NoisyCounts
from graphveil.privacy import SecureRandomness
from timing import best, processor, ratio

SHARE, RELEASES, EPSILONS = 0.2, 5, (0.1, 0.5, 1.0, 2.0, 4.0)
LEAST = 1e-9  # a density of 0 or 1 that turns out wrong costs 20 nats and not infinitely many


def main() -> None:
    """Print one table or the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("quality", "scale"))
    parser.add_argument("--data", nargs="*", default=["facebook100-caltech36", "facebook100-wisconsin87"])
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--nodes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    chosen = parser.parse_args()
    if chosen.what == "scale":
        for nodes in chosen.nodes:
            scale(nodes)
    else:
        for name in chosen.data:
            quality(name, chosen.data_root)


def quality(name: str, root: str | None) -> None:
    """Both tables of one graph."""
    graph = load_graph(name, root)
    nodes, (public, private) = graph.num_nodes, split(forward(graph.edge_index), 0)
    print(f"{name}: {nodes:,} nodes, {public.shape[1]:,} public and {private.shape[1]:,} private edges")
    trees = {"public": public_tree(nodes, public), "random": shuffled(nodes)}
    for epsilon in EPSILONS:
        for tree, rule, share in (
            ("public", "support", "informed"),
            ("public", "scale", "informed"),
            ("public", "scale", "clamped"),
            ("random", "scale", "clamped"),
        ):
            facts = pair_tree(trees[tree], public=public)
            print(
                f"{epsilon:>5} {tree:>7} {rule:>8} {share:>9} {row(facts, private, epsilon, rule, share)}", flush=True
            )
    public_part, held_out = split(public, 1)
    for way, make in WAYS.items():
        facts = pair_tree(make(nodes, public_part), public=public_part)
        row_ = row(facts, held_out, 1.0, "support", "informed")
        print(f"held back, epsilon 1.0 {way:>17} {row_}", flush=True)


def row(facts: PairTree, private: np.ndarray, epsilon: float, rule: str, share: str) -> str:
    """One line of a table."""
    collapse = (collapse_by_support if rule == "support" else collapse_by_scale)(facts, epsilon)
    blocks = choose_blocks(facts, collapse)
    counts, gap = blocks.counts(private), explained(facts, private)
    flat = log_likelihood([counts.sum()], [blocks.pairs.sum()])
    figures = []
    for seed in range(RELEASES):
        noisy = released(blocks, private, epsilon, share)
        density = np.clip(noisy.density, LEAST, 1 - LEAST)
        gain = predictive_log_likelihood(counts, blocks.pairs, density) - flat
        edges = sample_edges(blocks, noisy.density, np.random.default_rng(seed))
        hits = np.isin(keys(edges), keys(private)).sum()
        figures.append((gain, gain / gap, hits, edges.shape[1] * private.shape[1] / blocks.pairs.sum(), edges.shape[1]))
    gain, closed, hits, chance, social_edges = np.mean(figures, axis=0)
    text = (
        f"{len(blocks):>7,} blocks {gain:>10,.0f} nats {closed:>7.2f} closed {hits:>8,.0f} hits, chance {chance:>6,.1f}"
    )
    return f"{text} of {social_edges:>9,.0f} edges"


def explained(facts: PairTree, private: np.ndarray) -> float:
    """The gap of a tree in nats: what the exact density of every inner node explains over one density."""
    blocks = choose_blocks(facts, np.zeros(facts.tree.leaves - 1, np.bool_))
    counts = blocks.counts(private)
    return log_likelihood(counts, blocks.pairs) - log_likelihood([counts.sum()], [blocks.pairs.sum()])


def released(blocks: Blocks, private: np.ndarray, epsilon: float, share: str) -> NoisyBlocks:
    """Noisy counts from the secure source, and densities."""
    noise = NoisyCounts(epsilon=epsilon)
    return release_counts(
        blocks,
        private,
        noise=lambda counts: noise.randomize(torch.from_numpy(counts), randomness=SecureRandomness()).numpy(),
        share=clamped_density if share == "clamped" else informed_density(blocks, variance=noise.variance),
    )


def scale(nodes: int) -> None:
    """Each step of one release beside a matrix of the edges."""
    release(200, *split(social_edges(200), 0), lambda step: None)  # compiled before
    edges = social_edges(nodes)
    unit = best(partial(matrix_of, edges, nodes), 3)
    public, private = split(edges, 0)
    del edges
    print(f"{processor()}: {nodes:,} nodes, {public.shape[1] + private.shape[1]:,} edges; the matrix {unit:.3g} CPU s")
    print("| step | times the matrix | CPU s | peak GB |")
    print("| --- | --- | --- | --- |")
    clock = ticks()
    next(clock)

    def tell(step: str) -> None:
        seconds = next(clock)
        print(f"| {step} | {ratio(seconds, unit)} | {seconds:.2f} | {peak():.2f} |", flush=True)

    release(nodes, public, private, tell)


def social_edges(nodes: int) -> np.ndarray:
    """The edges of a made network of average degree 20."""
    return forward(social_graph(nodes, average_degree=20, dimension=10, apps=2).edge_index)


def release(nodes: int, public: np.ndarray, private: np.ndarray, tell: Callable[[str], None]) -> None:
    """One release, step by step."""
    tree = public_tree(nodes, public)
    tell("tree")
    facts = pair_tree(tree, public=public)
    blocks = choose_blocks(facts, collapse_by_support(facts, 1.0))
    tell(f"{len(blocks):,} blocks")
    noisy = released(blocks, private, 1.0, "informed")
    tell("noisy counts")
    drawn = sample_edges(blocks, noisy.density, np.random.default_rng(0))
    tell(f"{drawn.shape[1]:,} edges for {private.shape[1]:,}")


def matrix_of(edges: np.ndarray, nodes: int) -> csr_matrix:
    """The upper half of the adjacency, as SciPy makes it of pairs."""
    return csr_matrix((np.ones(edges.shape[1], np.float32), (edges[0], edges[1])), shape=(nodes, nodes))


def shuffled(nodes: int) -> Dendrogram:
    """A flat tree over the nodes in random order."""
    return balanced_dendrogram(np.random.default_rng(0).permutation(nodes))


def by_degree(nodes: int, public: np.ndarray) -> Dendrogram:
    """A flat tree over the nodes by public degree."""
    degree = np.bincount(public.ravel(), minlength=nodes)
    return ranked_tree(np.argsort(np.argsort(-degree, kind="stable")), np.zeros(nodes, np.int64))


WAYS: dict[str, Callable[[int, np.ndarray], Dendrogram]] = {
    "communities": public_tree,
    "degree alone": by_degree,
    "random": lambda nodes, public: shuffled(nodes),
}


def split(edges: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four fifths of the edges, and the rest."""
    chosen = np.random.default_rng(seed).random(edges.shape[1]) < SHARE
    return edges[:, ~chosen], edges[:, chosen]


def forward(edge_index: torch.Tensor) -> np.ndarray:
    """Each undirected edge once, u < v."""
    edges = edge_index.numpy()
    return edges[:, edges[0] < edges[1]]


def keys(pairs: np.ndarray) -> np.ndarray:
    """One number for each pair u < v."""
    return pairs[0] * (1 << 31) + pairs[1]


def ticks() -> Iterator[float]:
    """CPU seconds since the last look."""
    last = time.process_time()
    while True:
        now = time.process_time()
        yield now - last
        last = now


def peak() -> float:
    """The most memory so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
