"""Compiled loops that find and join communities. Import this module inside functions only: it loads the compiler."""

from __future__ import annotations

from typing import Final

import numpy as np

from graphveil.runtime.compiled import compiled, prefetch
from graphveil.runtime.sorted_arrays import IntArray

#: How many edges ahead the community of an edge's end is prefetched; the sums of that community half as many.
_AHEAD: Final = 64


@compiled
def move_nodes(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    weight: np.ndarray,
    total: np.ndarray,
    order: IntArray,
    community: IntArray,
    sweeps: int,
) -> int:
    """Move each node to the neighbouring community where modularity gains most, until few move; return the number of
    moves.

    Source: Blondel et al., 2008, first phase.

    Args:
        indptr, indices, data: the symmetric weights between nodes in CSR form, [n+1], [nnz], [nnz].
        weight: float64 [n], each node's summed weights, those to itself included.
        total: float64 [n], the summed weights of all nodes in a node's group, the 2m of its modularity.
        order: int64 [n], the order in which nodes are visited.
        sweeps: how often every node is visited at most.
        community: whole numbers [n], set to the number of one node of each node's community.
    """
    nodes = len(order)
    # Rows in the order of the visits: random access to memory would take longer than the work.
    starts, targets, values = _in_visiting_order(indptr, indices, data, order)
    weight, total = weight[order], total[order]
    # The weight in a community and the weight of a node's edges to it, side by side: one cache line for both.
    sums, current = np.zeros((nodes, 2)), np.arange(nodes, dtype=np.int32)
    sums[:, 0] = weight
    column, last = current.reshape(nodes, 1), len(targets) - 1
    touched = np.empty(nodes + 1, np.int32)
    total_moves = 0
    for _ in range(sweeps):
        moves = 0
        for node in range(nodes):
            # A node without an edge in its group has nowhere to go, and its rate would be 0 / 0.
            if total[node] == 0:
                continue
            own, touched_count = current[node], 0
            for place in range(starts[node], starts[node + 1]):
                # Only a prefetch: if the node moves before, the read is slow, but the sums are right.
                prefetch(column, targets[min(place + _AHEAD, last)], 0)
                prefetch(sums, current[targets[min(place + _AHEAD // 2, last)]], 0)
                other = targets[place]
                if other == node:
                    continue
                group = current[other]
                # Always written, but counted only where it is new: a branch would be mispredicted at every other edge.
                touched[touched_count] = group
                touched_count += sums[group, 1] == 0
                sums[group, 1] += values[place]
            # Without the node itself: otherwise its own weight would count for staying.
            sums[own, 0] -= weight[node]
            rate = weight[node] / total[node]
            best, best_gain = own, sums[own, 1] - rate * sums[own, 0]
            for place in range(touched_count):
                group = touched[place]
                gain = sums[group, 1] - rate * sums[group, 0]
                # Sums in another order differ in the last digits: without the margin these would decide ties.
                if gain > best_gain + 1e-9:
                    best, best_gain = group, gain
                sums[group, 1] = 0
            sums[best, 0] += weight[node]
            if best != own:
                current[node] = best
                moves += 1
        total_moves += moves
        # Less than half a percent moved: further sweeps change little, and the next level starts from fewer nodes.
        if moves * 200 < nodes:
            break
    for node in range(nodes):
        community[order[node]] = order[current[node]]
    return total_moves


@compiled
def _in_visiting_order(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, order: IntArray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same edges with nodes renumbered by their positions in `order`; each row keeps its order."""
    position, starts = np.empty(len(order), np.int32), np.zeros_like(indptr)
    for place in range(len(order)):
        position[order[place]] = place
    targets, values, count = np.empty_like(indices), np.empty_like(data), 0
    for place in range(len(order)):
        for edge in range(indptr[order[place]], indptr[order[place] + 1]):
            targets[count], values[count] = position[indices[edge]], data[edge]
            count += 1
        starts[place + 1] = count
    return starts, targets, values


@compiled
def edges_within(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, groups: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the edges whose ends are of one group, in CSR form and in their order.

    Args:
        indptr, indices, data: edges in CSR form, [n+1], [nnz], [nnz].
        groups: int32 [n]; below 0 for nodes whose edges are left out.
    """
    starts, count = np.zeros_like(indptr), 0
    for node in range(len(groups)):
        for place in range(indptr[node], indptr[node + 1]):
            count += groups[node] >= 0 and groups[indices[place]] == groups[node]
        starts[node + 1] = count
    columns, values, count = np.empty(count, indices.dtype), np.empty(count, data.dtype), 0
    for node in range(len(groups)):
        # On late levels most rows lose all edges or none: those that lose all are not read again.
        if starts[node] == starts[node + 1]:
            continue
        for place in range(indptr[node], indptr[node + 1]):
            if groups[indices[place]] == groups[node]:
                columns[count], values[count] = indices[place], data[place]
                count += 1
    return starts, columns, values


@compiled
def edges_between(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, groups: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the two groups of each edge whose ends are of two groups, and its weight.

    Args:
        indptr, indices, data: edges in CSR form, [n+1], [nnz], [nnz].
        groups: int32 [n].
    """
    count = 0
    for node in range(len(groups)):
        for place in range(indptr[node], indptr[node + 1]):
            count += groups[indices[place]] != groups[node]
    source, target = np.empty(count, groups.dtype), np.empty(count, groups.dtype)
    values, count = np.empty(count, data.dtype), 0
    for node in range(len(groups)):
        for place in range(indptr[node], indptr[node + 1]):
            other = groups[indices[place]]
            if other != groups[node]:
                source[count], target[count], values[count] = groups[node], other, data[place]
                count += 1
    return source, target, values


@compiled
def join_intervals(row: IntArray, firsts: IntArray, children: IntArray, inner: int) -> IntArray:
    """Join the trees of each interval of a row in pairs of neighbours, level by level; return the roots int64 [k].

    Args:
        row: int64 [n], the roots of trees side by side; overwritten.
        firsts: int64 [k+1], where each interval starts, and the end.
        children: int64 [2, n-1], filled from column `inner`, how many inner nodes there are already.
    """
    leaves = children.shape[1] + 1
    roots = np.empty(len(firsts) - 1, np.int64)
    for interval in range(len(firsts) - 1):
        first, count = firsts[interval], firsts[interval + 1] - firsts[interval]
        # Level by level and in place, so that no further memory is needed.
        while count > 1:
            pairs = count // 2
            for pair in range(pairs):
                children[0, inner], children[1, inner] = row[first + 2 * pair], row[first + 2 * pair + 1]
                row[first + pair] = leaves + inner
                inner += 1
            if count % 2:
                row[first + pairs] = row[first + count - 1]
            count -= pairs
        roots[interval] = row[first]
    return roots


@compiled
def join_level(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    sizes: np.ndarray,
    firsts: IntArray,
    roots: IntArray,
    children: IntArray,
    most: int,
) -> IntArray:
    """Join the groups firsts[p] .. firsts[p+1]-1 of each parent p: the largest by density, the rest flatly beside them.

    Args:
        indptr, indices, data: edges between groups of the same parent, in CSR form.
        sizes: float64 [k], nodes in each group.
        firsts: int64 [parents+1], where each parent's groups start, and the end.
        roots: int64 [k], the root of each group's tree.
        children: int64 [2, n-1], filled where n - k inner nodes end.
        most: how many groups of a parent are joined by density; the work is its square.

    Returns:
        int64 [parents], the root of each parent's tree.
    """
    leaves = children.shape[1] + 1
    inner, tops = leaves - len(roots), np.empty(len(firsts) - 1, np.int64)
    rank = np.empty(len(roots), np.int64)
    for parent in range(len(firsts) - 1):
        first, stop = firsts[parent], firsts[parent + 1]
        # A stable sort: groups of equal size keep their order, so the tree is the same on every machine.
        by_size = first + np.argsort(-sizes[first:stop], kind="mergesort")
        count = min(stop - first, most)
        rank[by_size] = np.arange(stop - first)
        edges = np.zeros((count, count))
        for group in by_size[:count]:
            for place in range(indptr[group], indptr[group + 1]):
                if rank[indices[place]] < count:
                    edges[rank[group], rank[indices[place]]] += data[place]
        tops[parent] = _join_by_density(roots[by_size[:count]], sizes[by_size[:count]], edges, children, inner)
        inner += count - 1
        rest = roots[by_size[count:]]
        if len(rest) > 0:
            bounds = np.array([0, len(rest)])
            children[1, inner + len(rest) - 1] = join_intervals(rest, bounds, children, inner)[0]
            inner += len(rest)
            children[0, inner - 1] = tops[parent]
            tops[parent] = leaves + inner - 1
    return tops


@compiled
def _join_by_density(root: IntArray, size: np.ndarray, edges: np.ndarray, children: IntArray, inner: int) -> int:
    """Join k trees, always the two with the densest pairs between them (average linkage); return the root of all.

    Where no edges are left, the smallest come first. Roots [k], leaves below each [k] and edges between them [k, k] are
    overwritten; `children` [2, n-1] are filled from column `inner`.
    """
    count, leaves = len(root), children.shape[1] + 1
    best = np.full(count, -1, np.int64)
    joined = np.zeros(count, np.bool_)
    for a in range(count):
        best[a] = _densest(a, size, edges, joined)
    for _ in range(count - 1):
        a = -1
        for b in range(count):
            if not joined[b] and best[b] >= 0 and (a < 0 or _joins_first(b, best[b], a, best[a], size, edges)):
                a = b
        b = best[a]
        children[0, inner], children[1, inner] = root[a], root[b]
        root[a] = leaves + inner
        inner += 1
        joined[b] = True
        size[a] += size[b]
        for c in range(count):
            edges[a, c] += edges[b, c]
            edges[c, a] = edges[a, c]
        for c in range(count):
            # Only rows whose best was one of the two that changed are searched again.
            if not joined[c] and (c == a or best[c] == a or best[c] == b):
                best[c] = _densest(c, size, edges, joined)
            elif not joined[c] and _joins_first(c, a, c, best[c], size, edges):
                best[c] = a
        best[b] = -1
    for a in range(count):
        if not joined[a]:
            return int(root[a])
    return -1


@compiled
def _densest(a: int, size: np.ndarray, edges: np.ndarray, joined: np.ndarray) -> int:
    best = -1
    for b in range(len(size)):
        if b != a and not joined[b] and (best < 0 or _joins_first(a, b, a, best, size, edges)):
            best = b
    return best


@compiled
def _joins_first(a: int, b: int, c: int, d: int, size: np.ndarray, edges: np.ndarray) -> bool:
    """Whether a and b are to be joined before c and d."""
    first, second = edges[a, b] / (size[a] * size[b]), edges[c, d] / (size[c] * size[d])
    return bool(first > second or (first == second and size[a] + size[b] < size[c] + size[d]))


@compiled
def best_values(
    left: IntArray,
    right: IntArray,
    edges: IntArray,
    pairs: IntArray,
    edges_below: IntArray,
    pairs_below: IntArray,
    alternatives: np.ndarray,
    support: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-likelihood of what is below each node, or of the alternative to it, whichever is more.

    Args:
        left, right: int64 [n-1], the children of a dendrogram.
        edges, pairs: int64 [n-1], edges and pairs whose lowest common ancestor each inner node is.
        edges_below, pairs_below: int64 [n-1], those of its whole subtree.
        alternatives: float64 [2n-1], nats offered in a subtree's place; -inf for none.
        support: a subtree with fewer edges is one block.

    Returns:
        float64 [2n-1] in nats, and bool [2n-1], where the alternative was taken.
    """
    leaves = len(left) + 1
    value, replaced = np.zeros(2 * leaves - 1), np.zeros(2 * leaves - 1, np.bool_)
    for row in range(leaves - 1):
        node = leaves + row
        if edges_below[row] < support:
            value[node] = _likelihood(edges_below[row], pairs_below[row])
        else:
            value[node] = _likelihood(edges[row], pairs[row]) + value[left[row]] + value[right[row]]
        if alternatives[node] > value[node]:
            value[node] = alternatives[node]
            replaced[node] = True
    return value, replaced


@compiled
def _likelihood(edges: int, pairs: int) -> float:
    if edges <= 0 or edges >= pairs:
        return 0.0
    share = edges / pairs
    return float(edges * np.log(share) + (pairs - edges) * np.log1p(-share))
