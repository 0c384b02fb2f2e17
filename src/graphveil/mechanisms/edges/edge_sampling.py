"""Randomized response on rows of bits that are nearly all zero, without visiting the zeros.

The places whose bit is flipped from 0 to 1 are independent events of one public probability; the distances between
them are geometric variables, drawn exactly. Places that hold a relationship are removed again and decided by draws of
their own. The law is that of one coin for each place; time and memory are proportional to the output.
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

#: Size of a block, whose output should fit a core's cache: places in its output, or people where these give fewer.
FALSE_PLACES: Final = 1 << 17
PEOPLE: Final = 1 << 13


@dataclass(frozen=True)
class _ListsOfBlock:
    """The task that an engine runs on a block of places: their part of the noisy lists, from the block's own key."""

    lists: NeighbourLists
    low: int

    def __call__(
        self, block: Block, key: BlockKey, true: Ids, starts: Ids, thinning: Thresholds | None
    ) -> tuple[int, Ids, npt.NDArray[np.int32]]:
        """Return the first user with an entry, the number of entries of each user from there on, and whom they name."""
        stream = key.stream()
        places = noisy_places(block, true, self.low, stream)
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
        thinning: uint64 [n]; a noisy bit that is 1 is sent with probability thinning / 2^64 of its list; None: always.
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
    """Places 0..places-1 in blocks of about 2^17 expected outputs or 2^13 people each, from public facts alone.

    Args:
        expected: how many places the output is expected to hold, as far as is public.
        people: how many people the places belong to.
    """
    number = max(1, math.ceil(expected / FALSE_PLACES), math.ceil(people / PEOPLE))
    return Blocks(places, max(1, -(-places // number)))


def noisy_places(block: Block, true: Ids, low: int, randomness: Randomness) -> Ids:
    """The places of a block whose noisy bit says 1, ascending.

    Args:
        true: the places that hold a relationship, of all blocks, ascending.
        low: a bit is flipped with probability low / 2^64.
    """
    own = true[slice(*np.searchsorted(true, (block.start, block.stop)))]
    # In the order of the places: any other order would distinguish true entries from false ones.
    parts = [own[draw_unflipped(len(own), low, randomness)]]
    for *_, false in false_places(block.stop - block.start, low, randomness):
        false = false + block.start
        # Places that hold a relationship were drawn above: a second draw would keep them with more than 1 - p.
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
    """The successes of independent trials, by skipping the failures between them.
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
        # Nearly always enough gaps; at most a block of them.
        count = min(BLOCK, math.ceil(expected + 5 * math.sqrt(expected)) + 8)
        drawn = gaps.draw(count, randomness)
        # A gap is at most `total`, so the first place beyond the end cannot overflow; those after it may.
        places = first + np.cumsum(drawn + 1) - 1
        first_beyond = int(np.argmax(places >= total))
        if places[first_beyond] >= total:
            yield first, total, places[:first_beyond]
            return
        yield first, int(places[-1]) + 1, places
        first = int(places[-1]) + 1


def draw_unflipped(count: int, low: int, randomness: Randomness) -> npt.NDArray[np.bool_]:
    """For each of `count` bits whether randomized response leaves it as it is. Returns bool [count].

    Args:
        low: a bit is flipped with probability low / 2^64.
    """
    result = np.empty(count, np.bool_)
    for start, stop in blocks(count, 1):
        result[start:stop] = randomness.uint64(stop - start) >= np.uint64(low)
    return result
