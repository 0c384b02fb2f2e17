"""The pairs of people whose relationship a curator protects: a public set that every edge method shares.

P = { {u, v}: u < v, both among the declared private nodes, {u, v} no public edge }. The set holds no secret: it follows
from the number of nodes, the declared nodes and the public edges alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.edges.neighbour_lists import EdgeIndex, Ids, NeighbourLists, owners
from graphveil.runtime.checks import require_whole
from graphveil.runtime.late import torch
from graphveil.runtime.sorted_arrays import contains, distinct

if TYPE_CHECKING:
    from torch import Tensor


Pairs: TypeAlias = "torch.Tensor | npt.NDArray[Any]"


@dataclass(frozen=True, eq=False)
class PairDomain:
    """All protected pairs of one graph, numbered in the order of their ends. Two numberings: positions 0..C(k, 2)-1 of
    all pairs among the k private nodes, public ones included; and ranks 0..size-1 of the protected pairs alone, which
    leave the public ones out. Both ascend with (u, v). Raises InputError where an id is no node or stands twice among
    the members, or a public edge is no pair u < v.

    Args:
        nodes: the public number of nodes n.
        members: int64 [k], the ids of the private nodes, each once; declared, never read off private edges. None: all.
        public: int64 [2, m], public edges as pairs u < v; with an end outside `members` they do not matter. None: none.

    >>> domain = PairDomain(4, public=torch.tensor([[0], [1]]))
    >>> domain.size
    5
    >>> domain.unrank(torch.arange(2))
    tensor([[0, 0],
            [2, 3]])
    """

    nodes: int
    members: Tensor | None = None
    public: Tensor | None = None

    def __post_init__(self) -> None:
        require_whole(1, _validate.LARGEST_COUNT, nodes=self.nodes)
        if self.members is not None:
            if not torch.is_tensor(self.members) or self.members.dtype != torch.int64 or self.members.ndim != 1:
                raise InputError(
                    "the private nodes are not a list of ids", where="members", allowed="an int64 tensor [k]"
                )
            if len(self.members) and not (int(self.members.min()) >= 0 and int(self.members.max()) < self.nodes):
                raise InputError("a private node does not exist", where="members", allowed=f"ids 0 to {self.nodes - 1}")
            if len(distinct(self.members.cpu().numpy())) != len(self.members):
                raise InputError("a private node is listed twice", where="members", allowed="each id once")
        if self.public is not None:
            _read_pairs(self.public, self.nodes, "the public edges")

    @property
    def places(self) -> int:
        """The number of pairs among the private nodes, public ones included."""
        return self._rows.total

    @property
    def size(self) -> int:
        """The number of protected pairs."""
        return self.places - len(self.public_positions)

    @cached_property
    def ids(self) -> Ids:
        """The private nodes, int64 [k], ascending."""
        if self.members is None:
            return np.arange(self.nodes, dtype=np.int64)
        # Sorted, so that nothing depends on the order in which nodes were declared.
        return np.sort(self.members.cpu().numpy())

    @property
    def arrays(self) -> tuple[Ids, Ids, Ids | None]:
        """What `pairs_of` reads: starts of rows [k + 1], ranks before each public pair, and `ids`, or None for all."""
        before = self.public_positions - np.arange(len(self.public_positions))
        return self._rows.starts, before, None if self.members is None else self.ids

    @cached_property
    def public_positions(self) -> Ids:
        """The positions of the public edges among the private nodes, int64, ascending, each once."""
        if self.public is None:
            return np.zeros(0, np.int64)
        pairs = _read_pairs(self.public, self.nodes, "the public edges")
        return distinct(self._positions(pairs[:, self._inside(pairs)]))

    def position(self, pairs: Pairs) -> Tensor:
        """The positions of pairs [2, S] with u < v among the private nodes, int64 [S]; public pairs have one too.
        Raises InputError for another shape or type, no pair u < v, or an end that is no private node.
        """
        return torch.from_numpy(self._positions(self._open(pairs)))

    def pairs(self, positions: Pairs) -> Tensor:
        """The inverse of `position`: int64 [2, S], u < v. Raises InputError for a position outside 0..C(k, 2)-1."""
        places = _read_numbers(positions, self.places, "position")
        starts = self._rows.starts
        low = np.searchsorted(starts, places, side="right") - 1
        high = self._rows.named(places, low)
        return torch.from_numpy(np.stack([self.ids[low], self.ids[high]]))

    def rank(self, pairs: Pairs) -> Tensor:
        """The ranks of protected pairs [2, S], int64 [S]; raises InputError as `require` does."""
        positions = self._positions(self._open(pairs))
        # Public edges are released as they are: noise on them would hide nothing.
        self._refuse_public(positions)
        return torch.from_numpy(positions - np.searchsorted(self.public_positions, positions))

    def unrank(self, ranks: Pairs) -> Tensor:
        """The inverse of `rank`: int64 [2, S], u < v, of ranks [S] in 0..size-1."""
        numbers = _read_numbers(ranks, self.size, "rank")
        return self.pairs(numbers + np.searchsorted(self.arrays[1], numbers, side="right"))

    def require(self, pairs: Pairs) -> None:
        """Refuse pairs [2, S] that are not all protected; nothing is dropped silently. Messages name the column, never
        ids. Raises InputError for another shape or type, no pair u < v, an end that is no declared private node, or a
        pair that is a public edge.
        """
        self._refuse_public(self._positions(self._open(pairs)))

    @property
    def _rows(self) -> NeighbourLists:
        """The pairs of the private nodes, row by row: the lower end answers."""
        return NeighbourLists(max(1, len(self.ids)), "lower")

    def _open(self, pairs: Pairs) -> Ids:
        array = _read_pairs(pairs, self.nodes, "the private edges")
        outside = np.flatnonzero(~self._inside(array))
        # Dropped, it would make the domain depend on private edges; whether a pair is protected has to be public.
        if outside.size:
            raise InputError(
                "a private edge ends outside the declared private nodes",
                where=f"the private edges, column {int(outside[0])}",
                allowed="edges with both ends among the private nodes",
                remedy="declare more private nodes (default: all), or declare the edge public",
            )
        return array

    def _inside(self, pairs: Ids) -> npt.NDArray[np.bool_]:
        if self.members is None:
            return np.ones(pairs.shape[1], np.bool_)
        inside: npt.NDArray[np.bool_] = contains(self.ids, pairs[0]) & contains(self.ids, pairs[1])
        return inside

    def _positions(self, pairs: Ids) -> Ids:
        low, high = pairs if self.members is None else np.searchsorted(self.ids, pairs)
        return self._rows.places(low, high)

    def _refuse_public(self, positions: Ids) -> None:
        public = np.flatnonzero(contains(self.public_positions, positions))
        if public.size:
            raise InputError(
                "a private edge is a public edge too",
                where=f"the private edges, column {int(public[0])}",
                allowed="edges that are either private or public",
            )


def protected_pairs(
    nodes: int, edge_index: EdgeIndex, *, public_edges: Tensor | None = None, members: Tensor | None = None
) -> tuple[PairDomain, Tensor]:
    """The protected pairs of a graph, and which of them are its private edges. Returns the domain, and the private
    edges as pairs u < v, int64 [2, S], ascending, each once. Raises InputError where an edge stands in one direction
    only (the methods for protected pairs take undirected graphs), the directions of one edge disagree on whether it is
    public, or a private edge lies outside the domain.

    Args:
        nodes: the public number of nodes.
        edge_index: integers [2, E], both directions of every edge.
        public_edges: bool [E], the columns that everybody knows; both directions agree. None: all edges are private.
        members: int64 [k], the declared private nodes. None: all.
    """
    array = np.asarray(edge_index)
    lists = NeighbourLists(nodes, "lower")
    if public_edges is None:
        domain, private = PairDomain(nodes, members), _pairs_at(lists, lists.open(array))
        domain.require(private)
        return domain, private
    public_columns = public_edges.cpu().numpy()
    # Numbers 0 and 1 would select columns 0 and 1 instead of masking them, and make private edges public.
    if public_columns.dtype != np.bool_ or public_columns.shape != array.shape[1:]:
        raise InputError(
            f"public_edges are {public_columns.dtype} with shape {public_columns.shape}",
            allowed="true or false for each edge column",
        )
    # All columns first: an edge in one direction is another mistake than an edge that is public in one direction.
    lists.open(array)
    # Each part alone must have both directions of every edge; all together were checked above.
    try:
        parts = [lists.open(array[:, public_columns]), lists.open(array[:, ~public_columns])]
    except InputError as error:
        raise InputError(
            "an edge is public in one direction and private in the other", where="public_edges", allowed="both alike"
        ) from error
    public, private = (_pairs_at(lists, part) for part in parts)
    domain = PairDomain(nodes, members, public)
    domain.require(private)
    return domain, private


def pairs_of(ranks: Ids, starts: Ids, before: Ids, ids: Ids | None) -> Ids:
    """The pairs of ascending ranks, as `PairDomain.unrank` gives them in any order. Returns int64 [2, S], u < v.

    Args:
        ranks: int64 [S], ascending.
        starts, before, ids: `PairDomain.arrays`.
    """
    places = ranks + np.searchsorted(before, ranks, side="right")
    low = owners(places, starts)
    ends = np.stack([low, NeighbourLists(len(starts) - 1, "lower").named(places, low)])
    return ends if ids is None else ids[ends]


def _pairs_at(lists: NeighbourLists, places: Ids) -> Tensor:
    """The pairs u < v at places among all nodes."""
    low = np.searchsorted(lists.starts, places, side="right") - 1
    return torch.from_numpy(np.stack([low, lists.named(places, low)]))


def _read_pairs(pairs: Pairs, nodes: int, where: str) -> Ids:
    """Pairs u < v of nodes as a checked int64 array [2, S]."""
    array = _validate.integer_array(pairs, "pairs are", "integers, two rows", rows=2, where=where)
    invalid = np.flatnonzero((array[0] < 0) | (array[1] >= nodes) | (array[0] >= array[1]))
    if invalid.size:
        column = int(invalid[0])
        raise InputError(
            "not a pair u < v of nodes", where=f"{where}, column {column}", allowed=f"0 <= u < v <= {nodes - 1}"
        )
    return array.astype(np.int64, copy=False)


def _read_numbers(numbers: Pairs, end: int, name: str) -> Ids:
    """Checked int64 numbers of 0..end-1."""
    array = _validate.integer_array(numbers, f"{name}s are", "integers, one row")
    if array.size and not (array.min() >= 0 and array.max() < end):
        raise InputError(f"a {name} is outside the domain", allowed=f"0 to {end - 1}")
    return array.astype(np.int64, copy=False)
