"""``graphveil demo``: one private graph, three ways to trust, and a counterexample, in under a minute."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphveil.cli import choices, options
from graphveil.cli.console import complain, emit, working
from graphveil.reports.demo import DATA

if TYPE_CHECKING:
    from graphveil.outputs import Output

Out = Annotated[Path | None, typer.Option("--out", help=f"Folder to create. Default: runs/{DATA}-demo-<time>.")]


def demo(seed: options.Seed = 0, out: Out = None, as_json: options.Json = False) -> None:
    """Show on an embedded graph what each kind of trust buys, and what an attacker finds with and without noise."""
    from graphveil.outputs import new_output
    from graphveil.reports.runs.folder import default_folder

    with new_output(out, default_folder(DATA, "demo", datetime.now()), say=complain) as folder:
        choices.prepare("cpu", None)
        _tell(folder, seed, as_json=as_json)


def _tell(folder: Output, seed: int, *, as_json: bool) -> None:

    # After the refusals, which need none of what trains, attacks and draws.
    from graphveil.cli.demo_screen import told
    from graphveil.graphs import load_plain
    from graphveil.reports.demo import folder as demo_folder
    from graphveil.reports.demo.story import tell

    with working() as heard:
        graph = load_plain(DATA)
        choices.settle_threads(None, graph)
        folder.reserve(demo_folder.ROOM)
        story = tell(graph, randomness=choices.noise(None), seed=seed, progress=heard)
        answer = folder.write(lambda path: demo_folder.write(story, path))
    emit(answer, as_json=as_json, screen=lambda: told(story, folder.path))
