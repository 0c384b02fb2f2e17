"""``graphveil reproduce``: the list, one table on small data, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.reproduction.catalogue import EXHIBITS
from tests.cli.conftest import Terminal
from tests.graphs.published_made import facebook

PEOPLE = 24


def made(root: Path) -> None:
    """Page-Page with few pages, in two kinds that link among themselves."""
    kinds = ("company", "tvshow", "politician", "government")
    edges = [(a, b) for a in range(PEOPLE) for b in range(a) if a % 4 == b % 4]
    features = {str(page): [page % 4, 100 + page] for page in range(PEOPLE)}
    facebook(root, edges, features, [kinds[page % 4] for page in range(PEOPLE)])


def test_every_table_is_listed(type_in: Terminal) -> None:
    answer = type_in("reproduce", "list", "--json")
    assert answer.code == 0 and [one["id"] for one in answer.json["exhibits"]] == list(EXHIBITS)
    shown = type_in("reproduce", "list").out
    assert all(f"{name} " in shown for name in EXHIBITS)


@pytest.mark.slow
def test_a_table_is_run_and_taken_up_again(type_in: Terminal, tmp_path: Path) -> None:
    made(tmp_path / "data")
    words = ("reproduce", "lpgnn-table3", "--splits", 1, "--only", "facebook,multi-bit eps_x=1", "--out", "table")
    answer = type_in(*words, "--reproducible-noise", 1, "--json")
    assert answer.code == 0, answer.err
    rows = answer.json["rows"]
    assert [(row["row"], row["price"]["epsilon"]) for row in rows] == [("multi-bit eps_x=1", 1.0)]
    assert rows[0]["published"] == {"mean": 92.7, "width": 0.1} and rows[0]["splits"] == 1
    shown = type_in(*words, "--reproducible-noise", 1)
    assert shown.code == 0 and "92.7±0.1" in shown.out and "split 0" not in shown.err
    assert (tmp_path / "table" / "table.md").read_text().startswith("# lpgnn-table3")


def test_what_cannot_be_run_is_refused_with_its_reason(type_in: Terminal) -> None:
    for words, said in (
        (("lpgn-table3",), "did you mean lpgnn-table3?"),
        (("lpgnn-figure1",), "a drawing"),
        (("lpgnn-table3", "--only", "corra"), "'corra' is in no row"),
        (("lpgnn-table3", "--splits", 0), "--splits"),
    ):
        answer = type_in("reproduce", *words)
        assert (answer.code, answer.out) == (2, "") and said in answer.err and answer.err.count("\n") == 1


def test_a_table_without_its_data_leaves_nothing_behind(type_in: Terminal, tmp_path: Path) -> None:
    answer = type_in("reproduce", "solitude-table2", "--data-root", "nowhere")
    assert (answer.code, answer.out) == (2, "")
    assert not (tmp_path / "runs").exists()
