"""Trees for the tests of this room: drawn ones, all there are, and slow answers to compare with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import strategies as st

from graphveil.hierarchy import Blocks, Dendrogram, PairTree, balanced_dendrogram, choose_blocks, pair_tree

Shape = int | tuple["Shape", "Shape"]


def drawn_tree(leaves: int, rng: np.random.Generator) -> Dendrogram:
    """Join two of the trees there are, drawn evenly, until one is left."""
    roots = list(range(leaves))
    left: list[int] = []
    right: list[int] = []
    for node in range(leaves, 2 * leaves - 1):
        for side in (left, right):
            side.append(roots.pop(int(rng.integers(len(roots)))))
        roots.append(node)
    return Dendrogram(np.array(left, np.int64), np.array(right, np.int64))


def caterpillar(leaves: int) -> Dendrogram:
    """Leaf by leaf on one stem: the deepest tree."""
    inner = np.arange(leaves, 2 * leaves - 2)
    return Dendrogram(np.concatenate([np.zeros(min(leaves - 1, 1), np.int64), inner]), np.arange(1, leaves))


@st.composite
def trees(draw: st.DrawFn, smallest: int = 1, largest: int = 24) -> Dendrogram:
    """Any tree that joining two by two can give, deep or flat."""
    leaves = draw(st.integers(smallest, largest))
    if draw(st.booleans()):
        return caterpillar(leaves)
    return drawn_tree(leaves, np.random.default_rng(draw(st.integers(0, 2**32))))


def below(tree: Dendrogram, node: int) -> list[int]:
    """The leaves of a subtree from left to right, by walking it."""
    if node < tree.leaves:
        return [node]
    row = node - tree.leaves
    return below(tree, int(tree.left[row])) + below(tree, int(tree.right[row]))


def slow_ancestor(tree: Dendrogram, u: int, v: int) -> int:
    """The lowest common ancestor by two walks up."""
    above = {u}
    while tree.parent[u] >= 0:
        u = int(tree.parent[u])
        above.add(u)
    while v not in above:
        v = int(tree.parent[v])
    return v


def all_trees(leaves: int) -> Iterator[Dendrogram]:
    """Every unordered binary tree with the given leaves, (2n-3)!! of them."""
    for shape in _shapes(tuple(range(leaves))):
        yield tree_of(shape, leaves)


def tree_of(shape: Shape, leaves: int) -> Dendrogram:
    """The dendrogram of nested pairs."""
    left: list[int] = []
    right: list[int] = []

    def add(part: Shape) -> int:
        if isinstance(part, int):
            return part
        children = add(part[0]), add(part[1])
        left.append(children[0])
        right.append(children[1])
        return leaves + len(left) - 1

    add(shape)
    return Dendrogram(np.array(left, np.int64), np.array(right, np.int64))


def _shapes(leaves: tuple[int, ...]) -> Iterator[Shape]:
    if len(leaves) == 1:
        yield leaves[0]
        return
    first, rest = leaves[0], leaves[1:]
    for chosen in range(2 ** len(rest) - 1):
        inside = tuple(leaf for bit, leaf in enumerate(rest) if chosen >> bit & 1)
        outside = tuple(leaf for bit, leaf in enumerate(rest) if not chosen >> bit & 1)
        for shape in _shapes((first, *inside)):
            for other in _shapes(outside):
                yield shape, other


@st.composite
def sorted_pairs(draw: st.DrawFn, largest: int = 16) -> PairTree:
    """A tree with some nodes private and some edges public."""
    tree = draw(trees(smallest=2, largest=largest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    members = np.flatnonzero(rng.random(tree.leaves) < rng.choice([0.5, 1.0]))
    public = all_pairs(np.arange(tree.leaves))
    return pair_tree(tree, members=members, public=public[:, rng.random(public.shape[1]) < rng.choice([0.0, 0.3, 1.0])])


def all_pairs(nodes: np.ndarray) -> np.ndarray:
    """Every pair u < v of the nodes, [2, p]."""
    low, high = np.triu_indices(len(nodes), 1)
    return np.sort(np.stack([nodes[low], nodes[high]]), axis=0).astype(np.int64)


def protected(sorted_pairs: PairTree) -> np.ndarray:
    """Every pair of private nodes that is no public edge, [2, p]."""
    public = {tuple(sorted(pair)) for pair in sorted_pairs.public.T.tolist()}
    pairs = [pair for pair in all_pairs(sorted_pairs.row).T.tolist() if tuple(pair) not in public]
    return np.array(pairs, np.int64).reshape(-1, 2).T


def balanced(leaves: int) -> Dendrogram:
    """The flat tree of the leaves in their order."""
    return balanced_dendrogram(np.arange(leaves))


def planted(groups: int, size: int, inside: float, outside: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A graph with communities: its edges [2, m] and each node's community, in no order."""
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.repeat(np.arange(groups), size))
    pairs = all_pairs(np.arange(groups * size))
    chance = np.where(label[pairs[0]] == label[pairs[1]], inside, outside)
    return pairs[:, rng.random(pairs.shape[1]) < chance], label


def drawn_blocks(facts: PairTree, seed: int) -> Blocks:
    """Blocks of which none, some or all are whole subtrees."""
    rng = np.random.default_rng(seed)
    return choose_blocks(facts, rng.random(facts.tree.leaves - 1) < rng.choice([0.0, 0.2, 1.0]))


def depth_of_first(tree: Dendrogram) -> int:
    """How many nodes lie above leaf 0."""
    depth, node = 0, 0
    while tree.parent[node] >= 0:
        node, depth = int(tree.parent[node]), depth + 1
    return depth
