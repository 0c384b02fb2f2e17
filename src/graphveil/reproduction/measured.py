"""What one finished run of an exhibit leaves: its accuracy, its true price and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from graphveil.methods.runs.intervals import Interval
from graphveil.reports.base.record import interval_from_dict


@dataclass(frozen=True)
class Price:
    """The true privacy price of one run: whose data (`unit`), epsilon and delta of all that is published.

    `relationship`: epsilon of one relationship, where that is another unit.
    """

    unit: str
    epsilon: float
    delta: float
    relationship: float | None = None


@dataclass(frozen=True)
class Cost:
    """What a run on shares takes of all parties together: training epochs, CPU seconds, bytes of their messages."""

    epochs: int
    seconds: float
    bytes: int


@dataclass(frozen=True)
class Run:
    """One finished split: accuracy as a fraction, with its interval, price, seconds and the parties' cost."""

    accuracy: Interval
    price: Price
    seconds: float
    cost: Cost | None = None

    def to_dict(self) -> dict[str, Any]:
        parties = {} if self.cost is None else {"cost": asdict(self.cost)}
        accuracy, price = self.accuracy.to_dict(), asdict(self.price)
        return {"accuracy": accuracy, "price": price, "seconds": self.seconds, **parties}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Run:
        """Return the inverse of `to_dict`; KeyError, TypeError, ValueError or InputError for anything else."""
        prices, costs = content["price"], content.get("cost")
        relationship = None if prices["relationship"] is None else float(prices["relationship"])
        price = Price(str(prices["unit"]), float(prices["epsilon"]), float(prices["delta"]), relationship)
        cost = None if costs is None else Cost(int(costs["epochs"]), float(costs["seconds"]), int(costs["bytes"]))
        return cls(interval_from_dict(content["accuracy"]), price, float(content["seconds"]), cost)
