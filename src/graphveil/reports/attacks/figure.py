"""The picture of an attack: its ROC curve, whole and where false alarms are few, and what epsilon forbids."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from graphveil.attacks import AttackResult
from graphveil.attacks.limits import bound
from graphveil.attacks.result import FALSE_ALARMS
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.attacks.files import over_limit
from graphveil.reports.base.figures import BLUE, GREEN, GREY, INK, ORANGE, clean
from graphveil.reports.base.text import printable

_LEAST: Final = 1e-3
_COLOURS: Final = (ORANGE, BLUE, GREEN, "#cc79a7", "#e69f00", "#56b4e9")


def attack_figure(results: Mapping[str, AttackResult]) -> Figure:
    """Two panels: the whole curve, and both axes logarithmic, where a careful adversary works. The tightest epsilon
    among the results (name -> what one attack found) is shaded: a curve in there shows more than was promised.
    """
    figure = Figure(figsize=(8.6, 4.9), layout="constrained")
    whole, few = figure.subplots(1, 2)
    limited = [result for result in results.values() if result.limit is not None]
    for axes, grid in ((whole, np.linspace(0, 1, 401)), (few, np.geomspace(_LEAST, 1, 401))):
        axes.plot(grid, grid, color=GREY, linewidth=1, linestyle=":")
        if limited:
            tightest = min(limited, key=lambda result: (result.epsilon, result.delta))
            allowed = bound(grid, tightest.epsilon, tightest.delta)
            axes.fill_between(grid, allowed, 1.0, color=GREY, alpha=0.22, linewidth=0)
            axes.plot(grid, allowed, color=GREY, linewidth=1.2)
        for colour, result in zip(_COLOURS, results.values(), strict=False):
            _curve(axes, result, colour)
        axes.set_xlabel("false alarms: others taken for members")
        clean(axes, grid="y")
    whole.set(xlim=(0, 1), ylim=(0, 1.01), ylabel="members found")
    few.set(xscale="log", yscale="log", xlim=(_LEAST, 1), ylim=(_LEAST, 1.1))
    for axis in (few.xaxis, few.yaxis):
        axis.set_ticks([0.001, 0.01, 0.1, 1.0], ["0.1%", "1%", "10%", "100%"])
        axis.set_ticks([], minor=True)
    whole.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0%", "25%", "50%", "75%", "100%"])
    whole.set_yticks([0.25, 0.5, 0.75, 1.0], ["25%", "50%", "75%", "100%"])
    for colour, result in zip(_COLOURS, results.values(), strict=False):
        _few_alarms(few, result, colour)
    few.set_title("few false alarms, with the 95% interval at 1%", loc="left", color=INK, fontsize=10)
    whole.set_title(_subject(next(iter(results.values()))), loc="left", color=INK, fontsize=10, parse_math=False)
    handles = _legend(results, limited)
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=1,
        frameon=False,
        labelcolor=INK,
        fontsize=9,
        handlelength=2.5,
    )
    return figure


def _curve(axes: Axes, result: AttackResult, colour: str) -> None:
    false, true = np.array(result.roc).T
    axes.plot(np.maximum(false, _LEAST / 10), np.maximum(true, _LEAST / 10), color=colour, linewidth=1.8)


def _few_alarms(axes: Axes, result: AttackResult, colour: str) -> None:
    """The share found at 1% of false alarms, with its interval."""
    score = result.tpr_at_1_fpr
    low, high, mean = (max(value, _LEAST) for value in (score.low, score.high, score.mean))
    axes.errorbar(
        FALSE_ALARMS, mean, yerr=[[mean - low], [high - mean]], color=colour, marker="o", markersize=5, capsize=3.5
    )


def _legend(results: Mapping[str, AttackResult], limited: list[AttackResult]) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = []
    for colour, (name, result) in zip(_COLOURS, results.items(), strict=False):
        auc = result.auc
        text = f"{_drawable(name)}: AUC {auc.mean:.3f} ({auc.low:.3f} to {auc.high:.3f})"
        if result.baseline is not None:
            text += f"; {result.baseline:.3f} anyway ({_drawable(result.baseline_note)})"
        handles.append(Line2D([], [], color=colour, linewidth=1.8, label=text.replace("$", r"\$")))
    if limited:
        tightest = min(limited, key=lambda result: (result.epsilon, result.delta))
        delta = f", delta {rounded_up(tightest.delta)}" if tightest.delta else ""
        text = f"more than epsilon {rounded_up(tightest.epsilon, 4)}{delta} allows for one secret"
        handles.append(Patch(color=GREY, alpha=0.3, label=text))
    handles.append(Line2D([], [], color=GREY, linewidth=1, linestyle=":", label="guessing"))
    return handles


def _subject(result: AttackResult) -> str:
    words = {"linkteller": "LinkTeller", "lira": "membership by shadow models (LiRA)"}
    return _drawable(words.get(result.name, result.name.replace("-", " ")))


def _drawable(text: str) -> str:
    """Letters that matplotlib's own font has; others become question marks."""
    return printable(text).encode("latin-1", "replace").decode("latin-1")


def summary(result: AttackResult) -> tuple[str, ...]:
    """Return what an attack found in a few lines for the screen and the card."""

    def line_of(name: str, score: Interval, limit: float | None) -> str:
        line = f"{name}: {score.mean:.3f} ({score.low:.3f} to {score.high:.3f})"
        return line if limit is None else f"{line}; epsilon allows {limit:.3g}"

    lines = [
        f"attack {result.name}: {result.target}",
        line_of("AUC", result.auc, None)
        + ("" if result.baseline is None else f"; {result.baseline:.3f} without the secret"),
        line_of("advantage", result.advantage, result.advantage_limit),
        line_of("found at 1% false alarms", result.tpr_at_1_fpr, result.limit),
        f"limit: {result.limit_note}" if math.isinf(result.epsilon) else f"limit from {result.limit_note}",
    ]
    if result.beats_limit:
        lines.append(over_limit(result))
    return (*lines, *result.notes)
