"""Bounded degrees: a bound on how many nodes one node's data can reach, fixed before any private value is read.

A sum over neighbours hides a node only if that node sends to a bounded number D of others. Sampling D edges of each
node afresh does not give that (removing a hub lets each of its neighbours sample another edge: the sums of others
change without bound), nor does keeping the edges that rank among the D first at both ends, for the same reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from graphveil.errors import InputError
from graphveil.graphs.value.edges import require_nodes
from graphveil.privacy import Assumption, ProtectedUnit, assume
from graphveil.privacy.statement.unit import NODE, NODE_AND_OWN_LIST
from graphveil.runtime.checks import require_whole
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.sorted_arrays import distinct
from graphveil.runtime.words import count_of

Rule = Literal["lists", "declared"]
RULES: Final[tuple[str, ...]] = get_args(Rule)


_MIX: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_STRIDE: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class BoundedEdges:
    """Edges, of which no more than `degree` leave any node."""

    edge_index: Tensor  # int64 [2, E]: row 0 sends to row 1
    degree: int
    rule: Rule

    @property
    def protects(self) -> ProtectedUnit:
        """The protected unit of a guarantee that rests on this bound."""
        return NODE_AND_OWN_LIST if self.rule == "lists" else NODE

    @property
    def assumes(self) -> tuple[Assumption, ...]:
        """The public promises that the bound rests on."""
        if self.rule == "lists":
            return ()
        return (assume("degree-promised", degree=self.degree),)


def keep_lists(edge_index: Tensor, num_nodes: int, degree: int, *, salt: int = 0) -> BoundedEdges:
    """Keep of each node's own list the `degree` neighbours with the lowest public hash.

    Row 0 of an edge sends to row 1 and owns the edge; an undirected edge is in two lists, one at each end.

    Stability: each list is cut by itself, by a hash of the two node numbers of each edge and nothing else. Emptying (or
    filling) one node's list therefore changes no other list, and at most D of the kept edges, which go to D different
    receivers: in sums of rows of length at most 1 it changes D rows by at most 1 each, sqrt(D) altogether. Replacing
    the node's features changes the same rows. Not covered: if other nodes take the node off their own lists at the same
    time, each of them may keep another neighbour instead; hiding that too needs `require_degree`.

    Args:
        edge_index: int64 [2, E]; self-loops and duplicates are left out.
        degree: D, at least 1, public.
        salt: selects another public hash.

    Raises:
        InputError: degree is below 1, or an edge names a node that does not exist.
    """
    require_whole(1, degree=degree)
    source, target = _distinct(edge_index, num_nodes)
    # A rank that depended on other edges would spread one node's change to other lists.
    order = _by_list(source, _hash(source, target, salt), num_nodes)
    source, target = source[order], target[order]
    list_start = np.searchsorted(source, source)
    retained = np.arange(source.size) - list_start < degree
    return _bounded(source[retained], target[retained], degree, "lists")


def require_degree(edge_index: Tensor, num_nodes: int, degree: int) -> BoundedEdges:
    """Accept a graph that keeps a public promise: no node sends or receives along more than `degree` edges.

    Stability: among graphs that keep the promise, removing one node with all its edges changes at most D other rows of
    the sum, each by one row of length at most 1: sqrt(D) altogether. A refusal is not private: it reveals that the
    promise was broken.

    Args:
        edge_index: int64 [2, E]; self-loops and duplicates are left out.
        degree: D, at least 1, public: promised before the graph was read.

    Raises:
        InputError: some node has more edges (the message does not say which, nor how many), degree is below 1, or an
            edge names a node that does not exist.
    """
    require_whole(1, degree=degree)
    source, target = _distinct(edge_index, num_nodes)
    for ends in (source, target):
        # The message names neither node nor degree: its readers may not learn degrees.
        if ends.size and int(np.bincount(ends).max()) > degree:
            remedy = "declare more, or bound each node's own list with keep_lists"
            raise InputError(
                f"a node has more than the declared {count_of(degree, 'edge')}", where="degree bound", remedy=remedy
            )
    return _bounded(source, target, degree, "declared")


def _distinct(edge_index: Tensor, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    source, target = edge_index.cpu().numpy().astype(np.int64)
    require_nodes(source, target, num_nodes)
    keep = source != target
    # Each edge once: a duplicate would enter a sum twice, beyond the row's declared length.
    codes = distinct(source[keep] * num_nodes + target[keep])
    return codes // max(num_nodes, 1), codes % max(num_nodes, 1)


def _by_list(source: np.ndarray, hashes: np.ndarray, num_nodes: int) -> np.ndarray:
    """The order of edges by owner, then by as many leading bits of the hash as fit into the same 64-bit word."""
    bits = num_nodes.bit_length()
    packed = (source.astype(np.uint64) << np.uint64(64 - bits)) | (hashes >> np.uint64(bits))
    # Stable: equal hashes stay in the order of receivers. The owners ascend already, which a stable sort exploits.
    order: np.ndarray = np.argsort(packed, kind="stable")
    return order


def _hash(source: np.ndarray, target: np.ndarray, salt: int) -> np.ndarray:
    """A fixed 64-bit hash of two node numbers (the finaliser of splitmix64, twice): public, equal on all machines."""
    mixed = np.full(source.shape, salt % 2**64, dtype=np.uint64)
    for numbers in (source, target):
        mixed = (mixed ^ numbers.astype(np.uint64)) + _STRIDE
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX[0]
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX[1]
        mixed ^= mixed >> np.uint64(31)
    return mixed


def _bounded(source: np.ndarray, target: np.ndarray, degree: int, rule: Rule) -> BoundedEdges:
    return BoundedEdges(torch.from_numpy(np.stack([source, target])), degree, rule)
