"""Tuning at the terminal: a run folder as train's, refusals in one line, nothing half-written."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from graphveil.methods.registry import METHODS, build_method
from graphveil.methods.runs.search import payable
from graphveil.methods.runs.tuning import PROMISED
from graphveil.privacy import assume
from graphveil.reports.runs.trial_log import TrialLog, read_trials
from tests.cli.conftest import Terminal
from tests.pages import generated

#: What is searched by default, in the documentation.
TABLE = generated("searched").splitlines()
pytestmark = pytest.mark.usefixtures("quick_pages")
BASE = ("tune", "lpgnn", "social-200", "--epsilon-x", 2, "--epsilon-y", 2, "--epochs", 2, "--no-controls")


def test_what_matters_is_searched_where_nothing_is_named(type_in: Terminal, tmp_path: Path) -> None:
    done = type_in(*BASE, "--out", tmp_path / "run", "--json")
    message = (
        "Searching steps_x=2,4,8; steps_y=0,1,4: 9 trainings on one collection in each run, which cost what one does"
    )
    assert message in done.err.splitlines()
    assert done.json["settings"]["steps_x"] in (2, 4, 8) and done.json["guarantee"]["epsilon"] == 4.0
    assert "9 trials: this costs no privacy" in done.json["notes"][0]
    paid = type_in(*GAP, "--set", "hidden=4", "--trials", 2, "--json")
    price = "2 trainings on average, which cost epsilon 4, delta 1e-05 all together"
    assert f"Searching hops=1,2,3; hop_ratio=1.0,2.0: {price}" in paid.err.splitlines()
    (row,) = paid.json["ledger"]["spends"]
    assert row["epsilon"] == 4.0 and paid.json["settings"]["hidden"] == 4


@pytest.mark.parametrize("name", METHODS)
def test_what_a_method_searches_by_default_is_small_allowed_and_taken_by_it(name: str) -> None:
    info, free = METHODS[name], METHODS[name].free or payable(name, {})
    assert info.search or not free, "it is tuned, and says nothing of what matters"
    assert set(info.search) <= set(free or info.options) - PROMISED
    together = [dict(zip(info.search, values, strict=True)) for values in product(*info.search.values())]
    assert len(together) <= 12 and all(len(values) > 1 for values in info.search.values())
    for settings in together:
        build_method(name, settings, classes=3)
    for key, values in info.search.items():
        # The default among them: a choice is never narrower than no choice.
        assert info.options[key].default in (None, *values)
    tried = " ".join(f"{key}={','.join(map(str, values))}" for key, values in info.search.items())
    assert not tried or f"`{tried}`" in next(line for line in TABLE if f"`{name}`" in line)


GAP = ("tune", "gap", "social-200", "--epsilon", 4, "--epochs", 2, "--no-controls", "--set", "bits=5")


def test_a_paid_tuning_says_its_price_and_logs_its_trials_beside_the_run(type_in: Terminal, tmp_path: Path) -> None:
    words = ("--over", "hops=1,2", "--over", "learning-rate=0.01,0.1", "--trials", 3, "--out", tmp_path / "run")
    done = type_in(*GAP, *words, "--json")
    answer, log = done.json, tmp_path / "run.trials.jsonl"
    assert f"log of all trials, for the curator only: {log}" in done.err
    assert "repeat-and-select" in answer["notes"][0] and answer["notes"][1].startswith("run 1 chose hops=")
    assert (answer["options"]["law"], answer["options"]["mean_trials"]) == ("logarithmic", 3)
    assert answer["guarantee"]["epsilon"] == 4.0
    (row,) = answer["ledger"]["spends"]
    assert row["epsilon"] == 4.0 and row["parameters"]["epsilon_of_one_trial"] < 3.0
    trials, ended = read_trials(log)
    assert ended and max(trials, key=lambda trial: trial["score"])["settings"]["hops"] == answer["settings"]["hops"]
    assert "repeat-and-select" in (tmp_path / "run" / "card.md").read_text()
    assert "trials.jsonl" not in "".join(file.name for file in (tmp_path / "run").iterdir())
    assert type_in("report", tmp_path / "run").code == 0
    # A second tuning into a folder whose first one was not finished is refused.
    TrialLog(tmp_path / "cut.trials.jsonl")({"trial": 1, "score": 0.5})
    cut = type_in(*GAP, "--over", "hops=1,2", "--out", tmp_path / "cut")
    assert cut.code == 2 and "name another folder" in cut.err
    assert "holds 1 trial of a tuning that was not finished" in cut.err


def test_a_proxy_chooses_and_one_training_is_paid_for(type_in: Terminal, tmp_path: Path) -> None:
    search = ("--over", "hops=1:3", "--proxy", "social-100", "--trials", 2, "--sampler", "random")
    searched = type_in(*GAP, *search, "--out", tmp_path / "found", "--json")
    assert (tmp_path / "found.search.log").is_file() and "2 trials proposed by random" in searched.json["notes"][0]
    words = ("--over", "hops=1,2", "--proxy", "social-100", "--out", tmp_path / "run", "--json")
    answer = type_in(*GAP, *words).json
    public = assume("proxy-public", graph="social-100").sentence
    files = [(tmp_path / "run/public" / name).read_text() for name in ("guarantee.json", "card.md")]
    assert public in answer["guarantee"]["assumes"] and all(public in text for text in files)
    assert answer["options"]["proxy"] == "social-100"
    (row,) = answer["ledger"]["spends"]
    assert row["epsilon"] == 4.0 and "law" not in row["parameters"]
    assert not (tmp_path / "run.trials.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("lpgnn digits --over hidden=2 --over hidden=4", "hidden is given twice"),
        ("lpgnn digits --over dropout=0.5,1.5", "dropout is 1.5"),
        ("solitude social-200 --set steps_x=3", "tune: nothing to try; name settings and values: --over KEY=V1,V2"),
        ("label-pool social-200 --proxy social-100", "label-pool has no setting that is searched by default"),
        ("gap digits --over hops=1,2 --trials 1", "number of trials: mean is 1; allowed: a number in (1, 1000000]"),
        ("gap digits --over hops=1,2 --proxy social-100 --law geometric", "--law: applies only where trials have a"),
        ("gap digits --over hops=1,2 --delta 1e-30", "delta 1e-30; allowed: at least "),
        ("lpgnn digits --over hidden=8:2 --sampler tpe", "8:2; allowed: LOW:HIGH, two numbers, the smaller one first"),
        ("lpgnn digits --over hidden=2:8:lag --sampler tpe", "--over: hidden=2:8:lag; allowed: V1,V2,..., LOW:HIGH or"),
        ("lpgnn digits --over dropout=0.1:2 --sampler tpe", "dropout is 2.0; allowed: a number in [0, 1)"),
        ("gap digits --over hops=1,2 --sampler tpe", "search on a public graph with --proxy"),
    ],
)
def test_what_cannot_be_searched_is_refused_and_leaves_nothing(type_in: Terminal, words: str, says: str) -> None:
    answer = type_in("tune", *words.split(), "--out", "run")
    assert (answer.code, answer.out) == (2, "") and not list(Path.cwd().iterdir())
    assert says in answer.err and answer.err.splitlines()[-1].startswith("error: ")
