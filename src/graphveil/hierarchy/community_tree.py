"""A dendrogram from what everybody knows: public edges and, for people without any, public features.

No private edge is read, so the tree costs nothing and the whole budget goes to counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from graphveil.hierarchy.arrays import IntArray
from graphveil.hierarchy.communities import edges_inside, nested_communities
from graphveil.hierarchy.counts import read_pairs
from graphveil.hierarchy.dendrogram import Dendrogram, dendrogram_of
from graphveil.hierarchy.similar import nearest_groups, random_projection, similar_order
from graphveil.hierarchy.worthwhile import bounds, numbered, worthwhile_levels
from graphveil.runtime.sorted_arrays import packed

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from graphveil.hierarchy.similar import Features

_SMALLEST: Final = 4
_MOST: Final = 512  # groups joined by density at once; the work is their square


def public_tree(nodes: int, public: npt.ArrayLike, *, features: Features | None = None, seed: int = 0) -> Dendrogram:
    """Divide the nodes into communities, these again, and so on; join what is found two by two.

    Communities of one parent are joined where their pairs are densest first. The nodes of a community that is not
    divided stand by falling public degree, so that its blocks tell the well connected from the others. Nodes without
    public edges join the community whose features are most like theirs and stand there with their like; without
    features they stand together.

    Args:
        nodes: n.
        public: integers [2, m], public edges, each once.
        features: [n, d] numbers that are public, a numpy array or a scipy CSR matrix. None: there are none.
        seed: the same seed gives the same tree.

    Raises:
        InputError: an edge is none between two different nodes, or features are not n rows of finite numbers.
    """
    pairs, rng = read_pairs(public, nodes, "the public edges"), np.random.default_rng(seed)
    adjacency = adjacency_of(nodes, pairs)
    isolated, like = np.flatnonzero(np.diff(adjacency.indptr) == 0), np.zeros(nodes, np.int64)
    levels = nested_communities(adjacency, smallest=_SMALLEST, rng=rng)
    homes = None
    # Features place only people without a public edge: for all others their edges say more of whom they know.
    if features is not None and len(isolated):
        rows = random_projection(features, nodes, rng)
        like[isolated] = similar_order(rows, isolated)
        homes = nearest_groups(rows, levels[1], isolated) if len(levels) > 1 else None
    return tree_of_communities(pairs, adjacency, levels, like=like, homes=homes)


def tree_of_communities(
    pairs: IntArray, adjacency: csr_matrix, levels: list[IntArray], *, like: IntArray, homes: IntArray | None = None
) -> Dendrogram:
    """Return one tree of nested communities, without the divisions that an order by degree does better.

    Args:
        pairs: int64 [2, m], the public edges, each once; adjacency: the same, symmetric [n, n] without diagonal.
        levels: int64 [n] each, partitions inside one another, the first into one group.
        like: int64 [n], the order of nodes of equal degree.
        homes: the group of the second level that each node without edges belongs to. None: they stand together.
    """
    degree = np.diff(adjacency.indptr)
    # The second argsort turns an order into ranks.
    rank = np.argsort(np.lexsort((like, -degree)))
    if len(levels) > 1:
        levels = _place_isolated(levels, np.flatnonzero(degree == 0), homes)
        levels = worthwhile_levels(rank, pairs, levels, _joined(adjacency, levels, rank))
    return _joined(adjacency, levels, rank)


def _place_isolated(levels: list[IntArray], isolated: IntArray, homes: IntArray | None) -> list[IntArray]:
    """The partitions with the isolated nodes in one group of their own inside their home, or inside the whole."""
    result = [levels[0]]
    for level, finer in enumerate(levels[1:]):
        inner = finer.copy()
        inner[isolated] = homes if homes is not None and level == 0 else -1
        result.append(numbered(result[-1], inner))
    return result


def adjacency_of(nodes: int, pairs: IntArray) -> csr_matrix:
    """Return the symmetric matrix [n, n] with ones at both places of each pair, int64 [2, m], that stands once."""
    from scipy.sparse import csr_matrix

    ends = pairs.astype(np.int32)
    weights = np.ones(pairs.shape[1], np.float32)
    half = csr_matrix((weights, (ends[0], ends[1])), shape=(nodes, nodes))
    return (half + half.T).tocsr()


def _joined(adjacency: csr_matrix, levels: list[IntArray], rank: IntArray) -> Dendrogram:
    from graphveil.hierarchy.community_kernels import join_intervals, join_level

    finest = levels[-1]
    children = np.empty((2, len(finest) - 1), np.int64)
    roots = join_intervals(np.argsort(packed(finest, rank)), bounds(finest), children, 0)
    steps = list(zip(levels[:-1], levels[1:], _between(adjacency, levels), strict=True))
    # From the finest level up, so that children have their numbers before a parent needs them.
    for coarser, finer, between in reversed(steps):
        parents = np.empty(len(roots), np.int64)
        parents[finer] = coarser
        arrays, sizes = (between.indptr, between.indices, between.data), np.bincount(finer).astype(np.float64)
        roots = join_level(*arrays, sizes, bounds(parents), roots, children, _MOST)
    return dendrogram_of(*children)


def _between(adjacency: csr_matrix, levels: list[IntArray]) -> Iterator[csr_matrix]:
    """Yield the edges between the groups of one parent, for each level but the first."""
    from scipy.sparse import csr_matrix

    from graphveil.hierarchy.community_kernels import edges_between

    for groups in levels[1:]:
        # What is left lies inside parents. Groups are fewer than nodes, whose numbers have 32 bits.
        source, target, values = edges_between(
            adjacency.indptr, adjacency.indices, adjacency.data, groups.astype(np.int32)
        )
        adjacency = edges_inside(adjacency, groups)
        yield csr_matrix((values, (source, target)), shape=(int(groups.max()) + 1,) * 2)
