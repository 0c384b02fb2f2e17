"""Comparisons without running anything: the grid, the files, the rows, the table and the figure."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphveil.errors import InputError, ModelFileError
from graphveil.files.outputs import Output
from graphveil.files.serial import seal
from graphveil.graphs import social_graph
from graphveil.reports.base.record import RunRecord
from graphveil.reports.compare import table
from graphveil.reports.compare.cells import (
    Cell,
    Comparison,
    default_folder,
    open_folder,
    require_same_graph,
    run_missing,
)
from graphveil.reports.compare.folder import figure
from graphveil.reports.compare.rows import Row, tabulate
from graphveil.reports.compare.sheet import Sheet, row_label, sheet_of
from tests.reports import made


def compared(**changes: Any) -> Comparison:
    """Two private methods and one that is not, over two epsilons and two seeds."""
    whole = Comparison(
        data="cora",
        methods={"lpgnn": {"epochs": 5}, "label-propagation": {}, "sage": {"epochs": 5}},
        axes={"epsilon_x": (1.0,), "epsilon_y": (1.0, math.inf)},
        takes={"lpgnn": ["epsilon_x", "epsilon_y"], "label-propagation": ["epsilon_y"], "sage": []},
        seeds=(0, 1),
        options={"controls": True},
    )
    return replace(whole, **changes)


def record_of(cell: Cell, place: str = "") -> RunRecord:
    """A made record whose accuracy tells its cell."""
    accuracy = made.interval(0.6 + 0.01 * cell.seed, runs=1, spread=0.0)
    return made.record(method=cell.method, accuracy=accuracy, seconds=2.0, runs=1)


def test_every_method_takes_part_in_its_own_axes() -> None:
    cells = list(compared().cells())
    assert len(cells) == 2 * (2 + 2 + 1)
    assert cells[0] == Cell("lpgnn", {"epsilon_x": 1.0, "epsilon_y": 1.0, "epochs": 5}, 0)
    assert {tuple(cell.settings) for cell in cells if cell.method == "label-propagation"} == {("epsilon_y",)}
    assert [cell.seed for cell in cells if cell.method == "sage"] == [0, 1]
    near = list(compared(axes={"epsilon_x": (0.1, 0.1 + 1e-12), "epsilon_y": (1.0, math.inf)}).cells())
    assert len({cell.file for cell in near}) == len(near)
    assert "sage__epochs-5__seed-1.json" in {cell.file for cell in near}
    assert default_folder("/home/x/my data") == Path("runs/compare-my-data")
    assert Cell("a/../b", {"x y": "<|>"}, 0).file == "a_.._b__x_y-___" + "__seed-0.json"


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (lambda cell: cell["result"]["guarantee"].update(epsilon=0.001, parts=[]), "claims more than"),
        (lambda cell: cell["result"]["guarantee"].update(epsilon=0.001), "claims more than"),
        (lambda cell: cell["result"]["ledger"].update(spends=[]), "claims more than"),
        (lambda cell: cell.update(cell={}), "belongs to another cell; delete it to run the cell again"),
        (lambda cell: cell.update(result=[]), "belongs to another cell; delete it to run the cell again"),
    ],
)
def test_a_cell_that_promises_more_than_was_paid_for_or_is_another_is_not_tabulated(
    tmp_path: Path, forge: Any, message: str
) -> None:
    """Also where its hash was made anew."""
    folder, comparison = tmp_path / "cmp", compared()
    output = Output(folder)
    open_folder(comparison, output)
    run_missing(comparison, output, record_of)
    file = folder / "cells" / next(comparison.cells()).file
    content = json.loads(file.read_text())
    forge(content)
    file.write_text(json.dumps(content))
    promises = message == "claims more than"
    error = ModelFileError if promises else InputError
    with pytest.raises(error, match="was changed" if promises else message):
        run_missing(comparison, output, record_of)
    del content["sha256"]
    file.write_text(seal(content))
    with pytest.raises(error, match=message):
        run_missing(comparison, output, record_of)


def test_only_missing_cells_run(tmp_path: Path) -> None:
    folder = tmp_path / "cmp"
    open_folder(compared(), output := Output(folder))
    places: list[str] = []

    def run(cell: Cell, place: str) -> RunRecord:
        places.append(place)
        return record_of(cell)

    first = run_missing(compared(), output, run)
    assert places[0] == "cell 1 of 10, lpgnn"
    (folder / "cells" / Cell("sage", {"epochs": 5}, 1).file).unlink()
    open_folder(compared(), output := Output(folder))
    second = run_missing(compared(), output, run)
    assert places[10:] == ["cell 10 of 10, sage"]
    assert [record.scores.accuracy for record in first] == [record.scores.accuracy for record in second]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"data": "pubmed"}, "data"),
        ({"seeds": (0,)}, "seeds"),
        ({"options": {"controls": False}, "data": "x"}, "data, options"),
    ],
)
def test_a_folder_with_other_settings_is_refused(tmp_path: Path, change: dict[str, Any], names: str) -> None:
    open_folder(compared(), Output(tmp_path / "cmp"))
    with pytest.raises(InputError, match=f"holds a comparison with other {names};"):
        open_folder(compared(**change), Output(tmp_path / "cmp"))
    (tmp_path / "cmp" / "comparison.json").write_text("[1]")
    with pytest.raises(InputError, match=r"comparison\.json: damaged"):
        open_folder(compared(), Output(tmp_path / "cmp"))


def test_cells_of_two_states_of_a_graph_are_not_compared(tmp_path: Path) -> None:
    """Data were mended between two starts of one command: their mean would be over both, without a sign."""
    graph, text = social_graph(40, average_degree=4, dimension=30, classes=2, seed=1), ""
    for _ in range(2):
        open_folder(compared(), output := Output(tmp_path / "cmp"))
        require_same_graph(output, graph)
        text = text or (tmp_path / "cmp" / "graph").read_text()
    assert (tmp_path / "cmp" / "graph").read_text() == text and (tmp_path / "cmp").stat().st_mode & 0o077 == 0
    graph.y[3] = 1 - graph.y[3]
    with pytest.raises(InputError, match="the graph has changed since it began"):
        require_same_graph(output, graph)
    require_same_graph(Output(tmp_path / "cmp2"), graph)
    assert (tmp_path / "cmp2" / "graph").read_text()[:64] != text[:64]  # a guess of the graph cannot be tried on both


def rows_of(whole: Comparison, **changes: Any) -> list[Row]:
    return tabulate(whole, [made.changed(record_of(cell), **changes) for cell in whole.cells()])


def page_of(whole: Comparison, **changes: Any) -> Sheet:
    return sheet_of(whole, rows_of(whole, **changes))


def test_lift_is_paired_with_the_best_control_over_the_seeds() -> None:
    rows = rows_of(compared())
    assert [row.method for row in rows] == ["lpgnn", "lpgnn", "label-propagation", "label-propagation", "sage"]
    (row, second, *_) = rows
    assert row.accuracy is not None and row.accuracy.runs == pytest.approx((0.60, 0.61))
    assert row.accuracy.mean == pytest.approx(0.605) and row.accuracy.low < row.accuracy.mean < row.accuracy.high
    assert (row.seconds, second.axes) == (4.0, {"epsilon_x": 1.0, "epsilon_y": math.inf})
    controls = record_of(Cell("lpgnn", {}, 0)).scores.controls
    assert row.best_control == max(controls, key=lambda name: controls[name].mean)
    assert row.lift is not None
    assert row.lift.mean == pytest.approx(0.605 - controls[row.best_control].mean)
    assert row.control is not None
    assert row.control.mean == pytest.approx(controls[row.best_control].mean)
    # One seed keeps the interval of its run.
    (entry, *_) = rows_of(compared(seeds=(0,)))
    assert entry.accuracy == record_of(Cell("lpgnn", {}, 0)).scores.accuracy
    assert entry.lift == made.result(runs=1).scores.lift
    page = page_of(compared(options={"controls": False}), controls={}, best_control=None, lift=None)
    assert all(row.lift is None and row.best_control is None for row in page.rows)
    assert "lift, points" not in table.markdown_text(page)


def test_tables_have_one_line_for_each_row_and_csv_full_precision() -> None:
    page = page_of(compared(data="a|b <i>"))
    text = table.markdown_text(page)
    assert text.startswith("# a\\|b \\<i\\>: ") and "## What may be compared" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 5 and len({line.count("|") for line in lines}) == 1
    read = list(csv.DictReader(io.StringIO(table.csv_text(page))))
    assert [float(line["accuracy_mean"]) for line in read] == [row.accuracy.mean for row in page.rows if row.accuracy]
    assert (read[1]["epsilon_y"], read[-1]["epsilon_y"]) == ("inf", "")
    assert read[0]["epsilons"] == "one user's whole feature vector: 1.0; one user's label: 2.0"
    # Rows that epsilons do not tell apart name their settings.
    (group,) = page.groups
    assert row_label(group, page.rows[1]) == "lpgnn (epsilon_x 1, epsilon_y inf)"
    assert row_label(group, page.rows[4]) == "sage"
    void = page_of(compared(), guarantee=made.guarantee(void="seed 3"))
    assert "protect nobody: seed 3" in table.markdown_text(void) and table.markdown_text(void).count("(VOID)") == 5
    assert all(line.endswith("seed 3") for line in table.csv_text(void).splitlines()[1:])
    assert json.dumps(table.answer(void, Path("x"))["rows"]).count("seed 3") == 5
    drawn = figure(void)
    assert drawn is not None and "VOID" in drawn.get_suptitle()
