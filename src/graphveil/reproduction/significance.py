"""Two-tailed t-tests of one method against the best of its rivals, as a paper's text reports them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.late import special
from graphveil.reproduction.runner import Row


@dataclass(frozen=True)
class Tested:
    """One method beside the best rival of the same data and setting.

    Attributes:
        data, setting: where; method, rival: who.
        points: the method minus the rival, mean over splits.
        p: two-tailed, of Student's t paired by split; None where one split, or equal differences, tell nothing.
    """

    data: str
    setting: str
    method: str
    rival: str
    points: float
    p: float | None

    @property
    def sentence(self) -> str:
        """The test in words."""
        chance = "not to be tested on one split" if self.p is None else f"p = {self.p:.2g}"
        return f"{self.data} {self.setting}: {self.method} {self.points:+.1f} points over {self.rival}, {chance}"

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON types."""
        return {
            "data": self.data,
            "setting": self.setting,
            "method": self.method,
            "rival": self.rival,
            "points": self.points,
            "p": self.p,
        }


def tests_of(rows: Sequence[Row], method: str) -> Iterator[Tested]:
    """Yield a test for each data set and setting in which a method and a rival were run.

    Args:
        rows: named "<method> <setting>".
        method: the one that is tested against the best of all others.
    """
    settings: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        name, _, setting = row.entry.row.partition(" ")
        settings.setdefault((row.entry.data, setting), {})[name] = row
    for (data, setting), named in settings.items():
        rivals = {name: row for name, row in named.items() if name != method}
        if method in named and rivals:
            # The best by the very figures it is tested with: a test against it errs on the strict side.
            rival = max(rivals, key=lambda name: rivals[name].ours.mean)
            yield _test(data, setting, method, rival, named[method], rivals[rival])


def _test(data: str, setting: str, method: str, rival: str, mine: Row, other: Row) -> Tested:
    pairs = zip(mine.runs, other.runs, strict=True)
    # Paired: the same split number draws the same nodes for both, whose luck cancels.
    gaps = np.array([100 * (one.accuracy.mean - two.accuracy.mean) for one, two in pairs])
    many, points = len(gaps), float(gaps.mean())
    if many < 2 or not float(gaps.std(ddof=1)) > 0:
        return Tested(data, setting, method, rival, points, None)
    t = points / (float(gaps.std(ddof=1)) / math.sqrt(many))
    return Tested(data, setting, method, rival, points, float(2 * special.stdtr(many - 1, -abs(t))))
