"""``graphveil report``: the one HTML page of a run, written anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import options
from graphveil.cli.console import emit, working

Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run folder that graphveil train wrote, or a released graph.")
]
Open = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]


def report(run: Run, open_page: Open = False, as_json: options.Json = False) -> None:
    """Write report and privacy card of a run anew, as one page that needs no network; of a released graph the card."""
    from graphveil.cli import screens
    from graphveil.reports import release_card, run_folder

    if release_card.is_release(run):
        with working():
            answer: dict[str, str | None] = release_card.rewrite_card(run)
        emit(answer, as_json=as_json, screen=lambda: screens.described(answer))
        return
    with working():
        record = run_folder.rewrite_report(run)
    page = run / "report.html"
    if open_page:
        typer.launch(str(page))
    answer = {"run": str(run), "report": str(page), "card": str(run / "card.md"), "method": record.method}
    answer["data"] = record.data
    emit(answer, as_json=as_json, screen=lambda: screens.described(answer))
