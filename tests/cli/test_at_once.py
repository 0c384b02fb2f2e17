"""Commands at once, and output that is taken while one computes: nothing is lost, and nobody pays twice."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from graphveil.graphs import social_graph, write_folder
from tests.cli.conftest import Terminal
from tests.cli.test_process import FOREVER, start


class Intruder:
    """Makes a folder as soon as a graph is read, once armed."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        sys.addaudithook(self._see)  # never removed, but silent unless armed

    def _see(self, event: str, args: tuple[object, ...]) -> None:
        if self.folder is not None and event == "open" and str(args[0]).endswith("graph.toml"):
            folder, self.folder = self.folder, None
            folder.mkdir()
            (folder / "theirs").touch()


@pytest.fixture(scope="module")
def intruder() -> Intruder:
    return Intruder()


@pytest.mark.parametrize(
    "words",
    [
        ("train", "lpgnn", "town", "--epochs", 1, "--no-controls", "--out"),
        ("tune", "lpgnn", "town", "--over", "hidden=2,4", "--epochs", 1, "--no-controls", "--out"),
        ("release", "edge-rand", "town", "--epsilon-a", 4, "--without-lift", "--out"),
    ],
)
def test_what_is_paid_for_while_its_folder_is_taken_lands_beside_it(
    type_in: Terminal, tmp_path: Path, intruder: Intruder, words: tuple[str, ...]
) -> None:
    write_folder(social_graph(100, seed=1), "town")
    intruder.folder = tmp_path / "out"
    done = type_in(*words, "out", "--json")
    assert done.code == 0, done.err
    assert "out-2" in (done.json.get("run"), done.json.get("folder")) and done.json["ledger"]["spends"]
    (message,) = [line for line in done.err.splitlines() if line.endswith(": written to out-2 instead")]
    assert message.startswith(("warning: out is not empty", "warning: out: exists already"))
    assert type_in("report", "out-2").code == 0
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["theirs"]


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
