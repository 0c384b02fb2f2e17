"""Make the pictures of docs/how-to/curator.md.

    graphveil compare class-sums digits --epsilon 0.5,1,2,4,8 --repeats 3 --out runs/compare-curator
    graphveil compare gap digits --unit node --epsilon 2,4,8,16 --repeats 3 --out runs/compare-nodes
    graphveil compare node-sums digits --unit node --epsilon 2,4,8,16 --set degree_bound=20 --repeats 3 \\
        --out runs/compare-votes
    python docs/pictures/curator.py runs/compare-curator runs/compare-nodes runs/compare-votes

`curator-unit.svg` is drawn; `curator-digits.svg` shows the three comparisons that are named.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from make import save
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from graphveil.reports.base.figures import BLUE, GREEN, GREY, INK, ORANGE, clean
from graphveil.reports.base.record import RunRecord

NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve")
FRIENDS = ((0, 1), (0, 2), (0, 3), (1, 2), (3, 4))
CELL, GAP = 4.2, 2.4
PALE = "#f6dcc8"

Cell = tuple[int, int]
Panel = tuple[str, str, str, set[Cell], set[Cell]]


def entries() -> set[Cell]:
    """(row, column) of every entry: the column sends to the row; a friendship is two."""
    return {pair for u, v in FRIENDS for pair in ((u, v), (v, u))}


def panels() -> tuple[Panel, ...]:
    """Title, what comes or goes, sensitivity, changed entries, and those that are not hidden."""
    own, foreign = {(v, u) for v, u in entries() if u == 0}, {(v, u) for v, u in entries() if v == 0}
    return (
        ("directed-edge", "one entry", "1 sum: 1", {(1, 0)}, set()),
        ("edge", "one friendship, two entries", "2 sums: $\\sqrt{2}$", {(1, 0), (0, 1)}, set()),
        ("node, rule lists", "Ada and her own list", "at most D sums: $\\sqrt{D}$", own, foreign),
        ("node, rule declared", "Ada and all her edges", "at most D sums: $\\sqrt{D}$", own | foreign, set()),
    )


def square(axes: Axes, place: tuple[float, float], face: str, edge: str) -> None:
    """One entry or sum."""
    axes.add_patch(Rectangle(place, CELL, CELL, facecolor=face, edgecolor=edge, linewidth=1.1))


def table(axes: Axes, x: float, top: float, changed: set[Cell], open_entries: set[Cell], names: bool) -> None:
    """Entries and, to their right, the sums: changed ones are filled, Ada's own sum is pale where it changes."""
    for row, name in enumerate(NAMES):
        y = top - CELL * (row + 1)
        if names:
            axes.text(x - 0.8, y + CELL / 2, name, ha="right", va="center", fontsize=9, color=INK)
        for column in range(len(NAMES)):
            here = (row, column)
            square(axes, (x + CELL * column, y), ORANGE if here in changed else "white", "#d5d8dc")
            if here in entries():
                dot = "white" if here in changed else BLUE if here in open_entries else INK
                axes.plot(x + CELL * (column + 0.5), y + CELL / 2, "o", color=dot, markersize=5.5, zorder=3)
        hit = any((row, column) in changed for column in range(len(NAMES)))
        whole_node = len(changed) > 2
        face = (PALE if row == 0 and whole_node else ORANGE) if hit else "white"
        square(axes, (x + CELL * len(NAMES) + GAP, y), face, ORANGE if hit else GREY)
    for column, name in enumerate(NAMES):
        axes.text(x + CELL * (column + 0.5), top + 0.5, name[0], ha="center", va="bottom", fontsize=9, color=INK)
    axes.text(x + CELL * (len(NAMES) + 0.5) + GAP, top + 0.5, "sum", ha="center", va="bottom", fontsize=9, color=INK)


