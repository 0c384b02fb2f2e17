"""What an attack leaves: curves between guessing and everything, reconstructed images, lines of a screen, files."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphveil.attacks import AttackResult, Limit, judge
from graphveil.attacks.limits import no_limit
from graphveil.attacks.result import Samples
from graphveil.reports.attacks import run
from graphveil.reports.attacks.figure import attack_charts, attack_figure, image_figure, summary
from graphveil.reports.attacks.files import PLAIN, read_attacks
from graphveil.reports.attacks.run import save_results
from graphveil.reports.base.card import Card
from graphveil.reports.base.figures import png, svg
from tests.reports import made

ORIGINAL = np.arange(2 * 4 * 4).reshape(2, 4, 4) / 32


def judged(shift: float, epsilon: float = math.inf) -> AttackResult:
    rng = np.random.default_rng(0)
    members, strangers = rng.normal(shift, 1, 200), rng.normal(0, 1, 900)
    limit = Limit(epsilon, 0.0, "epsilon of one edge" if math.isfinite(epsilon) else "the method protects nothing")
    return judge("link-stealing", "edges", members, strangers, limit=limit, baseline=0.5, baseline_note="$no$ edge")


def test_the_limit_is_shaded_where_there_is_one_and_the_curve_drawn_as_it_was_measured() -> None:
    figure = attack_figure({"plain": judged(2.0), "veiled": judged(0.3, 1.0)})
    text = svg(figure)
    assert "plain: AUC" in text and "veiled: AUC" in text and "more than epsilon 1 allows" in text
    assert len(figure.axes) == 2 and len(figure.axes[0].collections) == 1
    assert png(figure).startswith(b"\x89PNG")
    result = judged(2.0)
    bare = attack_figure({"plain": result})
    assert not bare.axes[0].collections and "more than epsilon" not in svg(bare)
    drawn = np.asarray(bare.axes[0].lines[1].get_xydata())
    assert drawn[5:] == pytest.approx(np.array(result.roc)[5:], abs=1e-4)


def test_lines_say_what_epsilon_allows_and_when_it_is_exceeded() -> None:
    lines = summary(judged(0.1, 2.0))
    assert "epsilon allows" in lines[2] and "limit from epsilon of one edge" in lines
    assert not any("MORE THAN" in line for line in lines)
    assert any("MORE THAN" in line for line in summary(judged(3.0, 0.5)))
    assert "limit: the method protects nothing" in summary(judged(1.0))


def test_curves_of_a_page_go_through_the_corners_and_draw_the_tightest_limit() -> None:
    score = replace(made.judged(0.5, 1.0, 0.03), roc=((0.0, 0.0), (0.0, 0.25), (0.5, 0.75), (1.0, 1.0)))
    plain = replace(score, limit=None, epsilon=math.inf)
    whole, few = attack_charts("a", {"gap": score, "loose": replace(score, epsilon=4.0), "plain": plain})
    values = dict(zip(whole.places, whole.lines[0].values, strict=True))
    assert (values[0.5], values[0.25]) == (pytest.approx(0.75), pytest.approx(0.5))
    assert few.log and min(few.places) == pytest.approx(0.001)
    assert all(value is not None and value > 0 for line in few.lines for value in line.values)
    assert [line.name for line in whole.lines] == ["gap", "loose", "plain", "guessing", "epsilon 1 allows at most"]
    whole, _ = attack_charts("a", {"plain": plain})
    assert [line.name for line in whole.lines] == ["plain", "guessing"]


def test_images_have_one_line_for_the_truth_the_open_run_and_this_run() -> None:
    def rebuilt(limit: Limit, shift: float) -> AttackResult:
        rng = np.random.default_rng(0)
        result = judge("reconstruction", "people", rng.random(50), rng.random(50), limit=limit)
        return replace(result, samples=Samples(("a$b", "c"), ORIGINAL, ORIGINAL + shift))

    figure = image_figure({"lpgnn": rebuilt(Limit(1.0, 0.0, "x"), 9.0), PLAIN: rebuilt(no_limit("x"), 0.1)})
    assert figure is not None
    assert [axes.get_ylabel() for axes in figure.axes] == ["original", PLAIN, "lpgnn, epsilon 1"]
    original, opened, veiled = (axes.images[0].get_array() for axes in figure.axes)
    assert original is not None and opened is not None and veiled is not None
    assert original.shape == (4, 9) and original[:, :4].tolist() == ORIGINAL[0].tolist()
    # What is beyond the range is cut.
    assert np.allclose(opened[:, :4], ORIGINAL[0] + 0.1) and veiled[:, :4].min() == 1.0
    assert "a$b" in svg(figure)
    assert image_figure({PLAIN: judged(1.0)}) is None


def test_what_was_found_lies_beside_a_run_that_is_gone(tmp_path: Path) -> None:
    messages: list[str] = []
    files = save_results(made.attacks()["linkteller"], tmp_path / "run", "linkteller", say=messages.append)
    beside = tmp_path / "run.attack-linkteller"
    assert {file.parent for file in files} == {beside} and all(file.is_file() for file in files)
    assert beside.stat().st_mode & 0o077 == 0 and read_attacks(beside).keys() == {"linkteller"}
    assert len(messages) == 1 and messages[0].endswith(f": written to {beside} instead")


def test_what_was_found_in_a_release_is_for_its_curator_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "load_plain", lambda release: None)
    monkeypatch.setattr(run, "release_card", lambda *_, **facts: Card(", ".join(facts["attacks"]), "", (), {}))
    folder = run.curator_folder(tmp_path / "out", None)
    run.save_for_curator(made.attacks()["linkteller"], tmp_path / "out", folder, "linkteller")
    assert "linkteller" in (folder / "card.md").read_text()
    assert [file.name for file in (folder, *folder.iterdir()) if file.stat().st_mode & 0o077] == []
