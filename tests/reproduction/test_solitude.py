"""Solitude's figures, the three ways to read its reports, and its label rates."""

from __future__ import annotations

from dataclasses import replace

from graphveil.graphs import random_split, shares_of, social_graph
from graphveil.privacy import SeededRandomness
from graphveil.reproduction import runner
from graphveil.reproduction.catalogue import EXHIBITS
from graphveil.reproduction.exhibit import Entry


def entry(table: str, data: str, row: str) -> Entry:
    """The one figure of a table."""
    return next(each for each in EXHIBITS[f"solitude-{table}"].entries if (each.data, each.row) == (data, row))


def test_a_relationship_costs_twice_what_the_paper_says() -> None:
    """Run for real, on few people: the price comes from the accountant and not from the catalogue."""
    graph = social_graph(80, average_degree=6, dimension=20, classes=3, seed=2)
    published = entry("table3", "cora", "gcn base eps_a=7")
    short = replace(published, data="social-80", settings={**published.settings, "epochs": 2})
    run = runner.trainer(noise=SeededRandomness)(short, graph, 0)
    assert run.price.relationship == 14.0 and published.claimed == "1 + 7 a list"


def test_label_rates_leave_validation_and_test_nodes_as_they_are() -> None:
    graph = social_graph(400, seed=1)
    sizes = []
    for published in EXHIBITS["solitude-figure5"].entries:
        if published.data == "cora" and published.row.startswith("gcn"):
            split = random_split(graph, 3, shares_of(published.split))
            sizes.append((int(split.train.sum()), int(split.val.sum()), int(split.test.sum())))
    assert sizes == [(4 * rate, 100, 100) for rate in (1, 5, 10, 20, 30, 40, 50)]
    assert {published.settings["epsilon_a"] for published in EXHIBITS["solitude-figure5"].entries} == {8.0, 8.7}
