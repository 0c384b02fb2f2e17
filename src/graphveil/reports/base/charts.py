"""A line chart as a value: drawn once for paper, and handed to the page's script as numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphveil.reports.base.figures import BLUE, GREEN, INK, ORANGE, clean, drawable, inline_svg
from graphveil.reports.base.text import printable

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """One curve.

    Attributes:
        values: one for each place of the chart; None where nothing was measured.
        faint: of a further repeat, drawn thin and not named in the legend.
        filled: shaded upwards: where no curve may be.
        dashed: for comparison.
    """

    name: str
    colour: str
    values: tuple[float | None, ...]
    faint: bool = False
    filled: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """Curves over the same places.

    Attributes:
        name: a word that no other chart of the page has; title: what it shows; alt: the same for those who do not see.
        x, y: what the axes measure; places: along x, increasing.
        log: whether both axes are logarithmic, which needs positive numbers.
    """

    name: str
    title: str
    alt: str
    x: str
    y: str
    places: tuple[float, ...]
    lines: tuple[Line, ...]
    log: bool = False

    def svg(self) -> str:
        """The chart as an ``<svg>`` element, half a page wide: two stand side by side, or one above the other."""
        # Half a page: at the width of a phone its letters are about as large as those of the page.
        figure = Figure(figsize=(4.1, 2.9), layout="constrained")
        axes = figure.add_subplot()
        for line in self.lines:
            self._draw(axes, line)
        if self.log:
            axes.set(xscale="log", yscale="log")
        axes.set(xlabel=self.x, ylabel=self.y)
        axes.legend(frameon=False, labelcolor=INK, fontsize=8)
        clean(axes, grid="y")
        return inline_svg(figure, name=self.name, alt=self.alt)

    def _draw(self, axes: Axes, line: Line) -> None:
        # The page's script bridges gaps; matplotlib would break the line at them.
        kept = [pair for pair in zip(self.places, line.values, strict=True) if pair[1] is not None]
        if not kept:
            return
        x, y = zip(*kept, strict=True)
        thin: dict[str, Any] = {"linewidth": 0.8, "alpha": 0.35}
        style = thin if line.faint else {"linewidth": 1.6, "label": drawable(line.name).replace("$", r"\$")}
        axes.plot(x, y, color=line.colour, linestyle=":" if line.dashed else "-", **style)
        if line.filled:
            axes.fill_between(x, y, 1.0, color=line.colour, alpha=0.2, linewidth=0)

    def numbers(self) -> dict[str, Any]:
        """What the page's script draws, as JSON types."""
        lines = [{**vars(line), "name": printable(line.name)} for line in self.lines]
        return {"x": self.x, "y": self.y, "log": self.log, "places": self.places, "lines": lines}


def training_charts(history: Sequence[Sequence[Row]], *, noisy: bool) -> tuple[Chart, ...]:
    """Loss over the epochs, and the validation accuracy where there is one; nothing without training.

    Args:
        history: one list of epochs for each repeat; a repeat of a single epoch has no curve.
        noisy: whether validation labels were randomized, so that the accuracy on true ones is an estimate.
    """
    repeats = [rows for rows in history if len(rows) > 1]
    if not repeats:
        return ()
    # One axis for all repeats: they may have stopped at different epochs.
    epochs = tuple(sorted({row["epoch"] for rows in repeats for row in rows}))
    loss = (
        *_lines("loss", "training", BLUE, repeats, epochs),
        *_lines("val_loss", "validation", ORANGE, repeats, epochs),
    )
    name = "validation, estimated from noisy labels" if noisy else "validation"
    estimate = _shares(_lines("val_estimate", name, GREEN, repeats, epochs, scale=100.0))
    alt = "Line chart of the {} over the epochs."
    charts = [Chart("loss", "Loss", alt.format("loss on training and validation nodes"), "epoch", "loss", epochs, loss)]
    if any(value is not None for line in estimate for value in line.values):
        shown = alt.format(f"accuracy on validation nodes{', estimated from noisy labels,' if noisy else ''}")
        charts.append(Chart("validation", "Validation", shown, "epoch", "accuracy, per cent", epochs, estimate))
    return tuple(charts)


def _shares(lines: Sequence[Line]) -> tuple[Line, ...]:
    # An unbiased estimate of a share may lie outside of 0 to 100%, where no share is.
    return tuple(
        replace(line, values=tuple(None if value is None else min(max(value, 0.0), 100.0) for value in line.values))
        for line in lines
    )


def _lines(
    key: str, name: str, colour: str, repeats: Sequence[Sequence[Row]], epochs: Sequence[int], *, scale: float = 1.0
) -> tuple[Line, ...]:
    """One line for each repeat that has numbers under `key`, the first bold."""
    lines = []
    for number, rows in enumerate(repeats):
        # A figure that was infinite is stored as a word, see `to_json`.
        known = {row["epoch"]: row[key] for row in rows if isinstance(row.get(key), float | int)}
        values = tuple(scale * known[e] if math.isfinite(known.get(e, math.nan)) else None for e in epochs)
        if any(value is not None for value in values):
            lines.append(Line(name if number == 0 else f"{name}, repeat {number + 1}", colour, values, number > 0))
    return tuple(lines)
