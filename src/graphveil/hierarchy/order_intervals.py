"""Places in a row for the nodes of a tree that changes, so that "is v below x?" is two comparisons.

Every node has an opening and a closing place, the same one for a leaf, and a node's places enclose those of all below
it. The places are 64-bit numbers with wide gaps. A rearrangement of three subtrees moves the smallest of them into a
gap beside another, and one or two brackets with it; the two larger ones stay where they are. Where a gap has become too
narrow all places are dealt out anew.

Import this module inside functions only: it loads the compiler.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from graphveil.runtime.compiled import compiled

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
            ENDS (leaves below that take part in the layer) and CROSS (edges between the left child and the sibling;
            the first is -1 where they were not counted since a subtree changed).
        first, last: int64 [2n-1], opening and closing place.
        score: float64 [2n-1, 2], each node's part of the log-likelihood of each layer.
        counts, values: [2, 2] room for what a rearrangement makes of COUNT and `score`: layers by inner, outer node.
        stack: int32 [2n] room to walk through a subtree.
        effort: int64 [2], edges and leaves gone through to count, and places dealt out, since the chain was opened.
    """

    node: npt.NDArray[np.int32]
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    stack: npt.NDArray[np.int32]
    effort: npt.NDArray[np.int64]


@compiled
def least_work(tree: Tree, a: int, b: int, c: int) -> int:
    """Return the one of three subtrees that is walked through soonest; of equal ones the first wins.

    Args:
        tree: the present tree; a, b, c: tops of subtrees.
    """
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
                # The complement marks a node whose subtree is done and whose closing place is due; node numbers are
                # never negative.
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
def move_interval(tree: Tree, inner: int, outer: int, keep: int, leave: int, other: int) -> bool:
    """Move places for ((keep, leave), other) becoming ((keep, other), leave); False, and no change, where a gap has no
    room.

    Args:
        tree: the present tree; its places are changed, children not yet.
        inner, outer: the parent of `keep` and `leave`, and that of `inner` and `other`.
        keep, leave, other: the three subtrees.
    """
    first, last = tree.first, tree.last
    # The smallest moves: each leaf is dealt a new place only when its subtree is the smaller side, so rarely.
    small = least_work(tree, keep, leave, other)
    # Left and right are sides of the row and not of the tree: which way a bracket has to grow depends on where `other`
    # stands.
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
