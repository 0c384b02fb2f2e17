"""What an older version collected at an epsilon that no command takes today stays readable; no new run is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.privacy import limits
from tests.cli.conftest import Terminal
from tests.fuzz.targets import old_run, people, run_of

SHORT = ("--epochs", 1, "--set", "hidden=4")
#: A curator's Gaussian noise was never so small.
RUNS = {
    "lpgnn": ("--epsilon-x", 300, "--epsilon-y", 300, *SHORT),
    "label-pool": ("--epsilon-y", 300),
    "solitude": ("--epsilon-x", 300, "--epsilon-y", 300, "--epsilon-a", 300, *SHORT),
    "link-beliefs": ("--epsilon-x", "none", "--epsilon-y", 300, "--epsilon-a", 300),
    "heterorr": ("--epsilon-x", 300, "--epsilon-a", 300, *SHORT),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people(tmp_path_factory.mktemp("data") / "people")


@pytest.mark.parametrize("method", RUNS)
def test_a_run_above_the_limit_is_read_and_no_new_one_is_made(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, data: Path, method: str
) -> None:
    monkeypatch.setattr(limits, "LARGEST_EPSILON", 1e9)
    old = old_run(run_of(method, data, tmp_path / "run", *RUNS[method]), tmp_path / "old")
    monkeypatch.undo()
    for run in (tmp_path / "run", old):
        for words in (("predict", run, data), ("compare-runs", run, "--json"), ("report", run)):
            answer = type_in(*words)
            assert answer.code == 0, answer.err
        assert "300" in (run / "card.md").read_text()
    answer = type_in("train", method, data, *RUNS[method])
    assert answer.code == 2
    assert "300 hides nothing" in answer.err
