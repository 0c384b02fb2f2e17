"""What a comparison leaves in its folder beside its cells: tables, a page, and a figure."""

from __future__ import annotations

from pathlib import Path

from graphveil.reports.base import figures
from graphveil.reports.base.files import to_json, write_bytes, write_text
from graphveil.reports.compare import table
from graphveil.reports.compare.figure import figure
from graphveil.reports.compare.page import page_html
from graphveil.reports.compare.sheet import Sheet


def write(page: Sheet, folder: Path) -> None:
    """Write the tables, ``table.html``, and the figure where anything was scored.

    Args:
        page: the comparison.
        folder: must exist.

    Raises:
        WriteError: the disk refuses.
    """
    write_text(folder / table.MARKDOWN, table.markdown_text(page))
    write_text(folder / "table.csv", table.csv_text(page))
    write_text(folder / "table.json", to_json(table.content(page), indent=2) + "\n")
    write_text(folder / "table.html", page_html(page))
    drawn = figure(page)
    if drawn is not None:
        write_bytes(folder / "figure.png", figures.png(drawn))
        write_text(folder / "figure.svg", figures.svg(drawn))
