"""Make the pictures of docs/tutorials/private-links.md.

    graphveil compare link-beliefs,solitude,blink,dprr cora --epsilon-x inf --epsilon-a 4,6,8,10,14 --set mode=lower \\
        --repeats 3 --out runs/compare-links
    python docs/pictures/private_links.py runs/compare-links

`links-unit.svg` is drawn, `links-epsilon.svg` computed, `links-weights.svg` measured on the embedded digits (seeded
noise, half a minute), and `links-cora.svg` shows the comparison that is named.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from make import arrow, save
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from torch import Tensor

from graphveil import load_graph
from graphveil.graphs import GraphSchema, random_split
from graphveil.methods import Solitude
from graphveil.methods.links.family import CLEAN, SWAMPED, link_plan
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.privacy import SeededRandomness
from graphveil.reports.base.figures import BLUE, GREEN, GREY, INK, ORANGE, clean
from graphveil.reports.base.record import RunRecord

SIZES = ((1_000, BLUE), (10_000, GREEN), (100_000, ORANGE), (1_000_000, "#cc79a7"))
FRIENDS = "20"
EPSILON, SEED = 6.0, 1


def schema(nodes: int) -> GraphSchema:
    """Public facts of an undirected graph; only the direction of links counts here."""
    return GraphSchema(
        name=f"{nodes}",
        dimension=1,
        low=0.0,
        high=1.0,
        classes=("a", "b"),
        directed=False,
        private=(),
        source="drawn",
    )


def epsilon_figure() -> Figure:
    """False entries a list, and the share of true ones, over the epsilon of a relationship."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    epsilons = np.linspace(1, 18, 137)
    for nodes, colour in SIZES:
        plans = [link_plan(LinkPrivacy(float(epsilon)), schema(nodes), nodes) for epsilon in epsilons]
        left.plot(epsilons, [plan.per_person for plan in plans if plan], color=colour, label=f"{nodes:,} people")
        right.plot(epsilons, [100 * plan.precision[FRIENDS] for plan in plans if plan], color=colour, linewidth=1.8)
    for value in (SWAMPED, CLEAN):
        left.axhline(value, color=INK, linewidth=1, linestyle=(0, (5, 3)))
    left.text(17.8, SWAMPED * 1.3, f"above {SWAMPED:g}: swamped", fontsize=9, color=INK, ha="right")
    left.text(1.2, CLEAN / 1.4, f"below {CLEAN:g}: nothing to denoise", fontsize=9, color=INK, va="top")
    left.set(yscale="log", ylim=(1e-3, 1e6), xlim=(1, 18), xlabel="epsilon of one relationship")
    left.set_yticks([10.0**power for power in range(-2, 6)])
    left.yaxis.set_major_formatter(lambda value, _: f"{value:,.2f}".rstrip("0").rstrip("."))
    left.set_title("false entries in one person's list", fontsize=10, loc="left")
    left.legend(frameon=False, fontsize=9, loc="upper right")
    right.set(ylim=(0, 103), xlim=(1, 18), xlabel="epsilon of one relationship")
    right.set_title(f"true among reported entries, %, at {FRIENDS} links each", fontsize=10, loc="left")
    for axes in (left, right):
        clean(axes, grid="y")
        axes.set_xticks(range(2, 19, 2))
    return figure


def person(axes: Axes, place: tuple[float, float], name: str, lines: list[tuple[str, bool]]) -> None:
    """A person's list, its entries from the top down; an entry that is sent is filled."""
    x, y = place
    axes.text(x + 6.5, y + 15.6, name, ha="center", va="bottom", fontsize=9.5, fontweight="bold", color=INK)
    for row, (text, sent) in enumerate(lines):
        low = y + 9 - 7 * row
        style = FancyBboxPatch((x, low), 13, 5.4, boxstyle="round,pad=0,rounding_size=0.8")
        style.set(facecolor=ORANGE if sent else "white", edgecolor=ORANGE if sent else GREY, linewidth=1.3)
        axes.add_patch(style)
        colour = "white" if sent else GREY
        axes.text(x + 6.5, low + 2.7, text, ha="center", va="center", fontsize=9, color=colour)


def unit_figure() -> Figure:
    """One relationship stands in two lists: who reports it, and what it costs."""
    figure = Figure(figsize=(9.6, 3.1), facecolor="white")
    axes = figure.add_axes((0.01, 0.02, 0.98, 0.96))
    axes.set(xlim=(0, 106), ylim=(0, 35))
    axes.axis("off")
    panels = (
        ("lower", "only the lower id reports", "one relationship: epsilon", False, (True, False)),
        ("both", "each end reports", "one relationship: 2 epsilon", False, (True, True)),
        ("directed", "a link stands in one list", "each directed link: epsilon", True, (True, True)),
    )
    for place, (mode, who, price, directed, sent) in enumerate(panels):
        x = 1 + 36.5 * place
        axes.text(x, 34.4, f"mode {mode}", va="top", fontsize=11, fontweight="bold", color=INK)
        axes.text(x, 30.6, who, va="top", fontsize=9.5, color=INK)
        ada = "follows Ben" if directed else "knows Ben"
        ben = "follows Ada" if directed else "knows Ada"
        person(axes, (x, 9), "1  Ada", [(ada, sent[0])])
        person(axes, (x + 17, 9), "2  Ben", [(ben, sent[1])])
        for offset, is_reported in ((6.5, sent[0]), (23.5, sent[1])):
            if is_reported:
                arrow(axes, (x + offset, 17.6), (x + offset, 10.6), ORANGE)
        bits = "server: 2 noisy bits" if all(sent) else "server: 1 noisy bit"
        axes.text(x + 15, 9.6, bits, ha="center", va="top", fontsize=9.5, color=INK)
        if place:
            axes.plot([x - 3.5, x - 3.5], [1, 34], color=GREY, linewidth=0.8)
        axes.text(x + 15, 4.2, price, ha="center", va="top", fontsize=10.5, fontweight="bold", color=ORANGE)
    return figure


