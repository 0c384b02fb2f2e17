"""The catalogue holds every table and figure of the papers, and the page shows the catalogue."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from graphveil.errors import InputError
from graphveil.graphs import NAMES
from graphveil.methods import METHODS
from graphveil.methods.registry import build_method
from graphveil.reproduction import federated
from graphveil.reproduction.catalogue import EXHIBITS, PAPERS, find_exhibit
from graphveil.reproduction.exhibit import Exhibit
from tests.pages import generated

#: The numbers in the papers' captions. Of LPGNN's, those after section 3 by the order of the authors' notebook.
CAPTIONS = {
    "lpgnn": ("figure1", "figure2", "figure3", "figure4", "figure5", "table1", "table2", "table3", "table4"),
    "solitude": (*(f"figure{n}" for n in range(1, 6)), *(f"table{n}" for n in range(1, 5))),
    "heterorr": tuple(f"figure{n}" for n in range(1, 12)),
    "weighted-gap": ("figure1", "figure2", "figure3"),
    "vfgnn": ("figure1", "figure2", "figure3", *(f"table{n}" for n in range(1, 6))),
}


def test_every_table_and_figure_of_the_papers_is_there() -> None:
    assert {paper: {exhibit.number for exhibit in EXHIBITS.values() if exhibit.paper == paper} for paper in PAPERS} == {
        paper: set(numbers) for paper, numbers in CAPTIONS.items()
    }


@pytest.mark.parametrize("exhibit", [each for each in EXHIBITS.values() if each.entries], ids=lambda each: each.id)
def test_every_figure_can_be_asked_for(exhibit: Exhibit) -> None:
    """Its data are known, its settings are taken by its method, and its share of the time is stated."""
    for entry in exhibit.entries:
        assert re.fullmatch(r"[a-z0-9.=_-]{3,80}", entry.name), "a folder on every disk"
        assert entry.data in NAMES or entry.data.startswith("facebook100-")
        assert exhibit.cpu[entry.data] > 0
        if entry.method == federated.METHOD:
            assert federated.Federated.of(entry).plan.epochs == 150
        else:
            build_method(entry.method, entry.settings, classes=4)
            assert set(entry.settings) <= set(METHODS[entry.method].options)
        assert entry.published is None or (0 < entry.published.mean <= 100 and (entry.published.width or 0) >= 0)


def test_the_page_shows_the_catalogue() -> None:
    assert set(re.findall(r"^\| `(.+?)` \|", generated("exhibits"), re.MULTILINE)) == set(EXHIBITS)


def test_a_name_that_is_nearly_right_is_named_and_what_cannot_be_run_says_why() -> None:
    with pytest.raises(InputError, match="did you mean lpgnn-table3"):
        find_exhibit("lpgn-table3")
    with pytest.raises(InputError, match="a drawing"):
        find_exhibit("lpgnn-figure1")
    with pytest.raises(InputError, match="graphveil reproduce list"):
        find_exhibit("xyzzy")
    assert find_exhibit("lpgnn-table3").title == "Table 3"
    assert EXHIBITS["heterorr-figure11"].title == "Figure 11"


def test_a_state_without_its_reason_is_refused() -> None:
    table = EXHIBITS["lpgnn-table3"]
    for wrong in ({"why": ""}, {"state": "yes"}, {"state": "no"}, {"entries": ()}, {"entries": table.entries * 2}):
        with pytest.raises(InputError):
            replace(table, **wrong)  # type: ignore[arg-type]
