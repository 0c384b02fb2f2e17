"""Binary trees over the nodes of a graph.

A. Clauset, C. Moore, M. Newman, "Hierarchical structure and the prediction of missing links in networks", Nature 2008,
https://arxiv.org/abs/0811.0484: each inner node of a dendrogram stands for the pairs whose lowest common ancestor it
is, and every pair has exactly one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.runtime.sorted_arrays import IntArray


@dataclass(frozen=True, eq=False)
class Layout:
    """The leaves in a row, so that every subtree is one interval of it.

    Attributes:
        order: [n] the leaf at each place.
        place: [n] the place of each leaf.
        start, middle, stop: [2n-1] the places start..stop-1 belong to the subtree of a node; its left child has
            start..middle-1 and its right child middle..stop-1. A leaf has middle = stop.
    """

    order: IntArray
    place: IntArray
    start: IntArray
    middle: IntArray
    stop: IntArray


@dataclass(frozen=True, eq=False)
class Dendrogram:
    """A full binary tree with leaves 0..n-1 and inner nodes n..2n-2, every child numbered below its parent.

    So a loop over rising numbers goes from the leaves up, and the root is 2n-2. InputError refuses arrays that are not
    such a tree.
    """

    left: IntArray  # with right: int64 [n-1], the two children of inner node n + row
    right: IntArray

    def __post_init__(self) -> None:
        for name in ("left", "right"):
            object.__setattr__(self, name, _ids(name, getattr(self, name)))
        if len(self.left) != len(self.right):
            what = f"{len(self.left)} left children and {len(self.right)} right children"
            raise InputError(what, where="dendrogram", allowed="one of each for every inner node")
        children = np.concatenate([self.left, self.right])
        own = np.tile(np.arange(self.leaves, self.nodes), 2)
        # Children below parents rule out cycles, and one parent each leaves one root: together they make a tree.
        wrong = np.flatnonzero((children < 0) | (children >= own))
        if wrong.size:
            node, child = int(own[wrong[0]]), int(children[wrong[0]])
            raise InputError(f"inner node {node} has child {child}", where="dendrogram", allowed=f"0 to {node - 1}")
        times = np.bincount(children, minlength=self.nodes - 1)
        wrong = np.flatnonzero(times != 1)
        if wrong.size:
            what = f"node {int(wrong[0])} has {int(times[wrong[0]])} parents"
            raise InputError(what, where="dendrogram", allowed="one parent")

    @property
    def leaves(self) -> int:
        """n."""
        return len(self.left) + 1

    @property
    def nodes(self) -> int:
        """2n - 1, leaves and inner nodes."""
        return 2 * len(self.left) + 1

    @property
    def root(self) -> int:
        """The node 2n - 2, which is the only leaf where n is 1."""
        return self.nodes - 1

    @cached_property
    def parent(self) -> IntArray:
        """[2n-1] the parent of each node, -1 for the root."""
        result = np.full(self.nodes, -1, np.int64)
        inner = np.arange(self.leaves, self.nodes)
        result[self.left] = inner
        result[self.right] = inner
        return result

    @cached_property
    def layout(self) -> Layout:
        """Every subtree as an interval of one row of leaves."""
        from graphveil.hierarchy.kernels import leaf_intervals

        start, middle, stop = (np.empty(self.nodes, np.int64) for _ in range(3))
        leaf_intervals(self.left, self.right, start, middle, stop)
        place = start[: self.leaves]
        order = np.empty(self.leaves, np.int64)
        order[place] = np.arange(self.leaves)
        return Layout(order, place, start, middle, stop)

    @cached_property
    def sizes(self) -> IntArray:
        """[2n-1] how many leaves each subtree has."""
        return self.layout.stop - self.layout.start


def dendrogram_of(left: npt.ArrayLike, right: npt.ArrayLike) -> Dendrogram:
    """Number a tree's inner nodes anew, so that every child stands below its parent; leaves keep their numbers. Raises
    InputError where the arrays are no binary tree with leaves 0..n-1.

    Args:
        left, right: [n-1] the children of inner node n + row, inner nodes in any order; else InputError.
    """
    from graphveil.hierarchy.kernels import children_first_numbers

    # Arrays from any caller: checked before compiled loops, which check nothing.
    lefts, rights = _ids("left", left), _ids("right", right)
    nodes = 2 * len(lefts) + 1
    children = np.concatenate([lefts, rights])
    if len(lefts) != len(rights) or not ((children >= 0) & (children < nodes)).all():
        allowed = f"{len(lefts)} of 0 to {nodes - 1} on each side"
        raise InputError("children that do not exist", where="dendrogram", allowed=allowed)
    roots = np.flatnonzero(np.bincount(children, minlength=nodes) == 0)
    number = children_first_numbers(lefts, rights, int(roots[0])) if len(roots) == 1 else roots[:0]
    if len(number) != nodes:
        raise InputError("the inner nodes make no tree", where="dendrogram", allowed="one root, one parent each")
    by_number = np.argsort(number[len(lefts) + 1 :])
    return Dendrogram(number[lefts[by_number]], number[rights[by_number]])


def balanced_dendrogram(leaves: npt.ArrayLike) -> Dendrogram:
    """Join a row of leaves in pairs of neighbours, the pairs in pairs, and so on: a tree of depth log2 n, rounded up.

    `leaves` [n] are the numbers 0..n-1 in the order in which they are to stand; InputError: not every number once.
    """
    order = _ids("leaves", leaves)
    if len(order) < 1 or not np.array_equal(np.sort(order), np.arange(len(order))):
        raise InputError("a leaf is missing or repeated", where="dendrogram", allowed=f"0 to {len(order) - 1}")
    level, lefts, rights, nodes = order, [], [], len(order)
    while len(level) > 1:
        pairs = len(level) // 2
        lefts.append(level[0 : 2 * pairs : 2])
        rights.append(level[1 : 2 * pairs : 2])
        # An odd tree is carried over at the end, so that the row keeps its order and the depth stays log2 n.
        level = np.concatenate([np.arange(nodes, nodes + pairs), level[2 * pairs :]])
        nodes += pairs
    none = np.empty(0, np.int64)
    return Dendrogram(np.concatenate([none, *lefts]), np.concatenate([none, *rights]))


def _ids(name: str, values: npt.ArrayLike) -> IntArray:
    """Whole numbers in one row, as int64."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        what = f"{name} has shape {list(array.shape)} and type {array.dtype}"
        raise InputError(what, where="dendrogram", allowed="whole numbers in one row")
    return np.ascontiguousarray(array, dtype=np.int64)
