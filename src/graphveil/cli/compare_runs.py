"""``graphveil compare-runs``: finished runs, releases and federations side by side; nothing is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import options
from graphveil.cli.console import emit, working

Runs = Annotated[
    list[Path],
    typer.Argument(metavar="FOLDER", help="Folders of runs, releases or federations."),
]
Out = Annotated[Path | None, typer.Option("--out", help="Folder to create for tables and figure.")]


def compare_runs(runs: Runs, out: Out = None, as_json: options.Json = False) -> None:
    """Compare finished runs, releases and federations, with the attacks made on them."""
    from graphveil.cli import comparison_screen
    from graphveil.reports.base.files import new_folder, refuse_used_folder
    from graphveil.reports.compare import table
    from graphveil.reports.compare.finished import finished
    from graphveil.reports.compare.folder import write

    with working():
        if out is not None:
            refuse_used_folder(out)
        page = finished(runs)
        if out is not None:
            with new_folder(out) as folder:
                write(page, folder)
    answer = table.answer(page, out)
    emit(answer, as_json=as_json, screen=lambda: comparison_screen.compared(page, out))
