"""Noisy counts of private edges: of disjoint sets, for the price of one count, or by everybody's public group.

    H_vg = |{u : {u, v} a private edge, u in group g}| + Z_vg,       Pr[Z = z] ~ e^(-epsilon |z| / 2)

A private edge {u, v} stands in two of these counts, u's of v's group and v's of u's, and moves each by 1: at epsilon /
2 a count that is epsilon for the edge. The noise depends neither on how many nodes nor on how many groups there are.

Source: A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", STOC 2009,
https://arxiv.org/abs/0811.2841; in parallel: F. McSherry, "Privacy Integrated Queries", SIGMOD 2009, Theorem 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.engine import LOCAL, Block, Blocks, Engine
from graphveil.engine.contract import VALUES
from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.guarantees import PairMechanism
from graphveil.mechanisms.base.reports import require_pairs
from graphveil.mechanisms.edges.pair_domain import PairDomain, Pairs
from graphveil.mechanisms.samplers.geometric import TwoSided, two_sided
from graphveil.privacy import BlockKey, BlockNoise, Guarantee, Randomness, assume
from graphveil.privacy.statement.observer import RELEASE_READERS
from graphveil.privacy.statement.unit import PRIVATE_EDGE
from graphveil.runtime.checks import require_whole
from graphveil.runtime.late import torch
from graphveil.runtime.sorted_arrays import HALF, distinct, packed

if TYPE_CHECKING:
    from torch import Tensor

Counts: TypeAlias = "torch.Tensor | npt.NDArray[Any]"

# Leaves room for noise of up to 2^60: an overflow would change the sign and reveal how large the count was.
_LARGEST_COUNT: Final = 1 << 62


@dataclass(frozen=True, kw_only=True)
class NoisyCounts:
    """Adds independent two-sided geometric noise to each of a vector of counts.

    Formal guarantees: epsilon for one private edge, if every private edge is counted in at most one of the counts: one
    edge more or less then changes one count by 1. Noise is not bounded and not clamped, so every vector of whole
    numbers is possible for every graph (noise beyond 2^60, of probability e^-(2^60 epsilon), is drawn as 2^60);
    estimates are unbiased.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> NoisyCounts(epsilon=1.0).randomize(torch.tensor([10, 0, 3]), randomness=SeededRandomness(7))
    tensor([10,  2,  1])
    """

    epsilon: float

    def __post_init__(self) -> None:
        _validate.require_epsilon(self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """What all noisy counts together protect."""
        return Guarantee(
            unit=PRIVATE_EDGE,
            relation="add/remove",
            model="central",
            epsilon=self.epsilon,
            delta=0.0,
            against=RELEASE_READERS,
            assumes=(assume("counts-public"), assume("counts-disjoint"), assume("counts-released-once")),
        )

    @property
    def variance(self) -> float:
        """The variance of each noisy count: 2 r / (1 - r)^2 with r = e^-epsilon."""
        return self._noise.variance

    @property
    def rate(self) -> float:
        """The rate of the noise: Pr[z] ~ ``e^(-rate |z|)``."""
        return self._noise.rate

    def randomize(self, counts: Counts, *, randomness: Randomness, engine: Engine = LOCAL) -> Tensor:
        """The noisy counts, int64 [k]; some are negative. Raises InputError where a count is negative, or counts are no
        row of integers; nothing is drawn.

        Args:
            counts: integers [k], each at least 0, of disjoint public sets of pairs.
        """
        # Disjoint sets: one edge moves one count by 1, so that all counts together cost what one does.
        true = _open(counts, 0)
        # Not clamped at 0, which would bias sums upwards; readers of the release can clamp it themselves.
        blocks = Blocks(len(true), VALUES)
        # A single block needs no key of its own.
        if len(blocks) <= 1:
            return torch.from_numpy(true + self._noise.draw(len(true), randomness))
        keys = BlockNoise(randomness).keys(len(blocks))
        noisy = engine.map_blocks(_NoisyBlock(self._noise), blocks, engine.put(true), keys)
        return torch.from_numpy(engine.gather(noisy, blocks, np.empty_like(true)))

    def estimate(self, noisy: Counts) -> Tensor:
        """The unbiased estimate of the counts, float64 [k]: the noisy counts themselves."""
        return torch.from_numpy(_open(noisy, -_LARGEST_COUNT).astype(np.float64))

    def log_likelihood(self, noisy: Counts, counts: Counts) -> Tensor:
        """log Pr[noisy count | count] of each, float64 [k]."""
        reported, true = _open(noisy, -_LARGEST_COUNT), _open(counts, 0)
        require_pairs(len(reported), len(true))
        return torch.from_numpy(self._noise.log_pmf(reported - true))

    @property
    def _noise(self) -> TwoSided:
        return two_sided(self.epsilon)


@dataclass(frozen=True)
class _NoisyBlock:
    """The noisy counts of a block: what an engine does, from the block's own key."""

    noise: TwoSided

    def __call__(self, block: Block, key: BlockKey, true: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return self.noise.draw(block.stop - block.start, key.stream()) + true[block.rows]


def _open(counts: Counts, least: int) -> npt.NDArray[np.int64]:
    array = _validate.integer_array(counts, "counts are", "integers, one row")
    outside = np.flatnonzero((array < least) | (array > _LARGEST_COUNT))
    if outside.size:
        problem = "the count is negative or too large" if not least else "the number is no noisy count"
        raise InputError(problem, where=f"counts, row {int(outside[0])}", allowed=f"{least} to 2^62")
    return array.astype(np.int64)


#: How many counts one private edge enters: one of each of its ends.
COUNTS_PER_EDGE: Final = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassCounts(PairMechanism):
    """Counts everybody's private neighbours by public group, and adds noise to each count. Raises InputError where
    epsilon is outside its range, NaN included, or groups are not one of 0..classes-1 a node.

    Formal guarantees: epsilon for one private undirected edge, which stands in two counts and moves each by 1, at half
    of epsilon; noise is not bounded and not clamped, so every table of whole numbers is possible for every graph.

    Args:
        epsilon: finite and positive, for one private edge.
        domain: the protected pairs; all nodes that are not private have rows of zeros.
        groups: int64 [n], everybody's group in 0..classes-1; PUBLIC.

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
        _validate.require_epsilon(self.epsilon)
        require_whole(1, _validate.LARGEST_COUNT, classes=self.classes)
        groups = _validate.integer_array(self.groups, "groups are", "integers, one row")
        if len(groups) != self.domain.nodes:
            raise InputError(f"{len(groups)} groups", where="groups", allowed=f"one for each of {self.domain.nodes}")
        if len(groups) and not (groups.min() >= 0 and groups.max() < self.classes):
            raise InputError("a group does not exist", where="groups", allowed=f"0 to {self.classes - 1}")

    @property
    def variance(self) -> float:
        """The variance of each count: 2 r / (1 - r)^2 with r = e^(-epsilon / 2)."""
        return self._noise.variance

    def randomize(self, pairs: Pairs, *, randomness: Randomness, engine: Engine = LOCAL) -> Tensor:
        """The noisy counts, int64 [n, classes]; some are negative. Raises InputError where a pair is not protected;
        nothing is drawn.

        Args:
            pairs: the private edges, integers [2, m], u < v; what is listed twice counts once.
        """
        counts, rows = self.count(pairs, engine=engine), self.domain.ids
        # The rest have no private edge, which is public: noise in their rows would hide nothing.
        noisy = self._noise.randomize(counts[rows].reshape(-1), randomness=randomness, engine=engine)
        counts[rows] = noisy.numpy().reshape(len(rows), self.classes)
        return torch.from_numpy(counts)

    def count(self, pairs: Pairs, *, engine: Engine = LOCAL) -> npt.NDArray[np.int64]:
        """The true counts, int64 [n, classes]; private until noise is added."""
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
    """Return the mechanism for each count where an edge costs `epsilon`."""
    return NoisyCounts(epsilon=epsilon / COUNTS_PER_EDGE)
