"""Compiled loops over named pairs. Import this module inside functions only: it loads the compiler."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.runtime.compiled import compiled, prefetch

Floats: TypeAlias = npt.NDArray[Any]
Integers: TypeAlias = npt.NDArray[Any]


#: Up to so many classes a loop is compiled for their number: a general loop takes half as long again.
_FEW: Final = 8
#: How many pairs ahead a row is prefetched: ends of pairs are in random order, so each row comes from memory.
_AHEAD: Final = 12


@lru_cache(maxsize=16)
def cavity_loop(classes: int) -> Callable[..., None]:
    """Return the loop that computes beliefs without the message of the other end of a pair, for so many classes."""
    unrolled = _unrolled(classes)

    @compiled
    def loop(start: int, beliefs: Floats, source: Integers, target: Integers, messages: Floats, out: Floats) -> None:
        """Fill `out` [2, s, c] from pair `start` on: log-beliefs without the message of the other end, largest 0."""
        width, last = unrolled or out.shape[2], len(target) - 1
        for place in range(out.shape[1]):
            pair = start + place
            prefetch(beliefs, target[min(pair + _AHEAD, last)], 0)
            for way in range(2):
                person = target[pair] if way else source[pair]
                top = beliefs[person, 0] - messages[way, pair, 0]
                for k in range(width):
                    value = beliefs[person, k] - messages[way, pair, k]
                    out[way, place, k] = value
                    top = max(top, value)
                for k in range(width):
                    out[way, place, k] -= top

    return loop


@lru_cache(maxsize=16)
def reply_loop(classes: int) -> Callable[..., None]:
    """Return the loop that turns the beliefs of both ends of pairs into their messages, for so many classes."""
    unrolled = _unrolled(classes)

    @compiled
    def loop(start: int, least: float, weights: Floats, cell: Integers, ratios: Floats) -> None:
        """Turn `weights` [2, s, c] of both ends into messages to them: sum over b of R_ab c(b), at least `least`."""
        width = unrolled or weights.shape[2]
        # All in the type of the arrays: a literal would make every sum one of 64-bit floats.
        unit, none, floor = weights.dtype.type(1), weights.dtype.type(0), weights.dtype.type(least)
        source, target = np.empty(width, weights.dtype), np.empty(width, weights.dtype)
        replies = np.empty(width, weights.dtype)
        for place in range(weights.shape[1]):
            at = cell[start + place]
            of_source, of_target = none, none
            for k in range(width):
                source[k], target[k], replies[k] = weights[0, place, k], weights[1, place, k], none
                of_source += source[k]
                of_target += target[k]
            of_source, of_target = unit / of_source, unit / of_target
            for a in range(width):
                total = none
                for b in range(width):
                    ratio = ratios[at, a, b]
                    total += ratio * target[b]
                    replies[b] += ratio * source[a]
                weights[0, place, a] = max(total * of_target, floor)
            for b in range(width):
                weights[1, place, b] = max(replies[b] * of_source, floor)

    return loop


@lru_cache(maxsize=16)
def update_loop(classes: int) -> Callable[..., None]:
    """Return the loop that updates messages and adds them up, for so many classes."""
    unrolled = _unrolled(classes)

    @compiled
    def loop(
        start: int, share: float, update: Floats, source: Integers, target: Integers, messages: Floats, received: Floats
    ) -> None:
        """Move `messages` [2, S, c] by a share towards their `update` [2, s, c], and add them to `received` [n, c]."""
        width, last = unrolled or update.shape[2], len(target) - 1
        part = update.dtype.type(share)
        for place in range(update.shape[1]):
            pair = start + place
            prefetch(received, target[min(pair + _AHEAD, last)], 0)
            for way in range(2):
                person = target[pair] if way else source[pair]
                for k in range(width):
                    old = messages[way, pair, k]
                    new = old + part * (update[way, place, k] - old)
                    messages[way, pair, k] = new
                    received[person, k] += new

    return loop


def _unrolled(classes: int) -> int:
    """The number of classes where a loop is compiled for it, else 0."""
    return classes if classes <= _FEW else 0


@compiled
def add_joint(weights: Floats, cell: Integers, start: int, ratios: Floats, joint: Floats) -> None:
    """Add Pr[a] Pr[b] / Z of each pair to its cell of `joint`, where Z is the sum of Pr[a] Pr[b] R_ab.

    Args:
        weights: [2, s, c], beliefs of sources and targets up to a factor.
        cell: [S].
        start: the first pair.
        ratios: R [cells, c, c], the source's classes first.
        joint: float64 [cells, c, c].
    """
    pairs, classes = weights.shape[1:]
    for place in range(pairs):
        at = cell[start + place]
        total = 0.0
        for a in range(classes):
            inner = 0.0
            for b in range(classes):
                inner += ratios[at, a, b] * weights[1, place, b]
            total += inner * weights[0, place, a]
        for a in range(classes):
            share = weights[0, place, a] / total
            for b in range(classes):
                joint[at, a, b] += share * weights[1, place, b]


@compiled
def add_groups(group: Integers, share: Floats, sums: Floats) -> None:
    """Add everyone's row of `share` [n, c] to that of its group in `sums`, float64 [K, c].

    Args:
        group: [n].
        share: [n, c].
        sums: float64 [K, c].
    """
    people, classes = share.shape
    for person in range(people):
        for k in range(classes):
            sums[group[person], k] += share[person, k]


@compiled
def subtract_own(total: Floats, absent: Floats, own: Integers, opposite: Integers, share: Floats, out: Floats) -> None:
    """Write, for each person, the total of the group less the person's own contribution.

    Args:
        total: float64 [G, c].
        absent: float64 [G, K, c, c].
        share, out: [n, c].
        own: [n], everyone's group.
        opposite: [n], the group that everyone is counted in.
    """
    people, classes = share.shape
    for person in range(people):
        group = own[person]
        table = absent[group, opposite[person]]
        for a in range(classes):
            value = total[group, a]
            for b in range(classes):
                value -= table[a, b] * share[person, b]
            out[person, a] = value
