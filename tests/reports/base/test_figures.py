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


def test_numbers_stand_beside_the_bars_where_no_whisker_reaches() -> None:
    full = Interval(0.995, 0.99, 1.0, (0.99, 1.0))
    figure = figures.accuracy_figure("mlp", full, {"wide": Interval(0.5, 0.1, 0.97, (0.5,))}, None)
    assert [note.get_text() for note in figure.axes[0].texts] == ["99.5", "50.0"]
    assert all(note.xy[0] > 1 and note.xycoords == ("axes fraction", "data") for note in figure.axes[0].texts)


def test_svg_is_xml_and_the_same_each_time() -> None:
    result = made.result()

    def draw() -> str:
        return figures.svg(figures.accuracy_figure("lpgnn", result.scores.accuracy, result.scores.controls, None))

    first = draw()
    assert ElementTree.fromstring(first).tag.endswith("svg")
    assert first == draw()


def test_drawing_leaves_no_global_state() -> None:
    before = dict(matplotlib.rcParams)
    result = made.result()
    figure = figures.accuracy_figure("lpgnn", result.scores.accuracy, result.scores.controls, None)
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
