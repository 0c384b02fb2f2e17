"""Communities inside communities, from edges that everybody knows.

V. Blondel et al., "Fast unfolding of communities in large networks", J. Stat. Mech. 2008,
https://arxiv.org/abs/0803.0476, run again inside every community it found, all of them at once: edges between
communities are left out, and each community has a modularity of its own.

Why not a library: `benchmarks/communities.py` compares. Louvain of scikit-network 0.33 and of NetworkX 3.6 reach the
same modularity within 0.007, but divide one community a call: a tree of Facebook (170,823 edges) takes them 38 and 26
times the CPU time; and released trees would hang on another package's order of nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from graphveil.hierarchy.arrays import IntArray
from graphveil.hierarchy.worthwhile import numbered
from graphveil.runtime.sorted_arrays import packed

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_SWEEPS: Final = 12


def nested_communities(adjacency: csr_matrix, *, smallest: int, rng: np.random.Generator) -> list[IntArray]:
    """Return partitions of the nodes, int64 [n] each, groups numbered without gaps, each inside the one before.

    Args:
        adjacency: symmetric [n, n] without diagonal.
        smallest: groups of fewer nodes are not divided.
        rng: the order in which nodes look for a better community.
    """
    levels = [np.zeros(adjacency.shape[0], np.int64)]
    while True:
        groups = levels[-1]
        open_ = np.bincount(groups) >= smallest
        inside = edges_inside(adjacency, np.where(open_[groups], groups, -1))
        if not inside.nnz:
            return levels
        finer = numbered(groups, np.where(open_[groups], louvain(inside, groups, rng), 0))
        if finer.max() == groups.max():
            return levels
        levels.append(finer)
        # Edges that an outer division cut are gone for good: no later one can join what lies in two groups.
        adjacency = inside


def louvain(adjacency: csr_matrix, groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Run once in all groups at once: nodes move, communities become nodes, until nothing moves.

    Args:
        adjacency: symmetric [n, n], no edge between two groups.
        groups: int64 [n], numbered from 0; each has a modularity of its own.
        rng: the order in which nodes are asked.

    Returns:
        int64 [n], communities numbered from 0, each inside one group.
    """
    from graphveil.hierarchy.community_kernels import move_nodes

    result = np.arange(len(groups))
    while True:
        weight = np.asarray(adjacency.sum(axis=1), np.float64).ravel()
        # Each group's own sum: with that of all nodes, small groups would see no reason to divide.
        total = np.bincount(groups, weight)[groups]
        community = np.arange(len(groups))
        # A public seed shuffles the order: in the order of ids, low ids would be visited first and attract the rest.
        order = rng.permutation(len(groups))
        # Group after group: nothing that happens in one is seen in another, and what one needs stays in the cache.
        order = order[np.argsort(packed(groups[order], np.arange(len(order))))]
        moved = move_nodes(
            adjacency.indptr, adjacency.indices, adjacency.data, weight, total, order, community, _SWEEPS
        )
        community = without_gaps(community)
        result = community[result]
        if moved == 0 or community.max() + 1 == len(groups):
            return result
        groups = _first_of_each(community, groups)
        adjacency = _merged(adjacency, community)


def edges_inside(adjacency: csr_matrix, groups: IntArray) -> csr_matrix:
    """Return the edges [n, n] whose ends are in one group; groups [n] below 0 have none."""
    from scipy.sparse import csr_matrix

    from graphveil.hierarchy.community_kernels import edges_within

    arrays = adjacency.indptr, adjacency.indices, adjacency.data
    starts, columns, values = edges_within(*arrays, groups.astype(np.int32))
    return csr_matrix((values, columns, starts), shape=adjacency.shape)


def _merged(adjacency: csr_matrix, community: IntArray) -> csr_matrix:
    from scipy.sparse import csr_matrix

    count = int(community.max()) + 1
    to = community.astype(np.int32)
    source = np.repeat(to, np.diff(adjacency.indptr))
    return csr_matrix((adjacency.data, (source, to[adjacency.indices])), shape=(count, count))


def without_gaps(numbers: IntArray) -> IntArray:
    """The same numbers [n], from 0 to below n, counted anew without gaps and in their order."""
    used = np.zeros(len(numbers), np.bool_)
    used[numbers] = True
    return (np.cumsum(used) - 1)[numbers]


def _first_of_each(community: IntArray, values: IntArray) -> IntArray:
    """The value that all members of a community share."""
    result = np.empty(int(community.max()) + 1, np.int64)
    result[community] = values
    return result
