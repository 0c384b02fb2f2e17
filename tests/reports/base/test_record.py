"""The record of a run as a value and as JSON."""

from __future__ import annotations

import json
import math

import pytest

from graphveil.errors import InputError
from graphveil.reports.base.files import to_json
from graphveil.reports.base.record import RunRecord, interval_from_dict
from tests.reports import made


def test_a_record_survives_json() -> None:
    record = made.record(
        guarantee=made.guarantee(epsilon_y=math.inf), settings={"epsilon_y": math.inf, "model": "sage"}
    )
    read = RunRecord.from_dict(json.loads(to_json(record.to_dict())), history=record.history)
    assert read.to_dict() == record.to_dict()
    assert read.settings["epsilon_y"] == math.inf
    assert read.privacy.guarantee == record.privacy.guarantee


def test_a_record_without_controls_survives_json() -> None:
    record = made.record(controls={}, best_control=None, lift=None, ceiling=None, history=())
    assert RunRecord.from_dict(json.loads(to_json(record.to_dict()))) == record


def test_the_folder_is_part_of_the_record() -> None:
    assert made.record().run is None
    assert made.record().in_folder("runs/x").to_dict()["run"] == "runs/x"


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
