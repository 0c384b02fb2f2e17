"""The pairs that each user reports, as one row of public places; the reports, and the estimates from them.

A list of relationships is a row of bits, one for each other user. End to end these rows form one row of places, which
holds no secret: how many places there are and whose they are follows from the number of users and the mode alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.reports import NamedTensors, require_names
from graphveil.runtime.checks import require_choice, require_whole
from graphveil.runtime.late import sparse, torch
from graphveil.runtime.sorted_arrays import contains, distinct

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class EdgeReports(NamedTensors, starts=("int64", 1), columns=("int32", 1)):
    """One list of ids a user: user v names columns[starts[v]:starts[v+1]], ascending. Raises InputError for other
    tensors, or lists that are not ascending.

    Args:
        starts: int64 [n+1], from 0 to the number of ids.
        columns: int32 [R], the ids.
    """

    starts: Tensor
    columns: Tensor

    def __post_init__(self) -> None:
        super().__post_init__()
        starts, columns = self.starts.numpy(), self.columns.numpy()
        # With lists that overlap or leave ids out one user could report for another.
        complete = len(starts) > 0 and starts[0] == 0 and starts[-1] == len(columns)
        if not complete or (starts[1:] < starts[:-1]).any():
            raise InputError(
                f"starts do not divide {len(columns)} ids", where="reports", allowed="0 to that, ascending"
            )
        # Ids ascend within a list: a pair that is named twice would count twice.
        not_rising = np.flatnonzero(columns[1:] <= columns[:-1]) + 1
        if not contains(starts, not_rising).all():
            raise InputError("a list names its ids out of order or twice", where="reports", allowed="ascending")

    def __len__(self) -> int:
        return len(self.starts) - 1

    def to_edge_index(self) -> Tensor:
        """The entries as int64 [2, R], sorted: row 0 the user who reports, row 1 the user who is named."""
        users = torch.repeat_interleave(torch.arange(len(self)), self.starts.diff())
        return torch.stack([users, self.columns.long()])


@dataclass(frozen=True, eq=False)
class DegreeReports(NamedTensors, levels=("int32", 1)):
    """One noisy degree a user: levels int32 [n], possibly negative."""

    levels: Tensor


@dataclass(frozen=True, eq=False)
class DegreePreservingReports:
    """One noisy degree and one list of ids a user."""

    degrees: DegreeReports
    edges: EdgeReports

    def __post_init__(self) -> None:
        if len(self.degrees) != len(self.edges):
            raise InputError(f"{len(self.degrees)} degrees with {len(self.edges)} lists", where="reports")

    def __len__(self) -> int:
        return len(self.edges)

    def to_tensors(self) -> dict[str, Tensor]:
        """The tensors by name."""
        return self.degrees.to_tensors() | self.edges.to_tensors()

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> DegreePreservingReports:
        """The inverse of `to_tensors`; raises InputError for missing, extra or wrong tensors."""
        require_names(tensors, "levels", "starts", "columns")
        return cls(DegreeReports(tensors["levels"]), EdgeReports(tensors["starts"], tensors["columns"]))

    def to_edge_index(self) -> Tensor:
        """The entries as int64 [2, R], sorted: row 0 the user who reports, row 1 the user who is named."""
        return self.edges.to_edge_index()


MODES: Final = ("lower", "both", "directed")

Ids = npt.NDArray[np.int64]
EdgeIndex: TypeAlias = "torch.Tensor | npt.NDArray[Any]"


@dataclass(frozen=True)
class NeighbourLists:
    """The places of `nodes` users in one of `MODES`. lower: user i reports the pairs {i, j} with j > i only; both: all
    pairs {i, j}, so each pair has two places; directed: all links from i to j.
    """

    nodes: int
    mode: str

    def __post_init__(self) -> None:
        require_whole(1, _validate.LARGEST_COUNT, nodes=self.nodes)
        require_choice(MODES, mode=self.mode)

    @property
    def total(self) -> int:
        """The number of all places."""
        square = self.nodes * (self.nodes - 1)
        return square // 2 if self.mode == "lower" else square

    @property
    def reports_per_unit(self) -> int:
        """How many lists contain one relationship, or one directed link."""
        return 2 if self.mode == "both" else 1

    @property
    def lengths(self) -> Ids:
        """How many places each list has, int64 [n]."""
        if self.mode == "lower":
            return np.arange(self.nodes - 1, -1, -1, dtype=np.int64)
        return np.full(self.nodes, self.nodes - 1, np.int64)

    @property
    def starts(self) -> Ids:
        """Where each list begins, int64 [n+1]; the last entry is `total`."""
        ids = np.arange(self.nodes + 1, dtype=np.int64)
        if self.mode == "lower":
            # ids (2 n - 1 - ids) / 2, whose factors never exceed 64 bits; the last product is n (n - 1).
            return ids * (2 * self.nodes - 1 - ids) // 2
        return ids * (self.nodes - 1)

    def places(self, users: Ids, named: Ids) -> Ids:
        """The place of each pair; `named` must be in the user's list. Returns int64 [m], each 0 to total - 1.

        Args:
            users, named: int64 [m], who lists whom.
        """
        if self.mode == "lower":
            return users * (2 * self.nodes - 1 - users) // 2 + (named - users - 1)
        return users * (self.nodes - 1) + named - (named > users)

    def named(self, places: Ids, users: Ids) -> Ids:
        """The user that each place names, given the user that it belongs to."""
        if self.mode == "lower":
            return places - users * (2 * self.nodes - 1 - users) // 2 + users + 1
        slots = places - users * (self.nodes - 1)
        return slots + (slots >= users)

    def open(self, edge_index: EdgeIndex) -> Ids:
        """The places that hold a relationship of edge_index [2, E], ascending; what is listed twice counts once. Row 0
        is the user whose list names row 1; both directions of every relationship unless the mode is "directed".
        Messages name columns, never ids. Raises InputError for another shape or type, an id outside 0..n-1, a user who
        names itself, or (undirected) a relationship in one direction only.
        """
        users, named = self._read(edge_index)
        if self.mode == "directed":
            return distinct(self.places(users, named))
        ascending = users < named
        lower, mirrored = NeighbourLists(self.nodes, "lower"), ~ascending
        pairs = distinct(lower.places(users[ascending], named[ascending]))
        # Refused, not repaired: adding the missing direction would assert a relationship that the user did not report.
        if not np.array_equal(pairs, distinct(lower.places(named[mirrored], users[mirrored]))):
            raise InputError(
                "a relationship is listed in one direction only",
                where="edge_index",
                allowed="both directions of every relationship",
                remedy='add the other direction, or use mode="directed"',
            )
        return pairs if self.mode == "lower" else distinct(self.places(users, named))

    def check(self, reports: EdgeReports) -> tuple[Ids, Ids]:
        """Who reports and who is named, sorted; raises InputError for reports that no device can send."""
        if len(reports) != self.nodes:
            raise InputError(f"reports of {len(reports)} users", allowed=f"{self.nodes}, the mechanism's nodes")
        users, named = reports.to_edge_index().numpy()
        # A report on another user's pair would count beside that user's report, so the pair would weigh twice.
        least = users + 1 if self.mode == "lower" else 0
        if not ((named >= least) & (named < self.nodes) & (named != users)).all():
            raise InputError("a report names a pair that its user does not report", where="reports")
        return users, named

    def open_reports(self, reports: EdgeReports) -> Ids:
        """The places that reports name, ascending; raises InputError as `check` does."""
        return self.places(*self.check(reports))

    def overlap(self, reports: EdgeReports, true: Ids) -> tuple[Ids, Ids, Ids]:
        """For each user the number of entries that were sent, that are true, and that are both: three int64 [n].

        Args:
            true: the places that hold a relationship, ascending.
        """
        reported, starts = self.open_reports(reports), self.starts

        def count(places: Ids) -> Ids:
            return np.bincount(owners(places, starts), minlength=self.nodes)

        return count(reported), count(true), count(true[contains(reported, true)])

    def _read(self, edge_index: EdgeIndex) -> tuple[Ids, Ids]:
        array = _validate.integer_array(edge_index, "edge_index is", "integers, two rows", rows=2)
        outside = np.flatnonzero(((array < 0) | (array >= self.nodes)).any(axis=0))
        if outside.size:
            where = f"edge_index, column {int(outside[0])}"
            raise InputError("an id is not a declared user", where=where, allowed=f"0 to {self.nodes - 1}")
        # The diagonal has no place in any list; read as a place it would be the bit of another pair.
        loops = np.flatnonzero(array[0] == array[1])
        if loops.size:
            where = f"edge_index, column {int(loops[0])}"
            raise InputError("a user names itself", where=where, remedy="remove self-loops first")
        users, named = array.astype(np.int64)
        return users, named


def owners(places: Ids, starts: Ids) -> Ids:
    """The user that each place belongs to, int64 [m].

    Args:
        places: int64 [m], ascending.
        starts: int64 [n + 1], where each list begins, and the end.
    """
    if not places.size:
        return np.zeros(0, np.int64)
    # Only the lists from the first to the last place: callers come block by block, and each would search n starts.
    first, last = (int(np.searchsorted(starts, place, side="right")) - 1 for place in (places[0], places[-1]))
    ends = np.searchsorted(places, starts[first : last + 2])
    return np.repeat(np.arange(first, last + 1), np.diff(ends))


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """log Pr[reports | related] - log Pr[reports | not related], of every pair.

    Args:
        nodes: n.
        source, target: int64 [S], the pairs that some report names, sorted, each once; source < target unless directed.
        log_ratio: float64 [S], of those pairs.
        background: of every other pair.
        directed: whether (i, j) and (j, i) are two pairs.
    """

    nodes: int
    source: Tensor
    target: Tensor
    log_ratio: Tensor
    background: float
    directed: bool

    def __len__(self) -> int:
        return len(self.source)

    @property
    def pairs(self) -> int:
        """The number of all pairs, named or not."""
        ordered = self.nodes * (self.nodes - 1)
        return ordered if self.directed else ordered // 2

    def to_edge_index(self) -> Tensor:
        """The named pairs as int64 [2, S], or [2, 2S] when undirected: columns e and S + e are one pair."""
        edges = torch.stack([self.source, self.target])
        return edges if self.directed else torch.cat([edges, edges.flip(0)], dim=1)


@dataclass(frozen=True, eq=False)
class AdjacencyEstimate:
    """An unbiased estimate of the adjacency: `background` between every two users, plus `centred` [n, n]."""

    centred: sparse.csr_matrix
    background: float


@dataclass(frozen=True, eq=False)
class PairEstimate:
    """An estimate of who is related among protected pairs: `named` for some, one number for all others.

    Args:
        pairs: int64 [2, S], u < v, the pairs that a release names.
        named: the estimate of each of them.
        unnamed: the estimate of every other protected pair.
        size: the number of protected pairs.
    """

    pairs: Tensor
    named: float
    unnamed: float
    size: int

    @property
    def total(self) -> float:
        """The estimated number of private edges."""
        return self.named * self.pairs.shape[1] + self.unnamed * (self.size - self.pairs.shape[1])


def named_pairs(lists: NeighbourLists, reports: EdgeReports) -> tuple[Tensor, Tensor, Tensor]:
    """The pairs that some report names, sorted, and how many reports name each: three int64 [S]. Raises InputError for
    reports that no device can send.
    """
    users, named = lists.check(reports)
    if lists.mode != "both":
        # Each pair has one place in these modes, so no other report can name it.
        return torch.from_numpy(users), torch.from_numpy(named), torch.ones(len(users), dtype=torch.int64)
    # Both ends may name a pair: it is counted once, at the place of its lower end.
    lower = NeighbourLists(lists.nodes, "lower")
    places = np.sort(lower.places(np.minimum(users, named), np.maximum(users, named)))
    # After sorting, equal places are adjacent: the distance between two starts is the number of reports.
    first = np.flatnonzero(np.diff(places, prepend=-1))
    low = owners(places[first], lower.starts)
    high = lower.named(places[first], low)
    return torch.from_numpy(low), torch.from_numpy(high), torch.from_numpy(np.diff(first, append=len(places)))


def either_end(lists: NeighbourLists, reports: EdgeReports) -> Tensor:
    """The pairs that some report names as int64 [2, E], sorted; both directions of each unless directed. Raises
    InputError for reports that no device can send.
    """
    source, target, _ = named_pairs(lists, reports)
    if lists.mode == "directed":
        return torch.stack([source, target])
    places = NeighbourLists(lists.nodes, "both")
    links = torch.cat([torch.stack([source, target]), torch.stack([target, source])], dim=1).numpy()
    # In the order of places: the position of an edge must not reveal which end named it.
    order = np.argsort(places.places(links[0], links[1]), kind="stable")
    return torch.from_numpy(links[:, order])
