"""Make `flow.svg` and `trust.svg`, pictures of the documentation.

    python docs/pictures/make.py

`demo.svg` beside it is the picture of a run: `graphveil demo`.  Okabe and Ito's colours, on a white box that suits
light and dark pages.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from graphveil.graphs import social_graph
from graphveil.methods.registry import plan
from graphveil.reports.base.drawing import picture_svg
from graphveil.reports.base.figures import BLUE, GREEN, GREY, INK, ORANGE
from graphveil.reports.base.parties import parties_of

HERE = Path(__file__).parent


def box(axes: Axes, place: tuple[float, float], size: tuple[float, float], title: str, text: str, colour: str) -> None:
    """A titled box with its lower left corner at `place`."""
    (x, y), (width, height) = place, size
    style = FancyBboxPatch(place, width, height, boxstyle="round,pad=0,rounding_size=1.2")
    style.set(facecolor="white", edgecolor=colour, linewidth=1.8)
    axes.add_patch(style)
    middle = x + width / 2
    axes.text(middle, y + height - 1.6, title, ha="center", va="top", fontsize=10.5, fontweight="bold", color=INK)
    axes.text(middle, y + height - 4.9, text, ha="center", va="top", fontsize=9, color=INK, linespacing=1.35)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = INK) -> None:
    """An arrow between two points."""
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.6})


def flow() -> Figure:
    """Who holds what: devices, one noisy report each, server, model and card."""
    figure = Figure(figsize=(9.6, 3.5), facecolor="white")
    axes = figure.add_axes((0.01, 0.02, 0.98, 0.96))
    axes.set(xlim=(0, 100), ylim=(0, 36))
    axes.axis("off")
    for row, name in enumerate(("Cleo's device", "Ben's device", "Ada's device")):
        y = 1 + 11.7 * row
        box(axes, (1, y), (21, 10.4), name, "true features and label\nstay here", BLUE)
        arrow(axes, (22.8, y + 5.2), (43.4, 18 + (y - 12.7) * 0.45))
    axes.plot([34, 34], [8, 28], linestyle=(0, (4, 3)), color=ORANGE, linewidth=1.8)
    axes.text(34, 34.5, "noise is added\nbefore this line", ha="center", va="top", fontsize=9, color=ORANGE)
    axes.text(24, 5.9, "one report each, once:\nfor example one feature\nas one bit, and a label", va="top", fontsize=9)
    server = (
        "the reports\nand the public graph:\nwho is linked to whom\n\n"
        "denoises over neighbours,\ntrains, tunes, compares:\nno further cost"
    )
    box(axes, (44, 6), (24, 24), "Server", server, GREY)
    arrow(axes, (68.6, 24.5), (75.5, 26.5))
    arrow(axes, (68.6, 11.5), (75.5, 9.5))
    box(
        axes,
        (76.5, 20),
        (22.5, 14),
        "Model",
        "a class for every node,\nbeside what controls\nreach without the data",
        GREEN,
    )
    box(
        axes,
        (76.5, 2),
        (22.5, 14),
        "Guarantee card",
        "what is protected, from\nwhom, how strongly,\nand what is not",
        GREEN,
    )
    return figure


def save(figure: Figure, name: str) -> None:
    """Write an SVG with a white background that is the same whenever it is made from the same numbers."""
    with matplotlib.rc_context({"svg.hashsalt": "graphveil"}):
        figure.savefig(HERE / name, facecolor="white", metadata={"Date": None})


def trust() -> str:
    """Who sees what in a run of lpgnn, as its card draws it, as a file of its own on a white ground."""
    guarantee = plan("lpgnn", social_graph(100), {}).guarantee
    drawing = picture_svg(parties_of(guarantee, "lpgnn", {}))
    head, _, rest = drawing.partition(">")
    return f'{head} xmlns="http://www.w3.org/2000/svg">\n<rect width="100%" height="100%" fill="#ffffff"/>{rest}'


if __name__ == "__main__":
    save(flow(), "flow.svg")
    (HERE / "trust.svg").write_text(trust(), encoding="utf-8")
