"""The pictures of an attack: its ROC curve, as a figure and for the page, and images beside their reconstructions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from graphveil.attacks import AttackResult
from graphveil.attacks.limits import bound
from graphveil.attacks.result import FALSE_ALARMS
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.attacks.files import PLAIN, above_limit
from graphveil.reports.base.charts import Chart, Line
from graphveil.reports.base.figures import BLUE, GREEN, GREY, INK, ORANGE, clean, drawable
from graphveil.reports.base.text import printable

_LEAST: Final = 1e-3
_COLOURS: Final = (ORANGE, BLUE, GREEN, "#cc79a7", "#e69f00", "#56b4e9")


def attack_figure(results: Mapping[str, AttackResult]) -> Figure:
    """ROC curves in two panels: linear axes, and logarithmic axes, for few false alarms. The area that the tightest
    epsilon of the results (name -> result) excludes is shaded: a curve inside it shows more than was promised.
    """
    figure = Figure(figsize=(8.6, 4.9), layout="constrained")
    linear, logarithmic = figure.subplots(1, 2)
    tightest = _tightest(results)
    for axes, grid in ((linear, np.linspace(0, 1, 401)), (logarithmic, np.geomspace(_LEAST, 1, 401))):
        axes.plot(grid, grid, color=GREY, linewidth=1, linestyle=":")
        if tightest is not None:
            allowed = bound(grid, tightest.epsilon, tightest.delta)
            axes.fill_between(grid, allowed, 1.0, color=GREY, alpha=0.22, linewidth=0)
            axes.plot(grid, allowed, color=GREY, linewidth=1.2)
        for colour, result in zip(_COLOURS, results.values(), strict=False):
            false, true = np.array(result.roc).T
            axes.plot(np.maximum(false, _LEAST / 10), np.maximum(true, _LEAST / 10), color=colour, linewidth=1.8)
        axes.set_xlabel("false alarms: others taken for members")
        clean(axes, grid="y")
    linear.set(xlim=(0, 1), ylim=(0, 1.01), ylabel="members found")
    logarithmic.set(xscale="log", yscale="log", xlim=(_LEAST, 1), ylim=(_LEAST, 1.1))
    for axis in (logarithmic.xaxis, logarithmic.yaxis):
        axis.set_ticks([0.001, 0.01, 0.1, 1.0], ["0.1%", "1%", "10%", "100%"])
        axis.set_ticks([], minor=True)
    linear.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0%", "25%", "50%", "75%", "100%"])
    linear.set_yticks([0.25, 0.5, 0.75, 1.0], ["25%", "50%", "75%", "100%"])
    for colour, result in zip(_COLOURS, results.values(), strict=False):
        score = result.tpr_at_1_fpr
        low, high, mean = (max(value, _LEAST) for value in (score.low, score.high, score.mean))
        logarithmic.errorbar(
            FALSE_ALARMS, mean, yerr=[[mean - low], [high - mean]], color=colour, marker="o", markersize=5, capsize=3.5
        )
    logarithmic.set_title("few false alarms, with the 95% interval at 1%", loc="left", color=INK, fontsize=10)
    first = next(iter(results.values()))
    words = {"linkteller": "LinkTeller", "lira": "membership by shadow models (LiRA)"}
    subject = drawable(words.get(first.name, first.name.replace("-", " ")))
    linear.set_title(subject, loc="left", color=INK, fontsize=10, parse_math=False)
    style: dict[str, Any] = {"frameon": False, "labelcolor": INK, "fontsize": 9, "handlelength": 2.5}
    figure.legend(handles=_legend(results, tightest), loc="outside lower center", ncols=1, **style)
    return figure


def _tightest(results: Mapping[str, AttackResult]) -> AttackResult | None:
    # One limit only: several would cover each other.
    limited = [result for result in results.values() if result.limit is not None]
    return min(limited, key=lambda result: (result.epsilon, result.delta), default=None)


def _legend(results: Mapping[str, AttackResult], tightest: AttackResult | None) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = []
    for colour, (name, result) in zip(_COLOURS, results.items(), strict=False):
        auc = result.auc
        text = f"{drawable(name)}: AUC {auc.mean:.3f} ({auc.low:.3f} to {auc.high:.3f})"
        if result.baseline is not None:
            text += f"; {result.baseline:.3f} anyway ({drawable(result.baseline_note)})"
        handles.append(Line2D([], [], color=colour, linewidth=1.8, label=text.replace("$", r"\$")))
    if tightest is not None:
        delta = f", delta {rounded_up(tightest.delta)}" if tightest.delta else ""
        text = f"more than epsilon {rounded_up(tightest.epsilon, 4)}{delta} allows for one secret"
        handles.append(Patch(color=GREY, alpha=0.3, label=text))
    handles.append(Line2D([], [], color=GREY, linewidth=1, linestyle=":", label="guessing"))
    return handles


def summary(result: AttackResult) -> tuple[str, ...]:
    """Return the result of an attack in a few lines for the screen and the card."""

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
    above = above_limit(result)
    return (*lines, *([] if above is None else [above]), *result.notes)


def attack_charts(name: str, results: Mapping[str, AttackResult]) -> tuple[Chart, Chart]:
    """Return the ROC curves of an attack, on linear and on logarithmic axes.

    Args:
        name: unique on the page.
        results: attacked -> result, at least one.
    """
    return (
        _chart(f"{name}whole", "Members found at each share of false alarms", results, np.linspace(0, 1, 201)),
        _chart(f"{name}few", "The same where false alarms are few", results, np.geomspace(_LEAST, 1, 121), log=True),
    )


def _chart(name: str, title: str, results: Mapping[str, AttackResult], grid: np.ndarray, *, log: bool = False) -> Chart:
    # 0 is on no logarithmic axis.
    least = _LEAST if log else 0.0
    lines = [
        Line(label, colour, _values(np.interp(grid, *np.array(result.roc).T), least))
        for colour, (label, result) in zip(_COLOURS, results.items(), strict=False)
    ]
    lines.append(Line("guessing", GREY, _values(grid, least), dashed=True))
    tightest = _tightest(results)
    if tightest is not None:
        allowed = bound(grid, tightest.epsilon, tightest.delta)
        meaning = f"epsilon {rounded_up(tightest.epsilon, 4)} allows at most"
        lines.append(Line(meaning, GREY, _values(allowed, least), filled=True))
    alt = f"Line chart of the share of members found over the share of false alarms: {', '.join(results)}."
    return Chart(name, title, alt, "false alarms", "members found", tuple(grid.tolist()), tuple(lines), log)


def _values(shares: np.ndarray, least: float) -> tuple[float, ...]:
    return tuple(np.maximum(shares, least).tolist())


_GAP = 0.25  # of an image, between two


def image_figure(results: Mapping[str, AttackResult]) -> Figure | None:
    """Return the images of an attack that reconstructs them, without protection first; None for any other attack."""
    samples_by_label = {label: result.samples for label, result in results.items() if result.samples is not None}
    if not samples_by_label:
        return None
    samples = next(iter(samples_by_label.values()))
    rows = [("original", samples.original)]
    for label in sorted(samples_by_label, key=lambda label: label != PLAIN):
        epsilon = results[label].epsilon
        name = label if math.isinf(epsilon) else f"{label}, epsilon {rounded_up(epsilon, 4)}"
        rows.append((name, samples_by_label[label].reconstructed))
    return image_grid(
        samples.classes, rows, "The first of those attacked in each class. The top row is true private data."
    )


def image_grid(classes: Sequence[str], rows: Sequence[tuple[str, np.ndarray]], note: str = "") -> Figure:
    """Return one line of images for each row, from the top down.

    Args:
        classes: the text above each image [k].
        rows: name, images [k, height, width] in 0..1, dark where high.
        note: a text below.
    """
    figure = Figure(figsize=(8.6, 0.45 + 0.78 * len(rows)), layout="constrained")
    lines = figure.subplots(len(rows), 1, squeeze=False)[:, 0]
    for axes, (name, images) in zip(lines, rows, strict=True):
        count, height, width = images.shape
        step = width + max(1, round(_GAP * width))
        strip = np.zeros((height, (count - 1) * step + width))  # side by side on a faint frame
        for index, image in enumerate(np.clip(images, 0.0, 1.0)):
            strip[:, index * step : index * step + width] = image
        axes.imshow(strip, cmap="gray_r", vmin=0.0, vmax=1.0, interpolation="nearest")
        axes.set_ylabel(drawable(name), rotation=0, ha="right", va="center", color=INK, parse_math=False)
        axes.set_xticks([step * index + (width - 1) / 2 for index in range(len(classes))], [])
        axes.set_yticks([])
        axes.tick_params(length=0, labelcolor=INK)
        axes.spines[:].set_visible(False)
    top = lines[0]
    top.xaxis.tick_top()
    top.set_xticks(top.get_xticks(), [printable(name)[:12] for name in classes], fontsize=9)
    for text in top.get_xticklabels():
        text.set_parse_math(False)
    if note:
        figure.supxlabel(note, fontsize=9, color=GREY)
    return figure
