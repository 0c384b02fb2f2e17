"""The picture and the files of a comparison of mechanisms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphveil.errors import InputError
from graphveil.mechanisms.comparison import Measurement, Question, Refusal
from graphveil.reports.compare import mechanisms as mechanism_comparison
from graphveil.reports.compare.mechanisms import mechanism_figure

NAMES = ("multi-bit", "privunit", "analytic-gaussian")


def measurement(name: str, epsilon: float, size: float = 1.0) -> Measurement:
    error = size * (1 + NAMES.index(name)) / epsilon**2
    return Measurement(name, epsilon, 0.0, 2 * error, error, error / 100, 0.875 * size, 1e7 / size)


def rows(*epsilons: float) -> list[Measurement]:
    return [measurement(name, epsilon) for epsilon in epsilons for name in NAMES]


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


def test_each_mechanism_has_a_mark_for_each_epsilon_in_each_panel() -> None:
    results = rows(0.5, 2.0)[:-1]  # the last one refused epsilon 2
    figure = mechanism_figure(Question((0.5, 2.0), 64), results)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == list(NAMES)
    for axes in figure.axes[1:]:
        assert [len(np.atleast_1d(line.get_xdata())) for line in axes.lines] == [3, 2]
    worst = [np.atleast_1d(line.get_xdata()) for line in figure.axes[0].lines if line.get_marker() == "|"]
    assert sorted(float(places[0]) for places in worst) == sorted(row.worst_mse for row in results)


@pytest.mark.parametrize(
    ("epsilons", "drawn"), [((0.5, 2.0), (0.5, 2)), (tuple(map(float, range(1, 10))), (1, 3, 5, 7, 9))]
)
def test_of_many_epsilons_five_are_drawn_with_both_ends(epsilons: tuple[float, ...], drawn: tuple[float, ...]) -> None:
    labels = mechanism_figure(Question(epsilons, 64), rows(*epsilons)).legends[0].get_texts()[: len(drawn)]
    assert [text.get_text() for text in labels] == [f"epsilon {epsilon:g}" for epsilon in drawn]
