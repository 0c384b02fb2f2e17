"""A noisy number of edges, put where noisy cells are largest (LapGraph), in the time of the edges.

Source: F. Wu, Y. Long, C. Zhang, B. Li, "LinkTeller: Recovering Private Edges from Graph Neural Networks via Influence
Analysis", IEEE S&P 2022, https://arxiv.org/abs/2108.06504; the noise is two-sided geometric instead of Laplace's, equal
cells are ranked at random. The linear-time idea: H. H. Nguyen, A. Imine, M. Rusinowitch, "Differentially Private
Publication of Social Graphs at Linear Cost", ASONAM 2015.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.guarantees import pair_guarantee
from graphveil.mechanisms.edges.cell_likelihood import log_probability_of_top_k
from graphveil.mechanisms.edges.edge_sampling import place_blocks
from graphveil.mechanisms.edges.neighbour_lists import Ids
from graphveil.mechanisms.edges.noisy_top_k import noisy_top_k
from graphveil.mechanisms.edges.pair_domain import PairDomain, Pairs, pairs_of
from graphveil.mechanisms.edges.pairs import PairEstimate
from graphveil.mechanisms.samplers.two_sided import TwoSided, two_sided
from graphveil.privacy import Guarantee, Randomness
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.late import torch
from graphveil.runtime.sorted_arrays import contains, distinct

if TYPE_CHECKING:
    from torch import Tensor


# From here on a noisy level would not fit into 64 bits.
_SMALLEST: float = 1e-9


@dataclass(frozen=True, kw_only=True)
class LapGraph:
    """Releases as many pairs as there are edges, up to noise: those whose noisy cells are largest.

    With e1 = count_share epsilon and e2 the rest: the number of private edges with noise of e1, cut to what is
    possible, says how many pairs are released; each protected pair's cell, 1 if related and else 0, gets noise of e2.

    Formal guarantees: epsilon for one private undirected edge, which moves the number by 1 and one cell by 1; the noise
    is exact, and every set of protected pairs is possible for every graph.

    Args:
        epsilon: finite and positive, for one private edge.
        domain: the protected pairs.
        count_share: the part of epsilon for the number of edges, in (0, 1).

    Raises:
        InputError: a parameter is outside its range, NaN included, or a part of epsilon is below 1e-9.

    >>> import torch
    >>> from graphveil.mechanisms import PairDomain
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = LapGraph(epsilon=8.0, domain=PairDomain(5), count_share=0.5)
    >>> mechanism.randomize(torch.tensor([[0, 1], [1, 2]]), randomness=SeededRandomness(7))
    tensor([[0, 1],
            [1, 2]])
    """

    epsilon: float
    domain: PairDomain
    count_share: float = 0.01

    def __post_init__(self) -> None:
        _validate.positive_epsilon(self.epsilon)
        share = self.count_share
        _validate.between(math.ulp(0.0), math.nextafter(1.0, 0.0), "a number in (0, 1)", count_share=share)
        if min(share, 1 - share) * self.epsilon < _SMALLEST:
            raise InputError(
                f"epsilon {rounded_up(self.epsilon)} with count_share {share:g} leaves too little for one part",
                allowed=f"at least {_SMALLEST:g} each",
            )

    @property
    def guarantee(self) -> Guarantee:
        """What the release protects."""
        return pair_guarantee(self.epsilon, self.domain)

    def randomize(self, pairs: Pairs, *, randomness: Randomness, engine: Engine = LOCAL) -> Tensor:
        """The synthetic private edges.

        Args:
            pairs: the private edges, integers [2, m], u < v; what is listed twice counts once.
            engine: where blocks of cells are worked on; the result does not depend on it.

        Returns:
            int64 [2, S], u < v, distinct protected pairs in ascending order.

        Raises:
            InputError: a pair is not protected; nothing is drawn.
        """
        true, size = self._ranks(pairs), self.domain.size
        # The number is private and paid for on its own; cutting it to what is possible looks at nothing private.
        noisy = len(true) + int(self._count_noise.draw(1, randomness)[0])
        # The cells have noise of their own, so that number and cells compose by adding up: one edge moves each by 1.
        released = min(max(noisy, 0), size)
        blocks = place_blocks(size, released, people=1)
        chosen = noisy_top_k(true, blocks, released, self._cell_noise, randomness, engine=engine)
        return torch.from_numpy(pairs_of(chosen, *self.domain.arrays))

    def estimate(self, released: Pairs) -> PairEstimate:
        """The released pairs as they are: 1 for each, 0 for all others.

        Its `total` is unbiased unless the number was cut; single pairs are not: what is largest was selected.
        """
        return PairEstimate(self.domain.unrank(self._ranks(released)), 1.0, 0.0, self.domain.size)

    def log_likelihood(self, released: Pairs, pairs: Pairs) -> Tensor:
        """log Pr[released | private edges], float64 []: the number's, and one integral over the cells' threshold.

        Args:
            released: [2, S], u < v, protected pairs in any order.
            pairs: [2, m], u < v, the private edges.
        """
        reported, true, size = self._ranks(released), self._ranks(pairs), self.domain.size
        common = int(contains(true, reported).sum())
        # Only how many cells of each kind were chosen matters: cells of a kind are exchangeable.
        largest = len(reported) - common, common
        rest = size - len(reported) - (len(true) - common), len(true) - common
        cells = log_probability_of_top_k(largest, rest, self._cell_noise)
        return torch.tensor(self._log_count(len(reported), len(true)) + cells, dtype=torch.float64)

    def _log_count(self, reported: int, true: int) -> float:
        """log Pr[number of released pairs]; the ends collect what was cut."""
        if not self.domain.size:
            return 0.0
        noise, distance = self._count_noise, np.array([abs(reported - true)])
        # Cut at both ends: these two numbers stand for all noise beyond them.
        at_end = reported in (0, self.domain.size)
        return float((noise.log_tail(distance) if at_end else noise.log_pmf(distance))[0])

    def _ranks(self, pairs: Pairs) -> Ids:
        # Each pair once: an edge listed twice would raise the number by more than the 1 that its noise is calibrated
        # for.
        return distinct(self.domain.rank(pairs).numpy())

    @property
    def _count_noise(self) -> TwoSided:
        return two_sided(self.count_share * self.epsilon)

    @property
    def _cell_noise(self) -> TwoSided:
        return two_sided((1 - self.count_share) * self.epsilon)
