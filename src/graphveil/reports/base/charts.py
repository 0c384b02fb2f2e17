"""A line chart as a value: an SVG for print, and numbers for the page's script."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from matplotlib.figure import Figure

from graphveil.reports.base.figures import BLUE, COLOURS, GREEN, INK, ORANGE, clean, drawable, inline_svg
from graphveil.reports.base.text import printable

Row = Mapping[str, Any]
#: One list of epochs for each repeat.
History = Sequence[Sequence[Row]]


@dataclass(frozen=True)
class Line:
    """One curve."""

    name: str
    colour: str
    values: tuple[float | None, ...]  # None where nothing was measured
    faint: bool = False  # drawn thin and without a name in the legend, as for further repeats
    filled: bool = False  # shaded above: the area that no curve may reach
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """Curves over the same positions on the x axis."""

    name: str  # unique on the page
    title: str
    alt: str  # what it shows, for those who cannot see it
    x: str  # with y: labels of the axes
    y: str
    places: tuple[float, ...]  # on the x axis, increasing
    lines: tuple[Line, ...]
    log: bool = False  # whether both axes are logarithmic; numbers are then positive

    def svg(self) -> str:
        """The chart as an ``<svg>`` element, half a page wide: two fit side by side, or one above the other."""
        # At the width of a phone its letters are about as large as those of the page.
        figure = Figure(figsize=(4.1, 2.9), layout="constrained")
        axes = figure.add_subplot()
        for line in self.lines:
            # The page's script bridges gaps; matplotlib would break the line at them.
            points = [pair for pair in zip(self.places, line.values, strict=True) if pair[1] is not None]
            if not points:
                continue
            x, y = zip(*points, strict=True)
            label = _short(drawable(line.name), 44).replace("$", r"\$")
            style: dict[str, Any] = {"linewidth": 1.6, "label": label}
            style = {"linewidth": 0.8, "alpha": 0.35} if line.faint else style
            axes.plot(x, y, color=line.colour, linestyle=":" if line.dashed else "-", **style)
            if line.filled:
                axes.fill_between(x, y, 1.0, color=line.colour, alpha=0.2, linewidth=0)
        if self.log:
            axes.set(xscale="log", yscale="log")
            # Plain numbers: `clean` switches off mathematics, in which matplotlib writes powers.
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter("{x:g}")
        axes.set(xlabel=self.x, ylabel=self.y)
        axes.legend(frameon=False, labelcolor=INK, fontsize=8)
        clean(axes, grid="y")
        return inline_svg(figure, name=self.name, alt=self.alt)

    def numbers(self) -> dict[str, Any]:
        lines = [{**vars(line), "name": printable(line.name)} for line in self.lines]
        return {"x": self.x, "y": self.y, "log": self.log, "places": self.places, "lines": lines}


@dataclass(frozen=True)
class Charts:
    """Charts beside each other, as a part of a section."""

    charts: tuple[Chart, ...]
    kind: ClassVar[str] = "charts"


def training_charts(history: History, *, noisy: bool) -> tuple[Chart, ...]:
    """Loss over the epochs, and the validation accuracy if there is one; no chart without training.

    Args:
        history: one list of epochs for each repeat; a repeat of a single epoch has no curve.
        noisy: whether validation labels were randomized, so that the accuracy on true ones is an estimate.
    """
    epochs = _epochs([history])
    loss = (
        *_lines("loss", "training", BLUE, history, epochs),
        *_lines("val_loss", "validation", ORANGE, history, epochs),
    )
    name = "validation, estimated from noisy labels" if noisy else "validation"
    return _curves(epochs, loss, _lines("val_estimate", name, GREEN, history, epochs, scale=100.0), noisy=noisy)


def overlaid_charts(runs: Sequence[tuple[str, History, bool]]) -> tuple[Chart, ...]:
    """`training_charts` of several runs (name, history, whether labels were noisy), with a colour for each run."""
    # One axis for all runs, so that a run that stopped early is not stretched.
    epochs = _epochs([history for _, history, _ in runs])
    loss: list[Line] = []
    estimate: list[Line] = []
    for colour, (run_name, history, noisy) in zip(COLOURS, runs, strict=False):
        run = _short(run_name, 24)
        loss += _lines("loss", f"{run}: training", colour, history, epochs)
        validation = _lines("val_loss", f"{run}: validation", colour, history, epochs)
        loss += [replace(line, dashed=True) for line in validation]
        name = f"{run}: estimated from noisy labels" if noisy else run
        estimate += _lines("val_estimate", name, colour, history, epochs, scale=100.0)
    return _curves(epochs, loss, estimate, noisy=any(noisy for *_, noisy in runs))


def _epochs(histories: Sequence[History]) -> tuple[int, ...]:
    """Every epoch of any repeat: repeats may have stopped at different epochs."""
    repeats = [rows for history in histories for rows in _with_curves(history)]
    return tuple(sorted({row["epoch"] for rows in repeats for row in rows}))


def _short(name: str, letters: int) -> str:
    """A name shortened in the middle, since names of runs may differ at either end."""
    half = (letters - 3) // 2
    return name if len(name) <= letters else f"{name[:half]}...{name[-half:]}"


def _with_curves(history: History) -> list[Sequence[Row]]:
    return [rows for rows in history if len(rows) > 1]


def _curves(epochs: tuple[int, ...], loss: Sequence[Line], share: Sequence[Line], *, noisy: bool) -> tuple[Chart, ...]:
    alt = "Line chart of the {} over the epochs."
    text = alt.format("loss on training and validation nodes")
    charts = [Chart("loss", "Loss", text, "epoch", "loss", epochs, tuple(loss))] if epochs else []
    if share:
        text = alt.format(f"accuracy on validation nodes{', estimated from noisy labels,' if noisy else ''}")
        charts.append(Chart("validation", "Validation", text, "epoch", "accuracy, per cent", epochs, _shares(share)))
    return tuple(charts)


def _shares(lines: Sequence[Line]) -> tuple[Line, ...]:
    # An unbiased estimate of a share may be below 0 or above 100%.
    return tuple(
        replace(line, values=tuple(None if value is None else min(max(value, 0.0), 100.0) for value in line.values))
        for line in lines
    )


def _lines(
    key: str, name: str, colour: str, history: History, epochs: Sequence[int], *, scale: float = 1.0
) -> tuple[Line, ...]:
    """One line for each repeat with numbers under `key`, the first bold."""
    lines = []
    for number, rows in enumerate(_with_curves(history)):
        # An infinite number is stored as a text, see `to_json`.
        by_epoch = {row["epoch"]: row[key] for row in rows if isinstance(row.get(key), float | int)}
        values = tuple(scale * by_epoch[e] if math.isfinite(by_epoch.get(e, math.nan)) else None for e in epochs)
        if any(value is not None for value in values):
            lines.append(Line(name if number == 0 else f"{name}, repeat {number + 1}", colour, values, number > 0))
    return tuple(lines)
