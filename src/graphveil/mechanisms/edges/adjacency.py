"""Randomized response on neighbour lists, for graphs far too large for a nodes x nodes array.

Source: S. L. Warner, "Randomized Response", JASA 60, 1965; on the rows of an adjacency matrix: Z. Qin et al.,
"Generating Synthetic Decentralized Social Graphs with Local Differential Privacy", CCS 2017; reporting the lower
triangle only: J. Imola, T. Murakami, K. Chaudhuri, "Locally Differentially Private Analysis of Graph Statistics",
USENIX Security 2021, https://arxiv.org/abs/2010.08688.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from graphveil.engine import LOCAL, Engine
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.guarantees import ListMechanism, entry_guarantee
from graphveil.mechanisms.edges.edge_sampling import sample_lists
from graphveil.mechanisms.edges.neighbour_lists import (
    AdjacencyEstimate,
    EdgeIndex,
    EdgeReports,
    NeighbourLists,
    PairEvidence,
    either_end,
    named_pairs,
)
from graphveil.mechanisms.samplers.bits import WORD, BitLaw, bit_law
from graphveil.privacy import Guarantee, Randomness
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.late import sparse, torch

if TYPE_CHECKING:
    from torch import Tensor


class BitFlips:
    """Base of mechanisms that flip each bit at `epsilon`, which they declare as a field."""

    epsilon: float

    @property
    def threshold(self) -> int:
        """2^64 p, a whole number: a bit is flipped where a random word lies below it."""
        return self._law.low

    @property
    def flip(self) -> float:
        """p: the probability that a bit is flipped."""
        return self.threshold / WORD

    @property
    def _gap(self) -> float:
        return self._law.span / WORD

    @property
    def _law(self) -> BitLaw:
        return bit_law(self.epsilon, 1)


# From here on the noise alone takes seconds and hundreds of megabytes, and buries any graph of that many nodes.
FALSE_EDGES_WARNING: Final = 20_000_000


@dataclass(frozen=True, kw_only=True)
class AdjacencyRR(BitFlips, ListMechanism):
    """Every bit of every neighbour list is flipped with probability 1 / (e^epsilon + 1).

    Formal guarantees: epsilon for one reported bit, exactly: the flip probability is an integer multiple of 2^-64 that
    is rounded up by more than the sampler's finite digits can lose. What one relationship costs depends on the mode:
    epsilon for "lower" and "directed", 2 epsilon for "both".

    Args:
        epsilon: finite and positive, for one reported bit.
        mode: "lower": of every two users the one with the lower id reports; "both": each end reports; "directed": every
            user reports the links that start at it.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = AdjacencyRR(epsilon=3.0, nodes=5)
    >>> round(mechanism.flip, 4)
    0.0474
    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> mechanism.randomize(path, randomness=SeededRandomness(7)).to_edge_index()
    tensor([[0, 0, 1],
            [1, 4, 2]])
    >>> str(mechanism.guarantee.unit)
    'one relationship'
    """

    epsilon: float
    nodes: int
    mode: str = "lower"

    def __post_init__(self) -> None:
        _validate.require_epsilon(self.epsilon)
        NeighbourLists(self.nodes, self.mode)

    @property
    def bit_guarantee(self) -> Guarantee:
        """What protects one bit of one list, as papers state it."""
        return entry_guarantee(self.epsilon, self.nodes)

    @property
    def expected_false(self) -> float:
        """The expected number of false entries in the reports, computed as if there were no relationship."""
        return self._lists.total * self.flip

    @property
    def expected_bytes(self) -> float:
        """The expected size of all reports together, computed as if there were no relationship."""
        return 8.0 * (self.nodes + 1) + 4 * self.expected_false

    @property
    def warning(self) -> str | None:
        """What to tell a user before running, or None."""
        if self.expected_false <= FALSE_EDGES_WARNING:
            return None
        return (
            f"epsilon {rounded_up(self.epsilon)} among {self.nodes:,} users makes about "
            f"{self.expected_false:,.0f} false edges ({self.expected_bytes / 1e6:,.0f} MB of reports), more than "
            f"{FALSE_EDGES_WARNING:,}; raise epsilon or take fewer users"
        )

    @property
    def variance(self) -> float:
        """The variance of the estimate of each entry of the adjacency: p (1 - p) / (1 - 2p)^2 a report."""
        return self.flip * (1 - self.flip) / self._gap**2 / self._lists.reports_per_unit

    def randomize(self, edge_index: EdgeIndex, *, randomness: Randomness, engine: Engine = LOCAL) -> EdgeReports:
        """What the devices send. Raises InputError where an id is no user, a user names itself, or a direction is
        missing; nothing is drawn.

        Args:
            edge_index: integers [2, E], row 0 the user whose list names row 1, both directions of every relationship
                unless the mode is "directed"; what is listed twice counts once.
        """
        lists = self._lists
        return sample_lists(lists, lists.open(edge_index), self.threshold, randomness, engine=engine)

    def evidence(self, reports: EdgeReports) -> PairEvidence:
        """What the reports say about each pair, both reports of it combined by their likelihood."""
        source, target, count = named_pairs(self._lists, reports)
        full_count = self._lists.reports_per_unit
        # Each report that names the pair adds log((1-p)/p), and each report that does not subtracts as much.
        ratio = (2 * count - full_count).double() * self._log_odds
        return PairEvidence(self.nodes, source, target, ratio, -full_count * self._log_odds, self.mode == "directed")

    def estimate(self, reports: EdgeReports) -> AdjacencyEstimate:
        """The unbiased estimate of the adjacency, (bit - p) / (1 - 2p), averaged where two reports cover a pair.
        Undirected: both directions of a pair have the same entry. The diagonal is left out.
        """
        source, target, count = (part.numpy() for part in named_pairs(self._lists, reports))
        values = count / (self._gap * self._lists.reports_per_unit)
        if self.mode != "directed":
            # Averaged before mirrored: where both ends report, each direction holds the mean of the same two bits.
            source, target = np.concatenate([source, target]), np.concatenate([target, source])
            values = np.concatenate([values, values])
        matrix = sparse.csr_matrix((values, (source, target)), shape=(self.nodes, self.nodes))
        return AdjacencyEstimate(matrix, -self.flip / self._gap)

    def collected(self, reports: EdgeReports) -> Tensor:
        """The graph as the server reads it, int64 [2, E]: pairs that either end names, in both directions."""
        return either_end(self._lists, reports)

    def log_likelihood(self, reports: EdgeReports, edge_index: EdgeIndex) -> Tensor:
        """log Pr[report | list] of each user, float64 [n]; exact: it uses the sampler's own integer.

        Args:
            edge_index: integers [2, E], the true lists, as `randomize` takes them.
        """
        lists = self._lists
        reported, actual, common = lists.overlap(reports, lists.open(edge_index))
        # All wrong bits were flipped and all other bits were not, independently. They are counted and not visited: n
        # bits a user would be n squared in all, nearly all of them 0 on both sides.
        wrong = reported + actual - 2 * common
        right = lists.lengths - wrong
        return torch.from_numpy(wrong * math.log(self.flip) + right * math.log1p(-self.flip))

    @property
    def _log_odds(self) -> float:
        """log((1 - p) / p), what one report is worth; at most epsilon."""
        # From integers: at a large epsilon 1 - p is 1 in floating point, and at a small one the two cancel.
        return math.log1p(self._law.span / self.threshold)
