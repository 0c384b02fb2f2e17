"""Files appear whole or not at all."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from graphveil.errors import InputError, ModelFileError
from graphveil.files import serial
from graphveil.files.serial import to_json
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.reports.base import predictions
from graphveil.reports.base.record import RunRecord, interval_from_dict
from tests.reports import made


def test_a_sealed_file_that_was_edited_is_noticed() -> None:
    whole = {"a": 1.0, "b": {"c": [math.inf, "x"]}}
    content = json.loads(serial.seal(whole))
    assert serial.unseal(content, Path("f")) == {"a": 1.0, "b": {"c": ["inf", "x"]}}
    bare = {name: value for name, value in content.items() if name != "sha256"}
    for changed in ({**content, "a": 2.0}, {**content, "new": 1}, bare):
        with pytest.raises(ModelFileError, match="was changed since it was written"):
            serial.unseal(changed, Path("f"))


# ---- the record of a run as a value and as JSON ----


def test_a_record_survives_json() -> None:
    record = made.record(
        guarantee=made.guarantee(epsilon_y=math.inf), settings={"epsilon_y": math.inf, "model": "sage"}
    )
    read = RunRecord.from_dict(json.loads(to_json(record.to_dict())), history=record.history)
    assert read.to_dict() == record.to_dict()
    assert read.settings["epsilon_y"] == math.inf
    assert read.privacy.guarantee == record.privacy.guarantee
    rivals = made.record(**made.beside_rivals(epsilon_relationship=math.inf))
    again = RunRecord.from_dict(json.loads(to_json(rivals.to_dict())), history=rivals.history)
    assert again.to_dict() == rivals.to_dict() and again.privacy.epsilon_relationship == math.inf
    bare = made.record(controls={}, best_control=None, lift=None, ceiling=None, history=())
    assert RunRecord.from_dict(json.loads(to_json(bare.to_dict()))) == bare


@pytest.mark.parametrize(
    "content", [None, {}, {"mean": 1, "low": 1, "high": 1}, {"mean": "x", "low": 1, "high": 1, "runs": []}, [1]]
)
def test_what_is_no_interval_is_refused(content: object) -> None:
    with pytest.raises(InputError, match="no interval"):
        interval_from_dict(content)  # type: ignore[arg-type]


@pytest.mark.parametrize(("key", "value"), [("controls", []), ("seconds", "x"), ("guarantee", {}), ("ledger", 1)])
def test_what_is_no_record_is_refused(key: str, value: object) -> None:
    content = made.record().to_dict()
    with pytest.raises(InputError):
        RunRecord.from_dict({**content, key: value})


# ---- predictions as a table and as a file ----


PROBABILITIES = torch.tensor([[0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])
# A graph is asked for its ids only, and a mapping answers as a graph does.
WITH_IDS: Any = {"ids": ["a", "b", "c"]}
WITHOUT_IDS: Any = {}
CLASSES = ("no, never", 'yes "always"')


def test_table_uses_the_users_ids_and_class_names() -> None:
    table = predictions.tabulate(PROBABILITIES, WITH_IDS, CLASSES)
    assert table["id"].to_list() == ["a", "b", "c"]
    assert table["prediction"].to_list() == [CLASSES[1], CLASSES[0], CLASSES[1]]
    assert table["probability"].to_list() == pytest.approx([0.8, 0.7, 0.6])
    assert table.columns[3:] == ["p(no, never)", 'p(yes "always")']
    assert predictions.tabulate(PROBABILITIES, WITHOUT_IDS, CLASSES)["id"].to_list() == [0, 1, 2]


def test_files_read_back_and_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    table = predictions.tabulate(PROBABILITIES, WITH_IDS, CLASSES)
    for name in ("p.csv", "p.parquet", "q.CSV"):
        predictions.write(table, tmp_path / name)
    assert pl.read_parquet(tmp_path / "p.parquet").equals(table)
    with (tmp_path / "p.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == table.columns and [row[1] for row in rows] == table["prediction"].to_list()
    assert (tmp_path / "p.csv").read_text() == (tmp_path / "q.CSV").read_text()
    with pytest.raises(pl.exceptions.PolarsError):
        predictions.write(pl.DataFrame({"a": [[1, 2]]}), tmp_path / "broken.csv")  # CSV has no lists
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    ("privacy", "links", "says"),
    [
        (
            (2.0, 1.0),
            (5.0, "both"),
            "one feature report at epsilon 2 and one neighbour list at epsilon 5 a bit, 10 a rel",
        ),
        ((2.0, 1.0), (math.inf, None), "one feature report at epsilon 2, and connections as they are, NOT protected"),
        ((math.inf, 1.0), (math.inf, None), "features and connections are sent as they are: NOT protected"),
        ((None, 1.0), (5.0, None), "knows only the people who reported"),
    ],
)
def test_the_cost_of_predicting_counts_neighbour_lists(privacy: Any, links: Any, says: str) -> None:
    assert says in predictions.cost_sentence(LocalPrivacy(*privacy), LinkPrivacy(*links))
    assert "one feature report at epsilon 1.5" in predictions.cost_sentence(LocalPrivacy(1.5, 1.0))
    assert "costs no privacy" in predictions.cost_sentence(LocalPrivacy(None, 1.0))
    alone = predictions.cost_sentence(LocalPrivacy(*privacy), LinkPrivacy(*links), newcomers=False)
    assert alone == "predicting costs nothing more; this model knows only the people who reported for the run"
