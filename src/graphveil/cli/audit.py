"""``graphveil audit``: does a claimed epsilon turn out to be wrong?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.cli.base import options
from graphveil.cli.base.console import emit, working
from graphveil.cli.base.tables import figures, pairs
from graphveil.errors import InputError
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base.text import number, seconds
from graphveil.runtime.words import count_of

if TYPE_CHECKING:
    from graphveil.audit import Audit


def _screen(audits: Sequence[Audit]) -> RenderableType:
    """A row for each audit, its notes, and what the columns mean."""
    table = figures("audit", "claimed", "at least", "delta", "alarm", "verdict")
    for audit in audits:
        claim = rounded_up(audit.claimed_epsilon), f"{audit.lower_bound:.3f}", rounded_up(audit.delta)
        style = None if audit.holds else "bold red"
        table.add_row(audit.target, *claim, number(audit.false_alarm), audit.verdict, style=style)
    broken = [audit for audit in audits if not audit.holds]
    notes = [(audit.target, note) for audit in (broken or audits[:3]) for note in audit.notes]
    meaning = [
        ("at least", "epsilon cannot be smaller than this, except for false alarms at the rate shown"),
        ("holds", "this audit found no violation; it proves no more than its bound"),
        ("Time", seconds(sum(audit.seconds for audit in audits))),
    ]
    head = (
        f"{len(broken)} of {count_of(len(audits), 'claim')} broken"
        if broken
        else f"{count_of(len(audits), 'audit')}: no claim broken"
    )
    return Group(Text(head, style="bold"), Text(), table, Text(), pairs([*notes, *meaning]))


#: The exit code after an audit that found a broken claim.
BROKEN: Final = 3

Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="A mechanism, method or release, or: mechanisms, methods, all.", show_default=False
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Fixes synthetic data and noise; no real data is read.")]


def audit(target: Target, seed: Seed = 0, as_json: options.Json = False) -> None:
    """Prove lower bounds on a target's epsilon and look for leaks past its mechanisms; exit code 3 if one fails."""
    from graphveil.audit import run_audits, targets
    from graphveil.audit.catalogue import GROUPS

    if Path(target).is_dir() and target not in {*GROUPS, *targets()}:
        remedy = "audit its method by name, on synthetic data; `graphveil attack` looks at a run's own model"
        raise InputError(f"{target} is a folder", where="TARGET", remedy=remedy)
    with working() as progress:
        audits = run_audits(target, seed=seed, progress=progress)
    verdict = "holds" if all(audit.holds for audit in audits) else "broken"
    answer = {
        "target": target,
        "verdict": verdict,
        "seconds": sum(audit.seconds for audit in audits),
        "audits": [audit.to_dict() for audit in audits],
    }
    emit(answer, as_json=as_json, screen=lambda: _screen(audits))
    if verdict == "broken":
        raise typer.Exit(BROKEN)
