"""What all reports together say about each pair of users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

from graphveil.mechanisms.edges.neighbour_lists import EdgeReports, NeighbourLists, owners
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """log Pr[reports | related] - log Pr[reports | not related], of every pair.

    Args:
        nodes: n.
        source, target: int64 [S], the pairs that some report names, sorted, each once; source < target unless
            directed.
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
        forth = torch.stack([self.source, self.target])
        return forth if self.directed else torch.cat([forth, forth.flip(0)], dim=1)


@dataclass(frozen=True, eq=False)
class AdjacencyEstimate:
    """An unbiased estimate of the adjacency: `background` between every two users, plus `centred` [n, n]."""

    centred: scipy.sparse.csr_matrix
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
    """The pairs that some report names, sorted, and how many reports name each: three int64 [S].

    Args:
        lists: the public places.
        reports: of all users.

    Raises:
        InputError: reports that no device can send.
    """
    users, named = lists.check(reports)
    if lists.mode != "both":
        # Each pair has one place in these modes, so no other report can name it.
        return torch.from_numpy(users), torch.from_numpy(named), torch.ones(len(users), dtype=torch.int64)
    # Both ends may name a pair: count it once, under the place of its lower end.
    lower = NeighbourLists(lists.nodes, "lower")
    places = np.sort(lower.places(np.minimum(users, named), np.maximum(users, named)))
    # Places of one pair stand together once sorted: where a new one begins, the last one's reports are counted.
    first = np.flatnonzero(np.diff(places, prepend=-1))
    low = owners(places[first], lower.starts)
    high = lower.named(places[first], low)
    return torch.from_numpy(low), torch.from_numpy(high), torch.from_numpy(np.diff(first, append=len(places)))


def either_end(lists: NeighbourLists, reports: EdgeReports) -> Tensor:
    """The pairs that some report names as int64 [2, E], sorted; both directions of each unless directed.

    Args:
        lists: the public places.
        reports: of all users.

    Raises:
        InputError: reports that no device can send.
    """
    source, target, _ = named_pairs(lists, reports)
    if lists.mode == "directed":
        return torch.stack([source, target])
    places = NeighbourLists(lists.nodes, "both")
    links = torch.cat([torch.stack([source, target]), torch.stack([target, source])], dim=1).numpy()
    # In the order of places: the column of an edge must not tell which end named it.
    order = np.argsort(places.places(links[0], links[1]), kind="stable")
    return torch.from_numpy(links[:, order])
