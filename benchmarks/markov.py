"""What a Markov step over trees costs next to a plain count of the edges that it needs, and how that grows with n.

    python benchmarks/markov.py

Made graphs of ten edges a node: an edge joins two leaves of a balanced tree whose lowest common ancestor is k levels
up with probability falling by 1.3 with k, so that every level has edges to count; nodes are numbered at random.  Two
chains start at that balanced tree: "joint" has a fifth of the edges private (epsilon 1) and is held near it by the
public ones; "private" has all of them private (epsilon 1), accepts nearly everything and drifts to ever deeper trees.

"plain" counts the edges between the two subtrees that a step would exchange: it marks the leaves of one and goes
through the edges of the other, compiled like ours, on the tree where our chain stands.  It does nothing else of a step:
no randomness, no likelihood, no change of the tree.  Both take turns on one thread, the least CPU time of `--repeats`.
"looks" are the edges and leaves gone through and the places dealt out in a step of ours: its cost before caches have
their say.  "depth" is the mean depth of a leaf after the run, in units of log2 n.  The exponents are those of powers of
n fitted to the columns.
"""

from __future__ import annotations

import argparse
from dataclasses import astuple, dataclass

import numpy as np
from numba import njit

from graphveil.hierarchy import Dendrogram, balanced_dendrogram
from graphveil.hierarchy.markov import BLOCK, Chain, Layer, open_chain, private_weight
from graphveil.privacy import SecureRandomness
from timing import in_turns, processor, ratio

SIZES = (500, 1000, 2000, 4000, 8000, 20_000, 50_000, 100_000)
DEGREE, SHARE, EPSILON = 10, 0.2, 1.0


@dataclass(frozen=True)
class Step:
    """Microseconds of a step and of its count alone, looks of a step, the share accepted, and the depth of a leaf."""

    ours: float
    plain: float
    looks: float
    accepted: float
    depth: float


def main() -> None:
    """Time both chains at every size and print the table and the exponents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    timed(chain(64, SHARE), 1)
    print(f"{processor()}, one thread; ten edges a node, epsilon {EPSILON:g}")
    print("| nodes | chain | ours / plain | microseconds, ours / plain | looks | taken | depth |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    counted: dict[str, list[Step]] = {"joint": [], "private": []}
    for nodes in chosen.nodes:
        for name, share in (("joint", SHARE), ("private", 1.0)):
            step = timed(chain(nodes, share), chosen.repeats)
            counted[name].append(step)
            cells = f"{ratio(step.ours, step.plain)} | {step.ours:.2f} / {step.plain:.2f} | {step.looks:.1f}"
            print(f"| {nodes:,} | {name} | {cells} | {step.accepted:.2f} | {step.depth:.1f} |", flush=True)
    if len(chosen.nodes) > 1:
        for name, steps in counted.items():
            slopes = np.polyfit(np.log(chosen.nodes), np.log([astuple(step)[:3] for step in steps]), 1)[0]
            grown = (f"{what} as n^{slope:.2f}" for what, slope in zip(("ours", "plain", "looks"), slopes, strict=True))
            print(f"{name}: {', '.join(grown)}")


def chain(nodes: int, share: float) -> Chain:
    """Return a chain at the balanced tree of a made graph with that share of its edges private."""
    rng = np.random.default_rng(nodes)
    levels = np.arange(1, nodes.bit_length())
    weights = 1.3**-levels
    ends = rng.integers(nodes, size=2 * nodes * DEGREE)
    span = 1 << rng.choice(levels, len(ends), p=weights / weights.sum())
    other = ends // span * span + rng.integers(span)
    low, high = np.minimum(ends, other), np.maximum(ends, other)
    keys = rng.permutation(np.unique((low * nodes + high)[(low < high) & (high < nodes)]))[: nodes * DEGREE // 2]
    edges, private = np.stack([keys // nodes, keys % nodes]), rng.random(len(keys)) < share
    names = rng.permutation(nodes)
    edges = names[edges]
    layers = [Layer(part, np.ones(nodes, np.bool_)) for part in (edges[:, ~private], edges[:, private])]
    tree = balanced_dendrogram(names)
    return open_chain(tree, layers[0], layers[1], private_weight(EPSILON, nodes))


def timed(chain: Chain, repeats: int) -> Step:
    """Return the figures of a chain that has walked for a while."""
    nodes, randomness = len(chain.edges.middle), SecureRandomness()
    steps = max(2 * nodes, 4 * BLOCK)

    def ours() -> int:
        return sum(chain.walk(min(BLOCK, steps - done), randomness) for done in range(0, steps, BLOCK))

    ours()
    tree, rng = chain.dendrogram(), np.random.default_rng(0)
    inner = rng.integers(nodes, tree.root, steps)  # the root has no other subtree beside it
    arrays = tree.left, tree.right, tree.parent, chain.edges.starts, chain.edges.ends
    plain_counts(*arrays, inner[:1])
    chain.tree.effort[:] = 0
    seconds, plain_seconds = in_turns(ours, lambda: plain_counts(*arrays, inner), repeats=repeats)
    looks = float(chain.tree.effort.sum()) / (repeats * steps)
    accepted = ours()
    depth = mean_depth(chain.dendrogram()) / np.log2(nodes)
    return Step(1e6 * seconds / steps, 1e6 * plain_seconds / steps, looks, accepted / steps, depth)


@njit
def plain_counts(left, right, parent, starts, ends, picked):  # type: ignore[no-untyped-def]
    """Return the edges between a child of every picked inner node and that node's sibling, added up."""
    leaves, counted = len(left) + 1, 0
    mark, stack = np.zeros(leaves, np.int64), np.empty(leaves, np.int64)
    for step in range(len(picked)):
        inner = picked[step]
        outer = parent[inner] - leaves
        other = right[outer] if left[outer] == inner else left[outer]
        child = left[inner - leaves] if step % 2 else right[inner - leaves]
        for scans, top in ((False, other), (True, child)):
            stack[0], pending = top, 1
            while pending:
                pending -= 1
                node = stack[pending]
                if node >= leaves:
                    stack[pending], stack[pending + 1] = left[node - leaves], right[node - leaves]
                    pending += 2
                elif not scans:
                    mark[node] = step + 1
                else:
                    for at in range(starts[node], starts[node + 1]):
                        counted += mark[ends[at]] == step + 1
    return counted


def mean_depth(tree: Dendrogram) -> float:
    """Return the mean number of inner nodes above a leaf."""
    depth = np.zeros(tree.nodes, np.int64)
    for node in range(tree.root - 1, -1, -1):
        depth[node] = depth[tree.parent[node]] + 1
    return float(depth[: tree.leaves].mean())


if __name__ == "__main__":
    main()
