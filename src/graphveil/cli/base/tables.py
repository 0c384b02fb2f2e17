"""Tables of names and values for every command's screen; this file needs no method and no graph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base.text import is_price, number, printable


def pairs(facts: Iterable[tuple[str, str]]) -> Pairs:
    """Names and values in two columns; long values wrap in theirs."""
    return Pairs(tuple((name, printable(value)) for name, value in facts))


@dataclass(frozen=True)
class Pairs:
    """Names and values; a word that is wider than the values' column stays whole, for whoever copies it."""

    facts: tuple[tuple[str, str], ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines: a name that takes half of the screen, and a word that is too wide, have lines of their own."""
        widths = [cell_len(name) + 2 for name, _ in self.facts]
        left = max((width for width in widths if width <= options.max_width // 2), default=4)
        for name, value in self.facts:
            line = Text(name, style="bold")
            for content in _wrapped(value, options.max_width - left):
                start = max(min(left, options.max_width - cell_len(content)), 0)
                if line.cell_len and line.cell_len + 2 > start:
                    yield line
                    line = Text()
                line.pad_right(start - line.cell_len)
                yield Text.assemble(line, content, no_wrap=True, overflow="ignore")
                line = Text()


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most so many cells, but for those of one longer word."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and cell_len(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def listed(name: str, lines: Iterable[str]) -> list[tuple[str, str]]:
    """Facts for `pairs`: several lines, of which the first has a name.

    Args:
        lines: any number, also none.
    """
    return [(name if index == 0 else "", line) for index, line in enumerate(lines)]


def columns(*heads: str) -> Table:
    """A plain table without rows; columns of numbers are right-aligned, by their headings."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in heads:
        right = any(
            word in name for word in ("%", "interval", "epsilon", "users", "noise", "degree", "points", "nodes")
        )
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    return table


def figures(first: str, *heads: str) -> Table:
    """A plain table without rows: names on the left, and columns of numbers."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(first)
    for name in heads:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def rows(heads: Sequence[str], content: Iterable[Sequence[object]]) -> Table:
    """A plain table of texts.

    Args:
        content: rows of as many cells, shown by ``str``.
    """
    table = columns(*heads)
    for row in content:
        table.add_row(*(printable(cell) for cell in row))
    return table


def plain_named(key: str, value: object) -> str:
    """A value as `plain` shows it, but an epsilon or delta is rounded up.

    Args:
        key: its name says whether the value is an epsilon or delta.
    """
    if not (is_price(key) and isinstance(value, float)):
        return plain(value)

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
    parts: list[RenderableType] = []
    for description in content:
        parts += [described(description), Text()]
    return Group(*parts[:-1])


def described(content: Mapping[str, Any]) -> RenderableType:
    return pairs((str(key).replace("_", " "), plain(value)) for key, value in content.items())
