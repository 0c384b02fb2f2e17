"""What ``graphveil reproduce`` shows: every table and figure with its state, or one beside what was published."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.cli.tables import pairs, rows
from graphveil.reproduction.catalogue import EXHIBITS, PAPERS, long
from graphveil.reproduction.exhibit import Exhibit
from graphveil.reproduction.runner import Outcome
from graphveil.reproduction.table import HEADS, by_data, cells, remarks


def listed() -> RenderableType:
    """All tables and figures, paper by paper."""
    parts: list[RenderableType] = []
    for paper, title in PAPERS.items():
        own = [one for one in EXHIBITS.values() if one.paper == paper]
        table = rows(
            ("name", "shows", "can be run", "10 splits"), [(one.id, one.caption, one.said, long(one)) for one in own]
        )
        # A name that is broken over two lines cannot be copied.
        table.columns[0].no_wrap = table.columns[3].no_wrap = True
        parts += [Text(title, style="bold"), table, Text()]
    return Group(*parts[:-1])


def reproduced(exhibit: Exhibit, outcome: Outcome, folder: Path) -> RenderableType:
    """One exhibit: the paper's figures beside ours, and what to mind."""
    parts: list[RenderableType] = [Text(f"{exhibit.id}: {exhibit.caption}", style="bold"), Text()]
    for head, found in by_data(outcome.rows):
        table = rows(HEADS, map(cells, found))
        table.columns[0].no_wrap = True
        parts += [Text(head), table, Text()]
    return Group(*parts, pairs([*remarks(exhibit, outcome), ("Folder", f"{folder} (table.md, table.json)")]))
