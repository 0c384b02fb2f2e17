"""Solitude's figures, the three ways to read its reports, and its label rates."""

from __future__ import annotations

import pytest

from graphveil.graphs import random_split, shares_of, social_graph
from graphveil.privacy import SeededRandomness
from graphveil.reproduction import runner
from graphveil.reproduction.catalogue import EXHIBITS
from graphveil.reproduction.exhibit import Entry, Published


def entry(table: str, data: str, row: str) -> Entry:
    """The one figure of a table."""
    (found,) = (one for one in EXHIBITS[f"solitude-{table}"].entries if (one.data, one.row) == (data, row))
    return found


@pytest.mark.parametrize(
    ("table", "data", "row", "figure"),
    [
        ("table3", "cora", "sage base eps_a=7", "50.9±3.8"),
        ("table3", "citeseer-lcc", "sage lpgnn eps_a=7.5", "50.7±1.4"),
        ("table2", "cora", "sage base eps_a=7.9", "63.7±2.4"),
    ],
)
def test_published_figures_stand_at_their_rows(table: str, data: str, row: str, figure: str) -> None:
    assert entry(table, data, row).published == Published.read(figure)


def test_the_second_table_is_part_of_the_third() -> None:
    second, third = EXHIBITS["solitude-table2"].entries, EXHIBITS["solitude-table3"].entries
    assert {one.row for one in second} <= {one.row for one in third} and len(second) == 2 * 5
    assert len(third) == 3 * 2 * 3 * 6


def test_three_ways_to_read_the_same_reports() -> None:
    base, smooth, learned = (
        entry("table3", "cora", f"gcn {reading} eps_a=7").settings for reading in ("base", "lpgnn", "solitude")
    )
    same = ("epsilon_x", "epsilon_a", "mode", "weight_decay", "learning_rate")
    assert [base[name] for name in same] == [smooth[name] for name in same] == [learned[name] for name in same]
    assert (base["denoiser"], base["steps_x"]) == ("none", 0)
    assert (smooth["denoiser"], smooth["steps_x"]) == ("none", learned["steps_x"])
    assert learned["denoiser"] == "calibration"


def test_a_relationship_costs_twice_what_the_paper_says() -> None:
    """Run for real, on few people: the price comes from the accountant and not from the catalogue."""
    graph = social_graph(80, average_degree=6, dimension=20, classes=3, seed=2)
    one = entry("table3", "cora", "gcn base eps_a=7")
    short = Entry(one.row, "social-80", one.method, {**one.settings, "epochs": 2}, claimed=one.claimed)
    found = runner.trainer(noise=SeededRandomness)(short, graph, 0)
    assert found.price.relationship == 14.0 and one.claimed == "1 + 7 a list"


def test_label_rates_leave_validation_and_test_nodes_as_they_are() -> None:
    graph = social_graph(400, seed=1)
    sizes = []
    for one in EXHIBITS["solitude-figure5"].entries:
        if one.data == "cora" and one.row.startswith("gcn"):
            split = random_split(graph, 3, shares_of(one.split))
            sizes.append((int(split.train.sum()), int(split.val.sum()), int(split.test.sum())))
    assert sizes == [(4 * rate, 100, 100) for rate in (1, 5, 10, 20, 30, 40, 50)]
    assert {one.settings["epsilon_a"] for one in EXHIBITS["solitude-figure5"].entries} == {8.0, 8.7}


def test_every_pair_of_budgets_is_there() -> None:
    cells = {
        (one.settings["model"], one.settings["epsilon_x"], one.settings["epsilon_a"])
        for one in EXHIBITS["solitude-figure4"].entries
        if one.data == "cora"
    }
    assert cells == {(m, x, a) for m in ("sage", "gcn") for x in (0.5, 1.0, 2.0) for a in (7, 7.3, 7.5, 7.7, 7.9, 8)}
