"""Figures: what is drawn, and that drawing leaves nothing behind."""

from __future__ import annotations

import math
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib

from graphveil.methods.runs.intervals import Interval
from graphveil.reports.base import figures
from tests.reports import made


def test_accuracy_bars_are_the_means_and_whiskers_the_intervals() -> None:
    result = made.result()
    figure = figures.accuracy_figure("lpgnn", result.scores.accuracy, result.scores.controls, result.scores.ceiling)
    (axes,) = figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    ordered = sorted(result.scores.controls, key=lambda name: -result.scores.controls[name].mean)
    assert names == ["lpgnn", *ordered, "not private (ceiling)"]
    bars = [patch.get_width() for patch in axes.patches]
    assert bars[0] == 100 * result.scores.accuracy.mean
    assert bars[-1] == 100 * (result.scores.ceiling or result.scores.accuracy).mean
    assert len(axes.containers) == 1 + len(names)
    assert axes.get_xlim() == (0.0, 100.0)


def test_a_bar_near_the_end_keeps_its_number_inside() -> None:
    full = Interval(0.995, 0.99, 1.0, (0.99, 1.0))
    figure = figures.accuracy_figure("mlp", full, {}, None)
    (note,) = figure.axes[0].texts
    assert note.get_ha() == "right"


def test_training_curves_skip_what_is_not_there() -> None:
    figure = figures.training_figure(made.history(repeats=2))
    assert figure is not None
    loss, estimate = figure.axes
    assert len(loss.lines) == 4
    assert len(estimate.lines) == 2
    rows = [[{"epoch": epoch, "loss": 1.0 / (epoch + 1), "val_loss": "inf"} for epoch in range(3)]]
    plain = figures.training_figure(rows)
    assert plain is not None
    assert len(plain.axes) == 1


def test_no_epochs_no_picture() -> None:
    assert figures.training_figure([]) is None
    assert figures.training_figure([[], [{"epoch": 0, "loss": 1.0}]]) is None


def test_svg_is_xml_and_the_same_each_time() -> None:
    result = made.result()

    def draw() -> str:
        return figures.svg(figures.accuracy_figure("lpgnn", result.scores.accuracy, result.scores.controls, None))

    first = draw()
    assert ElementTree.fromstring(first).tag.endswith("svg")
    assert first == draw()


def test_drawing_leaves_no_global_state() -> None:
    before = dict(matplotlib.rcParams)
    figure = figures.training_figure(made.history(repeats=1))
    assert figure is not None
    figures.inline_svg(figure, name="a", alt='say "<hi>"')
    figures.png(figure)
    assert dict(matplotlib.rcParams) == before


def test_pyplot_is_never_loaded() -> None:
    code = (
        "import sys; from graphveil.reports.base import figures as f; from graphveil.methods import Interval as I;"
        "f.png(f.accuracy_figure('a', I(0.5, 0.4, 0.6, (0.5,)), {}, None));"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_inline_svg_escapes_its_alt_text() -> None:
    figure = figures.accuracy_figure("a<b>&c", made.interval(0.5), {"x": made.interval(math.pi / 10)}, None)
    text = figures.inline_svg(figure, name="a", alt='say "<hi>"')
    element = ElementTree.fromstring(text)
    assert element.get("aria-label") == 'say "<hi>"'
    assert "a&lt;b&gt;&amp;c" in text


def test_names_in_other_letters_do_not_warn() -> None:
    assert figures.png(figures.bar_figure([("图\x1b$a^", made.interval(0.5), figures.BLUE)]))
