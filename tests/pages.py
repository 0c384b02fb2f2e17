"""The pages of the documentation, by their names: no test says in which part of docs/ a page stands."""

from __future__ import annotations

import csv
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def pages() -> list[Path]:
    """Every page, in the order of paths."""
    return sorted(DOCS.rglob("*.md"))


def page(name: str) -> str:
    """The text of the page NAME.md.

    Raises:
        AssertionError: there is none, or more than one.
    """
    matches = [path for path in pages() if path.stem == name]
    assert len(matches) == 1, f"{name}: {matches}"
    return matches[0].read_text(encoding="utf-8")


def generated(name: str) -> str:
    """A table as the site makes it of the program: one of TABLES in docs/_site/generated.py."""
    if str(DOCS / "_site") not in sys.path:
        sys.path.append(str(DOCS / "_site"))
    table: str = import_module("generated").TABLES[name]()
    return table


def table(name: str) -> list[list[str]]:
    """The rows of docs/reference/tables/NAME.csv below its head."""
    with (DOCS / "reference" / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]
