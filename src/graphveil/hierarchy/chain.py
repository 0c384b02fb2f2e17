"""One Markov chain over the trees on n leaves: built from edges and a first tree, walked, and read back as a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.hierarchy.arrays import BoolArray, IntArray
from graphveil.hierarchy.counts import count_edges
from graphveil.hierarchy.dendrogram import Dendrogram, dendrogram_of
from graphveil.privacy import Randomness

if TYPE_CHECKING:
    from graphveil.hierarchy.mcmc_steps import Edges
    from graphveil.hierarchy.order_intervals import Tree


#: Steps between two moments at which a walk can be interrupted.
BLOCK: Final = 1 << 16
_LARGEST: Final = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Layer:
    """Edges int64 [2, m], every edge once, and the nodes, bool [n], among which their pairs are counted."""

    edges: IntArray
    ends: BoolArray


@dataclass(frozen=True, eq=False)
class Chain:
    """A walk towards exp(L_public + weight * L_private) over the arrays of the compiled loops; `walk` changes them in
    place.
    """

    tree: Tree
    edges: Edges
    weight: float

    def walk(self, steps: int, randomness: Randomness) -> int:
        """Take steps, change the tree in place, and return how many steps were accepted.

        Args:
            steps: how many, at most BLOCK; of fewer than 3 leaves there is nothing to rearrange.
            randomness: gives UNIFORMS 64-bit numbers a step, whatever becomes of it.
        """
        from graphveil.hierarchy.mcmc_steps import UNIFORMS, walk

        if len(self.edges.middle) < 3:
            return 0
        # As many numbers for each step whatever is accepted: how much randomness a walk used says nothing of the edges.
        return int(walk(self.tree, self.edges, randomness.uint64(UNIFORMS * steps), self.weight))

    def scores(self) -> tuple[float, float]:
        """Return the public and the private log-likelihood of the present tree, in nats."""
        public, private = self.tree.score.sum(0)
        return float(public), float(private)

    def dendrogram(self) -> Dendrogram:
        """Return the present tree, with sides and numbers that follow from it alone and tell nothing of the way to it.
        """
        from graphveil.hierarchy.mcmc_steps import smallest_leaf_left
        from graphveil.hierarchy.order_intervals import LEFT, RIGHT

        inner = self.tree.node[len(self.edges.middle) :]
        tree = dendrogram_of(inner[:, LEFT], inner[:, RIGHT])
        # The order of children and the numbers of inner nodes depend on the way to the tree: a released one must not.
        left, right = tree.left.copy(), tree.right.copy()
        smallest_leaf_left(left, right)
        return dendrogram_of(left, right)


def open_chain(start: Dendrogram, public: Layer, private: Layer, weight: float) -> Chain:
    """Return a chain that stands at the tree `start`.

    Args:
        start: a dendrogram over n leaves; public, private: the two layers of edges over the same n nodes.
        weight: what a nat of the private log-likelihood counts; 0 where private edges have no say.

    Raises:
        InputError: more nodes and edges than 32-bit counts can hold.
    """
    from graphveil.hierarchy import order_intervals as at
    from graphveil.hierarchy.mcmc_steps import fill_scores

    edges = _neighbours(start.leaves, public.edges, private.edges)
    # Counts and work are kept in 32 bits, which halves what a step reads; beyond this they would wrap round without a
    # word.
    if 2 * start.nodes + len(edges.ends) > _LARGEST:
        raise InputError(f"{start.leaves} nodes and {len(edges.ends) // 2} edges", allowed="2^31 - 1 in all")
    node = np.zeros((start.nodes, at.COLUMNS), np.int32)
    node[start.leaves :, at.LEFT], node[start.leaves :, at.RIGHT] = start.left, start.right
    node[:, at.PARENT], node[:, at.SIZE], node[:, at.CROSS] = start.parent, start.sizes, -1
    node[:, at.WORK] = _below(start, 1 + np.diff(edges.starts))
    for layer, part in enumerate((public, private)):
        node[start.leaves :, at.COUNT + layer] = count_edges(start, part.edges)
        node[:, at.ENDS + layer] = _below(start, part.ends)
    tree = at.Tree(
        node=node,
        first=np.zeros(start.nodes, np.int64),
        last=np.zeros(start.nodes, np.int64),
        score=np.zeros((start.nodes, 2)),
        counts=np.zeros((2, 2), np.int64),
        values=np.zeros((2, 2)),
        stack=np.zeros(2 * start.leaves, np.int32),
        effort=np.zeros(2, np.int64),
    )
    at.relabel_all(tree)
    fill_scores(tree)
    return Chain(tree, edges, weight)


def _neighbours(nodes: int, public: IntArray, private: IntArray) -> Edges:
    """Every leaf's neighbours, the public ones first."""
    from graphveil.hierarchy.mcmc_steps import Edges

    # A key is twice the node, plus one for private edges: one sort puts each node's public neighbours first.
    near = np.concatenate([2 * public, 2 * private + 1], axis=1)
    keys = np.concatenate([near[0], near[1]])
    ends = np.concatenate([near[1], near[0]]) >> 1
    bounds = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=2 * nodes))])
    order = np.argsort(keys, kind="stable")
    return Edges(bounds[::2].copy(), bounds[1::2].copy(), ends[order].astype(np.int32))


def _below(tree: Dendrogram, values: npt.NDArray[np.int64] | BoolArray) -> IntArray:
    """What the leaves [n] below each node hold together, int64 [2n-1]."""
    layout = tree.layout
    # Leaves below a node are one interval of the row, so a difference of two running sums counts them.
    sums = np.concatenate([[0], np.cumsum(values[layout.order])])
    below: IntArray = sums[layout.stop] - sums[layout.start]
    return below
