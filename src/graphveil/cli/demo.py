"""``graphveil demo``: one private graph under three kinds of trust, and a counterexample, in under a minute."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graphveil.cli.base import choices, options
from graphveil.cli.base.console import complain, emit, working
from graphveil.cli.base.tables import pairs
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base.text import percent, points, printable, seconds
from graphveil.reports.base.words import CONTROL_MEANING, interval, lift_interval
from graphveil.reports.demo import DATA

if TYPE_CHECKING:
    from graphveil.reports.demo.story import Story, Way


_ATTACKS = {"linkteller": "LinkTeller", "feature-recovery": "recovery", "reconstruction": "rebuilding"}
_LIFT = (
    "accuracy over the best control: the same without the connections, the features or the other organisation. At or "
    "below zero the private data added nothing. Intervals are over the test people of this one run."
)
_AUC = (
    "how often an attack ranks a true secret above a false one, without noise and with it; 0.50 is guessing. "
    "LinkTeller looks for connections, recovery for the other organisation's columns, rebuilding for a person's "
    "features."
)
#: Headings and widths: 79 with the spaces between them.
_COLUMNS = {
    "who is\ntrusted": 14,
    "accuracy, %\n(95%)": 12,
    "best control\nin %": 15,
    "lift, points\n(95%)": 12,
    "epsilon": 10,
    "attack AUC,\nclean>noisy": 11,
}
NEXT = (
    ("graphveil advise social-1000 --trust links", "which method to take, and why"),
    ("graphveil train class-sums FOLDER --epsilon 1", "train on your own files"),
    ("docs/start/demo.md", "what each line means"),
)


def screen_of(story: Story, folder: Path) -> RenderableType:
    """The whole screen, at 80 columns.

    Args:
        folder: with the picture.
    """
    size = f"{story.nodes:,} people, {story.connections:,} connections, {story.columns:,} columns"
    facts = [
        ("Lift", _LIFT),
        ("AUC", _AUC),
        ("Counterexample", counterexample(story.ways[-1])),
        ("Not hidden", similar(story)),
        ("Took", f"{seconds(story.seconds)}; picture: {printable(folder / 'demo.svg')} (and .png)"),
    ]
    return Group(
        Text("One private graph, three trust models, and a counterexample", style="bold"),
        Text(f"{printable(story.data)} (synthetic): {size}, {story.classes} classes"),
        Text(f"A GCN that protects nothing classifies {percent(story.plain.mean)}% of the test people correctly."),
        Text(),
        table(story),
        Text(),
        pairs(facts),
        Text(),
        Text("What next", style="bold"),
        *(Text(f"{words:<50} {why}") for words, why in NEXT),
    )


def table(story: Story) -> Table:
    """Three lines for each way, 79 columns wide."""
    from graphveil.reports.demo.story import COUNTEREXAMPLE

    # Not `tables.columns`: its padding would break words at 80 columns.
    grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for head, width in _COLUMNS.items():
        grid.add_column(head, max_width=width)
    for way in story.ways:
        is_counterexample = way.method == COUNTEREXAMPLE
        grid.add_row(
            f"{'counterexample' if is_counterexample else way.trust}\n{way.method}",
            f"{percent(way.accuracy.mean)}\n{interval(way.accuracy)}",
            f"{percent(way.control_accuracy.mean)}\n{way.control}",
            f"{points(way.lift.mean)}\n{lift_interval(way.lift).replace('+', '')}",
            f"{rounded_up(way.guarantee.epsilon)} for {way.unit}",
            f"{way.unprotected.auc.mean:.2f}>{way.protected.auc.mean:.2f}\n{_ATTACKS[way.protected.name]}",
            style="italic" if is_counterexample else "",
        )
    return grid


def counterexample(way: Way) -> str:
    """What the private features of the counterexample added; no more than its interval supports."""
    if way.lift.low > 0:
        gain = f"{way.method} gained {points(way.lift.mean)} points this time"
        return f"{gain}; it seldom does. Measure before you collect."
    meaning = CONTROL_MEANING.get(way.control, "less private data")
    return (
        f"{way.method} hides people's features well, and they added nothing: {way.control} ({meaning}) reaches "
        f"{percent(way.control_accuracy.mean)}%. Data that add nothing are best not collected."
    )


def similar(story: Story) -> str:
    """What hidden relationships still reveal, because friends are alike."""
    baseline = story.alike.baseline
    anyway = "" if baseline is None else f", where a model that saw no connection gives {baseline:.2f}"
    auc = f"link-stealing has an AUC of {story.alike.auc.mean:.2f} on {story.ways[0].method}{anyway}"
    return f"friends are alike, so similar answers still hint at connections: {auc}."


Out = Annotated[Path | None, typer.Option("--out", help=f"Folder to create. Default: runs/{DATA}-demo-<time>.")]


def demo(seed: options.Seed = 0, out: Out = None, as_json: options.Json = False) -> None:
    """Show on an embedded graph what private data gain under each trust model, and what attackers find."""
    from graphveil.files.outputs import new_output
    from graphveil.reports.runs.folder import default_folder

    with new_output(out, default_folder(DATA, "demo", datetime.now()), say=complain) as output:
        choices.prepare("cpu", None)
        # Late: refusals need nothing that trains, attacks or draws.
        from graphveil.graphs import load_plain
        from graphveil.reports.demo.story import ROOM, run_demo, write

        with working() as progress:
            graph = load_plain(DATA)
            choices.settle_threads(None, graph)
            output.reserve(ROOM)
            story = run_demo(graph, randomness=choices.noise(None), seed=seed, progress=progress)
            answer = output.write(lambda path: write(story, path))
        emit(answer, as_json=as_json, screen=lambda: screen_of(story, output.path))
