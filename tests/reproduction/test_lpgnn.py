"""LPGNN's figures and settings are those that the authors' repository keeps."""

from __future__ import annotations

from math import inf

from graphveil.reproduction.catalogue import EXHIBITS
from graphveil.reproduction.exhibit import Entry
from graphveil.reproduction.lpgnn import DATA


def entry(table: str, data: str, row: str) -> Entry:
    """The one figure of a table."""
    (found,) = (one for one in EXHIBITS[f"lpgnn-{table}"].entries if (one.data, one.row) == (data, row))
    return found


def test_figures_of_one_run_are_the_same_in_every_table() -> None:
    """Features at a pair of budgets, in the figure of all budgets and in the tables that show them again."""
    for data in DATA:
        for epsilon in (0.01, 0.1, 1.0, inf):
            shown = entry("figure3", data, f"sage eps_x={epsilon:g} eps_y=1")
            again = entry("table2", data, f"features eps_x={epsilon:g}")
            assert (shown.published, shown.settings) == (again.published, again.settings)
        for epsilon in (1.0, 2.0):
            shown = entry("figure3", data, f"sage eps_x=1 eps_y={epsilon:g}")
            again = entry("table4", data, f"Drop eps_y={epsilon:g}")
            assert (shown.published, shown.settings) == (again.published, again.settings)
