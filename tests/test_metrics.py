"""The source reads as it should: each figure of `python -m tests.metrics` within its bar."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.metrics import Code, Metrics, table

#: The smallest and the largest value allowed. To raise a bar is to change one line.
BARS = {
    "function_median": (1, 12),
    "function_p90": (1, 20),
    "function_p99": (1, 45),
    "function_longest": (1, 80),
    "file_longest": (1, 500),
    "args": (0.65, 1),
    "comments": (0.032, 0.06),
    "any": (0, 0.01),
    "any_inside": (0, 0.024),
    "tests_by_source": (0.45, 0.85),
    "code_tests_by_source": (0.6, 2),
    "ladders": (0, 0),
    "privates": (0, 104),
    "patches": (0, 162),
}


@pytest.fixture(scope="module")
def measured() -> Metrics:
    return Code().metrics()


@pytest.mark.parametrize("name", BARS)
def test_each_figure_stays_within_its_bar(measured: Metrics, name: str) -> None:
    low, high = BARS[name]
    figure = asdict(measured)[name]
    assert low <= figure <= high, f"{name} is {figure}: see python -m tests.metrics"


def test_every_figure_has_a_bar(measured: Metrics) -> None:
    assert set(asdict(measured)) == set(BARS)
    assert len(table(measured).splitlines()) == 1 + len(BARS)


SOURCE = """
from typing import Any

class Model:
    def fit(self, graph: Any, *, mask: dict[str, Any]) -> None:
        \"\"\"Fit.

        Args:
            graph: a graph.
        \"\"\"
        self._mask = mask  # kept

    def score(self, graph, mask):
        return self._mask

class Other:
    def train(self): ...

Both = Model | Other

def ask(model: Any) -> bool:
    return isinstance(model, Both) or isinstance(model, Model) or isinstance(model, int)
"""

TESTS = """
from graphveil.methods.made import _hidden

def test_it(monkeypatch):
    monkeypatch.setattr("a.b", 1)
    monkeypatch.setenv("A", "1")
    assert model._mask is not None and model.__dict__ and pair._replace(a=1)
"""


def test_what_is_counted(tmp_path: Path) -> None:
    """Every rule of the module's docstring, on files small enough to count by hand."""
    for path, text in (("src/graphveil/methods/made.py", SOURCE), ("tests/test_made.py", TESTS)):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(textwrap.dedent(text).lstrip())
    code = Code(tmp_path)
    metrics = code.metrics()
    lengths = sorted(function.length for function in code.functions)
    assert lengths == [1, 2, 2, 2]
    assert (metrics.args, metrics.any, metrics.any_inside) == (1 / 2, 2 / 5, 1 / 5)
    assert metrics.comments == 1 / 21
    assert metrics.tests_by_source == 6 / 21
    assert metrics.code_tests_by_source == 5 / 11
    assert [line.rsplit(":", 1)[0] for line in code.ladders()] == ["src/graphveil/methods/made.py:21"] * 2
    assert code.privates() == ["tests/test_made.py:1: import _hidden", "tests/test_made.py:6: model._mask"]
    assert code.patches() == ["tests/test_made.py:4: monkeypatch.setattr('a.b', 1)"]
    assert code.listed("args") == ["src/graphveil/methods/made.py:12: Model.score"]
