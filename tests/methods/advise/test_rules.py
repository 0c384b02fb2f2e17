"""The table of rules: complete, in order, and refusing what a declaration does not allow."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

from graphveil.errors import InputError
from graphveil.graphs.schema import PRIVATE_PARTS
from graphveil.methods.advise.goal import GRID, Goal, goal_of, smallest
from graphveil.methods.advise.panel import GRAPHS, cells, most_alike
from graphveil.methods.advise.rehearsal import Band
from graphveil.methods.advise.rules import RULES, TRUSTS, Rule, rule_for
from graphveil.methods.registry import METHODS

DECLARATIONS = [parts for size in range(4) for parts in itertools.combinations(PRIVATE_PARTS, size)]
DEGREES = [None, 3.0, 60.0]


@pytest.mark.parametrize("trust", TRUSTS)
def test_no_rule_takes_a_private_part_for_public(trust: str) -> None:
    """What is private is protected by the method that is advised, or not collected at all."""
    assert rule_for(trust, (), 50.0) is None, "where nothing is private nothing is spent"
    for private, degree in itertools.product(DECLARATIONS, DEGREES):
        rule = rule_for(trust, private, degree)
        if rule is None or rule.method is None:
            continue
        covered = {*rule.protects, *(("features", "labels") if rule.settings else ())}
        assert set(private) <= covered, f"{rule.method} does not protect {set(private) - covered}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.trust}-{rule.method}")
def test_a_rule_names_parts_of_a_graph_and_controls_of_its_method(rule: Rule) -> None:
    for parts in (rule.protects, rule.wants, rule.needs):
        assert set(parts) <= set(PRIVATE_PARTS)
    assert not set(rule.wants) & set(rule.needs), "a rule that no declaration fits"
    assert any(rule.fits(private, degree) for private in DECLARATIONS for degree in DEGREES)
    assert all(text and not text.endswith(".") and "\n" not in text for text in (rule.why, rule.loses, rule.open))
    assert (rule.budget == "") == (rule.method is None) == math.isinf(rule.epsilon)


def test_an_epsilon_that_is_asked_for_takes_the_place_of_the_advised_one() -> None:
    rule = rule_for("links", ("labels", "edges"), None)
    assert rule is not None
    assert rule.choice() == {"epsilon_x": None, "epsilon_y": 2.0, "epsilon_a": 4.0}
    assert rule.choice(1.0)["epsilon_a"] == 1.0 and rule.choice(1.0)["epsilon_y"] == 2.0
    assert METHODS["links"].settle(rule.choice(1.0))["epsilon_x"] is None


@pytest.mark.parametrize(
    ("degree", "method"), [(None, "dp-mlp"), (19.9, "dp-mlp"), (20.0, "node-sums"), (90.0, "node-sums")]
)
def test_noisy_votes_of_whole_people_take_many_contacts(degree: float | None, method: str) -> None:
    rule = rule_for("curator", ("features", "labels", "edges"), degree)
    assert rule is not None and rule.method == method


# ---- the smallest epsilon that reaches a goal ----


def rising(epsilon: float) -> Band:
    """A lift that grows with epsilon; the band is 10 points wide."""
    return Band(0.05 * epsilon - 0.05, 0.05 * epsilon + 0.05)


@pytest.mark.parametrize("least", [0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.35])
def test_it_is_the_first_of_the_grid_at_either_end_of_the_band(least: float) -> None:
    found = smallest(Goal("lift", least), rising)
    assert found.hopeful == next((one for one in GRID if rising(one).high >= least), None)
    assert found.sure == next((one for one in GRID if rising(one).low >= least), None)
    assert set(found.tried) <= set(GRID)


def test_a_goal_that_is_out_of_reach_is_said_with_the_best_that_was_found() -> None:
    found = smallest(Goal("lift", 0.9), rising)
    assert found.hopeful is None and found.sure is None
    assert "no epsilon up to 8 reaches it" in found.sentence and "+35.0 to +45.0" in found.sentence


def test_a_goal_that_only_luck_reaches_is_no_recommendation() -> None:
    found = smallest(Goal("lift", 0.4), rising)
    assert found.hopeful == 8.0 and found.sure is None and "do not count on it" in found.sentence
    assert "from epsilon 8 on" in found.sentence and "gave +35.0 to +45.0 points" in found.sentence
    share = smallest(Goal("accuracy", 0.4), rising).sentence
    assert "gave 35.0 to 45.0 %" in share


@pytest.mark.parametrize("text", ["accuracy", "lift=", "lift=0", "lift=2", "acc=0.5", "lift=nan", "accuracy=0.8=1", ""])
def test_what_is_no_goal_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="no goal"):
        goal_of(text)


# ---- the figures that advice rests on are those of the benchmarks, and the nearest graphs are found ----


ROOT = Path(__file__).parents[3]
README = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
#: Heading of a table of the panel, the method's column, and those of its controls.
TABLES = {
    "curator": ("**A trusted curator, one edge", "class-sums", ("no-edges", "features-pool")),
    "nodes": ("**A trusted curator, whole nodes", "node-sums", ("dp-mlp",)),
    "release": ("**A published graph, one private", "class-counts", ("public-edges", "public-pool")),
    "links": ("**Private lists, one relation", "links", ("no-lists",)),
    "local": ("**People's own devices", "label-pool", ("majority", "label-propagation")),
}


def measured(table: str) -> set[tuple[str, float, float]]:
    """(graph, epsilon, lift) of a table of the panel, read off the page."""
    heading, method, controls = TABLES[table]
    lines = README[README.index(heading) :].split("| families")[0].splitlines()
    head, _, *rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines if line[:1] == "|"]
    found = [dict(zip(head, row, strict=True)) for row in rows]
    return {
        (row["graph"], float(row["epsilon"]), round(float(row[method]) - max(float(row[c]) for c in controls), 1))
        for row in found
    }


@pytest.mark.parametrize("table", TABLES)
def test_the_panel_is_that_of_the_benchmarks(table: str) -> None:
    assert {(cell.graph, cell.epsilon, cell.lift) for cell in cells(table)} == measured(table)


def test_every_measured_graph_is_described_and_every_rule_names_what_there_is() -> None:
    for rule in RULES:
        assert rule.trust in TRUSTS and (ROOT / rule.page).is_file()
        assert rule.method in (None, "guesses") or rule.method in METHODS
        if rule.method in METHODS:
            METHODS[str(rule.method)].settle(rule.choice())
        for cell in cells(rule.panel) if rule.panel else ():
            assert cell.graph in GRAPHS


def test_graphs_are_alike_by_people_contacts_and_classes() -> None:
    university = most_alike("curator", 4.0, nodes=5000, classes=6, degree=70)
    assert university[0].graph == "hopkins" and university[0].epsilon == 4.0
    papers = most_alike("curator", 4.0, nodes=3000, classes=7, degree=4.0)
    assert {cell.graph for cell in papers} == {"cora", "cora-ml", "citeseer"}
    assert most_alike("curator", 0.7, nodes=2700, classes=7, degree=4.0)[0].epsilon == 1.0
    assert len(most_alike("curator", 4.0, nodes=100, classes=2, degree=None, most=2)) == 2
