"""A dendrogram from what everybody knows: public edges and, for people without any, public features.

No private edge is read, so the tree costs nothing and the whole budget goes to counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphveil.hierarchy.communities import nested_communities
from graphveil.hierarchy.counts import read_pairs
from graphveil.hierarchy.dendrogram import Dendrogram, IntArray, dendrogram_of
from graphveil.hierarchy.worthwhile import bounds, by_degree, worthwhile_levels

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_SMALLEST: Final = 4
_MOST: Final = 512  # groups joined by density at once; the work is their square


def public_tree(nodes: int, public: Any, *, seed: int = 0) -> Dendrogram:
    """Divide the nodes into communities, these again, and so on; join what is found two by two.

    Communities of one parent are joined where their pairs are densest first; nodes of a community that is not divided
    stand by falling public degree, so that its blocks tell the well connected from the others.

    Args:
        nodes: n.
        public: integers [2, m], public edges, each once.
        seed: the same seed gives the same tree.

    Raises:
        InputError: an edge is none between two different nodes.
    """
    known = read_pairs(public, nodes, "the public edges")
    adjacency = _adjacency(nodes, known)
    levels = nested_communities(adjacency, smallest=_SMALLEST, rng=np.random.default_rng(seed))
    if len(levels) > 1:
        levels = worthwhile_levels(adjacency, known, levels, _joined(adjacency, levels))
    return _joined(adjacency, levels)


def _adjacency(nodes: int, pairs: IntArray) -> csr_matrix:
    from scipy.sparse import csr_matrix

    ends = pairs.astype(np.int32)
    one = np.ones(pairs.shape[1], np.float32)
    half = csr_matrix((one, (ends[0], ends[1])), shape=(nodes, nodes))
    return (half + half.T).tocsr()


def _joined(adjacency: csr_matrix, levels: list[IntArray]) -> Dendrogram:
    """One binary tree of nested groups."""
    from graphveil.hierarchy.community_loops import join_level, join_stretches

    groups = levels[-1]
    children = np.empty((2, len(groups) - 1), np.int64)
    roots = join_stretches(by_degree(adjacency, groups), bounds(groups), children, 0)
    for coarser in reversed(levels[:-1]):
        parents = np.empty(len(roots), np.int64)
        parents[groups] = coarser
        sizes, between = np.bincount(groups).astype(np.float64), _between(adjacency, groups, parents)
        arrays = between.indptr, between.indices, between.data
        roots = join_level(*arrays, sizes, bounds(parents), roots, children, _MOST)
        groups = coarser
    return dendrogram_of(*children)


def _between(adjacency: csr_matrix, groups: IntArray, parents: IntArray) -> csr_matrix:
    """Edges between the groups of one parent."""
    from scipy.sparse import csr_matrix

    source = np.repeat(groups, np.diff(adjacency.indptr))
    target = groups[adjacency.indices]
    keep = (source != target) & (parents[source] == parents[target])
    shape = (len(parents), len(parents))
    return csr_matrix((adjacency.data[keep], (source[keep], target[keep])), shape=shape)
