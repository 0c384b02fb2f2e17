"""How many relationships each user has, with two-sided geometric noise; and a noisy list thinned to about that many.

Sources: A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", STOC 2009,
https://arxiv.org/abs/0811.2841; as a degree vector beside noisy neighbour lists: X. Zhu, V. Y. F. Tan, X. Xiao,
"Blink: Link Local Differential Privacy in Graph Neural Networks via Bayesian Estimation", CCS 2023,
https://arxiv.org/abs/2309.03190; thinned lists: S. Hidano, T. Murakami, "Degree-Preserving Randomized Response for
Graph Neural Networks under Local Differential Privacy", 2022, https://arxiv.org/abs/2202.10209. A negative noisy degree
counts as 0 here: as published, one that is negative enough turns the thinning off and lets all of the noise through.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.guarantees import ListMechanism
from graphveil.mechanisms.base.reports import require_inside, require_pairs
from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.edges.adjacency import FALSE_EDGES_WARNING, AdjacencyRR
from graphveil.mechanisms.edges.edge_sampling import Thresholds, sample_lists
from graphveil.mechanisms.edges.neighbour_lists import (
    DegreePreservingReports,
    DegreeReports,
    EdgeIndex,
    EdgeReports,
    Ids,
    NeighbourLists,
    either_end,
    owners,
)
from graphveil.mechanisms.edges.noisy_counts import NoisyCounts
from graphveil.mechanisms.samplers.bits import WORD
from graphveil.mechanisms.samplers.geometric import TwoSided, two_sided
from graphveil.privacy import Randomness
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.checks import require_number
from graphveil.runtime.late import special, torch

if TYPE_CHECKING:
    from torch import Tensor

Degrees: TypeAlias = "torch.Tensor | npt.NDArray[Any]"

# Reports reach this many noise scales beyond the possible degrees; noise further out has probability e^-40.
_REACH: Final = 40


@dataclass(frozen=True, kw_only=True)
class NoisyDegree(ListMechanism):
    """Adds two-sided geometric noise to the number of relationships in each user's list. Raises InputError where a
    parameter is outside its range, NaN included, or reports would not fit into 32 bits.

    Formal guarantees: epsilon for one list, exactly; the possible reports are the same for all degrees; estimates are
    unbiased up to e^-40 of the noise. In mode "both" a relationship counts in two lists and costs 2 epsilon.

    Args:
        epsilon: finite and positive, for one list.
        mode: which pairs a list holds: "lower", "both" or "directed", as in `AdjacencyRR`.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = NoisyDegree(epsilon=1.0, nodes=4, mode="both")
    >>> mechanism.randomize(torch.tensor([1, 2, 3, 0]), randomness=SeededRandomness(7)).levels
    tensor([3, 1, 2, 1], dtype=torch.int32)
    """

    epsilon: float
    nodes: int
    mode: str = "lower"

    def __post_init__(self) -> None:
        _validate.require_epsilon(self.epsilon)
        NeighbourLists(self.nodes, self.mode)
        if self.nodes + self._reach >= 2**31:
            raise InputError(
                f"epsilon {rounded_up(self.epsilon)} for {self.nodes} users needs levels above 32 bits",
                allowed=f"40 / epsilon + nodes below {2**31}",
            )

    @property
    def variance(self) -> float:
        """The variance of each report: 2 r / (1 - r)^2 with r = e^-epsilon."""
        return self._noise.variance

    def count(self, edge_index: EdgeIndex) -> Tensor:
        """The true degrees, int64 [n]: how many relationships stand in each user's list; private."""
        lists = self._lists
        return torch.from_numpy(np.bincount(owners(lists.open(edge_index), lists.starts), minlength=self.nodes))

    def randomize(self, degrees: Degrees, *, randomness: Randomness, engine: Engine = LOCAL) -> DegreeReports:
        """What the devices send. Raises InputError where a degree is negative or above the length of the list; nothing
        is encoded.

        Args:
            degrees: integers [n], for each user how many relationships its list holds.
        """
        noisy = NoisyCounts(epsilon=self.epsilon).randomize(self._open(degrees), randomness=randomness, engine=engine)
        # Clamped to ends that every degree can reach: another end would reveal something about the degree.
        lowest, highest = self.ends
        return DegreeReports(torch.from_numpy(np.clip(noisy.numpy(), lowest, highest).astype(np.int32)))

    def estimate(self, reports: DegreeReports) -> Tensor:
        """The unbiased estimate of the degrees, float64 [n]: the reports themselves, negative ones included."""
        self._check(reports)
        return reports.levels.double()

    def log_likelihood(self, reports: DegreeReports, degrees: Degrees) -> Tensor:
        """log Pr[report | degree] of each user, float64 [n]; the ends collect what was clamped."""
        self._check(reports)
        levels = reports.levels.numpy().astype(np.int64)
        distance = np.abs(levels - self._open(degrees))
        # Clamping collects the whole tails in the two end reports: their probability is a tail and no single mass.
        at_end = np.isin(levels, self.ends)
        return torch.from_numpy(np.where(at_end, self._noise.log_tail(distance), self._noise.log_pmf(distance)))

    @property
    def _reach(self) -> int:
        return math.ceil(_REACH / self._noise.rate)

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest report."""
        return -self._reach, self.nodes - 1 + self._reach

    @property
    def thresholds(self) -> tuple[tuple[int, ...], int]:
        """What the noise is drawn with, see `TwoSided.thresholds`."""
        return self._noise.thresholds

    @property
    def _noise(self) -> TwoSided:
        return two_sided(self.epsilon)

    def _check(self, reports: DegreeReports) -> None:
        require_pairs(len(reports), self.nodes)
        require_inside(reports.levels, *self.ends, "a degree")

    def _open(self, degrees: Degrees) -> Ids:
        array = _validate.integer_array(degrees, "degrees are", f"{self.nodes} integers", count=self.nodes)
        # Reports reach a fixed distance beyond possible degrees: a larger degree would nearly always be clamped.
        outside = np.flatnonzero((array < 0) | (array > self._lists.lengths))
        if outside.size:
            where = f"degrees, row {int(outside[0])}"
            raise InputError("the degree does not match the user's list", where=where, allowed=f"mode {self.mode!r}")
        return array.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class DegreePreservingRR(ListMechanism):
    """Each user sends a noisy degree, and of its noisy list about as many entries as that degree says.

    Formal guarantees: epsilon for one list, exactly, of which `degree_share` pays for the degree and the rest for the
    flipped bits; thinning them looks at nothing private. In mode "both" one relationship costs 2 epsilon.

    Args:
        epsilon: finite and positive, for one list.
        mode: which pairs a list holds: "lower", "both" or "directed", as in `AdjacencyRR`.
        degree_share: the part of epsilon that the degree takes, from 0.01 to 0.99; the paper's is 0.1.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = DegreePreservingRR(epsilon=8.0, nodes=5, mode="both")
    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> mechanism.randomize(path, randomness=SeededRandomness(7)).to_edge_index()
    tensor([[0, 1, 1, 2],
            [1, 0, 2, 1]])
    """

    epsilon: float
    nodes: int
    mode: str = "lower"
    degree_share: float = 0.1

    def __post_init__(self) -> None:
        _validate.require_epsilon(self.epsilon)
        require_number("[0.01, 0.99]", degree_share=self.degree_share)
        _ = self.degree, self._flips

    @property
    def degree(self) -> NoisyDegree:
        """The first part: the noisy degree."""
        return NoisyDegree(epsilon=self.epsilon * self.degree_share, nodes=self.nodes, mode=self.mode)

    @property
    def warning(self) -> str | None:
        """What to tell a user before running, or None."""
        false_edges = self._flips.expected_false
        if false_edges <= FALSE_EDGES_WARNING:
            return None
        return (
            f"epsilon {rounded_up(self._flips.epsilon)} for the lists of {self.nodes:,} users draws about "
            f"{false_edges:,.0f} false edges, more than {FALSE_EDGES_WARNING:,}; most are dropped again, "
            "but each takes time"
        )

    def randomize(
        self, edge_index: EdgeIndex, *, randomness: Randomness, engine: Engine = LOCAL
    ) -> DegreePreservingReports:
        """What the devices send. Raises InputError where an id is no user, a user names itself, or a direction is
        missing; nothing is drawn.

        Args:
            edge_index: integers [2, E], row 0 the user whose list names row 1, both directions of every relationship
                unless the mode is "directed"; what is listed twice counts once.
        """
        lists = self._lists
        true = lists.open(edge_index)
        # Only the noisy degree decides how far the list is thinned; the true degree is not read again.
        degrees = self.degree.randomize(self._degrees(true), randomness=randomness, engine=engine)
        thinning = self._thinning(degrees)
        edges = sample_lists(lists, true, self._flips.threshold, randomness, thinning, engine=engine)
        return DegreePreservingReports(degrees, edges)

    def thinned(self, degrees: DegreeReports, lists: EdgeReports, *, randomness: Randomness) -> DegreePreservingReports:
        """What the devices would have sent, from their noisy degrees and their noisy lists before thinning. This is
        post-processing: it reads reports alone, so anybody may do it at no price, and its draws need not be secret.

        Args:
            lists: the noisy lists before thinning.
        """
        users = lists.to_edge_index()[0].numpy()
        stays = randomness.uint64(len(users)) < self._thinning(degrees)[users]
        lengths = np.bincount(users[stays], minlength=self.nodes)
        starts = torch.from_numpy(np.concatenate([[0], lengths.cumsum()]).astype(np.int64))
        return DegreePreservingReports(degrees, EdgeReports(starts, lists.columns[torch.from_numpy(stays)]))

    def collected(self, reports: DegreePreservingReports) -> Tensor:
        """The graph as the server takes it, int64 [2, E]: pairs that either end names, in both directions."""
        return either_end(self._lists, reports.edges)

    def log_likelihood(self, reports: DegreePreservingReports, edge_index: EdgeIndex) -> Tensor:
        """log Pr[degree and list | true list] of each user, float64 [n]; it uses the sampler's own integers.

        Args:
            edge_index: integers [2, E], the true lists, as `randomize` takes them.
        """
        lists, low = self._lists, self._flips.threshold
        true = lists.open(edge_index)
        reported, actual, common = lists.overlap(reports.edges, true)
        thinning = self._thinning(reports.degrees)
        send: FloatArray = thinning / np.float64(WORD)
        drop = (np.uint64(0) - thinning) / np.float64(WORD)  # 1 - send; 0 wraps to 0 and is set right here
        drop[thinning == 0] = 1.0
        flip, keep = low / WORD, (WORD - low) / WORD
        silent = flip + keep * drop  # a true entry is not sent
        # xlogy takes 0 log 0 as 0: an event that cannot happen and did not happen adds nothing.
        total = (
            special.xlogy(common, keep * send)
            + special.xlogy(actual - common, silent)
            + special.xlogy(reported - common, flip * send)
        )
        total += special.xlog1py(lists.lengths - actual - reported + common, -flip * send)
        return torch.from_numpy(total) + self.degree.log_likelihood(reports.degrees, self._degrees(true))

    @property
    def _flips(self) -> AdjacencyRR:
        """The second part before thinning."""
        spent = self.epsilon * self.degree_share
        return AdjacencyRR(epsilon=self.epsilon - spent, nodes=self.nodes, mode=self.mode)

    def _degrees(self, true: Ids) -> Ids:
        return np.bincount(owners(true, self._lists.starts), minlength=self.nodes)

    def _thinning(self, degrees: DegreeReports) -> Thresholds:
        """2^64 q, the probability that an entry stays: q = d / (d (1 - 2p) + length p), with d >= 0 and q < 1."""
        flip = self._flips.threshold / WORD
        # Clamped before the division: a very negative degree would make the denominator negative, and keep every entry.
        target = np.maximum(self.degree.estimate(degrees).numpy(), 0.0)
        expected = target * (1 - 2 * flip) + self._lists.lengths * flip
        share = np.divide(target, expected, out=np.zeros_like(target), where=expected > 0)
        below_one = math.nextafter(1.0, 0.0)
        thinning: Thresholds = (np.minimum(share, below_one) * 2.0**64).astype(np.uint64)
        return thinning
