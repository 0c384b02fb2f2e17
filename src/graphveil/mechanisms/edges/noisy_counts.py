"""Counts of disjoint sets of private edges with two-sided geometric noise, for the price of one count.

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
from graphveil.mechanisms.base.reports import require_pairs
from graphveil.mechanisms.samplers.geometric import TwoSided, two_sided
from graphveil.privacy import BlockKey, BlockNoise, Guarantee, Randomness, assume
from graphveil.privacy.statement.observer import RELEASE_READERS
from graphveil.privacy.statement.unit import PRIVATE_EDGE
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


Counts: TypeAlias = "torch.Tensor | npt.NDArray[Any]"

# Room for noise of up to 2^60 without an overflow, which would turn the sign and show how large the count was.
_LARGEST: Final = 1 << 62


@dataclass(frozen=True, kw_only=True)
class NoisyCounts:
    """Adds independent two-sided geometric noise to each of a vector of counts.

    Formal guarantees: epsilon for one private edge, if every private edge is counted in at most one of the counts:
    one edge more or less then changes one count by 1. Noise is not bounded and not clamped, so every vector of whole
    numbers is possible for every graph (beyond 2^60, that is with probability e^-(2^60 epsilon), all is one number);
    estimates are unbiased.

    Args:
        epsilon: finite and positive, for one private edge.

    Raises:
        InputError: epsilon is outside its range, NaN included.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> NoisyCounts(epsilon=1.0).randomize(torch.tensor([10, 0, 3]), randomness=SeededRandomness(7))
    tensor([10, -1,  3])
    """

    epsilon: float

    def __post_init__(self) -> None:
        _validate.positive_epsilon(self.epsilon)

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
        """The noisy counts, int64 [k]; some are negative.

        Args:
            counts: integers [k], each at least 0, of disjoint public sets of pairs.
            engine: where blocks of counts are worked on; the result does not depend on it.

        Raises:
            InputError: a count is negative, or counts are no row of integers; nothing is drawn.
        """
        # Disjoint sets: one edge moves one count by 1, so that all counts together cost what one does.
        true = _open(counts, 0)
        # Not clamped at 0: sums of counts would be biased upwards, and whoever wants the clamp can apply it to what is
        # released.
        blocks = Blocks(len(true), VALUES)
        # One block has nothing to be kept apart from.
        if len(blocks) <= 1:
            return torch.from_numpy(true + self._noise.draw(len(true), randomness))
        keys = BlockNoise(randomness).keys(len(blocks))
        noisy = engine.map_blocks(_NoisyBlock(self._noise), blocks, engine.put(true), keys)
        return torch.from_numpy(engine.gather(noisy, blocks, np.empty_like(true)))

    def estimate(self, noisy: Counts) -> Tensor:
        """The unbiased estimate of the counts, float64 [k]: the noisy counts themselves."""
        return torch.from_numpy(_open(noisy, -_LARGEST).astype(np.float64))

    def log_likelihood(self, noisy: Counts, counts: Counts) -> Tensor:
        """log Pr[noisy count | count] of each, float64 [k].

        Args:
            noisy: integers [k], what was released.
            counts: integers [k], the true counts.
        """
        reported, true = _open(noisy, -_LARGEST), _open(counts, 0)
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
        """Return int64 [counts of the block] from all true counts."""
        return self.noise.draw(block.stop - block.start, key.stream()) + true[block.rows]


def _open(counts: Counts, least: int) -> npt.NDArray[np.int64]:
    """Checked int64 numbers."""
    array = _validate.integers(counts, "counts are", "integers, one row")
    outside = np.flatnonzero((array < least) | (array > _LARGEST))
    if outside.size:
        problem = "the count is negative or too large" if not least else "the number is no noisy count"
        raise InputError(problem, where=f"counts, row {int(outside[0])}", allowed=f"{least} to 2^62")
    return array.astype(np.int64)
