"""The k largest of very many noisy cells, nearly all of them noise alone, without visiting the cells that stay low.

A cell holds 1 or 0 plus two-sided geometric noise; equal cells are ranked at random. Cells that hold 1 are drawn one by
one. Of those that hold 0 only the cells above a public threshold are visited, by geometric gaps: the threshold is a
level and a part of that level, so low that about k cells pass. Cells that pass are drawn from the law above the
threshold. If too few pass, all of these are among the largest, and the search goes on down to a lower threshold. The
law is that of sorting all cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.engine import LOCAL, Block, Blocks, Engine
from graphveil.mechanisms.base.lattice import Levels
from graphveil.mechanisms.edges.edge_sampling import bernoulli_places
from graphveil.mechanisms.edges.neighbour_lists import Ids
from graphveil.mechanisms.samplers.geometric import DEEP, TwoSided, bernoulli, bernoulli_of, geometric_by_ratio
from graphveil.privacy import BlockKey, BlockNoise, Randomness

# The margin of cells that should pass beyond those wanted: in deviations of their number, and in cells.
MARGIN: Final = (5.0, 8.0)


@dataclass(frozen=True)
class Threshold:
    """Cells above `level` pass, and cells at it with probability `part`; with `everything` all cells pass."""

    level: int
    part: Decimal
    everything: bool = False


@dataclass(frozen=True)
class Cells:
    """Cells of noise that have not passed the threshold `passed` of an earlier round; None: this is the first round."""

    noise: TwoSided
    passed: Threshold | None

    def chance(self, threshold: Threshold) -> Decimal:
        """The probability that a cell holding 0 passes `threshold`, not having passed the earlier one."""
        with localcontext(DEEP):
            before = self._mass(self.passed) if self.passed else Decimal(0)
            return (self._mass(threshold) - before) / (1 - before)

    def values(self, count: int, threshold: Threshold, randomness: Randomness) -> Levels:
        """The levels of cells holding 0 that pass `threshold`, not having passed the earlier one; drawn until they fit.
        Returns int64 [count].

        Args:
            count: how many cells passed.
            threshold: which they passed.
        """
        result, missing = np.empty(count, np.int64), np.arange(count)
        while missing.size:
            drawn = self._above(missing.size, threshold, randomness)
            result[missing] = drawn
            # Rejection keeps the law exact: above this threshold, given that it stayed below the earlier one.
            if self.passed is None:
                return result
            missing = missing[Cells(self.noise, None).passes(drawn, self.passed, randomness)]
        return result

    def passes(self, values: Levels, threshold: Threshold, randomness: Randomness) -> npt.NDArray[np.bool_]:
        """Which cells of known values pass `threshold`, not having passed the earlier one. Returns bool [m].

        Args:
            values: int64 [m], the cells' noisy values.
            randomness: decides about cells at the level of the threshold.
        """
        if threshold.everything:
            return np.ones(len(values), np.bool_)
        result, part = values > threshold.level, threshold.part
        if self.passed and self.passed.level == threshold.level:
            with localcontext(DEEP):
                part = (part - self.passed.part) / (1 - self.passed.part)
        tied = np.flatnonzero(values == threshold.level)
        result[tied] = bernoulli(*bernoulli_of(part), len(tied), randomness)
        return result

    def _above(self, count: int, threshold: Threshold, randomness: Randomness) -> Levels:
        """Levels of cells that pass `threshold`, whatever they did before."""
        if threshold.everything:
            return self.noise.draw(count, randomness)
        with localcontext(DEEP):
            over = self.noise.tail(threshold.level + 1) / self._mass(threshold)
        higher = np.flatnonzero(bernoulli(*bernoulli_of(over), count, randomness))
        result = np.full(count, threshold.level, np.int64)
        result[higher] += 1 + self.noise.excess(len(higher), randomness)
        return result

    def _mass(self, threshold: Threshold) -> Decimal:
        if threshold.everything:
            return Decimal(1)
        return self.noise.tail(threshold.level + 1) + threshold.part * self.noise.chance(threshold.level)


def noisy_top_k(
    true: Ids, blocks: Blocks, count: int, noise: TwoSided, randomness: Randomness, *, engine: Engine = LOCAL
) -> Ids:
    """The places of the `count` largest of all cells, ascending; equal cells are ranked uniformly at random.

    Args:
        true: the places of the cells that hold 1, ascending.
        blocks: of all cells, those that hold 0 included; public.
        count: 0 to the number of cells; public.
    """
    # Thresholds assume as many cells of 1 as are wanted, which is public: up to noise there are as many.
    cells, target, assumed = Cells(noise, None), float(count), count
    keys, shared = BlockNoise(randomness), engine.put(true)
    selected, rests, number = [np.zeros(0, np.int64)], list[_Rest | None]([None] * len(blocks)), 0
    while count:
        # Five deviations more than wanted: a second round, which costs another search below, is then rare.
        target += MARGIN[0] * math.sqrt(target) + MARGIN[1]
        threshold, number = threshold_for(target, blocks.rows, assumed, noise), number + 1
        keys_and_rests = zip(keys.keys(len(blocks), number), rests, strict=True)
        results = engine.map_blocks(_CellsOfBlock(cells, threshold), blocks, shared, keys_and_rests)
        passed, levels, rests = map(list, zip(*results, strict=True))
        places = np.concatenate(passed)
        # Enough passed: the largest are among them. Too few: all of them are, and the rest lies below the threshold.
        chosen = places[top_k(np.concatenate(levels), min(count, len(places)), randomness)]
        selected.append(chosen)
        count -= len(chosen)
        cells = Cells(noise, threshold)
    return np.sort(np.concatenate(selected))


@dataclass(frozen=True)
class _Rest:
    """What a round leaves of a block: the cells of 1 that did not pass, their levels, the cells of 0 that passed."""

    edges: Ids
    values: Levels
    zeros: Ids


@dataclass(frozen=True)
class _CellsOfBlock:
    """The task that an engine runs on a block: which cells pass a threshold, from the block's own key."""

    cells: Cells
    threshold: Threshold

    def __call__(
        self, block: Block, key_and_rest: tuple[BlockKey, _Rest | None], true: Ids
    ) -> tuple[Ids, Levels, _Rest]:
        """Return the places of those that pass, their levels, and what is left for a later round."""
        (key, rest), stop = key_and_rest, block.stop - block.start
        stream, edges = key.stream(), true[slice(*np.searchsorted(true, (block.start, block.stop)))] - block.start
        if rest is None:
            rest = _Rest(edges, 1 + self.cells.noise.draw(len(edges), stream), edges[:0])
        # Cells that passed are excluded; all others are drawn anew, given that they did not pass.
        excluded = np.sort(np.concatenate([edges, rest.zeros])) if rest.zeros.size else edges
        # The cells of 0 that pass, numbered without the cells in `excluded`, which hold 1 or have passed.
        if stop == len(excluded) or self.threshold.everything:
            numbers = np.arange(stop - len(excluded))
        else:
            with localcontext(DEEP):
                chance = self.cells.chance(self.threshold)
                gaps = geometric_by_ratio(1 - chance, stop - len(excluded))
            passing = bernoulli_places(stop - len(excluded), gaps, float(chance), stream)
            numbers = np.concatenate([places for *_, places in passing])
        zeros = numbers + np.searchsorted(excluded - np.arange(len(excluded)), numbers, side="right")
        above = self.cells.passes(rest.values, self.threshold, stream)
        levels = np.concatenate([rest.values[above], self.cells.values(len(zeros), self.threshold, stream)])
        remaining = _Rest(rest.edges[~above], rest.values[~above], np.concatenate([rest.zeros, zeros]))
        return block.start + np.concatenate([rest.edges[above], zeros]), levels, remaining


