"""Two runs side by side: what differs, and prices that are never put where they do not compare."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphveil.errors import ModelFileError
from graphveil.reports.runs import folder as run_folder
from graphveil.reports.runs.against import against_html, write_against
from tests.reports import made
from tests.reports.pages import HOSTILE, read

OPTIONS = {"seed": 0, "repeats": 5, "device": "cpu"}


def page_of(*changes: dict[str, Any]) -> str:
    one, other = (made.record(**change) for change in changes)
    return against_html(("mine", one, {}), ("theirs", other, made.attacks()))


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


def test_one_unit_under_two_relations_has_two_columns() -> None:
    other = replace(made.guarantee(), parts=tuple(replace(p, relation="add/remove") for p in made.guarantee().parts))
    page = page_of({}, {"guarantee": other})
    head, mine, theirs = table(page.split("<h2>Guarantees side by side")[1], "run")
    assert [(unit.split(", ")[0], *pair) for unit, *pair in zip(head, mine, theirs, strict=True)][1:] == [
        ("one user&#39;s whole feature vector (replace", "1", "-"),
        ("one user&#39;s label (replace", "2", "-"),
        ("one user&#39;s whole feature vector and one user&#39;s label", "3", "3"),
        ("one user&#39;s whole feature vector (add/remove", "-", "1"),
        ("one user&#39;s label (add/remove", "-", "2"),
    ]


def test_settings_that_differ_are_listed_and_prices_are_not_among_them() -> None:
    settings = {"epsilon_x": 9.0, "epsilon_y": 2.0, "model": "gcn", "epochs": 60, "x_hops": 16}
    rows = table(page_of({}, {"settings": settings}), "setting")
    assert rows == [["setting", "mine", "theirs"], ["model", "sage", "gcn"]]
    assert "None, but for budgets" in page_of({}, {})


def test_what_does_not_compare_is_said() -> None:
    assert "Measured on the same test nodes: mine minus theirs is 0.0 points." in page_of({}, {})
    assert "different data" in page_of({}, {"data": "pubmed"})
    assert "different test nodes" in page_of({}, {"options": {"seed": 1, "repeats": 5}})
    assert "void: 3" in page_of({"void": "known noise"}, {})
    assert "runs so marked protect nobody:</strong> mine (known noise)." in page_of({"void": "known noise"}, {})
    assert 'role="alert"' not in page_of({}, {})
    rows = table(page_of({}, {}), "attack")
    assert rows[1][1:] == ["not run", "0.55 (0.53 to 0.57)"]


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


def test_hostile_names_stay_text() -> None:
    page = page_of({"data": HOSTILE}, {"settings": {HOSTILE: HOSTILE}})
    assert "\x1b" not in page
    assert "<script>alert" not in page


def test_curves_share_their_charts_and_runs_without_any_say_so() -> None:
    page = page_of({}, {})
    training = page.split('data-tab="Training"')[1].split("</section>")[0]
    assert training.count('<figure class="chart"') == 2
    for name in ("mine: training", "theirs: training", "mine: validation", "theirs: validation"):
        assert name in training
    bare = replace(made.record(), history=())
    silent = against_html(("mine", bare, {}), ("theirs", bare, {}))
    assert "Neither was trained over epochs." in silent
    assert '<figure class="chart"' not in silent
