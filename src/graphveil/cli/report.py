"""``graphveil report`` and ``explain``: the pages of a run, written anew, and what the codes in them mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.cli.base import options, tables
from graphveil.cli.base.console import emit, working
from graphveil.errors import InputError
from graphveil.privacy.statement.codes import table_of

if TYPE_CHECKING:
    from graphveil.privacy.statement.codes import Entry

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

    released = release_card.is_release(run)
    if lift and not released:
        raise InputError("applies to releases only", where="--lift", remedy="the report of a run shows its lift")
    with working() as progress:
        if lift:
            release_card.measure_lift(run, progress=progress)
        answer = rewrite(run)
        if against is not None:
            # Late: most calls are about one run.
            from graphveil.reports.runs.against import write_against

            answer["against"] = str(write_against(run, against))
    if open_page:
        typer.launch(answer.get("against") or answer["report"] or str(run / "card.html"))
    facts = {key: value for key, value in answer.items() if key != "void" or value}
    emit(answer, as_json=as_json, screen=lambda: tables.described(facts))


Code = Annotated[
    str | None, typer.Argument(metavar="CODE", help="Code from a guarantee or a refusal. Default: list all.")
]
_HEADS = {
    "unit": "What may be protected",
    "observer": "From whom",
    "assumption": "What it may assume",
    "unknown": "Texts without a code",
    "answer": "What a collector or a device answers",
}
_LIMITS = {"assumption": "Breaks when", "answer": "To do"}


def explain(code: Code = None, as_json: options.Json = False) -> None:
    """Explain the code of a guarantee or a refusal: what it means, what it does not mean, and what supports it."""
    from graphveil.collection.service.refusal_codes import REFUSAL_CODES
    from graphveil.privacy.statement.registry import CODES, explained

    codes = table_of((*CODES.values(), *REFUSAL_CODES.values()))
    entries = tuple(codes.values()) if code is None else explained(code, codes)
    emit(
        {"codes": [asdict(entry) for entry in entries]},
        as_json=as_json,
        screen=lambda: _listed(entries) if code is None else _whole(entries),
    )


def _listed(entries: Sequence[Entry]) -> RenderableType:
    parts: list[RenderableType] = []
    for group, head in _HEADS.items():
        parts += [
            Text(head, style="bold"),
            tables.pairs((entry.code, entry.sentence) for entry in entries if entry.group == group),
        ]
        parts += [Text()]
    return Group(*parts, Text("For more about one of them: graphveil explain CODE"))


def _whole(entries: Sequence[Entry]) -> RenderableType:
    parts: list[RenderableType] = []
    for entry in entries:
        limits = _LIMITS.get(entry.group, "Does not mean")
        facts = [("Says", entry.sentence), ("Means", entry.means), (limits, entry.limits)]
        parts += [Text(entry.code, style="bold"), tables.pairs([*facts, ("Backed by", entry.backed_by)]), Text()]
    return Group(*parts[:-1])
