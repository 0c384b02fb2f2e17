"""Means with 95% intervals, over runs or, for a single run, over test nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Interval:
    """A mean, its 95% interval and the runs it is made of (fractions, not percent)."""

    mean: float
    low: float
    high: float
    runs: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON types."""
        return {"mean": self.mean, "low": self.low, "high": self.high, "runs": list(self.runs)}


def interval(per_run: Sequence[np.ndarray]) -> Interval:
    """Return the interval of a mean of per-node values.

    Args:
        per_run: for each run the value of every test node: 1 or 0 for right or wrong, or the difference of two such.

    Several runs: Student's t over the runs' means.  One run: normal approximation over its nodes, which leaves out
    the variation between splits and draws of noise.
    """
    runs = np.array([float(values.mean()) for values in per_run])
    mean = float(runs.mean())
    if len(runs) > 1:
        half = float(stats.t.ppf(0.975, len(runs) - 1) * runs.std(ddof=1) / math.sqrt(len(runs)))
    else:
        values = per_run[0]
        half = float(1.96 * values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
    return Interval(mean, mean - half, mean + half, tuple(float(run) for run in runs))
