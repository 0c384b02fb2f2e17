"""``predict``, ``plan``, ``data describe``, ``mechanisms list`` and ``report``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Terminal


def test_predictions_go_to_the_screen_or_to_json(type_in: Terminal, trained: Path) -> None:
    shown = type_in("predict", trained, "digits")
    assert shown.code == 0
    assert "First 10 of 1,797" in shown.out
    found = type_in("predict", trained, "digits", "--json").json
    assert found["nodes"] == len(found["predictions"]) == sum(found["predicted"].values()) == 1797
    assert set(found["predictions"][0]) == {"id", "prediction", "probability"}
    assert "costs nothing more" in found["note"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predictions_go_to_a_file(type_in: Terminal, trained: Path, ending: str) -> None:
    found = type_in("predict", trained, "digits", "--out", f"p.{ending}", "--json").json
    assert "predictions" not in found
    table = (pl.read_csv if ending == "csv" else pl.read_parquet)(f"p.{ending}")
    assert table.columns == ["id", "prediction", "probability", *(f"p({digit})" for digit in range(10))]
    assert len(table) == 1797
    assert [entry.name for entry in Path.cwd().iterdir()] == [f"p.{ending}"]
    again = type_in("predict", trained, "digits", "--out", f"p.{ending}")
    assert again.code == 2
    assert "exists" in again.err


def test_a_new_graph_with_other_ids_is_predicted(type_in: Terminal, trained: Path, tmp_path: Path) -> None:
    from graphveil import graphs

    digits = graphs.digits_graph()
    keep = 200
    inside = (digits.edge_index < keep).all(dim=0)
    part = graphs.make_graph(
        digits.x[:keep],
        graphs.normalise_edges(*digits.edge_index[:, inside].numpy(), keep, directed=False)[0],
        digits.y[:keep],
        digits.schema,
        ids=[f"user-{number}" for number in range(keep)],
    )
    graphs.write_folder(part, tmp_path / "part")
    refused = type_in("predict", trained, "part", "--json")
    assert (refused.code, refused.out) == (2, "")
    for remedy in ("queries=1", "people='same'", "people='other'"):
        assert remedy in refused.err
    found = type_in("predict", trained, "part", "--people", "other", "--json").json
    assert found["nodes"] == keep
    assert found["predictions"][0]["id"] == "user-0"


def test_people_of_a_new_graph_report_once_and_the_run_remembers(type_in: Terminal, tmp_path: Path) -> None:
    run = tmp_path / "run"
    type_in("train", "lpgnn", "social-200", "--epochs", "2", "--no-controls", "--out", run)
    first = type_in("predict", run, "social-150", "--people", "other", "--json").json
    again = type_in("predict", run, "social-150", "--people", "other", "--json").json
    assert first["predictions"] == again["predictions"]
    ledger = json.loads((run / "ledger.json").read_text())
    assert [row["unit"].split(" (")[0] for row in ledger["spends"]] == ["features", "labels", "features of social-150"]
    assert json.loads((run / "result.json").read_text())["ledger"] == ledger
    assert "features of social-150" in (run / "report.html").read_text()


def test_plan_promises_and_trains_nothing(type_in: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphveil.methods.runs import experiment

    monkeypatch.setattr(experiment, "run", pytest.fail)
    words = ("plan", "lpgnn", "digits", "--epsilon-x", 1, "--epsilon-y", 2)
    found = type_in(*words, "--json").json
    assert found["guarantee"]["epsilon"] == 3.0
    assert found["epsilon"] == {"features": 1.0, "labels": 2.0}
    assert found["seconds"] > 0
    assert found["memory_mb"] > 0
    assert found["advice"]
    shown = type_in(*words).out
    for part in ("nothing has been trained", "noise/signal", "Guarantee", "Time", "Memory", "Advice"):
        assert part in shown
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize("method", ["label-propagation", "sage"])
def test_plan_knows_every_kind_of_method(type_in: Terminal, method: str) -> None:
    assert type_in("plan", method, "digits", "--json").json["method"] == method
    assert type_in("plan", method, "digits").code == 0


def test_describe(type_in: Terminal) -> None:
    found = type_in("data", "describe", "digits", "--json").json
    assert (found["nodes"], found["features"]["dimension"]) == (1797, 32)
    shown = type_in("data", "describe", "digits").out
    assert "1,797" in shown
    assert "homophily" in shown
    assert "range" in shown


def test_mechanisms_are_listed(type_in: Terminal) -> None:
    found = type_in("mechanisms", "list", "--json").json["mechanisms"]
    assert {"MultiBit", "OneBit", "Laplace", "AnalyticGaussian", "RandomizedResponse"} <= {
        entry["mechanism"] for entry in found
    }
    shown = type_in("mechanisms", "list").out
    assert all(entry["name"] in shown for entry in found)


def test_report_is_written_anew(type_in: Terminal, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = trained / "report.html"
    before = page.read_text()
    page.write_text("gone")
    found = type_in("report", trained, "--json").json
    assert page.read_text() == before
    assert found["report"] == str(page)
    opened: list[str] = []
    monkeypatch.setattr("typer.launch", opened.append)
    assert type_in("report", trained, "--open").code == 0
    assert opened == [str(page)]


def test_report_against_another_run_writes_a_page_of_both(type_in: Terminal, trained: Path) -> None:
    found = type_in("report", trained, "--against", trained, "--json").json
    page = Path(found["against"])
    assert page.parent == trained
    assert f"{trained.name} against {trained.name}" in page.read_text()
    assert type_in("report", trained / "public", "--against", trained).code == 2


def test_the_public_part_alone_predicts_pays_and_has_its_card_written(type_in: Terminal, tmp_path: Path) -> None:
    run, handed = tmp_path / "run", tmp_path / "handed"
    type_in("train", "lpgnn", "social-200", "--epochs", "2", "--no-controls", "--out", run)
    shutil.copytree(run / "public", handed)
    own = type_in("predict", run, "social-200", "--json").json
    assert type_in("predict", handed, "social-200", "--json").json["predicted"] == own["predicted"]
    (handed / "card.md").write_text("gone")
    answer = type_in("report", handed, "--json").json
    assert (answer["method"], answer["report"]) == ("lpgnn", None)
    assert (handed / "card.md").read_text() == (run / "public" / "card.md").read_text()
    assert type_in("predict", handed, "social-150", "--people", "other").code == 0
    assert not (handed / "answers.safetensors").exists()
    assert (tmp_path / "handed.answers.safetensors").stat().st_mode & 0o777 == 0o600
    assert len(json.loads((handed / "ledger.json").read_text())["spends"]) == 3
    assert "social-150" in (handed / "card.md").read_text()
    assert type_in("report", handed).code == 0
    assert "social-150" not in (run / "public" / "ledger.json").read_text()  # a copy is another account


@pytest.mark.parametrize("command", ["report", "predict", "attack", "compare-runs"])
@pytest.mark.parametrize("forged", ["epsilon in result.json", "emptied ledger.json", "epsilon in guarantee.json"])
def test_a_forged_run_is_refused_in_one_line(
    type_in: Terminal, trained: Path, tmp_path: Path, command: str, forged: str
) -> None:
    run = tmp_path / "forged"
    shutil.copytree(trained, run, symlinks=True)
    words = {"predict": ("digits",), "attack": ("--attack", "linkteller")}.get(command, ())
    name = forged.split()[-1]
    file = run / name if name == "result.json" else run / "public" / name
    content = json.loads(file.read_text())
    if name == "ledger.json":
        content["spends"] = []
    else:
        content.get("guarantee", content)["epsilon"] = 0.001
    file.write_text(json.dumps(content))
    answer = type_in(command, run, *words)
    assert answer.code == 2
    assert answer.out == ""
    (line,) = [line for line in answer.err.splitlines() if line.strip()]
    assert name in line
    shutil.rmtree(run)


def test_runs_of_older_versions_are_read_and_predicted_from(type_in: Terminal, tmp_path: Path) -> None:
    run = tmp_path / "run"
    type_in("train", "lpgnn", "social-200", "--epochs", "2", "--no-controls", "--out", run)
    for name in ("model.safetensors", "ledger.json"):
        (run / name).unlink()
        shutil.move(run / "public" / name, run / name)
    shutil.rmtree(run / "public")
    (run / "digests.json").unlink()
    assert type_in("report", run).code == 0
    assert type_in("predict", run, "social-150", "--people", "other").code == 0
    assert type_in("compare-runs", run).code == 0
    assert "social-150" in (run / "card.md").read_text()
    assert not (run / "public").exists()
    assert len(json.loads((run / "result.json").read_text())["ledger"]["spends"]) == 3


def test_what_is_stored_is_data_as_well(type_in: Terminal, tmp_path: Path) -> None:
    answer = type_in("data", "store", "social-200", "--out", tmp_path / "kept")
    assert answer.code == 0 and "you alone may read" in answer.out
    assert (
        type_in("data", "describe", tmp_path / "kept", "--json").json
        == type_in("data", "describe", "social-200", "--json").json
    )
    assert type_in("data", "croissant", tmp_path / "kept").code == 0
    assert type_in("data", "store", "social-200", "--out", tmp_path / "kept").code == 2
