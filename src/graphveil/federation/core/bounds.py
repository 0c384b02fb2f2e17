"""How long rows and weights of mode "shared-linear" can get, every rounding counted: what its noise is made for.

    u = 2^-f                                                        one unit of the fixed point
    X rows     (1 - kept) / sqrt(I) at each holder, rounded to u    |.| <= 1 - kept + sqrt(d) u / 2
    one hop    rows of S add up to at most 1; cut to within u       |.| <= before + sqrt(d) u
    P = S^K X  kept = (K + 1/2) sqrt(d) u + 2^-20                   |.| <= 1
    W          I starts with entries up to w, rounded               |.| <= I (w + u / 2) sqrt(d h)
               and R steps, each cut to within u                           + R (step + sqrt(d h) u)  <=  C'
    z = P W    exact                                                |.| <= C', see `dither`

2^-20 is for float64, in which rows are scaled.  A step is P^T dz: at most sqrt(n) |dz|, as rows of P have length 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphveil.errors import InputError


@dataclass(frozen=True)
class Bounds:
    """Public facts: I holders, d columns, width h, K hops, R rounds, f bits, and C', inf where nothing is protected.

    Raises:
        InputError: so few fraction bits that rounding takes all the room.
    """

    holders: int
    columns: int
    width: int
    hops: int
    rounds: int
    bits: int
    longest: float

    def __post_init__(self) -> None:
        if self.rows <= 0 or self.step <= 0:
            raise InputError(
                f"{self.bits} fraction bits: rounding takes all the room",
                where="fixed point",
                remedy="raise the fraction bits, or publish less often: raise republish",
            )

    @property
    def unit(self) -> float:
        """u."""
        return 2.0**-self.bits

    @property
    def rows(self) -> float:
        """1 - kept: what the lengths of a person's rows at all holders add up to, in squares."""
        # Half a unit a column for encoding X, and a whole one for each hop's truncation; 2^-20 for float64.
        return 1 - (self.hops + 0.5) * math.sqrt(self.columns) * self.unit - 2.0**-20

    @property
    def start(self) -> float:
        """w, the largest entry of a holder's first share of W: together they take half of C'."""
        # Glorot's variance for the sum of all shares, or less where that could pass half of C'.
        free = math.sqrt(6.0 / (self.columns + self.width) / self.holders)
        return min(free, self.longest / 2 / self._size / self.holders)

    @property
    def step(self) -> float:
        """The longest step of one round, before it is cut."""
        # The worst case of each: every entry as large as it may be and rounded up, every step in one direction. W is
        # known to nobody, so nothing can be measured and clipped later.
        start = self.holders * (self.start + self.unit / 2) * self._size
        return (self.longest - start) / self.rounds - self._size * self.unit

    @property
    def _size(self) -> float:
        return math.sqrt(self.columns * self.width)
