"""Predictions as a table and as a file."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import RandomizedResponse
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.reports.base import predictions

PROBABILITIES = torch.tensor([[0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])
# A graph is asked for its ids only, and a mapping answers as a graph does.
WITH_IDS: Any = {"ids": ["a", "b", "c"]}
WITHOUT_IDS: Any = {}
CLASSES = ("no, never", 'yes "always"')
GUARANTEE = RandomizedResponse(epsilon=1.0, classes=2).guarantee


def test_table_uses_the_users_ids_and_class_names() -> None:
    table = predictions.tabulate(PROBABILITIES, WITH_IDS, CLASSES)
    assert table["id"].to_list() == ["a", "b", "c"]
    assert table["prediction"].to_list() == [CLASSES[1], CLASSES[0], CLASSES[1]]
    assert table["probability"].to_list() == pytest.approx([0.8, 0.7, 0.6])
    assert table.columns[3:] == ["p(no, never)", 'p(yes "always")']


def test_without_ids_rows_are_numbered() -> None:
    assert predictions.tabulate(PROBABILITIES, WITHOUT_IDS, CLASSES)["id"].to_list() == [0, 1, 2]


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.CSV"])
def test_files_read_back(tmp_path: Path, name: str) -> None:
    table = predictions.tabulate(PROBABILITIES, WITH_IDS, CLASSES)
    predictions.write(table, tmp_path / name)
    if name.endswith("parquet"):
        assert pl.read_parquet(tmp_path / name).equals(table)
    else:
        with (tmp_path / name).open(newline="") as file:
            head, *rows = csv.reader(file)
        assert head == table.columns
        assert [row[1] for row in rows] == table["prediction"].to_list()
    assert len(list(tmp_path.iterdir())) == 1


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": [[1, 2]]})  # CSV has no lists
    with pytest.raises(pl.exceptions.PolarsError):
        predictions.write(table, tmp_path / "p.csv")
    assert list(tmp_path.iterdir()) == []


def test_summary_counts_and_gives_rows_only_without_a_file() -> None:
    table = predictions.tabulate(PROBABILITIES, WITHOUT_IDS, CLASSES)
    shown = predictions.summary(table, run="r", data="d", out=None, note="n", guarantee=GUARANTEE)
    assert shown["predicted"] == {CLASSES[1]: 2, CLASSES[0]: 1}
    assert len(shown["predictions"]) == 3
    filed = predictions.summary(table, run="r", data="d", out=Path("p.csv"), note="n", guarantee=GUARANTEE)
    assert (filed["out"], "predictions" in filed) == ("p.csv", False)


@pytest.mark.parametrize(
    ("epsilon_x", "says"),
    [(1.5, "one feature report at epsilon 1.5"), (math.inf, "NOT protected"), (None, "costs no privacy")],
)
def test_the_cost_of_predicting_is_said(epsilon_x: float | None, says: str) -> None:
    assert says in predictions.cost(LocalPrivacy(epsilon_x, 1.0))


@pytest.mark.parametrize(
    ("privacy", "links", "says"),
    [
        (
            (2.0, 1.0),
            (5.0, "both"),
            "one feature report at epsilon 2 and one neighbour list at epsilon 5 a bit, 10 a rel",
        ),
        ((2.0, 1.0), (5.0, "lower"), "one neighbour list at epsilon 5 a bit; the run keeps the answer"),
        (
            (math.inf, 1.0),
            (5.0, None),
            "send one neighbour list at epsilon 5 a bit, and features as they are, NOT prot",
        ),
        ((2.0, 1.0), (math.inf, None), "one feature report at epsilon 2, and connections as they are, NOT protected"),
        ((math.inf, 1.0), (math.inf, None), "features and connections are sent as they are: NOT protected"),
        ((None, 1.0), (5.0, None), "knows only the people who reported"),
    ],
)
def test_the_cost_of_predicting_counts_neighbour_lists(privacy: Any, links: Any, says: str) -> None:
    assert says in predictions.cost(LocalPrivacy(*privacy), LinkPrivacy(*links))
    alone = predictions.cost(LocalPrivacy(*privacy), LinkPrivacy(*links), others=False)
    assert alone == "predicting costs nothing more; this model knows only the people who reported for the run"


def test_bad_files_are_refused(tmp_path: Path) -> None:
    predictions.check_file(None)
    predictions.check_file(tmp_path / "p.csv")
    (tmp_path / "p.csv").write_text("")
    for path, says in (
        (tmp_path / "p.csv", "exists"),
        (tmp_path / "p.xlsx", r"\.csv or \.parquet"),
        (tmp_path / "no" / "p.csv", "is not a folder"),
    ):
        with pytest.raises(InputError, match=says):
            predictions.check_file(path)
