"""Charts as values: the same curves in the picture and in the numbers that the page's script draws."""

from __future__ import annotations

import json
import math
from xml.etree import ElementTree

import pytest

from graphveil.reports.base.charts import Chart, Line, training_charts
from graphveil.reports.base.figures import BLUE, ORANGE
from tests.reports import made


def test_what_was_not_measured_in_an_epoch_is_a_gap() -> None:
    rows = [[{"epoch": 0, "loss": math.nan}, {"epoch": 1, "loss": 2.0}], [{"epoch": k, "loss": 1.0} for k in (0, 3)]]
    (chart,) = training_charts(rows, noisy=True)
    assert chart.places == (0, 1, 3)
    assert [line.values for line in chart.lines] == [(None, 2.0, None), (1.0, None, 1.0)]
    rows = [[{"epoch": epoch, "loss": 1.0 / (epoch + 1), "val_loss": "inf"} for epoch in range(3)]]
    (plain,) = training_charts(rows, noisy=True)
    assert [(line.name, line.values) for line in plain.lines] == [("training", (1.0, 0.5, 1 / 3))]
    loss, estimate = training_charts(made.history(repeats=2), noisy=True)
    assert [[line.faint for line in chart.lines] for chart in (loss, estimate)] == [[False, True] * 2, [False, True]]
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
    estimates = (-0.03, 0.5, 1.07)
    rows = [[{"epoch": epoch, "loss": 1.0, "val_estimate": value} for epoch, value in enumerate(estimates)]]
    chart = training_charts(rows, noisy=noisy)[-1]
    assert chart.lines[0].values == (0.0, 50.0, 100.0)
    assert chart.lines[0].name == ("validation, estimated from noisy labels" if noisy else "validation")
    assert ("noisy" in chart.alt) == noisy
