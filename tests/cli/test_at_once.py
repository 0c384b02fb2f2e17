"""Commands at once, and output that is taken while one computes: nothing is lost, and nobody pays twice."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Terminal
from tests.cli.test_process import FOREVER, start

TRAIN = ("train", "label-pool", "social-100", "--epsilon-y", "2", "--no-controls")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("train", TRAIN),
        ("tune", ("tune", "dp-mlp", "social-100", "--over", "hidden=2,4", "--set", "passes=1", "--no-controls")),
    ],
)
def test_a_run_whose_folder_is_taken_while_it_trains_lands_beside_it(
    type_in: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: tuple[str, ...]
) -> None:
    module = import_module(f"graphveil.cli.{command}")
    train = module.run_method

    def taken(*args: Any, **options: Any) -> Any:
        result = train(*args, **options)
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "theirs").touch()
        for log in tmp_path.glob("run.trials.jsonl"):
            log.unlink()
        return result

    monkeypatch.setattr(module, "run_method", taken)
    done = type_in(*words, "--out", "run", "--json")
    assert done.code == 0, done.err
    assert done.json["run"] == "run-2" and done.json["ledger"]["spends"]
    assert "warning: run is not empty: written to run-2 instead" in done.err.splitlines()
    assert type_in("report", "run-2").code == 0
    # The log of trials is whole as well: none may be forgotten.
    logs = [log.read_text().splitlines() for log in tmp_path.glob("run.trials.jsonl")]
    assert [json.loads(log[-1]).get("ended") for log in logs] == ([True] if command == "tune" else [])


@pytest.mark.slow  # processes: two are refused before they read anything, one trains
def test_of_three_runs_into_one_folder_one_trains_and_the_others_read_nothing(tmp_path: Path) -> None:
    runs = [start(*TRAIN, "--out", "run", "--json", cwd=tmp_path) for _ in range(3)]
    answers = [run.communicate(timeout=FOREVER) for run in runs]
    assert sorted(run.returncode for run in runs) == [0, 2, 2]
    for run, (out, err) in zip(runs, answers, strict=True):
        if run.returncode:
            assert out == "" and err.count("\n") == 1
            assert "another process is about to write run" in err or "run is not empty" in err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.slow  # processes: what one of them asks people, the other one has to know
def test_two_predictions_at_once_ask_new_people_once(type_in: Terminal, tmp_path: Path) -> None:
    settings = ("--epsilon-x", 1, "--epsilon-y", 1, "--epochs", 2, "--no-controls")
    assert type_in("train", "lpgnn", "social-100", *settings, "--out", "run").code == 0
    words = ("predict", "run", "social-200", "--people", "other", "--json")
    runs = [start(*words, cwd=tmp_path) for _ in range(2)]
    answers = [run.communicate(timeout=FOREVER) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], answers
    first, second = (json.loads(out)["predictions"] for out, _ in answers)
    assert first == second  # of the same reports, which the run keeps
