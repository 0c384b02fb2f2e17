"""``graphveil train``: the answer, the screen, the folder, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphveil.mechanisms.edges import adjacency as edges
from graphveil.privacy import Guarantee
from tests.cli.conftest import Terminal

QUICK = ("train", "lpgnn", "social-200", "--epochs", "4")
CONTROLS = {"random-features", "label-propagation", "label-pool", "majority", "no-edges", "public-only"}
SCORE = {"mean", "low", "high", "kind", "runs"}


def test_json_is_one_object_with_everything_promised(type_in: Terminal) -> None:
    answer = type_in(*QUICK, "--epsilon-x", 1, "--epsilon-y", 2, "--repeats", 2, "--json").good
    result = answer.json
    assert set(result["accuracy"]) == SCORE
    assert len(result["accuracy"]["runs"]) == 2
    assert set(result["controls"]) == CONTROLS
    assert all(set(score) == SCORE for score in (*result["controls"].values(), result["ceiling"], result["lift"]))
    best = result["controls"][result["best_control"]]
    assert result["lift"]["mean"] == pytest.approx(result["accuracy"]["mean"] - best["mean"])
    guarantee = Guarantee.from_dict(result["guarantee"])
    assert guarantee.epsilon == 3.0
    assert guarantee.void is None
    assert result["seconds"] > 0
    assert result["peak_memory_mb"] > 50
    assert Path(result["run"]).is_dir()
    assert (result["method"], result["data"]) == ("lpgnn", "social-200")
    assert {"settings", "options", "ledger", "notes"} <= set(result)
    # Progress goes to stderr in plain lines.
    assert "epsilon spent 3" in answer.err and "\x1b" not in answer.err
    assert 0 < len(answer.err.splitlines()) < 24


@pytest.mark.slow  # whole commands
def test_reproducible_noise_repeats_and_every_output_says_void(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("train", "lpgnn", "social-200", "--epochs", 2, "--no-controls")
    screen = [type_in(*words, "--reproducible-noise", 5, "--out", name).out for name in "ab"]
    curves = [Path(name, "metrics.jsonl").read_text() for name in "ab"]
    assert curves[0] == curves[1] and "protects nobody" in screen[0]
    assert type_in(*words, "--out", "c").code == type_in(*words, "--out", "d").code == 0
    assert Path("c/metrics.jsonl").read_text() != Path("d/metrics.jsonl").read_text()  # the seed fixes no noise
    void = "noise was reproducible (seed 5)"
    predicted = type_in("predict", "a", "social-200", "--json").json
    assert predicted["guarantee"]["void"] == void
    assert predicted["note"].startswith(f"VOID, no epsilon holds: {void}")
    assert type_in("report", "a", "--json").json["void"] == type_in("report", "a/public", "--json").json["void"] == void
    assert void in type_in("report", "a").out
    assert void in type_in("attack", "a", "--attack", "membership", "--no-plain").out
    for name in ("public/about.json", "public/ledger.json"):
        assert json.loads(Path("a", name).read_text())["void"] == void
    assert all("protects nobody" in Path("a", name).read_text() for name in ("card.md", "report.html"))
    for name in ("README.md", "public/README.md"):
        text = Path("a", name).read_text()
        assert text.startswith("# VOID") and void in text and "May be handed on" not in text
    # Void it stays when more is spent.
    assert type_in("predict", "a", "social-150", "--people", "other", "--json").json["guarantee"]["void"]
    ledger = json.loads(Path("a/ledger.json").read_text())
    assert len(ledger["spends"]) == 3 and "seed 5" in ledger["void"]
    # A used folder is refused before any work.
    monkeypatch.setattr("graphveil.graphs.load.load_parts", pytest.fail)
    type_in(*words, "--out", "a").refused("--out: a is not empty; name a new folder; files are never overwritten\n")


# ---- methods that collect neighbour lists ----


SHORT = ("social-200", "--epsilon-x", 2, "--epsilon-a", 5, "--epochs", 2)


@pytest.mark.parametrize("command", ["train", "compare"])
def test_a_large_collection_is_warned_of_before_it_runs(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(edges, "FALSE_EDGES_WARNING", 100)
    answer = type_in(command, "solitude", *SHORT, "--no-controls", "--json", "--repeats", 1).good
    assert answer.json
    first = answer.err.splitlines()[0]
    assert first.startswith("warning: solitude: epsilon 5 among 200 users makes about 133 false edges")
    assert answer.err.count("warning: ") == 1
    assert "Warning" in type_in("plan", "solitude", *SHORT).out


# ---- graphveil train`` and ``predict`` with answer-pool ----


RUN = ("train", "answer-pool", "social-200", "--epsilon", 2, "--set", "question=20>=0.5")


def test_a_run_states_the_larger_price_and_is_read_back(type_in: Terminal) -> None:
    answer = type_in(*RUN, "--no-controls", "--out", "run", "--json").good
    guarantee = Guarantee.from_dict(answer.json["guarantee"])
    assert guarantee.epsilon == 2.0 and [part.epsilon for part in guarantee.parts] == [2.0, 2.0]
    assert type_in("predict", "run", "social-200", "--out", "classes.csv").good
    assert len(Path("classes.csv").read_text().splitlines()) == 201
    # A folder that leaves out that one report is sent: the parts add up, and the price stated is half of it.
    file = next(Path("run").rglob("result.json"))
    stored = json.loads(file.read_text())
    stored["guarantee"]["assumes"] = [fact for fact in stored["guarantee"]["assumes"] if "one of these" not in fact]
    file.write_text(json.dumps(stored))
    assert type_in("predict", "run", "social-200", "--out", "again.csv").code == 2
