"""Which communities are worth dividing further, and which nodes are better told apart by how well connected they are.

Inside a community two orders compete for the same number of blocks: its own communities, or its nodes by public degree.
The one under which the public edges are more likely wins, from the smallest communities up.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from graphveil.hierarchy.arrays import IntArray
from graphveil.hierarchy.counts import count_edges, lowest_common_ancestors, sums_below
from graphveil.hierarchy.dendrogram import Dendrogram, dendrogram_of
from graphveil.runtime.sorted_arrays import packed

_SUPPORT: Final = 64  # public edges below which a subtree counts as one block; it decides which order wins, no more
_PRICE: Final = 1.0  # nats a node that its finer community must be worth, which is read off the same edges


def worthwhile_levels(rank: IntArray, pairs: IntArray, levels: list[IntArray], nested: Dendrogram) -> list[IntArray]:
    """Return nested partitions [n] again, without the divisions that an order by degree does better.

    Args:
        rank: [n] the nodes' places by falling degree; pairs: int64 [2, m], the edges.
        levels: partitions of the nodes, each inside the one before; nested: the tree made of them.
    """
    from graphveil.hierarchy.community_kernels import best_values

    alternatives = np.full(nested.nodes, -np.inf)
    roots_of_levels, inside = [_subtree_roots(nested, groups) for groups in levels], pairs
    for groups, top in zip(levels[:-1], roots_of_levels, strict=False):
        # The two orders differ in pairs inside groups alone: the others would add the same nats to both.
        inside = inside[:, groups[inside[0]] == groups[inside[1]]]
        tree = ranked_tree(rank, groups)
        value, _ = best_values(*_node_statistics(tree, inside), np.full(tree.nodes, -np.inf), _SUPPORT)
        # A finer division always fits the edges it was read off better; the price keeps it from winning by that alone.
        alternatives[top] = value[_subtree_roots(tree, groups)] + _PRICE * np.bincount(groups)
    replaced = best_values(*_node_statistics(nested, pairs), alternatives, _SUPPORT)[1]
    result, settled = [levels[0]], np.zeros(len(levels[0]), np.bool_)
    for groups, top, finer in zip(levels[:-1], roots_of_levels, levels[1:], strict=False):
        # Once an order by degree was better, nothing inside the group is divided any more.
        settled |= replaced[top][groups]
        result.append(numbered(result[-1], np.where(settled, 0, finer)))
    return result


def ranked_tree(rank: IntArray, groups: IntArray) -> Dendrogram:
    """Return the nodes of each group by rank, joined in pairs of neighbours; then the groups in their order.

    Args:
        rank: int64 [n], the nodes' places by falling degree; groups: int64 [n], numbered from 0 without gaps.
    """
    from graphveil.hierarchy.community_kernels import join_intervals

    children = np.empty((2, len(groups) - 1), np.int64)
    roots = join_intervals(np.argsort(packed(groups, rank)), bounds(groups), children, 0)
    join_intervals(roots, np.array([0, len(roots)]), children, len(groups) - len(roots))
    return dendrogram_of(*children)


def bounds(groups: IntArray) -> IntArray:
    """Return where each of the groups 0, 1, .. starts when sorted, and the end."""
    return np.concatenate([[0], np.cumsum(np.bincount(groups))])


def numbered(groups: IntArray, inner: IntArray) -> IntArray:
    """Return numbers without gaps for the pairs of an outer and an inner group, rising with the outer one: int64 [n].

    Args:
        groups: int64 [n], outer groups; inner: int64 [n], the same number may stand in several outer ones.
    """
    pairs = packed(groups, inner - inner.min())
    # Equal pairs get one number, whichever comes first: no stable sort, which takes several times as long.
    order = np.argsort(pairs)
    ordered = pairs[order]
    result = np.empty(len(groups), np.int64)
    result[order] = np.cumsum(np.concatenate([[False], ordered[1:] != ordered[:-1]]))
    return result


def _subtree_roots(tree: Dendrogram, groups: IntArray) -> IntArray:
    """The node above all members of each group, each of which is a subtree."""
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
    """Children, edges and pairs of each inner node, and both of all below it."""
    layout = tree.layout
    across = ((layout.middle - layout.start) * (layout.stop - layout.middle))[tree.leaves :]
    edges, sizes = count_edges(tree, pairs), tree.sizes[tree.leaves :]
    return tree.left, tree.right, edges, across, sums_below(tree, edges), sizes * (sizes - 1) // 2
