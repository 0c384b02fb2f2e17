"""The page of a comparison: curves over a group's own epsilon, and every figure of the tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphveil.errors import ModelFileError
from graphveil.reports.base import trust
from graphveil.reports.compare.folder import accuracy_chart, page_html, write
from graphveil.reports.compare.rows import Row, row_of
from graphveil.reports.compare.sheet import Sheet, assumed_facts, three_lines
from graphveil.reports.compare.table import cells, columns
from graphveil.reports.runs import folder as run_folder
from graphveil.reports.runs.against import Side, against_html, write_against
from tests.reports import made
from tests.reports.pages import HOSTILE, read


def row(method: str, epsilon: float, accuracy: float, *, void: str | None = None) -> Row:
    promised = made.guarantee(1.0, epsilon, void)
    record = made.record(method=method, guarantee=promised, accuracy=made.interval(accuracy, spread=0.0))
    return row_of(method, {}, [record])


def side_by_side(method: str = "lpgnn", void: str | None = None) -> Sheet:
    """One method at two epsilons, another at one of them, and one that protects another unit."""
    other = made.record(**made.beside_rivals())
    rows = (row(method, 4.0, 0.7, void=void), row(method, 1.0, 0.6), row("label-pool", 4.0, 0.5))
    return Sheet("cora", (*rows, row_of("solitude", {}, [other])))


def test_the_page_has_every_cell_promise_fact_and_remark_and_says_what_is_void() -> None:
    page = replace(side_by_side(void="known noise"), notes=("A note of the comparison.",))
    html = page_html(page)
    whole = read(html).text
    for group in page.groups:
        assert all(cell in whole for entry in group.rows for cell in cells(page, group, entry))
        assert group.promise.protected in whole
        assert all(f"{head}: {text}" in whole for head, text in three_lines(group, "listed below"))
        assert all(fact in whole for fact in assumed_facts(group))
    assert "VOID, runs so marked protect nobody: known noise." in whole
    assert html.index('data-tab="Comparable"') < html.index("A note of the comparison.")
    assert all(remark in whole for remark in (trust.LEGEND, *page.comparable))
    assert len(html.encode()) < 400_000
    hostile = page_html(side_by_side(HOSTILE))
    assert "\x1b" not in hostile and "<script>alert" not in hostile


def test_prices_of_other_units_never_stand_in_one_table() -> None:
    page = side_by_side()
    headings = [[cell for cell in columns(page, group) if cell.startswith("epsilon")] for group in page.groups]
    assert headings[0] != headings[1]
    html = page_html(page)
    assert html.count('<table class="sortable">') == len(page.groups)
    for table, wanted in zip(html.split('<table class="sortable">')[1:], headings, strict=True):
        head = table.partition("</thead>")[0]
        assert [cell.partition("<")[0] for cell in head.split('<th scope="col">')[1:]][1 : len(wanted) + 1] == wanted


def test_a_group_has_a_curve_for_each_method_over_the_epsilon_that_varies() -> None:
    page = side_by_side()
    varies, alone = page.groups
    chart = accuracy_chart(page, varies)
    assert chart is not None
    assert chart.places == (1.0, 4.0) and "label" in chart.x
    curves = {line.name: line.values for line in chart.lines if not line.dashed}
    assert curves == {"lpgnn": (60.0, 70.0), "label-pool": (None, 50.0)}
    assert all(line.name.endswith(": control") for line in chart.lines if line.dashed)
    assert accuracy_chart(page, alone) is None


def test_where_nothing_was_scored_no_curve_and_no_figure_is_drawn(tmp_path: Path) -> None:
    bare = Sheet("cora", tuple(replace(entry, accuracy=None) for entry in side_by_side().rows))
    assert [accuracy_chart(bare, group) for group in bare.groups] == [None] * len(bare.groups)
    write(bare, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"table.md", "table.csv", "table.json", "table.html"}
    assert '<figure class="chart"' not in (tmp_path / "table.html").read_text()


# ---- two runs side by side ----


OPTIONS = {"seed": 0, "repeats": 5, "device": "cpu"}


def page_of(*changes: dict[str, Any]) -> str:
    mine, other = (made.record(**change) for change in changes)
    return against_html(Side("mine", mine, {}), Side("theirs", other, made.attacks()))


def table(html: str, first: str) -> list[list[str]]:
    """The rows of the table whose head begins with these cells."""
    for whole in html.split("<table")[1:]:
        cells = [
            [part.partition(">")[2].partition("<")[0] for part in row.split("<td")[1:]]
            for row in whole.split("<tr")[2:]
        ]
        head = [part.partition(">")[2].partition("<")[0] for part in whole.split("<th ")[1:]]
        if head and head[0] == first:
            return [head, *(row for row in cells if row)]
    raise AssertionError(f"no table of {first}")


def test_epsilons_of_different_units_never_share_a_column() -> None:
    head, mine, theirs = table(page_of({}, made.beside_rivals()).split("<h2>Guarantees side by side")[1], "run")
    assert len(head) == len(set(head)) == len(mine) == len(theirs)
    by_unit = {unit: pair for unit, *pair in zip(head, mine, theirs, strict=True)}
    assert by_unit["one user&#39;s label"] == ["2", "2"]
    assert by_unit["one relationship"] == ["-", "4"]
    assert by_unit["one user&#39;s whole feature vector and one user&#39;s label"] == ["3", "-"]
    # One unit under two relations has two columns.
    other = replace(made.guarantee(), parts=tuple(replace(p, relation="add/remove") for p in made.guarantee().parts))
    page = page_of({}, {"guarantee": other})
    head, mine, theirs = table(page.split("<h2>Guarantees side by side")[1], "run")
    assert [
        pair for unit, *pair in zip(head, mine, theirs, strict=True) if unit.startswith("one user&#39;s label (")
    ] == [["2", "-"], ["-", "2"]]


def test_runs_without_epochs_say_so_and_draw_no_curve() -> None:
    bare = replace(made.record(), history=())
    page = against_html(Side("mine", bare, {}), Side("theirs", bare, {}))
    assert "Neither was trained over epochs." in page and '<figure class="chart"' not in page


def test_hostile_names_stay_text_where_two_runs_are_compared() -> None:
    hostile = page_of({"data": HOSTILE}, {"settings": {HOSTILE: HOSTILE}})
    assert "\x1b" not in hostile and "<script>alert" not in hostile


def test_the_page_lies_in_the_first_run_for_its_maker_alone(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run_folder.write_run(made.result(), tmp_path / name, options=OPTIONS)
    page = write_against(tmp_path / "a", tmp_path / "b")
    assert page == tmp_path / "a" / "against-b.html"
    assert page.stat().st_mode & 0o777 == 0o600
    assert "a against b" in read(page.read_text()).text
    assert not list((tmp_path / "a" / "public").glob("against*"))
    with pytest.raises(ModelFileError, match="no run in"):
        write_against(tmp_path / "a", tmp_path)
    with pytest.raises(ModelFileError, match="no run in"):
        write_against(tmp_path / "a" / "public", tmp_path / "b")
