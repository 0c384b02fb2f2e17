"""Normal noise on a lattice far finer than its table: for noise too wide for a table of its own.

    Z = (cell 2^20 + place) unit,     cell from a `RoundedNormal` of 2^10 to 2^11 cells a deviation, place by rejection

A deviation is 2^30 to 2^31 units. A unit is a power of 2 and at most one step, so whole steps lie on the lattice of the
noise, and adding Z to one is rounding its sum with continuous noise: the exact curve of the Gaussian mechanism holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal, reach_of
from graphveil.privacy import Randomness

#: Of cells in a deviation, at least, and of units in a cell.
_CELL_BITS, _UNIT_BITS = 10, 20
_UNITS: Final = 1 << _UNIT_BITS
#: Wider noise would have a unit of more than one step.
WIDEST: Final = 2.0 ** (_CELL_BITS + _UNIT_BITS + 1)


@dataclass(frozen=True)
class FineNormal:
    """N(0, sigma^2) on a lattice of 2^-m steps; sigma, in steps, lies above 2^10 and below `WIDEST`.

    Raises:
        InputError: sigma is outside of that.
    """

    sigma: float

    def __post_init__(self) -> None:
        if not 2.0**_CELL_BITS <= self.sigma < WIDEST:
            raise InputError(f"noise of {self.sigma:g} steps", allowed=f"{2**_CELL_BITS} to below {WIDEST:g}")

    @property
    def unit(self) -> float:
        """The lattice, in steps."""
        return 2.0 ** (math.floor(math.log2(self.sigma)) - _CELL_BITS - _UNIT_BITS)

    @property
    def table(self) -> RoundedNormal:
        """The law of the cell."""
        cells = self.sigma / (self.unit * _UNITS)
        # As far as any table is right: it is small whatever sigma is.
        return RoundedNormal(cells, math.ceil(reach_of(math.inf) * cells))

    def units(self, count: int, randomness: Randomness) -> npt.NDArray[np.int64]:
        """`count` independent draws in whole units.

        The place in a cell comes from rejection by the density at its middle, right up to a factor of 1e-13.

        Args:
            count: how many.
            randomness: the source of the noise.
        """
        table = self.table
        cells = table.draw(count, randomness)
        nearest = np.maximum(np.abs(cells) - 0.5, 0.0)
        places, open_ = np.empty(count, np.int64), np.arange(count)
        while open_.size:
            words = randomness.uint64(open_.size)
            places[open_] = (words >> np.uint64(64 - _UNIT_BITS)).astype(np.int64) - _UNITS // 2
            away = cells[open_] + (places[open_] + 0.5) / _UNITS
            chance = np.exp((nearest[open_] ** 2 - away**2) / (2.0 * table.sigma**2))
            open_ = open_[(words & np.uint64((1 << 44) - 1)).astype(np.float64) >= chance * 2.0**44]
        return cells * _UNITS + places

    def draw(self, count: int, randomness: Randomness) -> npt.NDArray[np.float64]:
        """`count` independent draws in steps, exact in float64."""
        return np.multiply(self.units(count, randomness), self.unit, dtype=np.float64)

    def add_to(self, totals: np.ndarray, randomness: Randomness) -> None:
        """Add one independent draw to each of `totals` [n], whole numbers, in place.

        The sum is exact in float64; a float32 total is rounded afterwards, which is post-processing.
        """
        totals[:] = totals.astype(np.float64) + self.draw(totals.size, randomness)

    def price(self, epsilon: float, delta: float, coordinates: int, *, shift: float = math.inf) -> tuple[float, float]:
        """What vectors of such noise cost: as `RoundedNormal.price` of the table.

        Args:
            epsilon, delta: what they cost with normal noise.
            coordinates: how many one unit can change, all releases together.
            shift: as there.
        """
        return self.table.price(epsilon, delta, coordinates, shift=shift)
