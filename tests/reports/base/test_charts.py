"""Charts as values: the same curves in the picture and in the numbers that the page's script draws."""

from __future__ import annotations

import json
import math
from xml.etree import ElementTree

from graphveil.reports.base.charts import Chart, Line, training_charts
from graphveil.reports.base.figures import BLUE, ORANGE
from tests.reports import made


def test_training_curves_skip_what_is_not_there() -> None:
    loss, estimate = training_charts(made.history(repeats=2))
    assert [line.faint for line in loss.lines] == [False, True, False, True]
    assert [line.faint for line in estimate.lines] == [False, True]
    rows = [[{"epoch": epoch, "loss": 1.0 / (epoch + 1), "val_loss": "inf"} for epoch in range(3)]]
    (plain,) = training_charts(rows)
    assert [(line.name, line.values) for line in plain.lines] == [("training", (1.0, 0.5, 1 / 3))]


def test_what_was_not_measured_in_an_epoch_is_a_gap() -> None:
    rows = [[{"epoch": 0, "loss": math.nan}, {"epoch": 1, "loss": 2.0}], [{"epoch": k, "loss": 1.0} for k in (0, 3)]]
    (chart,) = training_charts(rows)
    assert chart.places == (0, 1, 3)
    assert [line.values for line in chart.lines] == [(None, 2.0, None), (1.0, None, 1.0)]


def test_no_epochs_no_picture() -> None:
    assert training_charts([]) == ()
    assert training_charts([[], [{"epoch": 0, "loss": 1.0}]]) == ()


def test_a_chart_is_a_picture_and_strict_json() -> None:
    lines = (Line("a $x$ \x1b", BLUE, (0.01, 0.1)), Line("limit", ORANGE, (0.1, None), filled=True, dashed=True))
    chart = Chart("c", "Curve", "say <hi>", "x", "y", (0.001, 1.0), lines, log=True)
    assert ElementTree.fromstring(chart.svg()).get("aria-label") == "say <hi>"
    numbers = json.loads(json.dumps(chart.numbers(), allow_nan=False))
    assert [line["values"] for line in numbers["lines"]] == [[0.01, 0.1], [0.1, None]]
    assert numbers["lines"][0]["name"] == "a $x$"