def weights_figure() -> Figure:
    """What happens to reported edges: weights before and after calibration, and the posterior of link beliefs."""
    graph = load_graph("digits")
    split = random_split(graph, 0)
    reports = Solitude(epsilon_x=1.0, epsilon_a=EPSILON).randomize(
        graph, split=split, randomness=SeededRandomness(SEED)
    )
    weights_by_denoiser = []
    for denoiser in ("none", "calibration", "beliefs"):
        tried = Solitude(epsilon_x=1.0, epsilon_a=EPSILON, denoiser=denoiser).fit_reports(reports)
        true, weights = told_apart(tried.topology, graph.edge_index)
        score = 100 * tried.score(graph, split.test)
        say(f"{denoiser}: {score:.1f} % test accuracy", *summary(true, weights))
        weights_by_denoiser.append((true, weights))
    titles = ("as reported: all weigh 1", "after calibration", "posterior of link beliefs")
    figure = Figure(figsize=(9.6, 3.6), layout="constrained", facecolor="white")
    panels = figure.subplots(1, 3, sharey=True)
    bins = np.linspace(0, 1, 21)
    for axes, title, (true, weights) in zip(panels, titles, weights_by_denoiser, strict=True):
        counts = [weights[true].numpy() - 1e-6, weights[~true].numpy() - 1e-6]
        axes.hist(counts, bins=bins, stacked=True, color=[BLUE, ORANGE], label=["true", "false"])
        axes.set_title(title, fontsize=10, loc="left")
        axes.set(xlabel="weight of a reported edge", xlim=(0, 1), xticks=(0, 0.5, 1))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        clean(axes, grid="y")
    panels[0].set_ylabel("reported edges")
    panels[0].legend(frameon=False, loc="upper left", fontsize=9)
    return figure


def say(*lines: str) -> None:
    """Print figures that the page quotes."""
    sys.stdout.write("\n  ".join(lines) + "\n")


def told_apart(topology: Any, edge_index: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each undirected pair of `topology` whether it is true, and its weight."""
    nodes = topology.num_nodes
    once = topology.edge_index[0] < topology.edge_index[1]
    pairs = topology.edge_index[:, once]
    weights = torch.ones(pairs.shape[1]) if topology.weights is None else topology.weights[once]
    return torch.isin(pairs[0] * nodes + pairs[1], edge_index[0] * nodes + edge_index[1]), weights


def summary(true: Tensor, weights: Tensor) -> list[str]:
    """Counts and mean weights of true and false edges."""
    sides = (("true", weights[true]), ("false", weights[~true]))
    return [f"{len(part)} {name}, mean weight {float(part.mean()):.3f}" for name, part in sides]


def cora_figure(folder: Path) -> Figure:
    """Accuracy over the epsilon of a relationship: link beliefs, networks at the same price, and no lists at all."""
    scores: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    ceiling = []
    for file in sorted((folder / "cells").glob("*.json")):
        record = RunRecord.from_dict(json.loads(file.read_text("utf-8"))["result"])
        epsilon = float(record.settings["epsilon_a"])
        intervals = {record.method: record.scores.accuracy, **record.scores.controls}
        for name, score in intervals.items():
            scores[name][epsilon].append(100 * score.mean)
        if record.method == "link-beliefs" and record.scores.ceiling is not None:
            ceiling.append(100 * record.scores.ceiling.mean)
    figure = Figure(figsize=(7.6, 4.4), layout="constrained", facecolor="white")
    axes = figure.subplots()
    axes.axhline(float(np.mean(ceiling)), color=INK, linewidth=1, linestyle=(0, (1, 2)))
    words = "true graph, not private"
    axes.text(min(scores["no-edges"]), float(np.mean(ceiling)) + 0.5, words, fontsize=8, color=INK)
    for name, (colour, marker, words) in SHOWN.items():
        epsilons = sorted(scores[name])
        means = [float(np.mean(scores[name][epsilon])) for epsilon in epsilons]
        say(name, *(f"{e:g}: {mean:.1f}" for e, mean in zip(epsilons, means, strict=True)))
        dashed = name == "no-edges"
        if name == "link-beliefs":  # every run, to show how far they lie apart
            runs = [(epsilon, score) for epsilon in epsilons for score in scores[name][epsilon]]
            axes.scatter(*zip(*runs, strict=True), s=12, color=colour, alpha=0.5, linewidths=0)
        axes.plot(epsilons, means, color=colour, marker=marker, label=words, linestyle="--" if dashed else "-")
    axes.set(xlabel="epsilon of one relationship", ylabel="test accuracy, %", ylim=(52, 93))
    axes.set_xticks(epsilons)
    clean(axes, grid="y")
    axes.legend(frameon=False, fontsize=9, loc="lower right", ncols=2)
    return figure


SHOWN = {
    "link-beliefs": (BLUE, "o", "link-beliefs"),
    "solitude": (ORANGE, "s", "solitude"),
    "blink": (GREEN, "^", "blink"),
    "dprr": ("#cc79a7", "v", "dprr"),
    "no-edges": (GREY, "X", "no lists at all (no-edges)"),
}


def main(folder: Path) -> None:
    """Make all pictures."""
    save(unit_figure(), "links-unit.svg")
    save(epsilon_figure(), "links-epsilon.svg")
    torch.set_num_threads(1)
    save(weights_figure(), "links-weights.svg")
    save(cora_figure(folder), "links-cora.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
