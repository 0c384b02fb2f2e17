"""The figures that advice rests on are those of the benchmarks, and the nearest graphs are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.methods.advise.panel import GRAPHS, cells, most_alike
from graphveil.methods.advise.rules import RULES, TRUSTS
from graphveil.methods.registry import METHODS

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


def test_the_gains_of_a_federation_are_those_of_the_benchmarks() -> None:
    part = README[README.index("## Guesses by unit") :].split("With connections")[0]
    named = {"digits": "digits,", "cora": "Cora,", "hopkins": "Johns Hopkins55", "twitch-es": "Twitch ES"}
    for graph, start in named.items():
        row = next(line for line in part.splitlines() if line.startswith(f"| {start}"))
        gains = [float(cell.strip(" *").partition("±")[0]) for cell in row.strip("|").split("|")[3:]]
        assert [cell.lift for cell in cells("federation") if cell.graph == graph] == gains


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
