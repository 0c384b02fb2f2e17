"""What follows from the declared range alone, for every mechanism whose fields name one."""

from __future__ import annotations

from graphveil.mechanisms.base.domain import VectorDomain
from graphveil.mechanisms.base.values import Rows, Values


class InRange:
    """A mechanism for vectors of `dimension` coordinates in [low, high], which are fields of the class that uses this.

    No fields of its own: each mechanism lists its arguments in the order that its users know.
    """

    dimension: int
    low: float
    high: float

    @property
    def domain(self) -> VectorDomain:
        """The declared range of every coordinate."""
        return VectorDomain(self.dimension, self.low, self.high)

    @property
    def midpoint(self) -> float:
        """The middle of the range, which `centred` leaves out."""
        return self.domain.midpoint

    def open(self, values: Values) -> Rows:
        """A reader for values [n, d] that can be reported, all of which were looked at.

        Raises:
            InputError: as `randomize`.
        """
        return self.domain.open(values)
