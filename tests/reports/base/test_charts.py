"""Charts as values: the same curves in the picture and in the numbers that the page's script draws."""

from __future__ import annotations

import json
import math
from xml.etree import ElementTree

import pytest

from graphveil.reports.base.charts import Chart, Line, overlaid_charts, training_charts
from graphveil.reports.base.figures import BLUE, ORANGE
from tests.reports import made


def test_training_curves_skip_what_is_not_there() -> None:
    loss, estimate = training_charts(made.history(repeats=2), noisy=True)
    assert [line.faint for line in loss.lines] == [False, True, False, True]
    assert [line.faint for line in estimate.lines] == [False, True]
    rows = [[{"epoch": epoch, "loss": 1.0 / (epoch + 1), "val_loss": "inf"} for epoch in range(3)]]
    (plain,) = training_charts(rows, noisy=True)
    assert [(line.name, line.values) for line in plain.lines] == [("training", (1.0, 0.5, 1 / 3))]


def test_what_was_not_measured_in_an_epoch_is_a_gap() -> None:
    rows = [[{"epoch": 0, "loss": math.nan}, {"epoch": 1, "loss": 2.0}], [{"epoch": k, "loss": 1.0} for k in (0, 3)]]
    (chart,) = training_charts(rows, noisy=True)
    assert chart.places == (0, 1, 3)
    assert [line.values for line in chart.lines] == [(None, 2.0, None), (1.0, None, 1.0)]


def test_runs_share_charts_and_a_run_keeps_its_colour() -> None:
    short, long = made.history(repeats=1, epochs=3), made.history(repeats=2, epochs=5)
    loss, estimate = overlaid_charts([("a", short, True), ("b" * 40, long, False)])
    assert loss.places == estimate.places == tuple(range(5))
    b = "bbbbbbbbbb...bbbbbbbbbb"
    assert [(line.name, line.colour, line.dashed) for line in loss.lines if not line.faint] == [
        ("a: training", BLUE, False),
        ("a: validation", BLUE, True),
        (f"{b}: training", ORANGE, False),
        (f"{b}: validation", ORANGE, True),
    ]
    assert [line.name for line in estimate.lines if not line.faint] == ["a: estimated from noisy labels", b]
    assert loss.lines[0].values[3:] == (None, None)
    assert None not in loss.lines[-1].values
    assert overlaid_charts([("a", [], True), ("b", [], True)]) == ()


def test_no_epochs_no_picture() -> None:
    assert training_charts([], noisy=True) == ()
    assert training_charts([[], [{"epoch": 0, "loss": 1.0}]], noisy=True) == ()


def test_a_chart_is_a_picture_and_strict_json() -> None:
    lines = (Line("a $x$ \x1b", BLUE, (0.01, 0.1)), Line("limit", ORANGE, (0.1, None), filled=True, dashed=True))
    chart = Chart("c", "Curve", "say <hi>", "x", "y", (0.001, 1.0), lines, log=True)
    drawn = ElementTree.fromstring(chart.svg())
    assert drawn.get("aria-label") == "say <hi>"
    assert {"0.01", "1"} <= {text.strip() for text in drawn.itertext()} and "mathdefault" not in chart.svg()
    numbers = json.loads(json.dumps(chart.numbers(), allow_nan=False))
    assert [line["values"] for line in numbers["lines"]] == [[0.01, 0.1], [0.1, None]]
    assert numbers["lines"][0]["name"] == "a $x$"


@pytest.mark.parametrize("noisy", [True, False])
def test_a_curve_of_accuracy_stays_in_its_range_and_is_called_what_it_is(noisy: bool) -> None:
    """An unbiased estimate from noisy labels may be 107% or -3%; the rows keep it, the picture has shares."""
    found = (-0.03, 0.5, 1.07)
    rows = [[{"epoch": epoch, "loss": 1.0, "val_estimate": value} for epoch, value in enumerate(found)]]
    chart = training_charts(rows, noisy=noisy)[-1]
    assert chart.lines[0].values == (0.0, 50.0, 100.0)
    assert chart.lines[0].name == ("validation, estimated from noisy labels" if noisy else "validation")
    assert ("noisy" in chart.alt) == noisy


def test_long_names_leave_room_for_the_curve_and_stay_whole_in_the_numbers() -> None:
    name = "begin-" + "x" * 90 + "-end"
    chart = Chart("c", "Curve", "alt", "x", "y", (0.0, 1.0), (Line(name, BLUE, (0.0, 1.0)),))
    drawn = "".join(ElementTree.fromstring(chart.svg()).itertext())
    assert name not in drawn
    assert "begin-" in drawn and "-end" in drawn
    assert chart.numbers()["lines"][0]["name"] == name


def test_a_run_without_epochs_leaves_the_chart_to_the_other() -> None:
    (loss, estimate) = overlaid_charts([("bare", [], False), ("other", made.history(repeats=1), False)])
    assert [line.name for line in loss.lines] == ["other: training", "other: validation"]
    assert [line.name for line in estimate.lines] == ["other"]
    # The second run keeps the second colour: it is that of its other charts.
    assert {line.colour for line in (*loss.lines, *estimate.lines)} == {ORANGE}
