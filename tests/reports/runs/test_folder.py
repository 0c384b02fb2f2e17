"""The run folder: whole, readable, and never half-written."""

from __future__ import annotations

import json
import math
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import InputError, ModelFileError
from graphveil.graphs import draw_private, load_plain, social_graph
from graphveil.methods import LabelPropagation
from graphveil.methods.base.network.start import SHIPPED, start_name
from graphveil.methods.registry import files_of
from graphveil.methods.runs import experiment
from graphveil.privacy import SeededRandomness
from graphveil.reports.base import parts
from graphveil.reports.base.record import RunRecord
from graphveil.reports.runs import folder as run_folder
from graphveil.reports.runs.card import About
from graphveil.reports.runs.origin import graph_of
from graphveil.reports.runs.trial_log import TrialLog, read_trials
from tests.graphs.made import folder as own_folder
from tests.reports import made

OPTIONS = {"seed": 0, "repeats": 5, "device": "cpu"}
FILES = {
    "config.toml",
    "result.json",
    "ledger.json",
    "metrics.jsonl",
    "model.safetensors",
    "card.md",
    "card.html",
    "report.html",
    "README.md",
    "digests.json",
    "public",
}
PUBLIC = {
    *("model.safetensors", "ledger.json", "guarantee.json", "about.json", "card.md", "card.html"),
    *("report.html", "README.md", "digests.json"),
}
NOT_IN_OLDER_RUNS = ("rivals", "best_rival", "epsilon_relationship", "built")


def test_everything_is_there_reads_back_and_is_written_anew(tmp_path: Path) -> None:
    settings = {"epsilon_x": math.inf, "epsilon_y": 1.0}
    result = made.result(settings=settings, guarantee=made.guarantee(epsilon_x=math.inf))
    run = tmp_path / "run"
    record = run_folder.write_run(result, run, options=OPTIONS)
    assert {entry.name for entry in run.iterdir()} == FILES
    assert {entry.name for entry in (run / "public").iterdir()} == PUBLIC
    read = run_folder.read_run(run)
    assert read.to_dict() == record.to_dict() and read.settings == settings
    assert (read.privacy.guarantee, read.privacy.ledger) == (record.privacy.guarantee, record.privacy.ledger)
    assert [len(rows) for rows in read.history] == [60] * 5
    lines = (run / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert (len(rows), rows[0]["repeat"], rows[0]["val_estimate"]) == (5 * 60, 1, None)
    before = (run / "report.html").read_text()
    (run / "report.html").write_text("gone")
    run_folder.rewrite_report(run)
    assert (run / "report.html").read_text() == before
    with pytest.raises(InputError, match="is not empty"):
        run_folder.write_run(result, run, options=OPTIONS)
    full = made.result(model=made.Model(made.guarantee(), made.ledger(), fails=True))
    with pytest.raises(OSError, match="No space"):
        run_folder.write_run(full, tmp_path / "crash", options=OPTIONS)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]
    with pytest.raises(ModelFileError, match=r"no run in .*allowed: a folder written by graphveil train"):
        run_folder.read_run(tmp_path)


def test_a_result_with_a_field_missing_is_damaged(tmp_path: Path) -> None:
    run_folder.write_run(made.result(), tmp_path / "run", options=OPTIONS)
    target = tmp_path / "run" / "result.json"
    whole = json.loads(target.read_text())
    for key in set(whole) - {"run", "guarantee_sentence", *NOT_IN_OLDER_RUNS}:
        target.write_text(json.dumps({name: value for name, value in whole.items() if name != key}))
        with pytest.raises(ModelFileError, match="damaged run"):
            run_folder.read_run(tmp_path / "run")


def test_what_a_prediction_paid_for_is_kept_where_the_run_is_gone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    LabelPropagation(epsilon_y=2.0).fit(social_graph(100, seed=1)).save(tmp_path / "run")
    model = run_folder.open_model(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    (tmp_path / "run").touch()
    messages: list[str] = []
    run_folder.keep_spending(model, tmp_path / "run", say=messages.append)
    assert len(messages) == 1 and messages[0].endswith(f": written to {tmp_path / 'run-2'} instead")
    assert run_folder.open_model(tmp_path / "run-2").ledger.spends == model.ledger.spends


def test_a_run_whose_prediction_was_killed_after_it_had_paid_states_the_whole_price(tmp_path: Path) -> None:
    graph, path = social_graph(100, seed=1), tmp_path / "run"
    settings = {"epsilon_x": 1.0, "epsilon_y": 1.0, "epsilon_a": 8.0, "queries": 1, "epochs": 2}
    result = experiment.run("solitude", graph, settings=settings, randomness=SeededRandomness(1), controls=False)
    run_folder.write_run(result, path, options={})
    other = social_graph(200, seed=2)
    run_folder.open_model(path).predict_proba(other, randomness=SeededRandomness(2))  # and nothing is kept
    price = run_folder.read_run(path).privacy.epsilon_relationship
    run_folder.catch_up(path)
    record = run_folder.read_run(path)
    assert (price, record.privacy.epsilon_relationship, record.privacy.guarantee.epsilon) == (8.0, 16.0, 19.0)
    assert "epsilon 16 for one relationship" in (path / "card.md").read_text()
    assert not parts.check_run(path).behind


# ---- the graph of a run by its record ----


def record(**options: Any) -> RunRecord:
    return made.record(data="social-100", options=options)


def test_a_name_is_enough_and_the_same_edges_are_drawn_as_private() -> None:
    assert graph_of(record(source="social-200")).num_nodes == 200
    # The first versions kept no source: the data's own name stands for it.
    assert graph_of(record()).num_nodes == 100
    drawn = graph_of(record(source="social-100", private_share=0.5, seed=3))
    again = draw_private(load_plain("social-100"), 0.5, 3)
    other = draw_private(load_plain("social-100"), 0.5, 4)
    assert torch.equal(drawn.public_edges, again.public_edges)
    assert not torch.equal(drawn.public_edges, other.public_edges)


def test_a_relative_folder_of_an_older_run_is_found_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_folder(tmp_path / "own")
    monkeypatch.chdir(tmp_path)
    assert graph_of(record(source="own")).num_nodes == 3
    monkeypatch.chdir("/")
    with pytest.raises(InputError, match="its graph lay in own, and is not there; name its place now"):
        graph_of(record(source="own"))
    assert graph_of(record(source="own"), data=str(tmp_path / "own")).num_nodes == 3


def test_which_settings_name_files(tmp_path: Path) -> None:
    reader = str(SHIPPED / "class-sums.safetensors")
    assert files_of("class-sums", {"start": reader, "epochs": 3}) == {"start": Path(reader)}
    for settings in ({"start": "public"}, {"start": None}, {"start": str(tmp_path / "gone.safetensors")}):
        assert files_of("class-sums", settings) == {}
    # A file whose checksum nobody took is told by its name alone.
    run = made.record(method="class-sums", settings={"start": "/secret/place/mine.safetensors"}, options={})
    assert About.of(run).settings["start"] == "mine.safetensors"
    assert files_of("a method of tomorrow", {"start": reader}) == {}
    assert [start_name(start) for start in (None, "public", reader)] == [None, "public", "class-sums.safetensors"]


# ---- the log of trials ----


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
    with pytest.raises(InputError, match="holds 3 trials of a tuning that ended"):
        TrialLog(path)
    TrialLog(tmp_path / "new.jsonl")  # nothing is made before the first trial
    assert not (tmp_path / "new.jsonl").exists()
    assert "for the curator alone" in path.read_text().splitlines()[0]


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
