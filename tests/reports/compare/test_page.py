"""The page of a comparison: curves over a group's own epsilon, and every figure of the tables."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from graphveil.reports.base import trust
from graphveil.reports.compare.folder import write
from graphveil.reports.compare.page import accuracy_chart, page_html
from graphveil.reports.compare.promised import facts, three_lines
from graphveil.reports.compare.rows import Row, row_of
from graphveil.reports.compare.sheet import Sheet
from graphveil.reports.compare.table import cells, columns
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


def test_no_axis_reaches_infinity() -> None:
    rows = tuple(row("lpgnn", epsilon, 0.6) for epsilon in (1.0, math.inf))
    page = Sheet("cora", rows)
    assert [accuracy_chart(page, group) for group in page.groups] == [None] * len(page.groups)


def test_the_page_has_every_cell_of_the_tables_and_says_what_is_void() -> None:
    page = side_by_side(void="known noise")
    html = page_html(page)
    said = read(html).text
    for group in page.groups:
        for one in group.rows:
            assert all(cell in said for cell in cells(page, group, one))
    assert "VOID, runs so marked protect nobody: known noise." in said
    assert len(html.encode()) < 400_000


def test_hostile_names_stay_text() -> None:
    html = page_html(side_by_side(HOSTILE))
    assert "\x1b" not in html
    assert "<script>alert" not in html


def test_the_folder_holds_the_page_beside_the_tables_and_a_figure_where_something_was_scored(tmp_path: Path) -> None:
    page = side_by_side()
    write(page, tmp_path)
    tables = {"table.md", "table.csv", "table.json", "table.html"}
    assert {file.name for file in tmp_path.iterdir()} == {*tables, "figure.png", "figure.svg"}
    assert (tmp_path / "table.html").read_text() == page_html(page)
    bare = tmp_path / "bare"
    bare.mkdir()
    write(Sheet("cora", tuple(replace(row, accuracy=None) for row in page.rows)), bare)
    assert {file.name for file in bare.iterdir()} == tables


def test_prices_of_other_units_never_stand_in_one_table() -> None:
    page = side_by_side()
    headings = [[cell for cell in columns(page, group) if cell.startswith("epsilon")] for group in page.groups]
    assert headings[0] != headings[1]
    html = page_html(page)
    assert html.count('<table class="sortable">') == len(page.groups)
    for table, wanted in zip(html.split('<table class="sortable">')[1:], headings, strict=True):
        head = table.partition("</thead>")[0]
        assert [cell.partition("<")[0] for cell in head.split('<th scope="col">')[1:]][1 : len(wanted) + 1] == wanted


def test_every_group_tells_its_promise_and_each_fact_that_it_assumes() -> None:
    page = side_by_side()
    html = page_html(page)
    promises = read(html).text
    for group in page.groups:
        assert group.promise.protected in promises
        for head, text in three_lines(group, "listed below"):
            assert f"{head}: {text}" in promises
        for fact in facts(group):
            assert fact in promises


def test_what_may_be_compared_has_a_tab_of_its_own() -> None:
    page = replace(side_by_side(), notes=("A note of the comparison.",))
    html = page_html(page)
    told = read(html).text
    assert html.index('data-tab="Comparable"') < html.index("A note of the comparison.")
    assert "A note of the comparison." in told
    assert trust.LEGEND in told
    for remark in page.comparable:
        assert remark in told


def test_a_page_without_scores_has_tables_and_no_chart() -> None:
    page = side_by_side()
    bare = Sheet("cora", tuple(replace(row, accuracy=None) for row in page.rows))
    assert [accuracy_chart(bare, group) for group in bare.groups] == [None] * len(bare.groups)
    html = page_html(bare)
    assert '<figure class="chart"' not in html
    assert html.count('<table class="sortable">') == len(bare.groups)
