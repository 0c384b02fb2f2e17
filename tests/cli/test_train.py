"""``graphveil train``: the answer, the screen, the folder, and what is refused."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from graphveil.privacy import Guarantee
from tests.cli.conftest import Terminal

QUICK = ("train", "lpgnn", "social-200", "--epochs", "4")
CONTROLS = {"random-features", "label-propagation", "label-pool", "majority", "no-edges", "public-only"}
SCORE = {"mean", "low", "high", "kind", "runs"}


def test_json_is_one_object_with_everything_promised(type_in: Terminal) -> None:
    answer = type_in(*QUICK, "--epsilon-x", 1, "--epsilon-y", 2, "--repeats", 2, "--json")
    assert answer.code == 0
    found = answer.json
    assert set(found["accuracy"]) == SCORE
    assert len(found["accuracy"]["runs"]) == 2
    assert set(found["controls"]) == CONTROLS
    assert all(set(score) == SCORE for score in (*found["controls"].values(), found["ceiling"], found["lift"]))
    best = found["controls"][found["best_control"]]
    assert found["lift"]["mean"] == pytest.approx(found["accuracy"]["mean"] - best["mean"])
    guarantee = Guarantee.from_dict(found["guarantee"])
    assert guarantee.epsilon == 3.0
    assert guarantee.void is None
    assert found["seconds"] > 0
    assert found["peak_memory_mb"] > 50
    assert Path(found["run"]).is_dir()
    assert (found["method"], found["data"]) == ("lpgnn", "social-200")
    assert {"settings", "options", "ledger", "notes"} <= set(found)
    # Progress goes to stderr in plain lines.
    assert "epsilon spent 3" in answer.err and "\x1b" not in answer.err
    assert 0 < len(answer.err.splitlines()) < 24


@pytest.mark.slow  # whole commands
def test_infinity_none_and_settings_are_words_and_without_controls_nothing_is_claimed(type_in: Terminal) -> None:
    words = (*QUICK, "--epsilon-y", "inf", "--no-controls", "--set", "steps-x=2", "--set", "dropout=0.25", "--json")
    found = type_in(*words, "--epsilon-x", "inf").json
    assert found["guarantee"]["epsilon"] == found["settings"]["epsilon_x"] == "inf"
    assert (found["settings"]["steps_x"], found["settings"]["dropout"]) == (2, 0.25)
    assert (found["controls"], found["lift"], found["best_control"], found["ceiling"]) == ({}, None, None, None)
    assert type_in(*words, "--epsilon-x", "none").json["settings"]["epsilon_x"] is None


def test_the_run_folder_is_whole(type_in: Terminal) -> None:
    answer = type_in(*QUICK, "--out", "deep/run", "--json", "--no-controls", "--seed", 3)
    folder = Path(answer.json["run"])
    assert {entry.name for entry in folder.iterdir()} == {
        *("config.toml", "result.json", "ledger.json", "metrics.jsonl", "model.safetensors"),
        *("card.md", "card.html", "report.html", "README.md", "digests.json", "public", "answers.safetensors"),
        "picture.json",
    }
    assert json.loads((folder / "result.json").read_text()) == answer.json
    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["settings"]["epochs"] == 4
    assert config["options"]["seed"] == 3
    assert config["options"]["source"] == "social-200"
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 4
    assert [entry.name for entry in folder.parent.iterdir()] == ["run"]


@pytest.mark.slow  # whole commands
def test_the_screen_says_what_a_newcomer_needs(type_in: Terminal) -> None:
    answer = type_in(*QUICK)
    assert answer.code == 0 and "\x1b" not in answer.out and "VOID" not in answer.out
    said = (
        "lpgnn on social-200: |% accuracy on the test nodes|95% interval|best control|Lift |Guarantee|runs/social-200-"
    )
    more = "Not protected: who is connected to whom|Assumes: |/card.md|not private (ceiling)|Cost"
    assert all(part in answer.out for part in f"{said}|{more}".split("|"))
    assert max(len(line) for line in answer.out.splitlines()) <= 80


@pytest.mark.slow  # whole commands
def test_reproducible_noise_repeats_and_every_output_says_void(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("train", "lpgnn", "social-200", "--epochs", 2, "--no-controls")
    shown = [type_in(*words, "--reproducible-noise", 5, "--out", name).out for name in "ab"]
    curves = [Path(name, "metrics.jsonl").read_text() for name in "ab"]
    assert curves[0] == curves[1] and "protects nobody" in shown[0]
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
    answer = type_in(*words, "--out", "a")
    assert (answer.code, answer.err) == (
        2,
        "error: --out: a is not empty; name a new folder; files are never overwritten\n",
    )


def test_a_crash_leaves_nothing_behind(type_in: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphveil.reports.runs import folder as run_folder

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device", "report.html")

    monkeypatch.setattr(run_folder, "page_html", full)
    answer = type_in(*QUICK, "--no-controls", "--out", "run")
    assert answer.code == 2
    assert "No space left on device" in answer.err.splitlines()[-1]
    assert list(Path.cwd().iterdir()) == []


def test_hostile_names_reach_no_terminal(type_in: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from graphveil import graphs

    digits = graphs.load_parts("digits")
    hostile = replace(digits.schema, name="\x1b[2J[red]x\n<script>", notes=("\x1b]0;owned\x07",))
    monkeypatch.setattr("graphveil.graphs.load.load_parts", lambda *_, **__: replace(digits, schema=hostile))
    answer = type_in(*QUICK, "--no-controls", "--out", "run")
    assert answer.code == 0
    assert "\x1b" not in answer.out + answer.err
    assert "[red]x <script>" in answer.out
    assert "x <script>" not in Path("run/report.html").read_text()
