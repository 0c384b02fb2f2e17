"""A dendrogram from public facts: public edges and, for people without any, public features.

No private edge is read, so the tree costs nothing and the whole budget goes to counts. Communities inside communities
follow V. Blondel et al., "Fast unfolding of communities in large networks", J. Stat. Mech. 2008,
https://arxiv.org/abs/0803.0476, run again inside every community it found, all of them at once: edges between
communities are left out, and each community has a modularity of its own. Inside a community two orders compete for the
same number of blocks: its own communities, or its nodes by public degree. The one under which the public edges are more
likely wins, from the smallest communities up.

Why not a library: `benchmarks/communities.py` compares. Louvain of scikit-network 0.33 and of NetworkX 3.6 reach the
same modularity within 0.007, but divide one community a call: a tree of Facebook (170,823 edges) takes them 38 and 26
times the CPU time; and released trees would hang on another package's order of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.hierarchy.counts import count_edges, lowest_common_ancestors, read_pairs, sums_below
from graphveil.hierarchy.dendrogram import Dendrogram, dendrogram_of
from graphveil.runtime.late import sparse
from graphveil.runtime.sorted_arrays import FloatArray, IntArray, packed

if TYPE_CHECKING:
    Features: TypeAlias = npt.NDArray[np.floating] | sparse.csr_matrix
    """Rows of numbers, dense or sparse."""

_LEAST_SUPPORT: Final = 64  # with fewer public edges a subtree counts as one block; only affects which order wins
_DIVISION_PENALTY: Final = (
    1.0  # nats a node by which a finer division must fit better, since it was read off the same edges
)


def _without_poor_divisions(
    rank: IntArray, pairs: IntArray, levels: list[IntArray], nested: Dendrogram
) -> list[IntArray]:
    """Return nested partitions [n] without the divisions that fit worse than an order by degree (`rank`)."""
    from graphveil.hierarchy.community_kernels import best_values

    alternatives = np.full(nested.nodes, -np.inf)
    roots_of_levels, inside = [_subtree_roots(nested, groups) for groups in levels], pairs
    for groups, top in zip(levels[:-1], roots_of_levels, strict=False):
        # The two orders differ only in pairs inside groups: all other pairs would add the same nats to both.
        inside = inside[:, groups[inside[0]] == groups[inside[1]]]
        tree = ranked_tree(rank, groups)
        value, _ = best_values(*_node_statistics(tree, inside), np.full(tree.nodes, -np.inf), _LEAST_SUPPORT)
        # A finer division always fits the edges that it was read off better; the penalty offsets that.
        alternatives[top] = value[_subtree_roots(tree, groups)] + _DIVISION_PENALTY * np.bincount(groups)
    replaced = best_values(*_node_statistics(nested, pairs), alternatives, _LEAST_SUPPORT)[1]
    result, settled = [levels[0]], np.zeros(len(levels[0]), np.bool_)
    for groups, top, finer in zip(levels[:-1], roots_of_levels, levels[1:], strict=False):
        # Where the order by degree is better, nothing inside the group is divided further.
        settled |= replaced[top][groups]
        result.append(renumber(result[-1], np.where(settled, 0, finer)))
    return result


def ranked_tree(rank: IntArray, groups: IntArray) -> Dendrogram:
    """Return the nodes of each group by rank, joined in pairs of neighbours; then the groups in their order.

    Args:
        rank: int64 [n], the nodes' places by falling degree.
        groups: int64 [n], numbered from 0 without gaps.
    """
    from graphveil.hierarchy.community_kernels import join_intervals

    children = np.empty((2, len(groups) - 1), np.int64)
    roots = join_intervals(np.argsort(packed(groups, rank)), bounds(groups), children, 0)
    join_intervals(roots, np.array([0, len(roots)]), children, len(groups) - len(roots))
    return dendrogram_of(*children)


def bounds(groups: IntArray) -> IntArray:
    """Return where each of the groups 0, 1, .. starts when sorted, and the end."""
    return np.concatenate([[0], np.cumsum(np.bincount(groups))])


def renumber(groups: IntArray, inner: IntArray) -> IntArray:
    """Return numbers without gaps for the pairs of an outer and an inner group, rising with the outer one: int64 [n].

    Args:
        groups: int64 [n], outer groups.
        inner: int64 [n], inner groups; the same number may be used in several outer groups.
    """
    pairs = packed(groups, inner - inner.min())
    # Not a stable sort, which takes several times as long: equal pairs get the same number in any order.
    order = np.argsort(pairs)
    ordered = pairs[order]
    result = np.empty(len(groups), np.int64)
    result[order] = np.cumsum(np.concatenate([[False], ordered[1:] != ordered[:-1]]))
    return result


def _subtree_roots(tree: Dendrogram, groups: IntArray) -> IntArray:
    """The root of the subtree of each group; every group is a subtree."""
    order = tree.layout.order
    # Every group is one interval of the row of leaves, so the ancestor of its two ends is that of all its members.
    row = groups[order]
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    first, last = order[starts], order[np.append(starts[1:], len(order)) - 1]
    tops, several = first.copy(), first != last
    tops[several] = lowest_common_ancestors(tree, np.stack([first, last])[:, several])
    result = np.empty_like(tops)
    result[row[starts]] = tops
    return result


def _node_statistics(
    tree: Dendrogram, pairs: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Children, edges and pairs of each inner node, and edges and pairs of its subtree."""
    layout = tree.layout
    across = ((layout.middle - layout.start) * (layout.stop - layout.middle))[tree.leaves :]
    edges, sizes = count_edges(tree, pairs), tree.sizes[tree.leaves :]
    return tree.left, tree.right, edges, across, sums_below(tree, edges), sizes * (sizes - 1) // 2


