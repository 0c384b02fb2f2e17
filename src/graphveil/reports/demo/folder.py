"""The folder of a demo: `demo.json`, and the picture as `demo.svg` and `demo.png`.

The picture shows what each kind of trust reaches beside its control, and what an attacker finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphveil.methods.runs.intervals import Interval
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base.figures import BLUE, GREY, INK, ORANGE, clean, png, svg
from graphveil.reports.base.files import new_folder, to_json, write_bytes, write_text
from graphveil.reports.base.text import percent, points
from graphveil.reports.base.words import lift_interval
from graphveil.reports.demo.story import COUNTEREXAMPLE, Story, Way

#: The most bytes that a folder takes.
ROOM = 2 << 20


def write(story: Story, path: Path) -> Mapping[str, Any]:
    """Write a story whole or not at all; return what `--json` prints.

    Args:
        path: the folder to make; it must not exist, or be empty.
    """
    answer = {**story.to_dict(), "run": str(path), "picture": str(path / "demo.svg")}
    picture = figure(story)
    with new_folder(path) as folder:
        write_text(folder / "demo.json", to_json(answer, indent=2) + "\n")
        # White, since it is shown on pages whose colour nobody knows, where dark ink may stand on black.
        write_text(folder / "demo.svg", svg(picture, background="white"))
        write_bytes(folder / "demo.png", png(picture))
    return answer


#: What is attacked, by the attack's name.
SECRETS = {
    "linkteller": "connections",
    "feature-recovery": "the other's columns",
    "reconstruction": "a person's features",
}

_TRUST = {"a curator": "A trusted curator", "nobody": "Nobody is trusted", "organisations": "Two organisations"}


def figure(story: Story) -> Figure:
    """Two panels with a row for each way: accuracy beside its best control, and the AUC of an attack."""
    picture = Figure(figsize=(9.6, 4.0), layout="constrained", facecolor="white")
    scores, attacks = picture.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    least = min(min(way.accuracy.low, way.control_accuracy.mean) for way in story.ways)
    for place, way in enumerate(story.ways):
        _score(scores, place, way, middle=50 * (1 + least))
        _attacked(attacks, place, way)
    scores.set_yticks(range(len(story.ways)), [_named(way) for way in story.ways])
    scores.set(ylim=(len(story.ways) - 0.5, -0.7), xlim=(100 * least - 2, 101.5))
    _titled(scores, "Accuracy, %, and the lift over the best control")
    attacks.axvline(0.5, color=GREY, linewidth=1, linestyle=":")
    attacks.set(xlim=(0.44, 1.06), xticks=(0.5, 0.75, 1.0))
    attacks.set_xticklabels(["0.5\nguessing", "0.75", "1\nall found"])
    _titled(attacks, "What an attacker finds (AUC)")
    for axes in (scores, attacks):
        clean(axes, grid="x")
    for kind, axes in (((BLUE, "with the private data"), scores), ((BLUE, "protected"), attacks)):
        other = (GREY, "best control") if axes is scores else (ORANGE, "unprotected")
        for (colour, label), marker in ((kind, "o"), (other, "D")):
            axes.plot([], [], marker, color=colour, label=label)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False, labelcolor=INK)
    return picture


def _named(way: Way) -> str:
    head = "Counterexample" if way.method == COUNTEREXAMPLE else _TRUST[way.trust]
    return f"{head}\n{way.method}, epsilon {rounded_up(way.guarantee.epsilon)}\nfor {way.unit}"


def _score(axes: Axes, place: int, way: Way, middle: float) -> None:
    """The control, the method with its interval, and the lift between them, written towards the middle of the axis."""
    control, mean = 100 * way.control_accuracy.mean, 100 * way.accuracy.mean
    axes.plot([control, mean], [place, place], color=GREY, linewidth=1.2)
    axes.plot(control, place, "D", color=GREY, markersize=7)
    axes.errorbar(mean, place, xerr=_spread(way.accuracy), color=BLUE, marker="o", markersize=8, capsize=3.5)
    # Towards the middle: at an end the figures would leave the panel or cover the names of the rows.
    lift = f"lift {points(way.lift.mean)} ({lift_interval(way.lift)})"
    axes.annotate(
        f"{percent(way.accuracy.mean)}   {lift}",
        (100 * (way.accuracy.high if mean > middle else way.accuracy.low), place),
        xytext=(0, 9),
        textcoords="offset points",
        ha="right" if mean > middle else "left",
        color=INK,
        fontsize=9,
    )


def _spread(score: Interval) -> list[list[float]]:
    return [[100 * (score.mean - score.low)], [100 * (score.high - score.mean)]]


def _attacked(axes: Axes, place: int, way: Way) -> None:
    """The same attack on what is not protected and on what is."""
    before, after = way.unprotected.auc.mean, way.protected.auc.mean
    axes.annotate("", (after, place), (before, place), arrowprops={"arrowstyle": "-|>", "color": GREY, "shrinkB": 5})
    axes.plot(before, place, "D", color=ORANGE, markersize=7)
    axes.plot(after, place, "o", color=BLUE, markersize=8)
    axes.annotate(
        f"{SECRETS[way.protected.name]}: {before:.2f} to {after:.2f}",
        ((before + after) / 2, place),
        xytext=(0, 9),
        textcoords="offset points",
        ha="center",
        color=INK,
        fontsize=9,
    )


def _titled(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=10.5, fontweight="bold", color=INK, loc="left")
