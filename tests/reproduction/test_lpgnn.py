"""LPGNN's figures and settings are those that the authors' repository keeps."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from graphveil.reproduction.catalogue import EXHIBITS
from graphveil.reproduction.exhibit import Entry, Published
from graphveil.reproduction.lpgnn import DATA, EPSILON_X, EPSILON_Y, settings


def entry(table: str, data: str, row: str) -> Entry:
    """The one figure of a table."""
    (found,) = (one for one in EXHIBITS[f"lpgnn-{table}"].entries if (one.data, one.row) == (data, row))
    return found


@pytest.mark.parametrize(
    ("table", "data", "row", "figure"),
    [
        ("figure3", "cora", "sage eps_x=1 eps_y=1", "69.3±1.2"),
        ("figure3", "lastfm", "gcn eps_x=inf eps_y=inf", "90.0"),
        ("table2", "lastfm", "features eps_x=0.01", "76.9±4.3"),
        ("table2", "facebook", "degree", "77.2±0.3"),
        ("table3", "facebook", "gaussian eps_x=1", "92.0±0.1"),
        ("table4", "facebook", "Drop eps_y=0.5", "75.1±0.6"),
        ("figure4", "cora", "eps_x=1 K_x=16", "70.1"),
    ],
)
def test_published_figures_stand_at_their_rows(table: str, data: str, row: str, figure: str) -> None:
    assert entry(table, data, row).published == Published.read(figure)


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


@pytest.mark.parametrize(
    ("data", "epsilon_x", "epsilon_y", "found"),
    [
        ("cora", 1.0, 1.0, {"learning_rate": 0.01, "weight_decay": 0.001, "dropout": 0.5, "steps_x": 2, "steps_y": 8}),
        ("cora", 1.0, 2.0, {"steps_x": 8, "steps_y": 4}),
        ("cora", 0.01, inf, {"weight_decay": 0.01, "dropout": 0.75, "steps_x": 8, "steps_y": 0}),
        ("facebook", inf, inf, {"learning_rate": 0.001, "weight_decay": 0.0001, "dropout": 0.75, "steps_x": 0}),
    ],
)
def test_settings_are_the_authors_own(data: str, epsilon_x: float, epsilon_y: float, found: dict[str, Any]) -> None:
    used = settings(data, epsilon_x, epsilon_y)
    assert {key: used[key] for key in found} == found
    assert (used["scaling"], used["selection"]) == ("published", "published")


def test_what_an_exhibit_changes_is_changed_and_nothing_else() -> None:
    plain = settings("cora", 1.0, 1.0)
    assert settings("cora", 1.0, 1.0, model="gat", steps_x=0) == {**plain, "model": "gat", "steps_x": 0}
    hops = [entry("figure5", "cora", f"eps_y=1 K_y={hops}").settings for hops in (0, 2, 4, 8, 16)]
    assert [one["steps_y"] for one in hops] == [0, 2, 4, 8, 16] and all(one["steps_x"] == 2 for one in hops)


def test_inputs_without_features_have_settings_of_their_own_and_collect_none() -> None:
    for kind, found in {"uniform": (0.0001, 0.01, 0.25), "ones": (0.0001, 0.01, 0.75), "degree": (0.01, 0, 0)}.items():
        used = entry("table2", "cora", kind).settings
        assert (used["learning_rate"], used["weight_decay"], used["dropout"]) == found
        assert (used["epsilon_x"], used["stand_in"], used["steps_x"], used["steps_y"]) == (None, kind, 0, 4)
    plain = entry("table4", "cora", "cross-entropy eps_y=2").settings
    assert (plain["loss"], plain["steps_x"], plain["steps_y"]) == ("cross-entropy", 8, 0)


def test_every_pair_of_budgets_is_there_and_claimed_as_the_paper_does() -> None:
    rows = [one for one in EXHIBITS["lpgnn-figure3"].entries if one.row.startswith("sage")]
    pairs = {(one.data, one.settings["epsilon_x"], one.settings["epsilon_y"]) for one in rows}
    assert pairs == {(data, x, y) for data in DATA for x in EPSILON_X for y in EPSILON_Y}
    assert entry("figure3", "cora", "sage eps_x=0.1 eps_y=inf").claimed == "0.1 + inf"
