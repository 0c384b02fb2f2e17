"""What a local collection of features and labels costs each person, and what it guarantees.

One report per person for the life of a collection: the features at epsilon_x, the label at epsilon_y; together one
person spends epsilon_x + epsilon_y. Who is asked again pays again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.mechanisms import NotCollected, Public, PublicLabels, RandomizedResponse
from graphveil.mechanisms.base.guarantees import REPORTS_ONCE
from graphveil.mechanisms.base.mechanism import FeatureMechanism
from graphveil.mechanisms.catalogue import feature_names_with, mechanism_named
from graphveil.methods.base.people.account import repeated_report_assumptions
from graphveil.methods.base.people.people import times_paid
from graphveil.methods.base.settings import require_ranges
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy import Assumption, Guarantee, Ledger, Spend, assume, compose, require_budget
from graphveil.privacy.statement.observer import SERVER_AND_MODEL
from graphveil.privacy.statement.unit import USER_FEATURES_AND_LABEL, USER_LABEL
from graphveil.runtime.checks import require_number

TOPOLOGY_PUBLIC = assume("topology-public")
Features: TypeAlias = FeatureMechanism[Any] | Public | NotCollected


@dataclass(frozen=True)
class LocalPrivacy:
    """The privacy settings of a local collection; public, and all that a guarantee depends on.

    Attributes:
        epsilon_x: budget of one feature report; inf sends features as they are; None collects none.
        epsilon_y: budget of one label report; inf sends labels as they are.
        mechanism: one of `mechanisms.catalogue.feature_names`. delta: for mechanisms that need one ("gaussian").
        sampled: coordinates in a feature report ("multi-bit"); None: the best number for epsilon_x.
    """

    epsilon_x: float | None
    epsilon_y: float
    mechanism: str = "multi-bit"
    delta: float = 1e-10
    sampled: int | None = None

    def __post_init__(self) -> None:
        # None and inf are opposites: None collects no features, inf sends all as they are.
        if self.epsilon_x is not None:
            remedy = "collect no features at all with epsilon_x=none"
            require_budget("epsilon_x", self.epsilon_x, "data declared public", remedy=remedy)
        require_budget("epsilon_y", self.epsilon_y, "data declared public")
        require_number("(0, 1)", None, ", far below 1 / the number of people", delta=self.delta)
        require_ranges(self)
        # Another mechanism would ignore it.
        if self.sampled is not None and self.mechanism not in feature_names_with("sampled"):
            allowed = ", ".join(feature_names_with("sampled"))
            raise InputError(f"sampled with mechanism {self.mechanism}", where="local features", allowed=allowed)

    @property
    def collects_features(self) -> bool:
        return self.epsilon_x is not None

    def features(self, schema: GraphSchema) -> Features:
        """Return the mechanism of feature reports for a schema; `NotCollected` if there are none."""
        if self.epsilon_x is None:
            return NotCollected()
        if math.isinf(self.epsilon_x):
            return Public(dimension=schema.dimension)
        info = mechanism_named(self.mechanism)
        options: dict[str, Any] = {"delta": self.delta} if info.takes("delta") else {}
        if self.sampled is not None:
            options["sampled"] = self.sampled
        domain = {"dimension": schema.dimension, "low": schema.low, "high": schema.high}
        mechanism: FeatureMechanism[Any] = info.mechanism(epsilon=self.epsilon_x, **domain, **options)
        return mechanism

    def labels(self, classes: int) -> RandomizedResponse | PublicLabels:
        if math.isinf(self.epsilon_y):
            return PublicLabels(classes=classes)
        return RandomizedResponse(epsilon=self.epsilon_y, classes=classes)

    def channel(self, classes: int) -> Channel:
        mechanism = self.labels(classes)
        return Channel(classes, mechanism.keep, mechanism.flip)

    def open_ledger(self, queries: int = 0) -> Ledger:
        """Return an empty ledger of features and labels; `queries` predictions may ask for features again."""
        epsilon_x, reports = 0.0 if self.epsilon_x is None else self.epsilon_x, 1 + queries
        delta = self.delta if mechanism_named(self.mechanism).takes("delta") and math.isfinite(epsilon_x) else 0.0
        # Below 1, which is no delta, however many queries are declared; the sum itself is checked when it is spent.
        delta = min(delta * reports, 1 - 2**-50)
        return Ledger.open({"features": (epsilon_x * reports, delta), "labels": (self.epsilon_y, 0.0)})

    def spends(self, schema: GraphSchema) -> tuple[Spend, ...]:
        """Return what one collection spends, in order."""
        spends = []
        features, labels = self.features(schema), self.labels(len(schema.classes))
        if not isinstance(features, Public | NotCollected):
            facts = {"dimension": schema.dimension, "low": schema.low, "high": schema.high}
            facts |= {} if self.sampled is None else {"sampled": self.sampled}
            cost = features.guarantee
            spends.append(Spend("feature report", "features", self.mechanism, facts, cost.epsilon, cost.delta))
        if not isinstance(labels, PublicLabels):
            facts = {"classes": len(schema.classes)}
            spends.append(Spend("label report", "labels", "randomized-response", facts, labels.guarantee.epsilon))
        return tuple(spends)

    def guarantee(self, schema: GraphSchema, void: str | None = None, ledger: Ledger | None = None) -> Guarantee:
        """Return the composed guarantee of one person's features and label; it states unprotected parts as assumptions.

        Args:
            ledger: gives how often the most asked person has reported; None: once.
        """
        # Of the most asked person: a guarantee is for everybody, and reports of one person add up.
        times = (times_paid(ledger, "features"), times_paid(ledger, "labels"))
        mechanisms = (self.features(schema), self.labels(len(schema.classes)))
        parts, public = [], [TOPOLOGY_PUBLIC]
        for mechanism, count in zip(mechanisms, times, strict=True):
            if isinstance(mechanism, Public | PublicLabels):
                public += mechanism.guarantee.assumes
            elif not isinstance(mechanism, NotCollected):
                # A second report is a second mechanism on the same value, composed like any other steps.
                parts += [replace(mechanism.guarantee, against=SERVER_AND_MODEL)] * count
        if not parts:
            return Guarantee(
                unit=USER_FEATURES_AND_LABEL if self.collects_features else USER_LABEL,
                relation="replace",
                model="local",
                epsilon=math.inf,
                delta=0.0,
                against=SERVER_AND_MODEL,
                assumes=tuple(public),
            )
        total = compose(parts)
        assumes = with_report_counts(total.assumes, {"features": times[0], "label": times[1]})
        assumes = tuple(dict.fromkeys((*assumes, *repeated_report_assumptions(ledger))))
        return replace(total, assumes=assumes + tuple(public), void=void)


def with_report_counts(assumes: tuple[Assumption, ...], times: Mapping[str, int]) -> tuple[Assumption, ...]:
    """Return assumptions in which "everybody reports once" gives way to the true numbers, if somebody reported more.

    Args:
        times: how often the most asked person sent each kind of report.
    """
    if all(count == 1 for count in times.values()):
        return assumes
    each = [f"{name} {'once' if count == 1 else f'{count} times'}" for name, count in times.items()]
    counts = assume("reports-counted", each=", ".join(each))
    return tuple(counts if fact == REPORTS_ONCE else fact for fact in assumes)
