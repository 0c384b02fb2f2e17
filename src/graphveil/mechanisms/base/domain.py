"""What a feature mechanism is built for: vectors of d numbers, each in a declared, public range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.guarantees import feature_guarantee
from graphveil.mechanisms.base.values import FloatArray, Rows, Values, open_rows, open_values
from graphveil.privacy import Guarantee
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


#: 2^64, the number of outcomes of one random word.
WORDS = 2.0**64


@dataclass(frozen=True)
class VectorDomain:
    """Vectors of `dimension` numbers in [low, high].

    Args:
        dimension: number of coordinates d.
        low, high: the declared, public range of every coordinate; never read off the data.

    Raises:
        InputError: a parameter is outside its range, NaN included.
    """

    dimension: int
    low: float
    high: float

    def __post_init__(self) -> None:
        _validate.whole(1, _validate.LARGEST_COUNT, dimension=self.dimension)
        _validate.declared_range(low=self.low, high=self.high)

    @property
    def width(self) -> float:
        """The length of the range."""
        return self.high - self.low

    @property
    def midpoint(self) -> float:
        """The middle of the range, which centred estimates leave out."""
        return self.low + self.width / 2  # (low + high) / 2 could overflow

    def open(self, values: Values) -> Rows:
        """A reader for values [n, d], once all of them are known to lie in the range.

        Raises:
            InputError: another kind or shape of values, or an entry that is NaN or out of range; it is named.
        """
        return open_values(values, self.dimension, self.low, self.high)

    def open_dense(self, values: Values, name: str) -> FloatArray:
        """All values [n, d] as one dense array, whether or not they lie in the range.

        Args:
            values: dense or sparse rows.
            name: what is made of them, for the refusal.

        Raises:
            InputError: another kind or shape of values, or more than 50,000,000 numbers.
        """
        rows = open_rows(values, self.dimension)
        _validate.fits_in_memory(*rows.shape, name, most=_validate.WORK_LIMIT)
        return rows.block(0, rows.shape[0])

    def fractions(self, values: FloatArray) -> FloatArray:
        """Where values lie between low (0) and high (1), in their shape."""
        # Rounding of the quotient can leave [0, 1] by an ulp even where the value does not leave its range.
        return np.clip((values - self.low) / self.width, 0.0, 1.0)

    def split(self, values: FloatArray, steps: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """How values are rounded at random, without bias, to the grid of `steps` equal steps from low to high.

        Args:
            values: any shape, in the range.
            steps: grid steps in the range, at least 1.

        Returns:
            The grid point below each value (0 to steps), and 2^64 times the probability of rounding up.
        """
        scaled = self.fractions(values) * steps
        # At the high end the part above the grid point is 0, so rounding up never leaves the grid.
        below = np.floor(scaled)
        return below.astype(np.int64), ((scaled - below) * WORDS).astype(np.uint64)

    def uncentred(self, centred: npt.NDArray[np.float32]) -> Tensor:
        """Estimates [n, d] with the middle of the range put back."""
        return torch.from_numpy(centred) + self.midpoint

    def guarantee(self, epsilon: float, delta: float = 0.0) -> Guarantee:
        """The local guarantee of one randomized vector of this domain.

        Args:
            epsilon, delta: what one report costs.
        """
        return feature_guarantee(epsilon, delta, self.dimension, self.low, self.high)
