"""The curves of an attack for the page: the whole curve, and both axes logarithmic, where a careful adversary works."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from graphveil.attacks import AttackResult
from graphveil.attacks.limits import bound
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base.charts import Chart, Line
from graphveil.reports.base.figures import BLUE, GREEN, GREY, ORANGE

_LEAST: Final = 1e-3
_COLOURS: Final = (ORANGE, BLUE, GREEN, "#cc79a7", "#e69f00", "#56b4e9")


def attack_charts(name: str, results: Mapping[str, AttackResult]) -> tuple[Chart, Chart]:
    """Return how many members are found at each share of false alarms.

    Args:
        name: a word that no other chart of the page has.
        results: attacked -> what one attack found, at least one.
    """
    return (
        _chart(f"{name}whole", "Members found at each share of false alarms", results, np.linspace(0, 1, 201)),
        _chart(f"{name}few", "The same where false alarms are few", results, np.geomspace(_LEAST, 1, 121), log=True),
    )


def _chart(name: str, title: str, results: Mapping[str, AttackResult], grid: np.ndarray, *, log: bool = False) -> Chart:
    # A logarithmic axis has no place for nothing found.
    least = _LEAST if log else 0.0
    lines = [
        Line(label, colour, _values(np.interp(grid, *np.array(result.roc).T), least))
        for colour, (label, result) in zip(_COLOURS, results.items(), strict=False)
    ]
    lines.append(Line("guessing", GREY, _values(grid, least), dashed=True))
    limited = [result for result in results.values() if result.limit is not None]
    if limited:
        # One limit alone: several would hide each other, and the tightest is what was promised.
        tightest = min(limited, key=lambda result: (result.epsilon, result.delta))
        allowed = bound(grid, tightest.epsilon, tightest.delta)
        meaning = f"epsilon {rounded_up(tightest.epsilon, 4)} allows at most"
        lines.append(Line(meaning, GREY, _values(allowed, least), filled=True))
    alt = f"Line chart of the share of members found over the share of false alarms: {', '.join(results)}."
    return Chart(name, title, alt, "false alarms", "members found", tuple(grid.tolist()), tuple(lines), log)


def _values(shares: np.ndarray, least: float) -> tuple[float, ...]:
    return tuple(np.maximum(shares, least).tolist())
