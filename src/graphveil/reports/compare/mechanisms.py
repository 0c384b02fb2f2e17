"""The output of ``graphveil mechanisms compare``: JSON and a picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from graphveil.files.serial import to_json
from graphveil.files.writing import new_folder, write_bytes, write_text
from graphveil.mechanisms.comparison import Measurement, Question, Refusal, measurements_of, refusals_of
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base import figures
from graphveil.reports.base.figures import BLUE, GREY, INK, clean
from graphveil.runtime.words import count_of


def write(question: Question, results: Sequence[Measurement | Refusal], folder: Path) -> dict[str, Any]:
    """Create the folder, new or empty, with ``comparison.json`` and the figure; return the content of the JSON.

    Args:
        question: the requested vectors and range.
        results: one for each mechanism and epsilon; where every mechanism refuses, ``figure`` is None.
    """
    content = {
        "dimension": question.dimension,
        "users": question.count,
        "low": question.low,
        "high": question.high,
        "input": question.input,
        "rows": [asdict(row) for row in measurements_of(results)],
        "refused": [asdict(row) for row in refusals_of(results)],
        "folder": str(folder),
        "figure": str(folder / "figure.png") if measurements_of(results) else None,
    }
    with new_folder(folder) as inside:
        write_text(inside / "comparison.json", to_json(content, indent=2) + "\n")
        if measurements_of(results):
            picture = mechanism_figure(question, measurements_of(results))
            write_bytes(inside / "figure.png", figures.png(picture))
            write_text(inside / "figure.svg", figures.svg(picture))
    return content


_SHADES: Final = ("#9ecae1", "#4a98c9", BLUE, "#08519c", "#08306b")
_MARKERS: Final = ("o", "s", "^", "D", "v")
_MOST_EPSILONS: Final = len(_SHADES)
_TICKS: Final = 5
_Figure = Callable[[Measurement], float]


def mechanism_figure(question: Question, results: Sequence[Measurement]) -> Figure:
    """Three panels with one row for each mechanism, the least error at the middle epsilon on top.

    Args:
        question: up to five of its epsilons are drawn, evenly spread.
        results: a mechanism that refused an epsilon has no mark there.
    """
    epsilons = _spread_epsilons(sorted(question.epsilons))
    middle = epsilons[len(epsilons) // 2]
    ranked = sorted(results, key=lambda result: (abs(result.epsilon - middle), result.worst_mse))
    names = list(dict.fromkeys(result.mechanism for result in ranked))
    figure = Figure(figsize=(9.6, 1.6 + (0.26 + 0.06 * len(epsilons)) * len(names)), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True, width_ratios=(2.2, 1, 1))
    _errors(panels[0], epsilons, names, results)
    _marks(panels[1], epsilons, names, results, lambda result: result.report_bytes)
    _marks(panels[2], epsilons, names, results, lambda result: result.users_per_second)
    titles = ("mean squared error of one coordinate, measured", "bytes of one report", "users a second")
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, loc="left", color=INK, fontsize=10)
        _log_axis(axes)
        clean(axes, grid="x")
        axes.spines["left"].set_visible(False)
        for row in range(0, len(names), 2):
            axes.axhspan(row - 0.5, row + 0.5, color=GREY, alpha=0.08, linewidth=0, zorder=0)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    figure.suptitle(
        f"{count_of(question.dimension, 'coordinate')} in [{question.low:g}, {question.high:g}], "
        f"{count_of(question.count, 'synthetic user')}",
        x=0.01,
        ha="left",
        color=INK,
        fontsize=11,
    )
    handles = [
        Line2D([], [], label=f"epsilon {rounded_up(epsilon)}", **_style(index, len(epsilons)))
        for index, epsilon in enumerate(epsilons)
    ]
    worst: dict[str, Any] = {"marker": "|", "markersize": 9, "markeredgewidth": 1.6, "color": INK, "linestyle": "none"}
    figure.legend(
        handles=[*handles, Line2D([], [], label="at the worst input (closed form)", **worst)],
        loc="outside lower center",
        ncols=6,
        frameon=False,
        labelcolor=INK,
        fontsize=9,
    )
    return figure


def _spread_epsilons(epsilons: Sequence[float]) -> list[float]:
    """At most five of the epsilons, the first and the last among them."""
    if len(epsilons) <= _MOST_EPSILONS:
        return list(epsilons)
    return [epsilons[round(index * (len(epsilons) - 1) / (_MOST_EPSILONS - 1))] for index in range(_MOST_EPSILONS)]


def _style(index: int, count: int) -> dict[str, Any]:
    """Darker for larger epsilons, and a marker of its own for each."""
    first = (_MOST_EPSILONS - count) // 2
    return {
        "color": _SHADES[first + index],
        "marker": _MARKERS[index],
        "linestyle": "none",
        "markersize": 7 - count / 2,
    }


def _offset(index: int, count: int) -> float:
    """The distance of the marks of one epsilon from the middle of a row."""
    return 0.68 / count * (index - (count - 1) / 2)


def _marks(
    axes: Axes, epsilons: Sequence[float], names: Sequence[str], results: Sequence[Measurement], value_of: _Figure
) -> None:
    for index, epsilon in enumerate(epsilons):
        at_epsilon = [result for result in results if result.epsilon == epsilon]
        heights = [names.index(result.mechanism) + _offset(index, len(epsilons)) for result in at_epsilon]
        axes.plot([value_of(result) for result in at_epsilon], heights, **_style(index, len(epsilons)))


def _errors(axes: Axes, epsilons: Sequence[float], names: Sequence[str], results: Sequence[Measurement]) -> None:
    """A mark at the measured error, and an upright stroke at its guaranteed upper bound."""
    for index, epsilon in enumerate(epsilons):
        for result in results:
            if result.epsilon == epsilon:
                height = names.index(result.mechanism) + _offset(index, len(epsilons))
                axes.plot([result.mse, result.worst_mse], [height, height], color=GREY, linewidth=1.2, zorder=1)
                axes.plot([result.worst_mse], [height], marker="|", markersize=9, markeredgewidth=1.6, color=INK)
    _marks(axes, epsilons, names, results, lambda result: result.mse)


def _log_axis(axes: Axes) -> None:
    """A logarithmic axis with a few plain numbers and a margin at both ends."""
    axes.set_xscale("log")
    low, high = axes.dataLim.intervalx[0] / 1.6, axes.dataLim.intervalx[1] * 1.6
    axes.set_xlim(low, high)
    # At most five powers of ten; where there are fewer than two, also 2 and 5 times them.
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    tens = [10.0**power for power in powers if low <= 10.0**power <= high]
    if len(tens) < 2:
        tens = [step * 10.0**power for power in powers for step in (1, 2, 5) if low <= step * 10.0**power <= high]
    ticks = tens[:: -(-len(tens) // _TICKS)]
    axes.set_xticks(ticks, [_plain(tick) for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def _plain(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
