"""Means with 95% intervals, over runs or, for a single run, over test nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.late import special


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


def interval(per_run: Sequence[np.ndarray], *, difference: bool = False) -> Interval:
    """Return the interval of a mean of per-node values.

    Args:
        per_run: for each run the value of every test node: 1 or 0 for right or wrong, or the difference of two such.
        difference: whether the values are differences; the interval of an accuracy stays in [0, 1].

    Several runs: Student's t over the runs' means.  One run, which leaves out the variation between splits and draws
    of noise: Wilson's interval of a share (E. B. Wilson, "Probable inference, the law of succession, and statistical
    inference", JASA 1927), so that a run in which every node is right is not taken as certain; for differences, and
    for values that are no hits, the normal approximation over the nodes.
    """
    runs = np.array([float(values.mean()) for values in per_run])
    mean = float(runs.mean())
    # Micro-averaged F1 has values that are no hits; Wilson's interval is for shares alone.
    if len(runs) == 1 and not difference and bool(np.isin(per_run[0], (0, 1)).all()):
        from scipy import stats  # takes longer to load than most commands take

        share = stats.binomtest(int(per_run[0].sum()), len(per_run[0])).proportion_ci(0.95, "wilson")
        low, high = float(share.low), float(share.high)
    else:
        # Several runs vary by split and noise together, which no single run can show.
        half = _half_width(runs, per_run[0])
        low, high = mean - half, mean + half
    if not difference:
        low, high = max(low, 0.0), min(high, 1.0)
    return Interval(mean, low, high, tuple(float(run) for run in runs))


def _half_width(runs: np.ndarray, values: np.ndarray) -> float:
    if len(runs) > 1:
        return float(special.stdtrit(len(runs) - 1, 0.975) * runs.std(ddof=1) / math.sqrt(len(runs)))
    return float(1.96 * values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