def threshold_for(target: float, size: int, edges: int, noise: TwoSided) -> Threshold:
    """The threshold that about `target` cells pass; all, where that is half of those holding 0 or more.

    Args:
        target: how many cells are to pass on average.
        size: how many cells hold 0, at most.
        edges: how many hold 1, as far as is public.
    """
    if 2 * target >= size:
        return Threshold(0, Decimal(1), everything=True)
    # In floating point, because the threshold is public: whatever it is, the chances that follow from it are exact.
    # size tail(l) + edges tail(l - 1) with tail(l) = e^(-rate l) / (1 + e^-rate), which holds from l = 0 on, reaches
    # the target at the real number whose floor is the level.
    share = target / (size + edges * math.exp(noise.rate))
    level = max(0, math.floor(-(math.log(share) + math.log1p(math.exp(-noise.rate))) / noise.rate))
    above = size * float(noise.tail(level + 1)) + edges * float(noise.tail(level))
    part = (target - above) / (size * float(noise.chance(level)) + edges * float(noise.chance(level - 1)))
    # Neither none nor all of the level, so that every chance is one a coin can have.
    return Threshold(level, Decimal(min(1 - 2.0**-53, max(part, 2.0**-80))))


def top_k(levels: Levels, count: int, randomness: Randomness) -> Ids:
    """The places of the `count` largest levels; among equal ones each choice is equally likely.
    Returns int64 [count], places in `levels`.

    Args:
        randomness: decides among equal levels.
    """
    if count in (0, len(levels)):
        return np.arange(count)
    cut = np.partition(levels, len(levels) - count)[len(levels) - count]
    # Only ties at the cut are drawn: all higher levels are included.
    above, tied = np.flatnonzero(levels > cut), np.flatnonzero(levels == cut)
    return np.concatenate([above, tied[uniform_subset(len(tied), count - len(above), randomness)]])


def uniform_subset(count: int, size: int, randomness: Randomness) -> Ids:
    """A subset of 0..count-1 of this size (at least 1), each equally likely.
    Returns int64 [size], in no particular order.
    """
    if size == count:
        return np.arange(count)
    while True:
        keys = randomness.uint64(count)
        order = np.argpartition(keys, size - 1)
        # No subset is favoured: where equal keys would decide, all are drawn again.
        if keys[order[size - 1]] < keys[order[size:]].min():
            return order[:size]
