"""Reports that name some of the classes: what follows from how often they name the true one, and another.

Let a report name the true class with probability `keep` and any other with probability `flip`. Then
(named - flip) / (keep - flip) is an unbiased estimate of the one-hot class, of variance a (1 - a) / (keep - flip)^2
in each coordinate, a = keep or flip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base.values import FloatArray
from graphveil.privacy.accounting.printed import rounded_up

# Below this difference the rounding of probabilities to words of 64 bits would show in estimates.
_SMALLEST_LEAN = 2.0**-44
#: The most classes of reports that name several of them.
MOST_CLASSES = 4096


@dataclass(frozen=True)
class OneHotLaw:
    """How often reports name a class.

    Args:
        classes: how many there are.
        keep: the probability that the true class is named.
        flip: the probability that a given other one is.
    """

    classes: int
    keep: float
    flip: float

    @property
    def lean(self) -> float:
        """By how much the true class is named more often than another."""
        return self.keep - self.flip

    @property
    def total_variance(self) -> float:
        """The variances of all coordinates of the estimate together; the same whatever the true class is."""
        # A law that says nothing has no estimate, and must never come out as the least noisy of several.
        if self.lean <= 0:
            return math.inf
        other = (self.classes - 1) * self.flip * (1 - self.flip)
        return (self.keep * (1 - self.keep) + other) / self.lean**2

    def refuse_no_information(self, epsilon: float) -> None:
        """Raise InputError where the two probabilities are too close to be told apart.

        Args:
            epsilon: what the law was made for, for the message.
        """
        if self.lean < _SMALLEST_LEAN:
            raise InputError(f"epsilon {rounded_up(epsilon)} is too small for {self.classes} classes")

    def estimate(self, named: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
        """The unbiased estimate of the one-hot classes, float32 [n, c].

        Args:
            named: [n, c], which classes each report names.
        """
        return ((named - self.flip) / self.lean).astype(np.float32)

    def variances(self, true: npt.NDArray[np.int64]) -> FloatArray:
        """The variance of the estimate, float64 [n, c].

        Args:
            true: classes [n].
        """
        own = true[:, None] == np.arange(self.classes)
        chance = np.where(own, self.keep, self.flip)
        spread: FloatArray = chance * (1 - chance) / self.lean**2
        return spread