def unit_figure() -> Figure:
    """What changes in A and in the sums over neighbours when one unit comes or goes."""
    figure = Figure(figsize=(9.6, 3.3), facecolor="white")
    axes = figure.add_axes((0.005, 0.01, 0.99, 0.98))
    axes.set(xlim=(0, 128), ylim=(0, 44))
    axes.axis("off")
    for place, (title, what, price, changed, open_entries) in enumerate(panels()):
        x = 7 + 31.0 * place
        axes.text(x, 43.2, title, va="top", fontsize=10.5, fontweight="bold", color=INK)
        axes.text(x, 39.0, what, va="top", fontsize=9, color=INK)
        table(axes, x, 31.5, changed, open_entries, names=place == 0)
        axes.text(x, 8.6, price, va="top", fontsize=10.5, fontweight="bold", color=ORANGE)
    notes = {2: ("blue: that others list Ada", "is not hidden"), 3: ("pale: Ada's own sum,", "for her eyes alone")}
    for place, lines in notes.items():
        for line, text in enumerate(lines):
            axes.text(7 + 31.0 * place, 4.4 - 2.6 * line, text, va="top", fontsize=8.5, color=INK)
    axes.text(7, 4.4, "a row: from whom this person's", va="top", fontsize=8.5, color=INK)
    axes.text(7, 1.8, "sum is made; orange: may change", va="top", fontsize=8.5, color=INK)
    return figure


def scores_of(folder: Path) -> dict[str, dict[float, list[float]]]:
    """Accuracy in % by what was measured and epsilon; the non-private method is called ceiling."""
    scores: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for file in sorted((folder / "cells").glob("*.json")):
        record = RunRecord.from_dict(json.loads(file.read_text("utf-8"))["result"])
        intervals = {record.method: record.scores.accuracy, **record.scores.rivals, **record.scores.controls}
        if record.scores.ceiling is not None:
            intervals["ceiling"] = record.scores.ceiling
        for name, score in intervals.items():
            scores[name][float(record.settings["epsilon"])].append(100 * score.mean)
    return scores


def draw(axes: Axes, folder: Path, words: dict[str, tuple[str, str, str]]) -> None:
    """Mean accuracy over epsilon, every run as a small point; the means are printed for the page."""
    scores = scores_of(folder)
    for name, (colour, marker, label) in words.items():
        epsilons = sorted(scores[name])
        means = [float(np.mean(scores[name][epsilon])) for epsilon in epsilons]
        printed = ", ".join(f"{epsilon:g}: {mean:.1f}" for epsilon, mean in zip(epsilons, means, strict=True))
        sys.stdout.write(f"{folder.name} {name}  {printed}\n")
        style = "--" if name == "no-edges" else (0, (1, 2)) if name == "ceiling" else "-"
        axes.plot(epsilons, means, color=colour, marker=marker, label=label, linestyle=style, markersize=5)
        if name != "ceiling":
            runs = [(epsilon, score) for epsilon in epsilons for score in scores[name][epsilon]]
            axes.scatter(*zip(*runs, strict=True), s=9, color=colour, alpha=0.45, linewidths=0)
    axes.set_xscale("log", base=2)
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    clean(axes, grid="y")
    axes.legend(frameon=False, fontsize=8.5, loc="lower right")


def digits_figure(edges: Path, nodes: Path, votes: Path) -> Figure:
    """What epsilon buys on the digits where edges, and where nodes are the unit."""
    figure = Figure(figsize=(9.6, 3.9), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    ceiling = (INK, "", "without noise")
    words = {
        "ceiling": ceiling,
        "class-sums": (BLUE, "o", "class-sums"),
        "gap": (ORANGE, "s", "gap"),
        "progap": (GREEN, "^", "progap"),
        "no-edges": (GREY, "X", "no edges at all (no-edges)"),
    }
    draw(left, edges, words)
    control = (GREY, "X", "no edges at all (dp-mlp)")
    draw(right, votes, {"node-sums": (BLUE, "o", "node-sums")})
    draw(right, nodes, {"ceiling": ceiling, "gap": words["gap"], "no-edges": control})
    left.set(xlabel="epsilon of one undirected edge", ylabel="test accuracy, %")
    right.set(xlabel="epsilon of one node", ylim=(0, 103))
    left.set_title("unit edge: features and labels are open", fontsize=10, loc="left")
    right.set_title("unit node: features, label and own list of neighbours", fontsize=10, loc="left")
    return figure


def main(edges: Path, nodes: Path, votes: Path) -> None:
    """Make both pictures."""
    save(unit_figure(), "curator-unit.svg")
    save(digits_figure(edges, nodes, votes), "curator-digits.svg")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
