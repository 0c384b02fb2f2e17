"""What a finished run leaves is read back as it was, and anything else is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from graphveil.files.serial import json_safe
from graphveil.methods.runs.intervals import Interval
from graphveil.reproduction.exhibit import Cost, Price, Run

RUNS = (
    Run(Interval(0.5, 0.4, 0.6, (0.5,)), Price("one person", 2.0, 1e-5), 1.5),
    Run(Interval(0.25, 0.0, 1.0, (0.25,)), Price("one bit", 7.0, 0.0, 14.0), 0.0),
    Run(Interval(1.0, 0.9, 1.0, (1.0,)), Price("one row", math.inf, 0.0), 3.0),
    Run(Interval(0.5, 0.4, 0.6, (0.5,)), Price("one edge", math.inf, 0.0, math.inf), 3.0),
    Run(Interval(0.5, 0.4, 0.6, (0.5,)), Price("one row", math.inf, 0.0), 3.0, Cost(150, 2.5, 10**9)),
)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.price.unit)
def test_a_run_is_read_from_its_file_as_it_was_written(run: Run) -> None:
    """Infinite prices too, which JSON has no number for."""
    text = json.dumps(json_safe(run.to_dict()), allow_nan=False)
    assert Run.from_dict(json.loads(text)) == run


def damaged(**changes: Any) -> dict[str, Any]:
    """A run with some of its content replaced, or taken out for None."""
    content = RUNS[0].to_dict()
    for name, value in changes.items():
        place = content if name in content else content["price"]
        if value is None:
            del place[name]
        else:
            place[name] = value
    return content


@pytest.mark.parametrize(
    "changes",
    [
        {"accuracy": None},
        {"accuracy": {"mean": 0.5}},
        {"accuracy": "0.5"},
        {"price": None},
        {"price": [1]},
        {"seconds": "long"},
        {"epsilon": "much"},
        {"epsilon": None},
        {"relationship": "x"},
    ],
    ids=str,
)
def test_what_is_no_run_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Run.from_dict(damaged(**changes))
