"""How many private neighbours of each public group everybody has, with two-sided geometric noise.

    H_vg = |{u : {u, v} a private edge, u in group g}| + Z_vg,       Pr[Z = z] ~ e^(-epsilon |z| / 2)

A private edge {u, v} stands in two of the counts, u's of v's group and v's of u's, and moves each by 1: at epsilon / 2
a count that is epsilon for the edge.  The noise depends neither on how many nodes nor on how many groups there are.
Source of the noise: A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms",
STOC 2009, https://arxiv.org/abs/0811.2841.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from graphveil.engine import LOCAL, Block, Blocks, Engine
from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.guarantees import pair_guarantee
from graphveil.mechanisms.edges.noisy_counts import Counts, NoisyCounts
from graphveil.mechanisms.edges.pair_domain import PairDomain, Pairs
from graphveil.privacy import Guarantee, Randomness
from graphveil.runtime.late import torch
from graphveil.runtime.sorted_arrays import HALF, distinct, packed

if TYPE_CHECKING:
    from torch import Tensor


#: The counts that one private edge stands in: one of each of its ends.
PLACES: Final = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassCounts:
    """Counts everybody's private neighbours by public group, and adds noise to each count.

    Formal guarantees: epsilon for one private undirected edge, which stands in two counts and moves each by 1, at half
    of epsilon; noise is not bounded and not clamped, so every table of whole numbers is possible for every graph.

    Args:
        epsilon: finite and positive, for one private edge.
        domain: the protected pairs; nodes that are no private ones have rows of zeros.
        groups: int64 [n], everybody's group in 0..classes-1; PUBLIC.
        classes: how many groups there are.

    Raises:
        InputError: epsilon is outside its range, NaN included, or groups are not one of 0..classes-1 a node.

    >>> import torch
    >>> from graphveil.mechanisms import PairDomain
    >>> from graphveil.privacy import SeededRandomness
    >>> groups = torch.tensor([0, 0, 1])
    >>> mechanism = ClassCounts(epsilon=2.0, domain=PairDomain(3), groups=groups, classes=2)
    >>> mechanism.randomize(torch.tensor([[0, 1], [1, 2]]), randomness=SeededRandomness(7)).shape
    torch.Size([3, 2])
    """

    epsilon: float
    domain: PairDomain
    groups: Tensor
    classes: int

    def __post_init__(self) -> None:
        _validate.positive_epsilon(self.epsilon)
        _validate.whole(1, _validate.LARGEST_COUNT, classes=self.classes)
        groups = _validate.integers(self.groups, "groups are", "integers, one row")
        if len(groups) != self.domain.nodes:
            raise InputError(f"{len(groups)} groups", where="groups", allowed=f"one for each of {self.domain.nodes}")
        if len(groups) and not (groups.min() >= 0 and groups.max() < self.classes):
            raise InputError("a group does not exist", where="groups", allowed=f"0 to {self.classes - 1}")

    @property
    def guarantee(self) -> Guarantee:
        """What the release protects."""
        return pair_guarantee(self.epsilon, self.domain)

    @property
    def variance(self) -> float:
        """The variance of each count: 2 r / (1 - r)^2 with r = e^(-epsilon / 2)."""
        return self._noise.variance

    def randomize(self, pairs: Pairs, *, randomness: Randomness, engine: Engine = LOCAL) -> Tensor:
        """The noisy counts, int64 [n, classes]; some are negative.

        Args:
            pairs: the private edges, integers [2, m], u < v; what is listed twice counts once.
            engine: where blocks of nodes and of counts are worked on; the result does not depend on it.

        Raises:
            InputError: a pair is not protected; nothing is drawn.
        """
        counts, rows = self.count(pairs, engine=engine), self.domain.ids
        # Others have no private edge, which is public: noise in their rows would hide nothing.
        noisy = self._noise.randomize(counts[rows].reshape(-1), randomness=randomness, engine=engine)
        counts[rows] = noisy.numpy().reshape(len(rows), self.classes)
        return torch.from_numpy(counts)

    def count(self, pairs: Pairs, *, engine: Engine = LOCAL) -> npt.NDArray[np.int64]:
        """The true counts, int64 [n, classes]: for whoever adds the noise, and never to be published."""
        self.domain.require(pairs)
        low, high = np.asarray(pairs)
        # Each pair once: an edge listed twice would move its counts by more than the noise is calibrated for.
        ends = distinct(np.concatenate([packed(low, high), packed(high, low)]))
        blocks = Blocks.of(self.domain.nodes, self.classes)
        counts = engine.map_blocks(_CountsOfBlock(self.classes), blocks, engine.put(ends, self.groups.cpu().numpy()))
        return engine.gather(counts, blocks, np.empty((self.domain.nodes, self.classes), np.int64))

    def estimate(self, noisy: Counts) -> Tensor:
        """The unbiased estimate of the counts, float64 [n, classes]: the noisy counts themselves."""
        return torch.from_numpy(self._open(noisy).astype(np.float64))

    def log_likelihood(self, noisy: Counts, pairs: Pairs) -> Tensor:
        """log Pr[noisy counts | private edges], float64 []; exact: it uses the sampler's own law.

        Args:
            noisy: integers [n, classes], what was released.
            pairs: [2, m], u < v, the private edges.
        """
        rows = self.domain.ids
        reported, true = (table[rows].reshape(-1) for table in (self._open(noisy), self.count(pairs)))
        return self._noise.log_likelihood(reported, true).sum()

    def _open(self, noisy: Counts) -> npt.NDArray[np.int64]:
        table = np.asarray(noisy)
        if table.dtype.kind != "i" or table.shape != (self.domain.nodes, self.classes):
            raise InputError(
                f"counts are {table.dtype} {table.shape}", allowed=f"integers ({self.domain.nodes}, {self.classes})"
            )
        return table.astype(np.int64)

    @property
    def _noise(self) -> NoisyCounts:
        return count_noise(self.epsilon)


@dataclass(frozen=True)
class _CountsOfBlock:
    """The true counts of a block of nodes: what an engine does."""

    classes: int

    def __call__(self, block: Block, ends: npt.NDArray[np.uint64], groups: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return int64 [nodes of the block, classes] from everybody's neighbours, packed and ascending."""
        first, stop = np.searchsorted(ends, np.array([block.start, block.stop], np.uint64) << HALF)
        node, other = (ends[first:stop] >> HALF).astype(np.int64), ends[first:stop].astype(np.uint32)
        cells = (node - block.start) * self.classes + groups[other]
        counts = np.bincount(cells, minlength=(block.stop - block.start) * self.classes)
        return counts.reshape(-1, self.classes)


def count_noise(epsilon: float) -> NoisyCounts:
    """Return what adds the noise to each count, where an edge may cost `epsilon`."""
    return NoisyCounts(epsilon=epsilon / PLACES)
