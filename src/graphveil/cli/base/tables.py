"""Names and values as people read them on a screen, for every command; what needs no method and no graph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graphveil.reports.base.text import is_price, number, printable


def pairs(facts: Iterable[tuple[str, str]]) -> Table:
    """Names and what they stand for, in two columns; long texts wrap in theirs."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, printable(value))
    return table


def columns(*heads: str) -> Table:
    """A plain table without rows; columns whose heading names a number are set right."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in heads:
        right = any(
            word in name for word in ("%", "interval", "epsilon", "users", "noise", "degree", "points", "nodes")
        )
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    return table


def rows(heads: Sequence[str], content: Iterable[Sequence[object]]) -> Table:
    """A plain table of texts.

    Args:
        heads: one for each column.
        content: rows of as many cells; anything with a text.
    """
    table = columns(*heads)
    for row in content:
        table.add_row(*(printable(cell) for cell in row))
    return table


def plain_named(key: str, value: object) -> str:
    """The same as `plain`, an epsilon or delta rounded up.

    Args:
        key: its name tells whether the value is a privacy price.
        value: as in an answer.
    """
    if not (is_price(key) and isinstance(value, float)):
        return plain(value)
    from graphveil.privacy.accounting.printed import rounded_up

    return rounded_up(value)


def plain(value: object) -> str:
    """Any value of an answer in short: numbers rounded, lists with commas, mappings as ``key value``."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, float):
        return number(round(value, 4) if math.isfinite(value) and abs(value) > 0.01 else value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plain_named(key, item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(plain(item) for item in value)
    return str(value)


def blocks(content: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Several descriptions below each other, an empty line between them."""
    parts: list[RenderableType] = []
    for description in content:
        parts += [described(description), Text()]
    return Group(*parts[:-1])


def described(content: Mapping[str, Any]) -> RenderableType:
    """A description, one fact a line."""
    return pairs((str(key).replace("_", " "), plain(value)) for key, value in content.items())
