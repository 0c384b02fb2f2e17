"""The result of a run: scores, guarantee and ledger, and costs in time and memory."""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphveil.methods.runs.intervals import Interval
from graphveil.privacy import Guarantee, Ledger

#: The note of a collection, where only the devices know true labels.
ESTIMATED = (
    "no true label is known: accuracy is estimated from the randomized labels of people held out of training and "
    "selection, by inverting their channel; there is no ceiling"
)


@dataclass(frozen=True)
class Scores:
    """Accuracies, fractions of the test nodes.

    Attributes:
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
class RunPrivacy:
    """The guarantee and the ledger of a run; `epsilon_relationship`: of one relationship, where links are private."""

    guarantee: Guarantee
    ledger: Ledger
    epsilon_relationship: float | None = None


@dataclass(frozen=True)
class Cost:
    """Wall time of the run, that of one fit, and memory of the whole process, MB."""

    seconds: float
    seconds_method: float
    peak_memory_mb: float


@dataclass(frozen=True)
class Result:
    """A finished run.

    Attributes:
        method: its name; built: the method that was built, see `registry.resolved_choice`; data: the graph's name.
        history: one list of epoch rows per repeat.
        notes: for readers of the run, a sentence each.
    """

    method: str
    built: str
    data: str
    settings: Mapping[str, Any]
    scores: Scores
    privacy: RunPrivacy
    cost: Cost
    history: tuple[tuple[dict[str, Any], ...], ...]
    model: Any
    notes: tuple[str, ...]


def peak_memory_mb() -> float:
    """Return the most memory this process has held, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)
