"""What a run found, as values: scores, what was promised and paid, and what it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphveil.methods.runs.intervals import Interval
from graphveil.privacy import Guarantee, Ledger

#: Of a collection, where nobody but the devices knows a true label.
ESTIMATED = (
    "no true label is known: accuracy is estimated from the randomized labels of people held out of training and "
    "selection, by inverting their channel; there is no ceiling"
)


@dataclass(frozen=True)
class Scores:
    """Accuracies, fractions of the test nodes.

    Attributes:
        accuracy: of the method.
        controls: of each control; best_control: the highest; lift: accuracy minus it, paired by run.
        ceiling: of the same backbone on raw data, or None where it was not trained.
        rivals: of other methods at the same price; best_rival: the highest.
    """

    accuracy: Interval
    controls: Mapping[str, Interval] = field(default_factory=dict)
    ceiling: Interval | None = None
    best_control: str | None = None
    lift: Interval | None = None
    rivals: Mapping[str, Interval] = field(default_factory=dict)
    best_rival: str | None = None


@dataclass(frozen=True)
class Spent:
    """What a run promised and paid.

    Attributes:
        guarantee: what is protected; ledger: every spend.
        epsilon_relationship: what one relationship costs, where links are collected privately.
    """

    guarantee: Guarantee
    ledger: Ledger
    epsilon_relationship: float | None = None


@dataclass(frozen=True)
class Cost:
    """What a run took.

    Attributes:
        seconds: wall time of everything; seconds_method: of one fit.
        peak_memory_mb: of the whole process, MB.
    """

    seconds: float
    seconds_method: float
    peak_memory_mb: float


@dataclass(frozen=True)
class Result:
    """A finished run.

    Attributes:
        method, data: their names; built: the method that was really run, see `registry.advised`.
        settings: as the built method uses them.
        scores, privacy, cost: what it reached, promised and took.
        history: one list of epoch rows per repeat.
        model: the first repeat's fitted method.
        notes: what to mind when reading the run, a sentence each.
    """

    method: str
    built: str
    data: str
    settings: Mapping[str, Any]
    scores: Scores
    privacy: Spent
    cost: Cost
    history: tuple[tuple[dict[str, Any], ...], ...]
    model: Any
    notes: tuple[str, ...]
