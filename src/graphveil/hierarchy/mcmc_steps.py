"""Steps of a Markov chain over the trees on n leaves, each near the cost of the smallest subtree it rearranges.

One of the n - 2 inner nodes below the root is picked, with its two subtrees A and B and its sibling C, and one of the
two other arrangements of ((A, B), C). The new counts follow from the edges between A and C alone: those between A and B
are the count of the picked node, and those between A and C and between B and C add up to the count of its parent. To
find them, the edges of the smallest of the three are gone through, and two comparisons of places say whether the far
end lies in another. They are kept until one of A, B and C becomes another set of leaves, that is until a neighbouring
node is rearranged: where large subtrees have settled, asking about them costs nothing.

Every node has an opening and a closing place in a row, the same one for a leaf, and a node's places enclose those of
all below it. The places are 64-bit numbers with wide gaps. A rearrangement of three subtrees moves the smallest of them
into a gap beside another, and one or two brackets with it; the two larger ones stay where they are. Where a gap has
become too narrow all places are dealt out anew.

Import this module inside functions only: it loads the compiler.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from graphveil.runtime.compiled import compiled
from graphveil.runtime.sorted_arrays import IntArray

#: Columns of `Tree.node`. LAYERS stand side by side where a column is one of a pair: public, then private.
LEFT: Final = 0
RIGHT: Final = 1
PARENT: Final = 2
SIZE: Final = 3
WORK: Final = 4
COUNT: Final = 5
ENDS: Final = 7
CROSS: Final = 9
COLUMNS: Final = 11
PUBLIC: Final = 0
PRIVATE: Final = 1

#: Places of `Tree.effort`.
COUNTED: Final = 0
RELABELLED: Final = 1

# Half of the positive 64-bit numbers, so that sums of two places cannot overflow.
_ROOM: Final = 1 << 62


class Tree(NamedTuple):
    """A tree over n leaves that a chain changes in place.

    Attributes:
        node: int32 [2n-1, COLUMNS]: LEFT and RIGHT child, PARENT, SIZE (leaves below), WORK (leaves below and edges
            that end there); and for the public and the private layer COUNT (edges whose lowest common ancestor it is),
            ENDS (leaves below that take part in the layer) and CROSS (edges between the left child and the sibling; the
            first is -1 where they were not counted since a subtree changed).
    """

    node: npt.NDArray[np.int32]
    first: npt.NDArray[np.int64]  # with last: int64 [2n-1], opening and closing place
    last: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64]  # float64 [2n-1, 2], each node's part of the log-likelihood of each layer
    counts: npt.NDArray[np.int64]  # with values: [2, 2] what a rearrangement makes of COUNT and `score`
    values: npt.NDArray[np.float64]  # layers by inner, outer node
    stack: npt.NDArray[np.int32]  # int32 [2n] room to walk through a subtree
    effort: npt.NDArray[np.int64]  # int64 [2], edges and leaves gone through to count, and places dealt out


@compiled
def _smallest_by_work(tree: Tree, a: int, b: int, c: int) -> int:
    """Return the one of three subtrees that is walked through soonest; of equal ones the first wins."""
    work = tree.node[:, WORK]
    least = a
    if work[b] < work[least]:
        least = b
    if work[c] < work[least]:
        least = c
    return least


@compiled
def relabel(tree: Tree, top: int, place: int, step: int) -> None:
    """Give the subtree of `top` the places place, place + step, ...: 3 k - 2 of them for k leaves.

    Args:
        tree, top: the present tree, whose places are changed, and the subtree.
        place, step: the first place, and how far apart places stand, at least 1.
    """
    node, first, last, stack = tree.node, tree.first, tree.last, tree.stack
    leaves = (len(first) + 1) // 2
    tree.effort[RELABELLED] += 3 * np.int64(node[top, SIZE]) - 2
    stack[0] = top
    pending = 1
    while pending > 0:
        pending -= 1
        item = stack[pending]
        if item < 0:
            last[~item] = place
        else:
            first[item] = place
            last[item] = place
            if item >= leaves:
                # The complement, never a node's number, marks one whose subtree is done: its closing place is due.
                stack[pending] = ~item
                stack[pending + 1] = node[item, RIGHT]
                stack[pending + 2] = node[item, LEFT]
                pending += 3
        place += step


@compiled
def relabel_all(tree: Tree) -> None:
    nodes = len(tree.first)
    relabel(tree, nodes - 1, 0, _ROOM // (2 * nodes))


@compiled
def _move_interval(tree: Tree, inner: int, outer: int, keep: int, leave: int, other: int) -> bool:
    """Move places for ((keep, leave), other) becoming ((keep, other), leave); False where a gap has no room.

    `inner` is the parent of `keep` and `leave`, `outer` that of `inner` and `other`.
    """
    first, last = tree.first, tree.last
    # The smallest moves: each leaf is dealt a new place only when its subtree is the smaller side, so rarely.
    small = _smallest_by_work(tree, keep, leave, other)
    # Sides of the row and not of the tree: which way a bracket grows depends on where `other` stands.
    after = first[other] > last[inner]
    if small == other:  # goes beside `keep`, away from `leave`, and a bracket goes between those two
        closing = first[keep] < first[leave]
        low, high = (first[inner], first[keep]) if closing else (last[keep], last[inner])
        near, far = (last[keep], first[leave]) if closing else (last[leave], first[keep])
    else:  # a bracket goes round `other`, and the small one leaves on the other side or goes beside `other`
        closing = after
        near, far = (last[other], last[outer]) if closing else (first[outer], first[other])
        if small == leave:
            low, high = (first[outer], first[inner]) if closing else (last[inner], last[outer])
        else:
            low, high = (last[leave], first[other]) if closing else (last[other], first[leave])
    width = 3 * np.int64(tree.node[small, SIZE]) - 2
    riding = small == keep  # together with the bracket of `inner` that stands on its side
    # Two more than are taken: a place free at either end, and one for a bracket that comes along.
    step = (high - low) // (width + 2)
    if step < 1 or far - near < 2:
        return False
    relabel(tree, small, low + (2 if riding and closing else 1) * step, step)
    if closing:
        last[inner] = near + (far - near) // 2
        if riding:
            first[inner] = low + step
    else:
        first[inner] = near + (far - near) // 2
        if riding:
            last[inner] = low + (width + 1) * step
    return True


#: Uniform numbers that a step takes.
UNIFORMS: Final = 2
_UNIT: Final = 2.0**-53


class Edges(NamedTuple):
    """The neighbours of every leaf."""

    starts: npt.NDArray[np.int64]  # int64 [n+1], the neighbours of leaf v are ends[starts[v] : starts[v+1]]
    middle: npt.NDArray[np.int64]  # int64 [n], those before middle[v] are public, the others private
    ends: npt.NDArray[np.int32]  # int32 [2m]


@compiled
def _pair_score(edges: int, pairs: int) -> float:
    """Return N chi(e/N), an inner node's log-likelihood at the best density, in nats: e edges of N pairs."""
    if edges <= 0 or edges >= pairs:
        return 0.0
    share = edges / pairs
    # log1p keeps the digits of (1 - t) ln(1 - t) where t is tiny, as it is at the top of a sparse graph.
    return edges * math.log(share) + (pairs - edges) * math.log1p(-share)


