"""Exact geometric variables without an upper end: how many failures come before a success.

As in `geometric.py` the binary digits are independent coins of 256 bits. Here the digits stop where what is left
over, a geometric variable of its own, is a coin that rarely falls: it is thrown until it does not. Every number
stays possible, and every probability is right to 1 part in 2^230.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Final

import numpy as np

from graphveil.mechanisms.base.lattice import Levels
from graphveil.mechanisms.samplers.bits import PRECISION, WORD
from graphveil.mechanisms.samplers.geometric import below
from graphveil.privacy import Randomness

# Once 2^digits failures in a row are rarer than this, the rest is cheaper coin by coin.
_RARE: Final = Decimal(1) / 256
_COIN: Final = 256
_REST: Final = _COIN - 64
_DIGITS: Final = 120

Coin = tuple[int, int]


@dataclass(frozen=True)
class Geometric:
    """Pr[G = g] = (1 - r) r^g for g >= 0; everything from `limit` on is drawn as `limit`.

    `digits` and `carry` are coins: 2^256 times a probability, as the first 64 bits and the rest.
    """

    digits: tuple[Coin, ...]
    carry: Coin
    limit: int

    def draw(self, count: int, randomness: Randomness) -> Levels:
        """`count` independent draws, int64.

        Args:
            count: how many.
            randomness: the source of the noise.
        """
        total = np.zeros(count, np.int64)
        for digit, coin in enumerate(self.digits):
            total += below(*coin, count, randomness).astype(np.int64) << digit
        going = np.flatnonzero(below(*self.carry, count, randomness))
        while going.size:
            total[going] += 1 << len(self.digits)
            going = going[total[going] < self.limit]
            going = going[below(*self.carry, going.size, randomness)]
        return np.minimum(total, self.limit)


@lru_cache(maxsize=64)
def failures_before(low: int, limit: int) -> Geometric:
    """Failures before the first success of an event of probability low / 2^64; limit from 1 to 2^62.

    Args:
        low: 2^64 times the probability of a success.
        limit: what larger draws are drawn as.
    """
    with localcontext(PRECISION) as context:
        context.prec = _DIGITS  # the quotient has at most 64 digits: it is exact
        return geometric(Decimal(WORD - low) / WORD, limit)


def geometric(ratio: Decimal, limit: int) -> Geometric:
    """The geometric variable of ratio r in (0, 1).

    Args:
        ratio: r.
        limit: what larger draws are drawn as, at least 1.
    """
    with localcontext(PRECISION) as context:
        context.prec = _DIGITS
        digits: list[Coin] = []
        power = ratio
        while power > _RARE and 2 << len(digits) <= limit:
            digits.append(coin(power / (1 + power)))
            power *= power
        return Geometric(tuple(digits), coin(power), limit)


def coin(chance: Decimal) -> Coin:
    """2^256 times a probability in [0, 1), as the first 64 bits and the rest, rounded down."""
    with localcontext(PRECISION) as context:
        context.prec = _DIGITS
        first, rest = divmod(int(2**_COIN * chance), 2**_REST)
    return first, rest
