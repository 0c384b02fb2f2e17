"""Randomized response on rows of bits that are nearly all zero, without visiting the zeros.

The places where a fresh bit would say 1 although nothing is there are independent coins of one public
probability; the distances between them are geometric variables, drawn exactly. Places that do hold a
relationship are taken out again and decided by a draw of their own. The law is that of one coin for each place;
time and memory are those of what comes out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.engine import LOCAL, Block, Blocks, Engine
from graphveil.mechanisms.base.values import BLOCK, blocks
from graphveil.mechanisms.edges.neighbour_lists import EdgeReports, Ids, NeighbourLists, owners
from graphveil.mechanisms.samplers.bits import WORD
from graphveil.mechanisms.samplers.geometric import Geometric, geometric_by_success
from graphveil.privacy import BlockKey, BlockNoise, Randomness
from graphveil.runtime.late import torch
from graphveil.runtime.sorted_arrays import contains

Thresholds = npt.NDArray[np.uint64]

#: Of one block, whose output is to stay in a core's cache: places that come out, or people where fewer of those do.
FALSE_PLACES: Final = 1 << 17
PEOPLE: Final = 1 << 13


@dataclass(frozen=True)
class _ListsOfBlock:
    """The part of the noisy lists that lies in a block of places: what an engine does, from the block's own key."""

    lists: NeighbourLists
    low: int

    def __call__(
        self, block: Block, key: BlockKey, true: Ids, starts: Ids, thinning: Thresholds | None
    ) -> tuple[int, Ids, npt.NDArray[np.int32]]:
        """Return the first user who sends, how many that one and each after it send, and whom they name."""
        stream = key.stream()
        places = flipped(block, true, self.low, stream)
        users = owners(places, starts)
        # Thinning depends on noisy degrees alone: post-processing of a bit that was randomized already.
        if thinning is not None:
            stays = stream.uint64(len(places)) < thinning[users]
            places, users = places[stays], users[stays]
        first = int(users[0]) if users.size else 0
        return first, np.bincount(users - first), self.lists.named(places, users).astype(np.int32)


def sample_lists(
    lists: NeighbourLists,
    true: Ids,
    low: int,
    randomness: Randomness,
    thinning: Thresholds | None = None,
    *,
    engine: Engine = LOCAL,
) -> EdgeReports:
    """The noisy lists of all users.

    Args:
        true: the places that hold a relationship, ascending.
        low: a bit is flipped with probability low / 2^64.
        thinning: uint64 [n]; a bit that says 1 is then sent with probability thinning / 2^64 of its list.
    """
    blocks = place_blocks(lists.total, lists.total * (low / WORD), lists.nodes)
    shared = engine.put(true, lists.starts, thinning)
    results = engine.map_blocks(_ListsOfBlock(lists, low), blocks, shared, BlockNoise(randomness).keys(len(blocks)))
    counts, columns = np.zeros(lists.nodes, np.int64), [np.zeros(0, np.int32)]
    for first, lengths, neighbours in results:
        counts[first : first + len(lengths)] += lengths
        columns.append(neighbours)
    ends = np.concatenate([[0], np.cumsum(counts)])
    return EdgeReports(torch.from_numpy(ends), torch.from_numpy(np.concatenate(columns)))


def place_blocks(places: int, expected: float, people: int) -> Blocks:
    """Places 0..places-1 in blocks: about 2^17 that come out each, or those of 2^13 people; by public facts alone.

    Args:
        expected: how many of them are to come out, as far as is public.
        people: whose places they are.
    """
    number = max(1, math.ceil(expected / FALSE_PLACES), math.ceil(people / PEOPLE))
    return Blocks(places, max(1, -(-places // number)))


def flipped(block: Block, true: Ids, low: int, randomness: Randomness) -> Ids:
    """The places of a block whose noisy bit says 1, ascending.

    Args:
        true: the places that hold a relationship, of all blocks, ascending.
        low: a bit is flipped with probability low / 2^64.
    """
    own = true[slice(*np.searchsorted(true, (block.start, block.stop)))]
    # In the order of the places: any other order would tell surviving entries from made ones.
    parts = [own[survives(len(own), low, randomness)]]
    for *_, false in false_places(block.stop - block.start, low, randomness):
        false = false + block.start
        # Places that hold a relationship had a draw above: left in, they would stay with more than 1 - p.
        parts.append(false[~contains(own, false)])
    return np.sort(np.concatenate(parts))


def false_places(total: int, low: int, randomness: Randomness) -> Iterator[tuple[int, int, Ids]]:
    """Independent places of 0..total-1, each with probability low / 2^64, in consecutive parts.

    Args:
        total: how many places there are.
        low: 2^64 times the probability.

    Yields:
        first, stop and the places in first..stop-1, ascending; the parts cover 0..total-1.
    """
    return bernoulli_places(total, geometric_by_success(low, total), low / WORD, randomness)


def bernoulli_places(
    total: int, gaps: Geometric, chance: float, randomness: Randomness
) -> Iterator[tuple[int, int, Ids]]:
    """The successes of independent trials, found by skipping the failures between them.
    Source: V. Batagelj, U. Brandes, "Efficient Generation of Large Random Networks", Physical Review E 71, 2005.

    Args:
        gaps: the law of the failures between two successes, drawn up to `total` at least.
        chance: about the probability of a success; it decides how many gaps are drawn at once, nothing else.

    Yields:
        As `false_places`.
    """
    first = 0
    while first < total:
        expected = (total - first) * chance
        # Nearly always all gaps that are needed, at most a block.
        count = min(BLOCK, math.ceil(expected + 5 * math.sqrt(expected)) + 8)
        drawn = gaps.draw(count, randomness)
        # A gap reaches at most to the end, so the first place behind it cannot overflow; those after it may.
        places = first + np.cumsum(drawn + 1) - 1
        behind = int(np.argmax(places >= total))
        if places[behind] >= total:
            yield first, total, places[:behind]
            return
        yield first, int(places[-1]) + 1, places
        first = int(places[-1]) + 1


def survives(count: int, low: int, randomness: Randomness) -> npt.NDArray[np.bool_]:
    """For each bit that is 1 whether it still is after randomized response. Returns bool [count].

    Args:
        low: a bit is flipped with probability low / 2^64.
    """
    result = np.empty(count, np.bool_)
    for start, stop in blocks(count, 1):
        result[start:stop] = randomness.uint64(stop - start) >= np.uint64(low)
    return result
