"""The answer of ``graphveil audit`` as people read it, at 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graphveil.audit import Audit
from graphveil.cli.tables import pairs
from graphveil.privacy.printed import rounded_up
from graphveil.reports.base.text import number, seconds


def audited(audits: Sequence[Audit]) -> RenderableType:
    """A row for each audit, what was found or how it was done, and what the columns mean."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("audit")
    for name in ("claimed", "at least", "delta", "alarm", "verdict"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in audits:
        numbers = (
            rounded_up(one.claimed_epsilon),
            f"{one.lower_bound:.3f}",
            rounded_up(one.delta),
            number(one.false_alarm),
        )
        table.add_row(one.target, *numbers, one.verdict, style=None if one.holds else "bold red")
    broken = [one for one in audits if not one.holds]
    notes = [(one.target, note) for one in (broken or audits[:3]) for note in one.notes]
    meaning = [
        ("at least", "epsilon cannot be smaller than this, except for false alarms at the rate shown"),
        ("holds", "this audit found no violation; it proves no more than its bound"),
        ("Time", seconds(sum(one.seconds for one in audits))),
    ]
    head = f"{len(broken)} of {len(audits)} claims broken" if broken else f"{len(audits)} audits: no claim broken"
    return Group(Text(head, style="bold"), Text(), table, Text(), pairs([*notes, *meaning]))
