"""What replaces a mechanism where data are declared public or not collected: no noise and no privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphveil.mechanisms.base.values import Values
from graphveil.privacy import Assumption, Guarantee, ProtectedUnit, Randomness, assume
from graphveil.privacy.statement.observer import SERVER
from graphveil.privacy.statement.unit import USER_FEATURES, USER_LABEL

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Public:
    """Feature vectors that are declared public: sent as they are, without noise, and NOT protected.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> Public(dimension=2).randomize(torch.eye(2), randomness=SeededRandomness(1))
    tensor([[1., 0.],
            [0., 1.]])
    >>> Public(dimension=2).guarantee.epsilon
    inf
    """

    dimension: int

    @property
    def midpoint(self) -> float:
        """What `centred` leaves out: nothing."""
        return 0.0

    @property
    def worst_variance(self) -> float:
        """Values are sent as they are."""
        return 0.0

    @property
    def report_bytes(self) -> float:
        """Bytes of one vector: 32 bits a coordinate."""
        return 4.0 * self.dimension

    @property
    def guarantee(self) -> Guarantee:
        """That nothing is protected."""
        # An infinite epsilon, so that a sum of guarantees shows that nothing is promised.
        return _unprotected(USER_FEATURES, assume("features-sent-open"))

    def randomize(self, values: Values, *, randomness: Randomness) -> Values:
        """The values [n, d] themselves; nothing is drawn."""
        return values

    def centred(self, values: Values) -> Values:
        """The values [n, d] themselves."""
        return values


@dataclass(frozen=True)
class NotCollected:
    """Feature vectors that nobody sends: results computed without them reveal nothing of them."""

    @property
    def report_bytes(self) -> float:
        """Nothing is sent."""
        return 0.0


@dataclass(frozen=True, eq=False)
class PublicLabelReports:
    """Labels as they are: classes int64 [n], or 0/1 [n, c] where a user has several."""

    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, kw_only=True)
class PublicLabels:
    """Labels that are declared public: sent as they are, without noise, and NOT protected.

    >>> PublicLabels(classes=3).keep, PublicLabels(classes=3).flip
    (1.0, 0.0)
    """

    classes: int

    @property
    def keep(self) -> float:
        """The probability that the true class is sent."""
        return 1.0

    @property
    def flip(self) -> float:
        """The probability of each of the other classes."""
        return 0.0

    @property
    def guarantee(self) -> Guarantee:
        """That nothing is protected."""
        return _unprotected(USER_LABEL, assume("labels-sent-open"))

    def randomize(self, labels: Tensor, *, randomness: Randomness) -> PublicLabelReports:
        """The labels themselves; nothing is drawn."""
        return PublicLabelReports(labels)


def _unprotected(unit: ProtectedUnit, fact: Assumption) -> Guarantee:
    return Guarantee(
        unit=unit, relation="replace", model="local", epsilon=math.inf, delta=0.0, against=SERVER, assumes=(fact,)
    )
