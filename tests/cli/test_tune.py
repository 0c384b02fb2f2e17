"""Tuning at the terminal: a run folder as train's, refusals in one line, nothing half-written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Terminal

BASE = ("tune", "lpgnn", "social-200", "--epsilon-x", 2, "--epsilon-y", 2, "--epochs", 2, "--no-controls")


def test_tune_writes_the_run_of_the_best_and_says_what_was_tried(type_in: Terminal, tmp_path: Path) -> None:
    words = (*BASE, "--over", "hidden=2,4", "--over", "steps-x=1,2", "--trials", 3, "--out", tmp_path / "run")
    found = type_in(*words, "--json").json
    assert found["notes"][0] == "tuned on one collection in each run, 3 trials: this costs no privacy"
    assert found["settings"]["hidden"] in (2, 4) and found["settings"]["steps_x"] in (1, 2)
    assert found["guarantee"]["epsilon"] == 4.0
    assert (tmp_path / "run" / "model.safetensors").is_file()
    shown = type_in("report", tmp_path / "run")
    assert shown.code == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--over", "epsilon_x=1,2"), "epsilon_x was given twice"),
        (("--over", "mechanism=laplace,duchi"), "mechanism is fixed before anybody reports"),
        (("--over", "hiden=1"), "no setting 'hiden'"),
        (("--over", "hidden"), "is no setting"),
        (("--over", "hidden="), "nothing to try"),
        (("--over", "hidden=2", "--over", "hidden=4"), "hidden was given twice"),
        (("--over", "hidden=two"), "two"),
        (("--over", "dropout=0.5,1.5"), "dropout = 1.5"),
    ],
)
def test_bad_grids_are_refused_in_one_line(
    type_in: Terminal, tmp_path: Path, words: tuple[str, ...], complaint: str
) -> None:
    done = type_in(*BASE, *words, "--out", tmp_path / "run")
    assert done.code == 2
    assert complaint in done.err and len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_methods_that_would_publish_again_are_refused(type_in: Terminal) -> None:
    done = type_in("tune", "gap", "social-200", "--over", "hops=1,2")
    assert done.code == 2
    assert "gap would publish again in every trial" in done.err