@compiled
def fill_scores(tree: Tree) -> None:
    """Fill `score` of all inner nodes from their counts."""
    node, nodes = tree.node, len(tree.first)
    for inner in range((nodes + 1) // 2, nodes):
        left, right = node[inner, LEFT], node[inner, RIGHT]
        for layer in range(2):
            pairs = np.int64(node[left, ENDS + layer]) * node[right, ENDS + layer]
            tree.score[inner, layer] = _pair_score(node[inner, COUNT + layer], pairs)


@compiled
def smallest_leaf_left(left: IntArray, right: IntArray) -> None:
    """Swap children of a dendrogram so that the smallest leaf below an inner node lies to its left.

    Args:
        left, right: int64 [n-1], children, each numbered below its parent; changed in place.
    """
    leaves = len(left) + 1
    least = np.arange(2 * leaves - 1)
    for row in range(leaves - 1):
        if least[left[row]] > least[right[row]]:
            left[row], right[row] = right[row], left[row]
        least[leaves + row] = least[left[row]]


@compiled
def _count_between(tree: Tree, edges: Edges, below: int, goal: int) -> tuple[int, int]:
    """Return the public and the private edges between the subtrees of two tops, in time of the first one's edges."""
    node, first, stack = tree.node, tree.first, tree.stack
    leaves = len(edges.middle)
    low, high = first[goal], tree.last[goal]
    public, private = 0, 0
    stack[0] = below
    pending = 1
    while pending > 0:
        pending -= 1
        item = stack[pending]
        if item >= leaves:
            stack[pending] = node[item, LEFT]
            stack[pending + 1] = node[item, RIGHT]
            pending += 2
            continue
        for at in range(edges.starts[item], edges.middle[item]):
            public += low <= first[edges.ends[at]] <= high
        for at in range(edges.middle[item], edges.starts[item + 1]):
            private += low <= first[edges.ends[at]] <= high
    return public, private


@compiled
def _count_cross_edges(tree: Tree, edges: Edges, inner: int, outer: int, other: int) -> None:
    """Fill CROSS of an inner node, of this parent and sibling: the edges of its left child with the sibling."""
    node = tree.node
    public, private = node[outer, COUNT + PUBLIC], node[outer, COUNT + PRIVATE]
    # Without edges between the siblings there is nothing to count, which is the case of most nodes of a sparse graph.
    if public + private > 0:
        left, right = node[inner, LEFT], node[inner, RIGHT]
        small = _smallest_by_work(tree, left, right, other)
        tree.effort[COUNTED] += node[small, WORK]
        public_near, private_near = _count_between(tree, edges, small, left if small == other else other)
        public = public - public_near if small == right else public_near
        private = private - private_near if small == right else private_near
    node[inner, CROSS + PUBLIC] = public
    node[inner, CROSS + PRIVATE] = private


@compiled
def sibling(tree: Tree, inner: int) -> int:
    """Return the other child of a node's parent."""
    outer = tree.node[inner, PARENT]
    left, right = tree.node[outer, LEFT], tree.node[outer, RIGHT]
    return int(right if left == inner else left)


@compiled
def gains(tree: Tree, edges: Edges, inner: int, swap: int) -> tuple[float, float]:
    """Return what a rearrangement would add to the public and the private log-likelihood, in nats.

    Leaves the details in `tree` for `rearrange`.

    Args:
        tree, edges: the present tree, and the neighbours of every leaf.
        inner: an inner node below the root.
        swap: 0: its left child stays and its sibling takes the place of the right one; 1: the right one stays.
    """
    node, score = tree.node, tree.score
    outer, other = node[inner, PARENT], sibling(tree, inner)
    keep, leave = node[inner, LEFT + swap], node[inner, RIGHT - swap]
    if node[inner, CROSS] < 0:
        _count_cross_edges(tree, edges, inner, outer, other)
    for layer in range(2):
        within, across = node[inner, COUNT + layer], node[outer, COUNT + layer]
        joined = node[inner, CROSS + layer] if swap == 0 else across - node[inner, CROSS + layer]
        tree.counts[layer, 0] = joined
        tree.counts[layer, 1] = within + across - joined
        # The product of two 32-bit sizes needs 64 bits.
        a, b, c = np.int64(node[keep, ENDS + layer]), node[leave, ENDS + layer], node[other, ENDS + layer]
        tree.values[layer, 0] = _pair_score(joined, a * c)
        tree.values[layer, 1] = _pair_score(within + across - joined, (a + c) * b)
    value = tree.values
    public = value[0, 0] + value[0, 1] - score[inner, 0] - score[outer, 0]
    private = value[1, 0] + value[1, 1] - score[inner, 1] - score[outer, 1]
    return public, private


@compiled
def rearrange(tree: Tree, inner: int, swap: int) -> None:
    """Make the rearrangement that `gains` looked at last."""
    node = tree.node
    outer, other = node[inner, PARENT], sibling(tree, inner)
    keep, leave = node[inner, LEFT + swap], node[inner, RIGHT - swap]
    # All places are dealt out anew where a gap is too narrow: then gaps are even, and the second try succeeds.
    if not _move_interval(tree, inner, outer, keep, leave, other):
        relabel_all(tree)
        _move_interval(tree, inner, outer, keep, leave, other)
    node[inner, LEFT], node[inner, RIGHT] = keep, other
    node[outer, LEFT], node[outer, RIGHT] = inner, leave
    node[other, PARENT], node[leave, PARENT] = inner, outer
    node[inner, SIZE] = node[keep, SIZE] + node[other, SIZE]
    node[inner, WORK] = node[keep, WORK] + node[other, WORK]
    for layer in range(2):
        node[inner, CROSS + layer] = node[inner, COUNT + layer]  # between `keep`, now left, and `leave`, now sibling
        node[inner, COUNT + layer] = tree.counts[layer, 0]
        node[outer, COUNT + layer] = tree.counts[layer, 1]
        node[inner, ENDS + layer] = node[keep, ENDS + layer] + node[other, ENDS + layer]
        tree.score[inner, layer] = tree.values[layer, 0]
        tree.score[outer, layer] = tree.values[layer, 1]
    # A child or sibling of these has another set of leaves now, so their counts are invalid.
    for changed in (keep, leave, other, outer):
        node[changed, CROSS] = -1


@compiled
def walk(tree: Tree, edges: Edges, uniforms: npt.NDArray[np.uint64], weight: float) -> int:
    """Take Metropolis steps towards exp(public + weight * private); return how many were accepted.

    The index of a rearrangement is a 64-bit number modulo 2 (n - 2): uniform to 1 part in 2^64 / 2n.

    Args:
        tree, edges: the present tree over n >= 3 leaves, changed in place, and the neighbours of every leaf.
        uniforms: uint64 [UNIFORMS * steps], independent and uniform.
        weight: of a nat of the private log-likelihood.
    """
    leaves = len(edges.middle)
    moves = np.uint64(2 * (leaves - 2))
    accepted = 0
    for at in range(0, len(uniforms), UNIFORMS):
        move = int(np.int64(uniforms[at] % moves))
        inner, swap = leaves + (move >> 1), move & 1
        public, private = gains(tree, edges, inner, swap)
        # One acceptance for both layers: turns of public and private steps have no common limit with a proof.
        gain = public + weight * private
        # 53 bits and a half: strictly between 0 and 1. Logarithms, since ratios leave the range of floats.
        if gain >= 0.0 or math.log((np.float64(uniforms[at + 1] >> np.uint64(11)) + 0.5) * _UNIT) < gain:
            rearrange(tree, inner, swap)
            accepted += 1
    return accepted
