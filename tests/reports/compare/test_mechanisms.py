"""The picture and the files of a comparison of mechanisms."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from graphveil.errors import InputError
from graphveil.mechanisms.comparison import Measurement, Question, Refusal
from graphveil.reports.compare import mechanisms as mechanism_comparison
from graphveil.reports.compare.mechanism_figure import mechanism_figure

NAMES = ("multi-bit", "privunit", "analytic-gaussian")


def measurement(name: str, epsilon: float, size: float = 1.0) -> Measurement:
    error = size * (1 + NAMES.index(name)) / epsilon**2
    return Measurement(name, epsilon, 0.0, 2 * error, error, error / 100, 0.875 * size, 1e7 / size)


def rows(*epsilons: float) -> list[Measurement]:
    return [measurement(name, epsilon) for epsilon in epsilons for name in NAMES]


def texts(figure: Figure) -> dict[str, Any]:
    """Where each text lies, in dots, once the figure is drawn."""
    FigureCanvasAgg(figure).draw()
    shown = [child for axes in figure.axes for child in axes.get_children() if isinstance(child, Text)]
    shown += [label for axes in figure.axes for label in axes.get_xticklabels()]
    shown += [*figure.axes[0].get_yticklabels(), *figure.legends[0].get_texts(), *figure.texts]
    inside = [text for text in shown if text.get_text() and text.get_visible()]
    return {f"{place} {text.get_text()}": text.get_window_extent() for place, text in enumerate(inside)}


@pytest.mark.parametrize("epsilons", [(1.0,), (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0)])
def test_no_text_of_the_picture_overlaps_another_or_the_edge(epsilons: tuple[float, ...]) -> None:
    figure = mechanism_figure(Question(epsilons, 1433), rows(*epsilons))
    boxes = texts(figure)
    for (first, box), (second, other) in itertools.combinations(boxes.items(), 2):
        assert not box.overlaps(other), f"{first} and {second}"
    for name, box in boxes.items():
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, name


def test_files_are_whole_and_nothing_is_overwritten(tmp_path: Path) -> None:
    question = Question((1.0,), 64)
    results = [*rows(1.0), Refusal("laplace", 1.0, "too many coordinates")]
    answer = mechanism_comparison.write(question, results, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["comparison.json", "figure.png", "figure.svg"]
    assert json.loads((tmp_path / "out" / "comparison.json").read_text()) == answer
    assert answer["refused"] == [{"mechanism": "laplace", "epsilon": 1.0, "reason": "too many coordinates"}]
    assert (tmp_path / "out" / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "analytic-gaussian" in (tmp_path / "out" / "figure.svg").read_text()
    with pytest.raises(InputError, match="not empty"):
        mechanism_comparison.write(question, results, tmp_path / "out")
    assert mechanism_comparison.write(question, results[-1:], tmp_path / "bare")["figure"] is None
    assert [path.name for path in (tmp_path / "bare").iterdir()] == ["comparison.json"]
