"""How many relationships each user has, with two-sided geometric noise.

Source: A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", STOC 2009,
https://arxiv.org/abs/0811.2841; as a degree vector beside noisy neighbour lists: X. Zhu, V. Y. F. Tan, X. Xiao,
"Blink: Link Local Differential Privacy in Graph Neural Networks via Bayesian Estimation", CCS 2023,
https://arxiv.org/abs/2309.03190.
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
from graphveil.mechanisms.base.guarantees import list_guarantee
from graphveil.mechanisms.base.reports import require_inside, require_pairs
from graphveil.mechanisms.edges.neighbour_lists import DegreeReports, EdgeIndex, Ids, NeighbourLists, owners
from graphveil.mechanisms.edges.noisy_counts import NoisyCounts
from graphveil.mechanisms.samplers.geometric import TwoSided, two_sided
from graphveil.privacy import Guarantee, Randomness
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


Degrees: TypeAlias = "torch.Tensor | npt.NDArray[Any]"

# Reports reach this many noise scales beyond the possible degrees; noise further out has probability e^-40.
_REACH: Final = 40


@dataclass(frozen=True, kw_only=True)
class NoisyDegree:
    """Adds two-sided geometric noise to the number of relationships in each user's list.

    Formal guarantees: epsilon for one list, exactly; the possible reports are the same for all degrees; estimates
    are unbiased up to e^-40 of the noise. In mode "both" a relationship counts in two lists and costs 2 epsilon.

    Args:
        epsilon: finite and positive, for one list.
        nodes: the public number of users.
        mode: which pairs a list holds: "lower", "both" or "directed", as in `AdjacencyRR`.

    Raises:
        InputError: a parameter is outside its range, NaN included, or reports would not fit into 32 bits.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = NoisyDegree(epsilon=1.0, nodes=4, mode="both")
    >>> mechanism.randomize(torch.tensor([1, 2, 3, 0]), randomness=SeededRandomness(7)).levels
    tensor([1, 2, 0, 0], dtype=torch.int32)
    """

    epsilon: float
    nodes: int
    mode: str = "lower"

    def __post_init__(self) -> None:
        _validate.positive_epsilon(self.epsilon)
        NeighbourLists(self.nodes, self.mode)
        if self.nodes + self._reach >= 2**31:
            raise InputError(
                f"epsilon {rounded_up(self.epsilon)} for {self.nodes} users needs levels above 32 bits",
                allowed=f"40 / epsilon + nodes below {2**31}",
            )

    @property
    def guarantee(self) -> Guarantee:
        """What all reports together protect: one relationship, or one directed link."""
        return list_guarantee(self.epsilon, self.mode, self.nodes)

    @property
    def variance(self) -> float:
        """The variance of each report: 2 r / (1 - r)^2 with r = e^-epsilon."""
        return self._noise.variance

    def count(self, edge_index: EdgeIndex) -> Tensor:
        """The true degrees, int64 [n]: how many relationships stand in each user's list; private."""
        lists = NeighbourLists(self.nodes, self.mode)
        return torch.from_numpy(np.bincount(owners(lists.open(edge_index), lists.starts), minlength=self.nodes))

    def randomize(self, degrees: Degrees, *, randomness: Randomness, engine: Engine = LOCAL) -> DegreeReports:
        """What the devices send.

        Args:
            degrees: integers [n], for each user how many relationships its list holds.
            engine: where blocks of users are worked on; no report depends on it.

        Raises:
            InputError: a degree is negative or above the length of the list; nothing is encoded.
        """
        noisy = NoisyCounts(epsilon=self.epsilon).randomize(self._open(degrees), randomness=randomness, engine=engine)
        # Clamped to ends that are the same for every degree: an end that some degrees cannot reach would tell them.
        lowest, highest = self.ends
        return DegreeReports(torch.from_numpy(np.clip(noisy.numpy(), lowest, highest).astype(np.int32)))

    def estimate(self, reports: DegreeReports) -> Tensor:
        """The unbiased estimate of the degrees, float64 [n]: the reports themselves, negative ones included."""
        self._check(reports)
        return reports.levels.double()

    def log_likelihood(self, reports: DegreeReports, degrees: Degrees) -> Tensor:
        """log Pr[report | degree] of each user, float64 [n]; the ends collect what was clamped.

        Args:
            reports: of all users.
            degrees: integers [n], the true degrees.
        """
        self._check(reports)
        levels = reports.levels.numpy().astype(np.int64)
        distance = np.abs(levels - self._open(degrees))
        # Clamping gathers the whole tail in the two end reports, so their probability is a tail and no single mass.
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
        """The degrees as checked int64 numbers."""
        array = _validate.integers(degrees, "degrees are", f"{self.nodes} integers", count=self.nodes)
        # Reports reach a fixed way beyond the possible degrees: a larger one would be clamped nearly always, and so be
        # revealed.
        outside = np.flatnonzero((array < 0) | (array > NeighbourLists(self.nodes, self.mode).lengths))
        if outside.size:
            where = f"degrees, row {int(outside[0])}"
            raise InputError("the degree does not match the user's list", where=where, allowed=f"mode {self.mode!r}")
        return array.astype(np.int64)
