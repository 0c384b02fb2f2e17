"""``graphveil compare-runs``: finished runs, releases and federations side by side; nothing is trained."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli.base import options
from graphveil.cli.base.console import complain, emit, working

Runs = Annotated[
    list[Path],
    typer.Argument(metavar="FOLDER", help="Folders of runs, releases or federations."),
]
Out = Annotated[Path | None, typer.Option("--out", help="Folder to create for tables and figure.")]


def compare_runs(runs: Runs, out: Out = None, as_json: options.Json = False) -> None:
    """Compare finished runs, releases and federations, with the attacks made on them."""
    from graphveil.cli import comparison_screen
    from graphveil.files.outputs import new_output
    from graphveil.reports.base.files import new_folder
    from graphveil.reports.compare import table
    from graphveil.reports.compare.finished import finished
    from graphveil.reports.compare.folder import write

    def keep(path: Path) -> None:
        with new_folder(path) as folder:
            write(page, folder)

    with ExitStack() as stack:
        stack.enter_context(working())
        output = None if out is None else stack.enter_context(new_output(out, out, say=complain))
        page = finished(runs)
        if output is not None:
            output.write(keep, paid=False)
    path = None if output is None else output.path
    answer = table.answer(page, path)
    emit(answer, as_json=as_json, screen=lambda: comparison_screen.compared(page, path))
