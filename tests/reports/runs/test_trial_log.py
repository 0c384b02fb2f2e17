"""The log of trials: append-only, for its owner, and every change is noticed (checklist item 13)."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from graphveil.errors import InputError, ModelFileError
from graphveil.reports.runs.trial_log import TrialLog, read_trials


def written(path: Path, trials: int = 3) -> TrialLog:
    log = TrialLog(path)
    for number in range(1, trials + 1):
        log({"trial": number, "score": number / 10})
    return log


def test_trials_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run.trials.jsonl"
    log = written(path)
    trials, ended = read_trials(path)
    assert [trial["trial"] for trial in trials] == [1, 2, 3] and not ended
    log.end()
    assert read_trials(path)[1]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "for the curator alone" in path.read_text().splitlines()[0]


def test_nothing_is_made_before_the_first_trial(tmp_path: Path) -> None:
    TrialLog(tmp_path / "run.trials.jsonl")
    assert not (tmp_path / "run.trials.jsonl").exists()


CHANGES: dict[str, Callable[[list[str]], list[str]]] = {
    "a score": lambda lines: [line.replace("0.2", "0.9") for line in lines],
    "a line less": lambda lines: [*lines[:2], *lines[3:]],
    "a line twice": lambda lines: [*lines[:3], lines[2], *lines[3:]],
    "another order": lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
    "no log": lambda lines: ["something else\n"],
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_noticed(tmp_path: Path, change: str) -> None:
    path = tmp_path / "run.trials.jsonl"
    written(path).end()
    path.write_text("".join(CHANGES[change](path.read_text().splitlines(keepends=True))))
    with pytest.raises(ModelFileError, match="log of trials"):
        read_trials(path)


def test_a_log_is_never_gone_on_with(tmp_path: Path) -> None:
    written(tmp_path / "log").end()
    with pytest.raises(InputError, match="holds 3 trials of a tuning that ended"):
        TrialLog(tmp_path / "log")


def test_a_log_that_is_gone_is_written_whole_again(tmp_path: Path) -> None:
    log = written(path := tmp_path / "run.trials.jsonl")
    path.unlink()
    log({"trial": 4, "score": 0.4})
    path.unlink()
    path.mkdir()
    log.end()
    assert log.path == tmp_path / "run.trials-2.jsonl" and stat.S_IMODE(log.path.stat().st_mode) == 0o600
    trials, ended = read_trials(log.path)
    assert [trial["trial"] for trial in trials] == [1, 2, 3, 4] and ended
