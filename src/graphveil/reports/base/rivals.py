"""A run beside other methods at the same privacy price: by how much, and whether that is more than chance."""

from __future__ import annotations

import math

from graphveil.methods.runs.intervals import Interval, over_runs
from graphveil.reports.base.record import RunRecord


def lead(record: RunRecord) -> Interval | None:
    """The accuracy of a run minus that of its best rival, or None where no rival was trained."""
    if record.scores.best_rival is None:
        return None
    return difference(record.scores.accuracy, record.scores.rivals[record.scores.best_rival])


def difference(own_score: Interval, rival_score: Interval) -> Interval:
    """One score minus another with a 95% interval; several runs are paired. Of one run, or of equal ones, the two
    intervals are added as if independent, which is too wide where both err on the same nodes, never too narrow.

    Args:
        own_score: one number for each run. rival_score: of the same runs in the same order, or of as many nodes.
    """
    if len(own_score.runs) == len(rival_score.runs) > 1:
        leads = [own - rival for own, rival in zip(own_score.runs, rival_score.runs, strict=True)]
        # Equal runs say nothing of chance: their spread would be an interval of no width.
        if len(set(leads)) > 1:
            return over_runs([Interval(gap, gap, gap, (gap,)) for gap in leads], difference=True)
    mean = own_score.mean - rival_score.mean
    # Newcombe's square-and-add: each end of the difference takes the two ends that are farthest apart.
    low = math.hypot(own_score.mean - own_score.low, rival_score.high - rival_score.mean)
    high = math.hypot(own_score.high - own_score.mean, rival_score.mean - rival_score.low)
    return Interval(mean, mean - low, mean + high, (mean,), "added")
