"""Whole numbers in ascending order, which stand for sets of edges: how every room sorts and searches them.

`distinct` and `contains` sort: a hash table of 10^7 numbers, or a search for them in random order, would wait for
memory at each number.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]


#: Bits of either number of a pair in one word.
HALF: Final = np.uint64(32)
Whole = TypeVar("Whole", bound=np.integer[Any])


def distinct(numbers: npt.NDArray[Whole]) -> npt.NDArray[Whole]:
    """Return the distinct values of whole numbers [m], ascending, in a new array.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    # Not a stable sort, since equal numbers are interchangeable: the default is several times quicker.
    ordered = np.sort(numbers)
    repeated = ordered[1:] == ordered[:-1]
    return ordered[np.concatenate([[True], ~repeated])] if repeated.any() else ordered


def packed(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return pairs as one word each, which sort like the pairs and are unpacked without a division.

    Args:
        first, second: whole numbers [m] from 0 to 2^32 - 1; the second is the lower half of a word.

    >>> packed(np.array([1, 0]), np.array([0, 5]))
    array([4294967296,          5], dtype=uint64)
    """
    words = first.astype(np.uint64)
    words <<= HALF
    words |= second.astype(np.uint64, copy=False)
    return words


def swapped(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the same pairs, the other way round."""
    return (words << HALF) | (words >> HALF)


def contains(ascending: npt.NDArray[Whole], numbers: npt.NDArray[Whole]) -> npt.NDArray[np.bool_]:
    """Return whether each of `numbers` is among the `ascending` numbers, bool [m].

    Args:
        ascending: whole numbers, ascending.
        numbers: whole numbers [m], in any order.

    >>> contains(np.array([1, 3]), np.array([3, 2, 1]))
    array([ True, False,  True])
    """
    if not ascending.size:
        return np.zeros(len(numbers), np.bool_)
    present: npt.NDArray[np.bool_]
    if (numbers[1:] < numbers[:-1]).any():
        order = np.argsort(numbers)
        present = np.empty(len(numbers), np.bool_)
        present[order] = contains(ascending, numbers[order])
        return present
    nearest = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    present = ascending[nearest] == numbers
    return present
