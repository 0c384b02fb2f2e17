"""The run folder: whole, readable, and never half-written."""

from __future__ import annotations

import json
import math
import shutil
import tomllib
from datetime import datetime
from pathlib import Path

import pytest

from graphveil.errors import InputError, ModelFileError
from graphveil.graphs import social_graph
from graphveil.methods import LabelPropagation
from graphveil.reports.runs import folder as run_folder
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


def test_everything_is_there_and_reads_back(tmp_path: Path) -> None:
    record = run_folder.write_run(made.result(), tmp_path / "run", options=OPTIONS)
    assert {entry.name for entry in (tmp_path / "run").iterdir()} == FILES
    assert {entry.name for entry in (tmp_path / "run" / "public").iterdir()} == PUBLIC
    read = run_folder.read_run(tmp_path / "run")
    assert read.to_dict() == record.to_dict()
    assert read.privacy.guarantee == record.privacy.guarantee
    assert read.privacy.ledger == record.privacy.ledger
    assert [len(rows) for rows in read.history] == [60] * 5


def test_metrics_are_one_strict_json_line_per_epoch_and_repeat(tmp_path: Path) -> None:
    run_folder.write_run(made.result(), tmp_path / "run", options=OPTIONS)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert len(rows) == 5 * 60
    assert rows[0]["repeat"] == 1
    assert rows[0]["val_estimate"] is None


def test_config_is_toml_with_the_settings(tmp_path: Path) -> None:
    settings = {"epsilon_x": math.inf, "model": 'sa"ge\x7f\n\u2028', "x hops": 3, "fast": True, "none": None}
    record = made.record(settings={**settings, "list": (1, 2.5)}, data="my\\data")
    config = tomllib.loads(run_folder.config_toml(record))
    assert config["data"] == "my\\data"
    assert config["options"] == OPTIONS
    kept = {key: value for key, value in settings.items() if value is not None}
    assert config["settings"] == {**kept, "list": [1, 2.5]}


def test_infinite_epsilon_survives_the_folder(tmp_path: Path) -> None:
    settings = {"epsilon_x": math.inf, "epsilon_y": 1.0}
    result = made.result(settings=settings, guarantee=made.guarantee(epsilon_x=math.inf))
    run_folder.write_run(result, tmp_path / "run", options=OPTIONS)
    read = run_folder.read_run(tmp_path / "run")
    assert read.settings == settings
    assert read.privacy.guarantee.parts[0].epsilon == math.inf


def test_a_crash_while_saving_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space"):
        run_folder.write_run(
            made.result(model=made.Model(made.guarantee(), made.ledger(), fails=True)),
            tmp_path / "run",
            options=OPTIONS,
        )
    assert list(tmp_path.iterdir()) == []


def test_a_used_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("1")
    with pytest.raises(InputError, match="is not empty"):
        run_folder.write_run(made.result(), tmp_path, options=OPTIONS)


def test_default_folder_says_data_method_and_time(tmp_path: Path) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5)
    first = run_folder.default_folder("/x/my data", "lpgnn", now, root=tmp_path)
    assert first == tmp_path / "my-data-lpgnn-20260102-030405"


def test_no_run_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"no run in .*allowed: a folder written by graphveil train"):
        run_folder.read_run(tmp_path)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("result.json", "{"),
        ("result.json", "[]"),
        ("result.json", "{}"),
        ("result.json", b"\xff\xfe"),
        ("metrics.jsonl", "{"),
        ("metrics.jsonl", '{"epoch": 1}'),
        ("metrics.jsonl", None),
    ],
)
def test_damage_is_said_so(tmp_path: Path, file: str, content: str | bytes | None) -> None:
    run_folder.write_run(made.result(), tmp_path / "run", options=OPTIONS)
    target = tmp_path / "run" / file
    if content is None:
        target.unlink()
    else:
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ModelFileError, match="damaged run"):
        run_folder.read_run(tmp_path / "run")


def test_a_result_with_a_field_missing_is_damaged(tmp_path: Path) -> None:
    run_folder.write_run(made.result(), tmp_path / "run", options=OPTIONS)
    target = tmp_path / "run" / "result.json"
    whole = json.loads(target.read_text())
    for key in set(whole) - {"run", "guarantee_sentence", *NOT_IN_OLDER_RUNS}:
        target.write_text(json.dumps({name: value for name, value in whole.items() if name != key}))
        with pytest.raises(ModelFileError, match="damaged run"):
            run_folder.read_run(tmp_path / "run")


def test_the_report_can_be_written_anew(tmp_path: Path) -> None:
    run_folder.write_run(made.result(), tmp_path / "run", options=OPTIONS)
    page = tmp_path / "run" / "report.html"
    before = page.read_text()
    page.write_text("gone")
    run_folder.rewrite_report(tmp_path / "run")
    assert page.read_text() == before


def test_what_a_prediction_paid_for_is_kept_where_the_run_is_gone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    LabelPropagation(epsilon_y=2.0).fit(social_graph(100, seed=1)).save(tmp_path / "run")
    model = run_folder.open_model(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    (tmp_path / "run").touch()
    said: list[str] = []
    run_folder.keep_spending(model, tmp_path / "run", say=said.append)
    assert len(said) == 1 and said[0].endswith(f": written to {tmp_path / 'run-2'} instead")
    assert run_folder.open_model(tmp_path / "run-2").ledger.spends == model.ledger.spends
