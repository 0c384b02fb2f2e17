"""HeteroRR's curves as rows, and the t-tests that its text reports; Solitude's prices and label rates."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from scipy import stats

from graphveil.graphs import random_split, shares_of, social_graph
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy import SeededRandomness
from graphveil.reproduction import runner, table
from graphveil.reproduction.catalogue import EXHIBITS
from graphveil.reproduction.exhibit import Entry, Price, Run
from graphveil.reproduction.runner import Outcome, Row
from graphveil.reproduction.table import tests_of as significance_of

PRICE = Price("one node's features", 1.0, 0.0)


def row(name: str, accuracies: tuple[float, ...], data: str = "ppi") -> Row:
    """A row with one run for each accuracy."""
    runs = (Run(Interval(accuracy, accuracy, accuracy, (accuracy,)), PRICE, 1.0) for accuracy in accuracies)
    return Row(Entry(name, data, "heterorr"), tuple(runs))


ROWS = (
    row("mine eps=1", (0.60, 0.62, 0.64)),
    row("weak eps=1", (0.40, 0.41, 0.43)),
    row("best eps=1", (0.55, 0.60, 0.59)),
    row("mine eps=2", (0.70, 0.70, 0.70)),
    row("best eps=2", (0.80, 0.80, 0.80)),
    row("best eps=4", (0.80, 0.80, 0.80)),
)


def test_the_test_is_paired_two_tailed_and_against_the_best_rival() -> None:
    first = next(significance_of(ROWS, "mine"))
    expected = stats.ttest_rel([60, 62, 64], [55, 60, 59])
    assert (first.rival, first.setting, first.points) == ("best", "eps=1", pytest.approx(4.0))
    assert first.p == pytest.approx(expected.pvalue)
    # Weakened copies: of two samples, or of one tail.
    assert first.p != pytest.approx(stats.ttest_ind([60, 62, 64], [55, 60, 59]).pvalue)
    assert first.p != pytest.approx(expected.pvalue / 2)
    assert first.sentence == f"ppi eps=1: mine +4.0 points over best, p = {expected.pvalue:.2g}"


def test_where_nothing_varies_or_one_split_was_run_nothing_is_tested() -> None:
    tests = list(significance_of(ROWS, "mine"))
    assert [(test.setting, test.p is None) for test in tests] == [("eps=1", False), ("eps=2", True)]
    assert tests[1].points == pytest.approx(-10.0) and "not to be tested" in tests[1].sentence
    (alone,) = significance_of((row("mine eps=1", (0.5,)), row("best eps=1", (0.4,))), "mine")
    assert alone.p is None
    assert list(significance_of((row("mine eps=1", (0.5,)),), "mine")) == []


def test_data_sets_are_tested_each_by_itself() -> None:
    rows = (*ROWS[:3], row("mine eps=1", (0.1, 0.2), "digits"), row("weak eps=1", (0.3, 0.2), "digits"))
    assert [(test.data, test.rival) for test in significance_of(rows, "mine")] == [("ppi", "best"), ("digits", "weak")]


def test_tests_stand_below_the_table_and_in_the_answer() -> None:
    exhibit = EXHIBITS["heterorr-figure6"]
    rows = (row("feature-rr eps=1", (0.5, 0.6)), row("duchi eps=1", (0.4, 0.6)))
    remarks = dict(table.remarks(exhibit, Outcome(rows, {})))
    assert remarks["t-test"].startswith("ppi eps=1: feature-rr +5.0 points over duchi, p = ")
    assert exhibit.tested == "feature-rr" and EXHIBITS["lpgnn-table3"].tested == ""


def test_a_share_of_edges_is_drawn_anew_for_each_split_and_kept_in_the_file() -> None:
    graph = social_graph(120, average_degree=8, seed=2)
    settings = {"epsilon_x": inf, "epsilon_a": 1.0, "edges": "public-tree", "epochs": 2, "model": "gcn"}
    published = Entry("public-tree", "social-120", "heterorr", settings, private_share=0.3)
    run = runner.trainer(noise=SeededRandomness)(published, graph, 0)
    assert run.price.epsilon == 1.0 and published.to_dict()["private_share"] == 0.3
    assert "private_share" not in Entry("a", "cora", "gcn").to_dict()


# ---- Solitude's figures: the three ways to read its reports, and its label rates ----


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