_WIDTH: Final = 16
_ROWS: Final = 1 << 16
_LEAF_SIZE: Final = 16  # so few nodes are not ordered further


def random_projection(features: Features, nodes: int, rng: np.random.Generator) -> FloatArray:
    """Return public features as a few random sums of each row, scaled to length 1: float64 [n, 16].

    Angles between rows are kept up to about a quarter (Johnson and Lindenstrauss); a row of zeros stays one.

    Args:
        features: [n, d], finite, else InputError.
    """
    if len(features.shape) != 2 or features.shape[0] != nodes:
        raise InputError(f"features have shape {list(features.shape)}", allowed=f"{nodes} rows")
    # Sixteen sums preserve similarity, and the work does not grow with the width.
    projection = rng.normal(size=(features.shape[1], _WIDTH))
    result: FloatArray = np.empty((nodes, _WIDTH))
    for first in range(0, nodes, _ROWS):
        result[first : first + _ROWS] = features[first : first + _ROWS] @ projection
    if not np.isfinite(result).all():
        raise InputError("features that are not numbers", where="public features", allowed="finite numbers")
    length = np.linalg.norm(result, axis=1, keepdims=True)
    np.divide(result, length, out=result, where=length > 0)
    return result


def nearest_groups(rows: FloatArray, groups: IntArray, isolated: IntArray) -> IntArray:
    """Return for each isolated node the group whose other members are most like it, by their mean row.

    Args:
        rows: [n, k] of length 1.
        groups: [n], numbered from 0.
        isolated: the nodes to place.
    """
    connected = np.ones(len(groups), np.bool_)
    connected[isolated] = False
    count = int(groups.max()) + 1
    sizes = np.bincount(groups[connected], minlength=count)
    sums = np.stack([np.bincount(groups[connected], column, count) for column in rows[connected].T], axis=1)
    inhabited = np.flatnonzero(sizes)
    means = sums[inhabited] / sizes[inhabited, None]
    result = np.empty(len(isolated), np.int64)
    step = max(1, (1 << 22) // len(inhabited))
    for first in range(0, len(isolated), step):
        result[first : first + step] = inhabited[np.argmax(rows[isolated[first : first + step]] @ means.T, axis=1)]
    return result


def similar_order(rows: FloatArray, nodes: IntArray) -> IntArray:
    """Return ranks 0..m-1 of m nodes, like ones side by side: sorted along the widest direction and halved, repeatedly.

    Args:
        rows: [n, k].
        nodes: the m nodes to rank.
    """
    order = np.arange(len(nodes))
    width = 1 << max(0, len(nodes) - 1).bit_length()  # powers of two, as the leaves are joined in pairs of neighbours
    while width > _LEAF_SIZE:
        for first in range(0, len(order), width):
            part = order[first : first + width]
            values = rows[nodes[part]] - rows[nodes[part]].mean(axis=0)
            # eigh sorts eigenvalues upwards: the last vector is the direction of most spread.
            widest = np.linalg.eigh(values.T @ values)[1][:, -1]
            order[first : first + width] = part[np.argsort(values @ widest, kind="stable")]
        width //= 2
    ranks = np.empty(len(nodes), np.int64)
    ranks[order] = np.arange(len(nodes))
    return ranks


_SWEEPS: Final = 12


def nested_communities(adjacency: sparse.csr_matrix, *, smallest: int, rng: np.random.Generator) -> list[IntArray]:
    """Return partitions of the nodes, int64 [n] each, groups numbered without gaps, each inside the one before.

    Args:
        adjacency: symmetric [n, n] without diagonal.
        smallest: groups of fewer nodes are not divided.
        rng: the order in which nodes look for a better community.
    """
    levels = [np.zeros(adjacency.shape[0], np.int64)]
    while True:
        groups = levels[-1]
        divisible = np.bincount(groups) >= smallest
        inside = _edges_inside(adjacency, np.where(divisible[groups], groups, -1))
        if not inside.nnz:
            return levels
        finer = renumber(groups, np.where(divisible[groups], louvain(inside, groups, rng), 0))
        if finer.max() == groups.max():
            return levels
        levels.append(finer)
        # Edges between groups are dropped for all finer levels: no later division joins nodes of two groups.
        adjacency = inside


def louvain(adjacency: sparse.csr_matrix, groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Run Louvain in all groups at once: nodes move, communities become nodes, until nothing moves.

    Args:
        adjacency: symmetric [n, n], no edge between two groups.
        groups: int64 [n], numbered from 0; each has a modularity of its own.

    Returns:
        int64 [n], communities numbered from 0, each inside one group.
    """
    from graphveil.hierarchy.community_kernels import move_nodes

    result = np.arange(len(groups))
    while True:
        weight = np.asarray(adjacency.sum(axis=1), np.float64).ravel()
        # The sum of each group: with that of all nodes, small groups would not be divided.
        total = np.bincount(groups, weight)[groups]
        community = np.arange(len(groups))
        # Shuffled by a public seed: in the order of ids, low ids would be visited first and attract the rest.
        order = rng.permutation(len(groups))
        # Group after group: groups do not affect each other, and the data of one stay in the cache.
        order = order[np.argsort(packed(groups[order], np.arange(len(order))))]
        moved = move_nodes(
            adjacency.indptr, adjacency.indices, adjacency.data, weight, total, order, community, _SWEEPS
        )
        used = np.zeros(len(community), np.bool_)
        used[community] = True
        # Renumbered without gaps, in their order.
        community = (np.cumsum(used) - 1)[community]
        result = community[result]
        count = int(community.max()) + 1
        if moved == 0 or count == len(groups):
            return result
        shared = np.empty(count, np.int64)
        shared[community] = groups
        groups, to = shared, community.astype(np.int32)
        ends = np.repeat(to, np.diff(adjacency.indptr)), to[adjacency.indices]
        adjacency = sparse.csr_matrix((adjacency.data, ends), shape=(count, count))


def _edges_inside(adjacency: sparse.csr_matrix, groups: IntArray) -> sparse.csr_matrix:
    """Return the edges [n, n] whose ends are in one group; groups [n] below 0 have none."""
    from graphveil.hierarchy.community_kernels import edges_within

    arrays = adjacency.indptr, adjacency.indices, adjacency.data
    starts, columns, values = edges_within(*arrays, groups.astype(np.int32))
    return sparse.csr_matrix((values, columns, starts), shape=adjacency.shape)


_SMALLEST: Final = 4
_MOST_JOINED: Final = 512  # groups joined by density at once; the work grows with their square


def public_tree(nodes: int, public: npt.ArrayLike, *, features: Features | None = None, seed: int = 0) -> Dendrogram:
    """Divide the nodes into communities, these again, and so on; join the communities two by two.

    Communities of one parent are joined where their pairs are densest first. The nodes of a community that is not
    divided stand by falling public degree, so that its blocks tell the well connected from the others. Nodes without
    public edges join the community whose features are most like theirs and stand there with their like; without
    features they stand together. InputError: an edge is none between two different nodes, or features are not n rows of
    finite numbers.

    Args:
        public: integers [2, m], public edges, each once.
        features: [n, d] numbers that are public, a numpy array or a scipy CSR matrix. None: there are none.
        seed: the same seed gives the same tree.
    """
    pairs, rng = read_pairs(public, nodes, "the public edges"), np.random.default_rng(seed)
    adjacency = adjacency_of(nodes, pairs)
    isolated, like = np.flatnonzero(np.diff(adjacency.indptr) == 0), np.zeros(nodes, np.int64)
    levels = nested_communities(adjacency, smallest=_SMALLEST, rng=rng)
    homes = None
    # Features place only people without a public edge: for everybody else, edges say more about who knows whom.
    if features is not None and len(isolated):
        rows = random_projection(features, nodes, rng)
        like[isolated] = similar_order(rows, isolated)
        homes = nearest_groups(rows, levels[1], isolated) if len(levels) > 1 else None
    return tree_of_communities(pairs, adjacency, levels, like=like, homes=homes)


def tree_of_communities(
    pairs: IntArray,
    adjacency: sparse.csr_matrix,
    levels: list[IntArray],
    *,
    like: IntArray,
    homes: IntArray | None = None,
) -> Dendrogram:
    """Return one tree of nested communities, without the divisions that fit worse than an order by degree.

    Args:
        pairs: int64 [2, m], the public edges, each once.
        adjacency: the same, symmetric [n, n] without diagonal.
        levels: int64 [n] each, partitions inside one another, the first into one group.
        like: int64 [n], the order of nodes of equal degree.
        homes: the group of the second level that each node without edges belongs to. None: they stand together.
    """
    degree = np.diff(adjacency.indptr)
    # The second argsort turns an order into ranks.
    rank = np.argsort(np.lexsort((like, -degree)))
    if len(levels) > 1:
        # Nodes without edges make one group of their own inside their home, or inside the whole.
        placed = levels[:1]
        for level, finer in enumerate(levels[1:]):
            inner = finer.copy()
            inner[degree == 0] = homes if homes is not None and level == 0 else -1
            placed.append(renumber(placed[-1], inner))
        levels = _without_poor_divisions(rank, pairs, placed, _joined(adjacency, placed, rank))
    return _joined(adjacency, levels, rank)


def adjacency_of(nodes: int, pairs: IntArray) -> sparse.csr_matrix:
    """Return the symmetric matrix [n, n] with ones at both places of each pair that stands once.

    Args:
        pairs: int64 [2, m].
    """
    ends = pairs.astype(np.int32)
    weights = np.ones(pairs.shape[1], np.float32)
    half = sparse.csr_matrix((weights, (ends[0], ends[1])), shape=(nodes, nodes))
    return (half + half.T).tocsr()


def _joined(adjacency: sparse.csr_matrix, levels: list[IntArray], rank: IntArray) -> Dendrogram:
    from graphveil.hierarchy.community_kernels import join_intervals, join_level

    finest = levels[-1]
    children = np.empty((2, len(finest) - 1), np.int64)
    roots = join_intervals(np.argsort(packed(finest, rank)), bounds(finest), children, 0)
    steps = list(zip(levels[:-1], levels[1:], _edges_between_siblings(adjacency, levels), strict=True))
    # From the finest level up, so that children have their numbers before a parent needs them.
    for coarser, finer, between in reversed(steps):
        parents = np.empty(len(roots), np.int64)
        parents[finer] = coarser
        arrays, sizes = (between.indptr, between.indices, between.data), np.bincount(finer).astype(np.float64)
        roots = join_level(*arrays, sizes, bounds(parents), roots, children, _MOST_JOINED)
    return dendrogram_of(*children)


def _edges_between_siblings(adjacency: sparse.csr_matrix, levels: list[IntArray]) -> Iterator[sparse.csr_matrix]:
    """Yield the edges between the groups of one parent, for each level but the first."""
    from graphveil.hierarchy.community_kernels import edges_between

    for groups in levels[1:]:
        # The remaining edges lie inside parents. Groups are fewer than nodes, so their numbers fit into 32 bits.
        source, target, values = edges_between(
            adjacency.indptr, adjacency.indices, adjacency.data, groups.astype(np.int32)
        )
        adjacency = _edges_inside(adjacency, groups)
        yield sparse.csr_matrix((values, (source, target)), shape=(int(groups.max()) + 1,) * 2)
