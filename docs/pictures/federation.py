"""Make the picture of docs/how-to/federation.md: who sends what to whom in each mode.

python docs/pictures/federation.py
"""

from __future__ import annotations

from dataclasses import dataclass

from make import save
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from graphveil.reports.base.figures import BLUE, GREEN, GREY, INK, ORANGE


@dataclass(frozen=True)
class Panel:
    """A mode: what it shows to whom, what holders send each other, and what goes up to the server and down from it."""

    mode: str
    verdict: str
    between: str
    colour: str
    ends: str
    up: str = ""
    down: str = ""
    server: str = "combines, trains"
    both: bool = True


PANELS = (
    Panel(
        "guesses",
        "A sees one noisy guess of each node's class;\nthe server sees nothing",
        "training labels;\none noisy guess\na node",
        ORANGE,
        "<|-|>",
        server="keeps the pace",
    ),
    Panel(
        "shared-linear",
        "the server sees one noisy sum; holders nothing of\neach other but who trains, A the last hidden layer",
        "masked:\nuniform\nnumbers",
        GREEN,
        "<|-|>",
        "shares,\nnoise inside",
        "masks, shares\nof steps of W",
    ),
    Panel(
        "individual",
        "the server sees each one's noisy rows; holders\ngradients, which show labels; A the last layer",
        "nothing after\nalignment",
        GREY,
        "-",
        "noisy\nembeddings",
        "gradients",
    ),
    Panel(
        "paper",
        "every holder sees X W each round: enough rounds\ngive the features away; A sees the last layer",
        "X W opened\nevery round",
        ORANGE,
        "<|-|>",
        "noisy\nembeddings",
        "masks,\ngradients",
    ),
    Panel(
        "all-shares",
        "A sees the last hidden layer without noise, in each\nstep and in the end; the server which rounds are kept",
        "masked;\nlast layer\nto A",
        ORANGE,
        "<|-|>",
        "who trains,\nbest rounds",
        "masks",
        server="deals masks",
        both=False,
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


def panel(axes: Axes, corner: tuple[float, float], content: Panel) -> None:
    """Two holders below, the server above."""
    left, low = corner
    middle = left + 15.5
    axes.text(middle, low + 43, content.mode, ha="center", va="top", fontsize=11, fontweight="bold", color=INK)
    box(axes, (left + 8, low + 30.5), 15, "server", content.server, BLUE if content.up else GREY)
    box(axes, (left, low + 8.5), 10.5, "holder A", "$X_A$, edges,\nlabels", BLUE)
    box(axes, (left + 20.5, low + 8.5), 10.5, "holder B", "$X_B$, edges", BLUE)
    for x, side in ((left + 5.2, -1), (left + 25.8, 1)) if content.up else ():
        near = middle + side * 4.6
        if side < 0 or content.both:  # else the label holder alone tells the server anything
            arrow(axes, (x, low + 17.2), (near - 0.2, low + 30.2), ORANGE)
        arrow(axes, (near + 2 * -side, low + 30.2), (x - 2 * side, low + 17.2), INK)
    axes.text(left + 5.6, low + 24.6, content.up, ha="right", va="center", fontsize=7.6, color=ORANGE, linespacing=1.2)
    axes.text(middle, low + 22.2, content.down, ha="center", va="center", fontsize=7.6, color=INK, linespacing=1.2)
    arrow(axes, (left + 10.7, low + 11.2), (left + 20.3, low + 11.2), content.colour, content.ends)
    between = axes.text(middle, low + 12.4, content.between, ha="center", va="bottom", fontsize=7.2, linespacing=1.15)
    between.set_color(content.colour)
    axes.text(middle, low + 5.8, content.verdict, ha="center", va="top", fontsize=8.4, color=INK, linespacing=1.3)


def modes() -> Figure:
    """All modes, two in a row."""
    figure = Figure(figsize=(6.9, 12.2), facecolor="white")
    axes = figure.add_axes((0.005, 0.005, 0.99, 0.99))
    axes.set(xlim=(-3.5, 69.5), ylim=(0.5, 130.5))
    axes.axis("off")
    for place, content in enumerate(PANELS):
        panel(axes, (35.5 * (place % 2), 43.5 * (2 - place // 2)), content)
    return figure


if __name__ == "__main__":
    save(modes(), "federation.svg")
