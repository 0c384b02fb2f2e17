"""Noise for numbers that are opened whole: every bit of z + noise is random, the lowest ones too.

    z [n, h] whole, exact       m = 2^t, the step       G rounded normal of sigma C / m steps, U uniform in 0..m - 1
    opened   z + m G + U = m (A + G) + L,       L = (z + U) mod m,    A = floor((z + U) / m)

L is uniform whatever z is.  Given L, m A + L is the first number from z on that leaves L when divided by m: for rows
z, z' at most 2 C' apart, m A and m A' are less than 2 C' + sqrt(h) m apart.  With C' = C - sqrt(h) m / 2 that is 2 C,
the sensitivity that G is paid for.  Without U, the lowest t bits of z are opened without any noise, at any epsilon.
Everything is exact on whole numbers, and the ring takes them modulo 2^64 afterwards.
Source: dither before quantisation, Schuchman, IEEE Trans. Communication Technology, 1964.

How long rows and weights of mode "shared-linear" get, every rounding counted, is what C' bounds (`Bounds`):

    u = 2^-f                                                        one unit of the fixed point
    X rows     (1 - kept) / sqrt(I) at each holder, rounded to u    |.| <= 1 - kept + sqrt(d) u / 2
    one hop    rows of S add up to at most 1; cut to within u       |.| <= before + sqrt(d) u
    P = S^K X  kept = (K + 1/2) sqrt(d) u + 2^-20                   |.| <= 1;  2^-20 is for scaling in float64
    W_0        I shares with entries up to w, rounded               |.| <= I (w + u / 2) sqrt(d h)
    G = P P_t^T  of t rows that train, cut to within u              entries <= 1 + u
    z          P W_0 + G A, exact                                   |.| <= |W_0| + sqrt(t) (1 + u) |A|
    W          W_0 + P_t^T A, cut to within u                       |.| <= |W_0| + sqrt(t) |A| + sqrt(d h) u
    S^K X W    cut K times, opened after the last hop               |.| <= |W| + K sqrt(h) u             all <= C'

The server keeps |A| within what is left (`Bounds.longest_a`); a cut entry may be 0 in place of its value, never longer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.core.publication import Publication
from graphveil.federation.crypto import ring
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal

#: The least deviation of a rounded normal, in steps.
_MIN_SIGMA = 10.0


class Words(Protocol):
    """A source of uniform 64-bit words."""

    def uint64(self, count: int) -> np.ndarray:
        """Return uniform words."""


@dataclass(frozen=True)
class Dither:
    """The noise of one holder on numbers at scale 2^scale; public.

    Attributes:
        publication: price and sigma of the noise, which is not 0.
        holders: how many add such noise; each adds all that its own guarantee needs.

    Raises:
        InputError: the ring has no room for the noise, or a step is as long as a row.
    """

    publication: Publication
    scale: int
    holders: int

    def __post_init__(self) -> None:
        publication = self.publication
        # Below C / 2 a step is nearly as long as a row: rounding to the grid would eat the signal before any noise.
        if self.step_bits < 1 or self.sigma < _MIN_SIGMA or self.longest <= publication.clip / 2:
            raise InputError(
                f"no noise of sigma {publication.sigma:g} for rows of {publication.columns} numbers, "
                f"of length {publication.clip:g} at most",
                where="fixed point",
                remedy="raise epsilon, lower the width, or raise the fraction bits",
            )
        # A sum that wraps in the ring would still be private, but would open as noise of 2^63: refused beforehand.
        ring.require_room(publication.cut * publication.sigma + 1, publication.clip, self.holders, self.scale // 2)

    @property
    def step_bits(self) -> int:
        """t: a row of length C is at most 2^bits steps long."""
        # `frexp` and not `log2`: a rounded logarithm could make steps too short for a clip just above a power of 2.
        fraction, power = math.frexp(self.publication.clip)
        return power - (fraction == 0.5) + self.scale - self.publication.bits

    @property
    def longest(self) -> float:
        """C': the most length of a row before it is rounded to the grid."""
        return self.publication.clip - math.sqrt(self.publication.columns) / 2 * 2.0 ** (self.step_bits - self.scale)

    @property
    def sigma(self) -> float:
        """The deviation of G, in steps."""
        return self.publication.sigma * self.publication.clip * 2.0 ** (self.scale - self.step_bits)

    def draw(self, shape: tuple[int, ...], words: Words) -> Tensor:
        """Return m G + U, int64 ring elements of this shape.

        Args:
            words: a uniform source, which gives no other draw the same words.
        """
        count = math.prod(shape)
        normal = RoundedNormal(self.sigma, math.ceil(self.publication.cut * self.sigma))
        # Drawn on whole numbers: no float of the noise is ever rounded (Mironov, CCS 2012).
        steps = torch.from_numpy(normal.draw(count, words)).view(shape)  # type: ignore[arg-type]
        # 2^t divides 2^64: the low bits of a uniform word are exactly uniform.
        low = (words.uint64(count) & np.uint64((1 << self.step_bits) - 1)).astype(np.int64)
        return (steps << self.step_bits) + torch.from_numpy(low).view(shape)


@dataclass(frozen=True)
class Bounds:
    """How long rows and weights of mode "shared-linear" get at most, see the module.

    Attributes:
        holders, columns, width, hops, bits: I, d, h, K and f.
        longest: C', inf where nothing is protected.

    Raises:
        InputError: for so few fraction bits that rounding takes all the room.
    """

    holders: int
    columns: int
    width: int
    hops: int
    bits: int
    longest: float

    def __post_init__(self) -> None:
        if self.row_length <= 0 or self.longest_a(1) <= 0:
            raise InputError(
                f"{self.bits} fraction bits: rounding takes all the room",
                where="fixed point",
                remedy="raise the fraction bits",
            )

    @property
    def unit(self) -> float:
        return 2.0**-self.bits

    @property
    def row_length(self) -> float:
        """1 - kept: the length of a person's row of all holders' columns together."""
        # Half a unit a column for encoding X, and a whole one for each hop's truncation; 2^-20 for float64.
        return 1 - (self.hops + 0.5) * math.sqrt(self.columns) * self.unit - 2.0**-20

    @property
    def start_entry(self) -> float:
        """w, the largest entry of a holder's share of W_0: together they take half of C'."""
        # Glorot's variance for the sum of all shares, or less where that could pass half of C'.
        free = math.sqrt(6.0 / (self.columns + self.width) / self.holders)
        return min(free, self.longest / 2 / self._size / self.holders)

    def longest_a(self, rows: int) -> float:
        """Return the most length of A.

        Args:
            rows: t, how many train.
        """
        # The worst case of each, all in one direction: nobody knows W, so nothing can be measured and clipped later.
        start = self.holders * (self.start_entry + self.unit / 2) * self._size
        cut = (self._size + self.hops * math.sqrt(self.width)) * self.unit
        return (self.longest - start - cut) / (math.sqrt(rows) * (1 + self.unit))

    @property
    def _size(self) -> float:
        return math.sqrt(self.columns * self.width)
