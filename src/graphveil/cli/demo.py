"""``graphveil demo``: one private graph, three ways to trust, and a counterexample, in under a minute."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import choices, options
from graphveil.cli.console import emit, working
from graphveil.reports.demo import DATA

Out = Annotated[Path | None, typer.Option("--out", help=f"Folder to create. Default: runs/{DATA}-demo-<time>.")]


def demo(seed: options.Seed = 0, out: Out = None, as_json: options.Json = False) -> None:
    """Show on an embedded graph what each kind of trust buys, and what an attacker finds with and without noise."""
    from graphveil.reports.base import files
    from graphveil.reports.runs.folder import default_folder
    from graphveil.writing import room_for

    folder = out or default_folder(DATA, "demo", datetime.now())
    files.refuse_used_folder(folder)
    choices.prepare("cpu", None)

    # After the refusals, which need none of what trains, attacks and draws.
    from graphveil.cli.demo_screen import told
    from graphveil.graphs import load_plain
    from graphveil.reports.demo import folder as demo_folder
    from graphveil.reports.demo.story import tell

    with working() as heard:
        graph = load_plain(DATA)
        choices.settle_threads(None, graph)
        with room_for(folder, demo_folder.ROOM):
            story = tell(graph, randomness=choices.noise(None), seed=seed, progress=heard)
        answer = demo_folder.write(story, folder)
    emit(answer, as_json=as_json, screen=lambda: told(story, folder))
