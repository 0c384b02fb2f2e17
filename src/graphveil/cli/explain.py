"""``graphveil explain``: what the code of a guarantee or a refusal means, what it does not mean, and its backing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.cli.base import options, tables
from graphveil.cli.base.console import emit
from graphveil.privacy.statement.codes import table_of

if TYPE_CHECKING:
    from graphveil.privacy.statement.codes import Entry

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
    from graphveil.privacy.statement.registry import CODES, explain_code

    codes = table_of((*CODES.values(), *REFUSAL_CODES.values()))
    entries = tuple(codes.values()) if code is None else explain_code(code, codes)
    emit(
        {"codes": [asdict(entry) for entry in entries]},
        as_json=as_json,
        screen=lambda: _list_screen(entries) if code is None else _entry_screen(entries),
    )


def _list_screen(entries: Sequence[Entry]) -> RenderableType:
    parts: list[RenderableType] = []
    for group, head in _HEADS.items():
        parts += [
            Text(head, style="bold"),
            tables.pairs((entry.code, entry.sentence) for entry in entries if entry.group == group),
        ]
        parts += [Text()]
    return Group(*parts, Text("For more about one of them: graphveil explain CODE"))


def _entry_screen(entries: Sequence[Entry]) -> RenderableType:
    parts: list[RenderableType] = []
    for entry in entries:
        limits = _LIMITS.get(entry.group, "Does not mean")
        facts = [("Says", entry.sentence), ("Means", entry.means), (limits, entry.limits)]
        parts += [Text(entry.code, style="bold"), tables.pairs([*facts, ("Backed by", entry.backed_by)]), Text()]
    return Group(*parts[:-1])
