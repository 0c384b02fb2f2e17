"""Randomized response of a curator on all protected pairs, in the time of the edges that come out (EdgeRand).

Source: F. Wu, Y. Long, C. Zhang, B. Li, "LinkTeller: Recovering Private Edges from Graph Neural Networks via Influence
Analysis", IEEE S&P 2022, https://arxiv.org/abs/2108.06504. They resample each pair with s = 2 / (e^epsilon + 1)
to a fair bit, which is to flip it with 1/(e^epsilon+1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphveil.engine import LOCAL, Block, Engine
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.guarantees import PairMechanism
from graphveil.mechanisms.edges.adjacency import FALSE_EDGES_WARNING, BitFlips
from graphveil.mechanisms.edges.edge_sampling import noisy_places, place_blocks
from graphveil.mechanisms.edges.neighbour_lists import Ids, PairEstimate
from graphveil.mechanisms.edges.pair_domain import PairDomain, Pairs, pairs_of
from graphveil.privacy import BlockKey, BlockNoise, Randomness
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.late import torch
from graphveil.runtime.sorted_arrays import contains

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class EdgeRand(BitFlips, PairMechanism):
    """Every protected pair is flipped, related or not, with probability 1 / (e^epsilon + 1).

    Formal guarantees: epsilon for one private undirected edge, exactly: the flip probability is an integer multiple of
    2^-64 that is rounded up by more than the sampler's finite digits can lose; every set of protected pairs is possible
    for every graph.

    Args:
        epsilon: finite and positive, for one private edge.

    >>> import torch
    >>> from graphveil.mechanisms import PairDomain
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = EdgeRand(epsilon=2.0, domain=PairDomain(5))
    >>> released = mechanism.randomize(torch.tensor([[0, 1], [1, 2]]), randomness=SeededRandomness(7))
    >>> released
    tensor([[0, 1, 1],
            [1, 2, 3]])
    >>> round(mechanism.estimate(released).total, 2)
    2.37
    """

    epsilon: float
    domain: PairDomain

    def __post_init__(self) -> None:
        _validate.require_epsilon(self.epsilon)

    @property
    def expected_false(self) -> float:
        """The expected number of false edges, computed as if there were no private edge."""
        return self.domain.size * self.flip

    @property
    def warning(self) -> str | None:
        """What to tell a user before running, or None."""
        if self.expected_false <= FALSE_EDGES_WARNING:
            return None
        return (
            f"epsilon {rounded_up(self.epsilon)} on {self.domain.size:,} protected pairs makes about "
            f"{self.expected_false:,.0f} false edges, more than {FALSE_EDGES_WARNING:,}; raise epsilon, declare "
            "fewer private nodes, or take lap-graph, which keeps the number of edges"
        )

    @property
    def variance(self) -> float:
        """The variance of the estimate of each pair: p (1 - p) / (1 - 2p)^2."""
        return self.flip * (1 - self.flip) / self._gap**2

    def randomize(self, pairs: Pairs, *, randomness: Randomness, engine: Engine = LOCAL) -> Tensor:
        """The synthetic private edges. Returns int64 [2, S], u < v, distinct protected pairs in ascending order. Raises
        InputError where a pair is not protected; nothing is drawn.

        Args:
            pairs: the private edges, integers [2, m], u < v; what is listed twice counts once.
        """
        domain = self.domain
        blocks = place_blocks(domain.size, self.expected_false, len(domain.ids))
        shared = engine.put(self._ranks(pairs), *domain.arrays)
        keys = BlockNoise(randomness).keys(len(blocks))
        released = engine.map_blocks(_PairsOfBlock(self.threshold), blocks, shared, keys)
        return torch.from_numpy(np.concatenate([np.zeros((2, 0), np.int32), *released], axis=1, dtype=np.int64))

    def estimate(self, released: Pairs) -> PairEstimate:
        """The unbiased estimate of every protected pair, (bit - p) / (1 - 2p); so is its `total`, of the edges."""
        pairs = self.domain.unrank(self._ranks(released))
        return PairEstimate(pairs, (1 - self.flip) / self._gap, -self.flip / self._gap, self.domain.size)

    def log_likelihood(self, released: Pairs, pairs: Pairs) -> Tensor:
        """log Pr[released | private edges], float64 []; exact: it uses the sampler's own integer.

        Args:
            released: [2, S], u < v, protected pairs in any order.
            pairs: [2, m], u < v, the private edges.
        """
        reported, true = self._ranks(released), self._ranks(pairs)
        wrong = len(reported) + len(true) - 2 * int(contains(true, reported).sum())
        right = self.domain.size - wrong
        return torch.tensor(wrong * math.log(self.flip) + right * math.log1p(-self.flip), dtype=torch.float64)


@dataclass(frozen=True)
class _PairsOfBlock:
    """The synthetic edges among a block of ranks: what an engine does, from the block's own key."""

    threshold: int

    def __call__(
        self, block: Block, key: BlockKey, true: Ids, starts: Ids, before: Ids, ids: Ids | None
    ) -> npt.NDArray[np.int32]:
        """Return int32 [2, S], ascending, from the ranks of the private edges and `PairDomain.arrays`."""
        ranks = noisy_places(block, true, self.threshold, key.stream())
        return pairs_of(ranks, starts, before, ids).astype(np.int32)
