"""Make the picture of docs/federation.md: who sends what to whom in each mode.

python docs/pictures/federation.py
"""

from __future__ import annotations

from make import save
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from graphveil.reports.figures import BLUE, GREEN, GREY, INK, ORANGE

#: mode, what is said below it, between holders (text, colour), up to the server, down from it.
Panel = tuple[str, str, tuple[str, str], str, str]
PANELS: tuple[Panel, ...] = (
    (
        "shared-linear",
        "holders learn nothing of each other;\nthe server sees one noisy sum",
        ("masked:\nuniform\nnumbers", GREEN),
        "shares,\nnoise inside",
        "masks, shares\nof gradients",
    ),
    (
        "individual",
        "holders see gradients alone, which can show labels;\nthe server sees each one's noisy rows",
        ("nothing after\nalignment", GREY),
        "noisy\nembeddings",
        "gradients",
    ),
    (
        "paper",
        "every holder sees X W each round:\nenough rounds give the features away",
        ("X W opened\nevery round", ORANGE),
        "noisy\nembeddings",
        "masks,\ngradients",
    ),
)


def box(axes: Axes, place: tuple[float, float], width: float, title: str, text: str, colour: str) -> None:
    """A party."""
    x, y = place
    style = FancyBboxPatch(place, width, 8.4, boxstyle="round,pad=0,rounding_size=0.8")
    style.set(facecolor="white", edgecolor=colour, linewidth=1.6)
    axes.add_patch(style)
    axes.text(x + width / 2, y + 7.2, title, ha="center", va="top", fontsize=9, fontweight="bold", color=INK)
    axes.text(x + width / 2, y + 4.6, text, ha="center", va="top", fontsize=7.6, color=INK, linespacing=1.2)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, style: str = "-|>") -> None:
    """What is sent."""
    axes.annotate("", end, start, arrowprops={"arrowstyle": style, "color": colour, "linewidth": 1.4})


def panel(axes: Axes, left: float, content: Panel) -> None:
    """Two holders below, the server above."""
    mode, verdict, (between, colour), up, down = content
    axes.text(left + 15.5, 43, mode, ha="center", va="top", fontsize=11, fontweight="bold", color=INK)
    box(axes, (left + 8.5, 30.5), 14, "server", "combines, trains", BLUE)
    box(axes, (left, 8.5), 10.5, "holder A", "$X_A$, edges,\nlabels", BLUE)
    box(axes, (left + 20.5, 8.5), 10.5, "holder B", "$X_B$, edges", BLUE)
    for x, side in ((left + 5.2, -1), (left + 25.8, 1)):
        near = left + 15.5 + side * 4.6
        arrow(axes, (x, 17.2), (near - 0.2, 30.2), ORANGE)
        arrow(axes, (near + 2 * -side, 30.2), (x - 2 * side, 17.2), INK)
    axes.text(left + 5.6, 24.6, up, ha="right", va="center", fontsize=7.6, color=ORANGE, linespacing=1.2)
    axes.text(left + 15.5, 22.2, down, ha="center", va="center", fontsize=7.6, color=INK, linespacing=1.2)
    arrow(axes, (left + 10.7, 11.2), (left + 20.3, 11.2), colour, "<|-|>" if colour != GREY else "-")
    axes.text(left + 15.5, 15.4, between, ha="center", va="center", fontsize=7.2, color=colour, linespacing=1.15)
    axes.text(left + 15.5, 5.8, verdict, ha="center", va="top", fontsize=8.4, color=INK, linespacing=1.3)


def modes() -> Figure:
    """The three modes side by side."""
    figure = Figure(figsize=(9.8, 4.3), facecolor="white")
    axes = figure.add_axes((0.005, 0.01, 0.99, 0.98))
    axes.set(xlim=(-3, 101), ylim=(0.5, 43.5))
    axes.axis("off")
    for place, content in enumerate(PANELS):
        panel(axes, 35 * place - 0.5, content)
    return figure


if __name__ == "__main__":
    save(modes(), "federation.svg")
