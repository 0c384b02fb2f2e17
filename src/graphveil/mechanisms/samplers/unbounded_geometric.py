"""Exact geometric variables without an upper end: how many failures come before a success.

As in `geometric.py` the binary digits are independent Bernoulli draws of 256 bits. Here the digits stop where what they
leave over, a geometric variable of its own, is rarely above 0: it is drawn trial by trial. Every number stays possible,
and every probability is right to 1 part in 2^230.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Final

import numpy as np

from graphveil.mechanisms.base.lattice import Levels
from graphveil.mechanisms.samplers.bits import PRECISION, WORD
from graphveil.mechanisms.samplers.geometric import bernoulli
from graphveil.privacy import Randomness

# Once 2^digits failures in a row are rarer than this, the rest is cheaper trial by trial.
_RARE: Final = Decimal(1) / 256
_BITS: Final = 256
_REST: Final = _BITS - 64
_DIGITS: Final = 120

#: 2^256 times a probability, as its first 64 bits and the other 192: what `geometric.bernoulli` draws from.
Bernoulli = tuple[int, int]


@dataclass(frozen=True)
class Geometric:
    """Pr[G = g] = (1 - r) r^g for g >= 0; everything from `limit` on is drawn as `limit`.

    `digits` and `overflow` are Bernoulli laws: that a binary digit is 1, and that a draw exceeds all digits.
    """

    digits: tuple[Bernoulli, ...]
    overflow: Bernoulli
    limit: int

    def draw(self, count: int, randomness: Randomness) -> Levels:
        """`count` independent draws, int64.

        Args:
            count: how many.
            randomness: the source of the noise.
        """
        total = np.zeros(count, np.int64)
        for digit, is_one in enumerate(self.digits):
            total += bernoulli(*is_one, count, randomness).astype(np.int64) << digit
        going = np.flatnonzero(bernoulli(*self.overflow, count, randomness))
        # What exceeds all digits is a geometric variable of ratio r^(2^digits), and independent of the digits: it has
        # no memory.
        while going.size:
            total[going] += 1 << len(self.digits)
            going = going[total[going] < self.limit]
            going = going[bernoulli(*self.overflow, going.size, randomness)]
        return np.minimum(total, self.limit)


@lru_cache(maxsize=64)
def geometric_by_success(low: int, limit: int) -> Geometric:
    """Failures before the first success of an event of probability low / 2^64; limit from 1 to 2^62.

    Args:
        low: 2^64 times the probability of a success.
        limit: what larger draws are drawn as.
    """
    with localcontext(PRECISION) as context:
        context.prec = _DIGITS  # the quotient has at most 64 digits: it is exact
        return geometric_by_ratio(Decimal(WORD - low) / WORD, limit)


def geometric_by_ratio(ratio: Decimal, limit: int) -> Geometric:
    """The geometric variable of ratio r in (0, 1).

    Args:
        ratio: r.
        limit: what larger draws are drawn as, at least 1.
    """
    with localcontext(PRECISION) as context:
        context.prec = _DIGITS
        digits: list[Bernoulli] = []
        power = ratio
        while power > _RARE and 2 << len(digits) <= limit:
            digits.append(bernoulli_of(power / (1 + power)))
            power *= power
        return Geometric(tuple(digits), bernoulli_of(power), limit)


def bernoulli_of(probability: Decimal) -> Bernoulli:
    """2^256 times a probability in [0, 1), as the first 64 bits and the rest, rounded down."""
    with localcontext(PRECISION) as context:
        context.prec = _DIGITS
        first, rest = divmod(int(2**_BITS * probability), 2**_REST)
    return first, rest
