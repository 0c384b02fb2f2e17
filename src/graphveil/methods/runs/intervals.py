"""Means with 95% intervals: over the test nodes of a run, over runs, and of both the wider one.

One run says how many of its nodes were hit, not how another split or other noise would do; few runs may agree by
chance.

One run: Wilson's interval of a share (E. B. Wilson, "Probable inference, the law of succession, and statistical
inference", JASA 1927); of a difference of two shares of the same nodes the adjusted interval of D. G. Bonett and
R. M. Price, "Adjusted Wald confidence interval for a difference of binomial proportions based on paired data",
Journal of Educational and Behavioral Statistics 2012; of values that are no hits the normal approximation.
Several runs: Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from graphveil.runtime.late import special

#: The normal distribution's 97.5% point.
_Z: Final = 1.959963984540054


@dataclass(frozen=True)
class Interval:
    """A mean, its 95% interval, the runs it is made of (fractions, not percent), and where the interval is from.

    Attributes:
        kind: over the test nodes of a run "wilson" (shares), "paired" (differences of two shares) or "normal" (values
            that are no hits), "added" (two scores of which no more is known); "t" over runs; "exact" where nothing
            varies by chance; "unknown" where one value is all there is; empty where it was found in another way.
    """

    mean: float
    low: float
    high: float
    runs: tuple[float, ...]
    kind: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON types."""
        facts = {"mean": self.mean, "low": self.low, "high": self.high, "runs": list(self.runs)}
        return facts | ({"kind": self.kind} if self.kind else {})


def interval(per_run: Sequence[np.ndarray], *, difference: bool = False) -> Interval:
    """Return the interval of a mean of per-node values.

    Args:
        per_run: for each run the value of every test node: 1 or 0 for right or wrong, or the difference of two such.
        difference: whether the values are differences of two scores of the same nodes.
    """
    return over_runs([_over_nodes(values, difference=difference) for values in per_run], difference=difference)


def over_runs(intervals: Sequence[Interval], *, difference: bool = False) -> Interval:
    """Return the interval of the mean of several runs: Student's t over them, or that of a run, whichever is wider.

    Test nodes of several splits of one graph overlap, so more runs do not make the interval of a run any narrower.

    Args:
        intervals: a mean for each run, with its interval over the nodes where that is known.
        difference: whether they are differences, in [-1, 1].
    """
    if len(intervals) == 1:
        return intervals[0]
    runs = tuple(estimate.mean for estimate in intervals)
    mean = float(np.mean(runs))
    # Runs of which only the mean is known do not enter the interval over nodes.
    with_interval = [estimate for estimate in intervals if estimate.low < estimate.high or estimate.kind == "exact"]
    estimates = with_interval or intervals[:1]
    low = mean - float(np.mean([estimate.mean - estimate.low for estimate in estimates]))
    high = mean + float(np.mean([estimate.high - estimate.mean for estimate in estimates]))
    across = _over_means(runs, difference=difference)
    if across[1] - across[0] > high - low:
        return Interval(mean, *across, runs, "t")
    return Interval(mean, low, high, runs, estimates[0].kind)


def _over_nodes(values: np.ndarray, *, difference: bool) -> Interval:
    mean, count = float(values.mean()), len(values)
    if difference and bool(np.isin(values, (-1, 0, 1)).all()):
        kind, (low, high) = "paired", _paired(int((values == 1).sum()), int((values == -1).sum()), count)
    elif not difference and bool(np.isin(values, (0, 1)).all()):
        kind, (low, high) = "wilson", _wilson(mean, count)
    elif count == 1:
        kind, low, high = "unknown", mean, mean
    else:
        half = _Z * float(values.std(ddof=1)) / math.sqrt(count)
        # Equal values are exact probabilities of a guess.
        kind, low, high = "normal" if np.ptp(values) else "exact", mean - half, mean + half
    least = -1.0 if difference else 0.0
    return Interval(mean, min(max(low, least), mean), max(min(high, 1.0), mean), (mean,), kind)


def _wilson(share: float, count: int) -> tuple[float, float]:
    whole = 1 + _Z**2 / count
    middle = (share + _Z**2 / (2 * count)) / whole
    half = _Z / whole * math.sqrt(share * (1 - share) / count + (_Z / (2 * count)) ** 2)
    return middle - half, middle + half


def _paired(better: int, worse: int, count: int) -> tuple[float, float]:
    # Plus one node of each kind: otherwise the interval of two methods that never differ would have no width.
    gained, lost = (better + 1) / (count + 2), (worse + 1) / (count + 2)
    middle = gained - lost
    half = _Z * math.sqrt((gained + lost - middle**2) / (count + 2))
    return middle - half, middle + half


def _over_means(runs: Sequence[float], *, difference: bool) -> tuple[float, float]:
    """Return Student's interval, computed on an unbounded scale and transformed back (delta method).

    On the scale of log odds (of shares) or of the inverse hyperbolic tangent (of differences) no interval of two runs
    that differ covers the whole range.
    """
    mean = float(np.mean(runs))
    half = float(special.stdtrit(len(runs) - 1, 0.975) * np.std(runs, ddof=1)) / math.sqrt(len(runs))
    slope = 1 - mean**2 if difference else mean * (1 - mean)
    if slope <= 0 or half == 0:
        # Means at an end of the range, or beyond it, have no such scale.
        return mean - half, mean + half
    # With one degree of freedom the quantile is 12.7: untransformed, two runs a point apart would span the range.
    centre = math.atanh(mean) if difference else math.log(mean / (1 - mean))
    low, high = centre - half / slope, centre + half / slope
    if difference:
        return math.tanh(low), math.tanh(high)
    # The logistic function, without overflow.
    return 0.5 * (1 + math.tanh(low / 2)), 0.5 * (1 + math.tanh(high / 2))
