"""Compiled loops over named pairs. Import this module inside functions only: it loads the compiler."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.compiled import compiled

Floats: TypeAlias = npt.NDArray[Any]
Integers: TypeAlias = npt.NDArray[Any]


@compiled
def without_answers(start: int, beliefs: Floats, ends: Integers, messages: Floats, out: Floats) -> None:
    """Write what one end of each pair is without what the other told it, in logarithms of which the largest is 0.

    Args:
        start: the first pair.
        beliefs: [n, c].
        ends: [S], the ends that are asked for.
        messages: [S, c], what they were told.
        out: [s, c], filled for the pairs from there on.
    """
    pairs, classes = out.shape
    for place in range(pairs):
        pair = start + place
        person = ends[pair]
        top = beliefs[person, 0] - messages[pair, 0]
        for k in range(classes):
            value = beliefs[person, k] - messages[pair, k]
            out[place, k] = value
            top = max(top, value)
        for k in range(classes):
            out[place, k] -= top


@compiled
def heard_of(start: int, least: float, weights: Floats, cell: Integers, ratios: Floats) -> None:
    """Turn what both ends of each pair are into what the opposite ends hear: sum over b of R_ab c(b).

    Args:
        start: the first pair.
        least: what nothing is thought less likely than.
        weights: [2, s, c], what sources and targets are up to a factor; changed in place to what they hear.
        cell: [S], which ratios hold for a pair.
        ratios: R [cells, c, c], the source's classes first.
    """
    pairs, classes = weights.shape[1:]
    # All in the type of the arrays: a literal would turn every sum into one of 64-bit floats.
    one, none, floor = weights.dtype.type(1), weights.dtype.type(0), weights.dtype.type(least)
    source, target = np.empty(classes, weights.dtype), np.empty(classes, weights.dtype)
    for place in range(pairs):
        table = ratios[cell[start + place]]
        of_source, of_target = none, none
        for k in range(classes):
            source[k], target[k] = weights[0, place, k], weights[1, place, k]
            of_source += source[k]
            of_target += target[k]
            weights[1, place, k] = none
        for a in range(classes):
            share, sum_over = source[a] * (one / of_source), none
            for b in range(classes):
                sum_over += table[a, b] * target[b]
                weights[1, place, b] += table[a, b] * share
            weights[0, place, a] = max(sum_over / of_target, floor)
        for b in range(classes):
            weights[1, place, b] = max(weights[1, place, b], floor)


@compiled
def add_joint(weights: Floats, cell: Integers, start: int, ratios: Floats, joint: Floats) -> None:
    """Add Pr[a] Pr[b] / Z of each pair to its cell of `joint`, where Z is the sum of Pr[a] Pr[b] R_ab.

    Args:
        weights: [2, s, c], what sources and targets are up to a factor.
        cell: [S], which ratios hold for a pair.
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
    """Add everyone's row to that of its group.

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
def others_of(total: Floats, absent: Floats, own: Integers, others: Integers, share: Floats, out: Floats) -> None:
    """Write, for each person, the total of its group less what it adds to that itself.

    Args:
        total: float64 [G, c].
        absent: float64 [G, K, c, c].
        own: [n], everyone's group; others: [n], the group that everyone is counted in.
        share: [n, c].
        out: [n, c], filled.
    """
    people, classes = share.shape
    for person in range(people):
        group = own[person]
        table = absent[group, others[person]]
        for a in range(classes):
            value = total[group, a]
            for b in range(classes):
                value -= table[a, b] * share[person, b]
            out[person, a] = value
