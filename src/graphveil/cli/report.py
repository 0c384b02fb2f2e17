"""``graphveil report``: the pages of a run, written anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli.base import options, tables
from graphveil.cli.base.console import emit, working
from graphveil.errors import InputError

Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="Folder of a run, of a release, or of a federation's finished party.")
]
Open = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]
Lift = Annotated[bool, typer.Option("--lift", help="For a released graph: train on it and show the lift.")]
Against = Annotated[Path | None, typer.Option(metavar="OTHER", help="Another run: write a page that shows both.")]


def report(
    run: Run, open_page: Open = False, lift: Lift = False, against: Against = None, as_json: options.Json = False
) -> None:
    """Rebuild the report and the privacy card as self-contained pages; releases and parties have a card only."""
    from graphveil.reports.releases import card as release_card
    from graphveil.reports.rewrite import rewrite
    from graphveil.reports.runs.folder import catch_up

    released = release_card.is_release(run)
    if lift and not released:
        raise InputError("applies to releases only", where="--lift", remedy="the report of a run shows its lift")
    with working() as progress:
        if lift:
            release_card.measure_lift(run, progress=progress)
        catch_up(run)
        answer = rewrite(run)
        if against is not None:
            # Late: most calls are about one run.
            from graphveil.reports.runs.against import write_against

            answer["against"] = str(write_against(run, against))
    if open_page:
        typer.launch(answer.get("against") or answer["report"] or str(run / "card.html"))
    facts = {key: value for key, value in answer.items() if key != "void" or value}
    emit(answer, as_json=as_json, screen=lambda: tables.described(facts))
