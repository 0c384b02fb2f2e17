"""What an attack leaves: curves between guessing and everything, reconstructed images, lines of a screen, files."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from graphveil.reports.attacks.curves import attack_charts
from graphveil.reports.attacks.files import kept
from graphveil.reports.attacks.run import keep
from tests.reports import made


def test_curves_of_a_page_go_through_the_corners_and_draw_the_tightest_limit() -> None:
    score = replace(made.found(0.5, 1.0, 0.03), roc=((0.0, 0.0), (0.0, 0.25), (0.5, 0.75), (1.0, 1.0)))
    plain = replace(score, limit=None, epsilon=math.inf)
    whole, few = attack_charts("a", {"gap": score, "loose": replace(score, epsilon=4.0), "plain": plain})
    values = dict(zip(whole.places, whole.lines[0].values, strict=True))
    assert (values[0.5], values[0.25]) == (pytest.approx(0.75), pytest.approx(0.5))
    assert few.log and min(few.places) == pytest.approx(0.001)
    assert all(value is not None and value > 0 for line in few.lines for value in line.values)
    assert [line.name for line in whole.lines] == ["gap", "loose", "plain", "guessing", "epsilon 1 allows at most"]
    whole, _ = attack_charts("a", {"plain": plain})
    assert [line.name for line in whole.lines] == ["plain", "guessing"]


def test_what_was_found_lies_beside_a_run_that_is_gone(tmp_path: Path) -> None:
    said: list[str] = []
    files = keep(made.attacks()["linkteller"], tmp_path / "run", "linkteller", say=said.append)
    beside = tmp_path / "run.attack-linkteller"
    assert {file.parent for file in files} == {beside} and all(file.is_file() for file in files)
    assert beside.stat().st_mode & 0o077 == 0 and kept(beside).keys() == {"linkteller"}
    assert len(said) == 1 and said[0].endswith(f": written to {beside} instead")
