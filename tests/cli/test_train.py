"""``graphveil train``: the answer, the screen, the folder, and what is refused."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from graphveil.privacy import Guarantee
from tests.cli.conftest import Terminal

QUICK = ("train", "lpgnn", "digits", "--epochs", "4")
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
    assert (found["method"], found["data"]) == ("lpgnn", "digits")
    assert {"settings", "options", "ledger", "notes"} <= set(found)


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
    assert config["options"]["source"] == "digits"
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 4
    assert [entry.name for entry in folder.parent.iterdir()] == ["run"]


def test_the_screen_says_what_a_newcomer_needs(type_in: Terminal) -> None:
    answer = type_in(*QUICK)
    assert answer.code == 0
    for part in (
        "lpgnn on digits: ",
        "% accuracy on the test nodes",
        "95% interval",
        "best control",
        "Lift ",
        "Guarantee",
    ):
        assert part in answer.out
    for part in (
        "Not protected: who is connected to whom",
        "Assumes: ",
        "/card.md",
        "not private (ceiling)",
        "Cost",
        "runs/digits-",
    ):
        assert part in answer.out
    assert max(len(line) for line in answer.out.splitlines()) <= 80
    assert "\x1b" not in answer.out
    assert "VOID" not in answer.out


def test_progress_goes_to_stderr_in_plain_lines_with_the_epsilon(type_in: Terminal) -> None:
    answer = type_in(*QUICK, "--json")
    assert "epsilon spent 2" in answer.err
    assert "\x1b" not in answer.err
    assert 0 < len(answer.err.splitlines()) < 12


def test_without_controls_nothing_is_claimed(type_in: Terminal) -> None:
    answer = type_in(*QUICK, "--no-controls", "--json")
    assert answer.json["controls"] == {}
    assert (answer.json["lift"], answer.json["best_control"], answer.json["ceiling"]) == (None, None, None)
    assert "the lift is unknown" in type_in(*QUICK, "--no-controls").out


def test_infinite_epsilon_is_a_word_in_json(type_in: Terminal) -> None:
    found = type_in(*QUICK, "--epsilon-x", "inf", "--epsilon-y", "inf", "--no-controls", "--json").json
    assert found["guarantee"]["epsilon"] == "inf"
    assert found["settings"]["epsilon_x"] == "inf"


def test_no_features_can_be_asked_for(type_in: Terminal) -> None:
    found = type_in(*QUICK, "--epsilon-x", "none", "--no-controls", "--json").json
    assert found["settings"]["epsilon_x"] is None


def test_set_reads_values_by_their_type(type_in: Terminal) -> None:
    found = type_in(*QUICK, "--set", "steps-x=2", "--set", "dropout=0.25", "--no-controls", "--json").json
    assert found["settings"]["steps_x"] == 2
    assert found["settings"]["dropout"] == 0.25


def test_the_seed_fixes_splits_but_never_the_noise(type_in: Terminal) -> None:
    words = (*QUICK, "--no-controls", "--json", "--seed", 7, "--epsilon-y", "0.5", "--epsilon-x", "0.5")
    first, second = type_in(*words, "--out", "a").json, type_in(*words, "--out", "b").json
    assert first["accuracy"] != second["accuracy"] or first["settings"] == second["settings"]
    assert Path("a/metrics.jsonl").read_text() != Path("b/metrics.jsonl").read_text()


def test_reproducible_noise_repeats_and_voids_loudly_everywhere(type_in: Terminal) -> None:
    words = (*QUICK, "--no-controls", "--reproducible-noise", 5)
    first, second = type_in(*words, "--json", "--out", "a").json, type_in(*words, "--json", "--out", "b").json
    assert Path("a/metrics.jsonl").read_text() == Path("b/metrics.jsonl").read_text()
    assert first["accuracy"] == second["accuracy"]
    assert "reproducible" in first["guarantee"]["void"]
    assert "protects nobody" in type_in(*words, "--out", "c").out
    assert "protects nobody" in Path("a/card.md").read_text()
    assert "protects nobody" in Path("a/report.html").read_text()


def test_every_output_about_a_void_run_says_void(type_in: Terminal) -> None:
    assert type_in(*QUICK, "--no-controls", "--reproducible-noise", 5, "--out", "a").code == 0
    void = "noise was reproducible (seed 5)"
    predicted = type_in("predict", "a", "digits", "--json").json
    assert predicted["guarantee"]["void"] == void
    assert predicted["note"].startswith(f"VOID, no epsilon holds: {void}")
    assert type_in("report", "a", "--json").json["void"] == type_in("report", "a/public", "--json").json["void"] == void
    assert void in type_in("report", "a").out
    assert void in type_in("attack", "a", "--attack", "membership", "--no-plain").out
    for name in ("public/about.json", "public/ledger.json"):
        assert json.loads(Path("a", name).read_text())["void"] == void
    for name in ("README.md", "public/README.md"):
        text = Path("a", name).read_text()
        assert text.startswith("# VOID") and void in text and "May be handed on" not in text


def test_a_void_run_stays_void_in_its_ledger_when_more_is_spent(type_in: Terminal) -> None:
    type_in("train", "lpgnn", "social-200", "--epochs", 2, "--no-controls", "--reproducible-noise", 5, "--out", "a")
    assert type_in("predict", "a", "social-150", "--people", "other", "--json").json["guarantee"]["void"]
    ledger = json.loads(Path("a/ledger.json").read_text())
    assert len(ledger["spends"]) == 3 and "seed 5" in ledger["void"]
    assert "May be handed on" not in Path("a/public/README.md").read_text()


@pytest.mark.parametrize("method", ["label-propagation", "mlp"])
def test_every_kind_of_method_trains(type_in: Terminal, method: str) -> None:
    words = ("train", method, "digits", *(("--epochs", 3) if method == "mlp" else ("--no-controls",)))
    assert type_in(*words, "--json").json["method"] == method
    assert type_in(*words, "--out", "shown").code == 0


def test_a_used_folder_is_refused_before_any_work(type_in: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr("graphveil.graphs.load.load_parts", pytest.fail)
    Path("mine").mkdir()
    Path("mine/file").write_text("1")
    answer = type_in(*QUICK, "--out", "mine")
    assert answer.code == 2
    assert answer.err == "error: --out: mine is not empty; name a new folder; files are never overwritten\n"


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
