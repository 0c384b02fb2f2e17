"""Methods that collect neighbour lists at the terminal: plan, warning, train, predict, compare."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphveil.mechanisms.edges import adjacency as edges
from graphveil.privacy import Guarantee
from tests.cli.conftest import Terminal

SHORT = ("social-200", "--epsilon-x", 2, "--epsilon-a", 5, "--epochs", 2)
BOTH = ("train", "solitude", *SHORT, "--set", "mode=both", "--set", "hidden=4")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a short Solitude, both ends reporting."""
    from graphveil.cli import main

    folder = tmp_path_factory.mktemp("runs") / "run"
    assert main([*map(str, BOTH), "--no-controls", "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("command", ["train", "compare"])
def test_a_large_collection_is_warned_of_before_it_runs(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(edges, "FALSE_EDGES_WARNING", 100)
    answer = type_in(command, "solitude", *SHORT, "--no-controls", "--json", "--repeats", 1)
    assert answer.code == 0
    assert answer.json
    first = answer.err.splitlines()[0]
    assert first.startswith("warning: solitude: epsilon 5 among 200 users makes about 133 false edges")
    assert answer.err.count("warning: ") == 1
    assert "Warning" in type_in("plan", "solitude", *SHORT).out


def test_a_run_has_the_price_of_a_relationship(run: Path) -> None:
    assert json.loads((run / "result.json").read_text())["epsilon_relationship"] == 10.0
    assert "epsilon 10 for one relationship" in (run / "card.md").read_text()


# ---- graphveil train`` and ``predict`` with answer-pool ----


RUN = ("train", "answer-pool", "social-200", "--epsilon", 2, "--set", "question=20>=0.5")


def test_a_run_states_the_larger_price_and_is_read_back(type_in: Terminal) -> None:
    answer = type_in(*RUN, "--no-controls", "--out", "run", "--json")
    assert answer.code == 0, answer.err
    guarantee = Guarantee.from_dict(answer.json["guarantee"])
    assert guarantee.epsilon == 2.0 and [part.epsilon for part in guarantee.parts] == [2.0, 2.0]
    predicted = type_in("predict", "run", "social-200", "--out", "classes.csv")
    assert predicted.code == 0, predicted.err
    assert len(Path("classes.csv").read_text().splitlines()) == 201
    # A folder that leaves out that one report is sent: the parts add up, and the price stated is half of it.
    file = next(Path("run").rglob("result.json"))
    stored = json.loads(file.read_text())
    stored["guarantee"]["assumes"] = [fact for fact in stored["guarantee"]["assumes"] if "one of these" not in fact]
    file.write_text(json.dumps(stored))
    assert type_in("predict", "run", "social-200", "--out", "again.csv").code == 2
