"""``predict``, ``plan``, ``data describe``, ``mechanisms list`` and ``report``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Terminal
from tests.flows.kinds import Kind
from tests.graphs.made import folder
from tests.graphs.test_croissant import read, warnings
from tests.graphs.test_release import published


def test_predictions_go_to_the_screen_to_json_or_to_a_file(type_in: Terminal, trained: Path) -> None:
    text = type_in("predict", trained, "digits")
    assert text.code == 0 and "First 10 of 1,797" in text.out
    assert text.out.index("Guarantee") < text.out.index("Predicting: ")
    answer = type_in("predict", trained, "digits", "--json").json
    assert answer["nodes"] == len(answer["predictions"]) == sum(answer["predicted"].values()) == 1797
    assert set(answer["predictions"][0]) == {"id", "prediction", "probability"}
    assert "costs nothing more" in answer["note"]
    for name, reader in (("p.csv", pl.read_csv), ("p.parquet", pl.read_parquet)):
        assert "predictions" not in type_in("predict", trained, "digits", "--out", name, "--json").json
        table = reader(name)
        assert table.columns == ["id", "prediction", "probability", *(f"p({digit})" for digit in range(10))]
        assert len(table) == 1797
        type_in("predict", trained, "digits", "--out", name).refused("exists")
    assert sorted(entry.name for entry in Path.cwd().iterdir()) == ["p.csv", "p.parquet"]


def test_a_prediction_of_several_labels_says_that_it_lists_the_likeliest(type_in: Terminal) -> None:
    Kind("several", labels="several", private=(), people=30).write(Path("town"))
    assert type_in("train", "mlp", "town", "--epochs", "1", "--no-controls", "--out", "run").code == 0
    text = " ".join(type_in("predict", "run").out.split())
    assert "each node is listed under its likeliest label; all labels with p above 0.5 (--out) are what F1" in text


def test_of_many_classes_the_screen_shows_the_largest(type_in: Terminal) -> None:
    names = [f"c{place}" for place in range(25)]
    declared = f"private = []\nrange = [0, 1]\ndirected = false\nclasses = {json.dumps(names)}\n"
    people = [name for place, name in enumerate(names) for _ in range(25 - place)]
    nodes = "id,x,label\n" + "".join(f"{n},0,{name}\n" for n, name in enumerate(people))
    folder(Path("town"), graph__toml=declared, nodes__csv=nodes, edges__csv="source,target\n0,1\n")
    text = " ".join(type_in("data", "describe", "town").out.split())
    assert "classes c0 25, c1 24," in text and "c9 16, 15 others 1 to 15 nodes each (all: --json)" in text
    assert type_in("data", "describe", "town", "--json").json["classes"]["c24"] == 1


@pytest.mark.slow  # whole commands
def test_people_of_a_new_graph_report_once_and_run_and_public_part_remember(type_in: Terminal, tmp_path: Path) -> None:
    run, handed = tmp_path / "run", tmp_path / "handed"
    type_in("train", "lpgnn", "social-200", "--epochs", "2", "--no-controls", "--out", run)
    shutil.copytree(run / "public", handed)
    own = type_in("predict", run, "social-200", "--json").json
    assert type_in("predict", handed, "social-200", "--json").json["predicted"] == own["predicted"]
    type_in("predict", run, "social-150", "--json").refused("queries=1", "people='same'", "--people other")
    newcomers = ("social-150", "--people", "other", "--json")
    # The first through the public part: inside of a run that is the run.
    first, again = (type_in("predict", place, *newcomers).json for place in (run / "public", run))
    assert "; paid now: epsilon " in first["note"] and "paid now" not in again["note"]
    assert first["predictions"] == again["predictions"] and type_in("report", run).code == 0
    ledger = json.loads((run / "ledger.json").read_text())
    assert [row["unit"].split(" (")[0] for row in ledger["spends"]] == ["features", "labels", "features of social-150"]
    assert json.loads((run / "result.json").read_text())["ledger"] == ledger
    assert "features of social-150" in (run / "report.html").read_text()
    # What was handed on is another account.
    (handed / "card.md").write_text("gone")
    answer = type_in("report", handed, "--json").json
    assert (answer["method"], answer["report"]) == ("lpgnn", None)
    assert "social-150" not in (handed / "card.md").read_text()
    assert type_in("predict", handed, *newcomers).code == 0
    assert not (handed / "answers.safetensors").exists()
    assert (tmp_path / "handed.answers.safetensors").stat().st_mode & 0o777 == 0o600
    assert len(json.loads((handed / "ledger.json").read_text())["spends"]) == 3
    assert "social-150" in (handed / "card.md").read_text()
    assert type_in("report", handed).code == 0


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("report", "result.json"),
        ("predict", "ledger.json"),
        ("attack", "guarantee.json"),
        ("compare-runs", "ledger.json"),
        ("predict", "result.json"),
    ],
)
def test_a_forged_run_is_refused_in_one_line(
    type_in: Terminal, trained: Path, tmp_path: Path, command: str, name: str
) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "forged", symlinks=True))
    words = {"predict": ("digits",), "attack": ("--attack", "linkteller")}.get(command, ())
    file = run / name if name == "result.json" else run / "public" / name
    content = json.loads(file.read_text())
    if name == "ledger.json":
        content["spends"] = []
    else:
        content.get("guarantee", content)["epsilon"] = 0.001
    file.write_text(json.dumps(content))
    answer = type_in(command, run, *words)
    assert (answer.code, answer.out) == (2, "")
    (line,) = [line for line in answer.err.splitlines() if line.strip()]
    assert name in line


# ---- graphveil data croissant ----


CREDIT = (
    *("--license", "https://spdx.org/licenses/CC-BY-4.0.html", "--cite-as", "@misc{office}", "--creator", "The office"),
    *("--url", "https://example.org", "--published", "2026-01-31"),
)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_owner_adds_a_licence_to_a_release_that_is_out(type_in: Terminal, tmp_path: Path) -> None:
    folder = published(tmp_path)
    before = type_in("data", "describe", folder, "--json").json
    answer = type_in("data", "croissant", folder, *CREDIT, "--out", folder / "croissant.json")
    assert (answer.code, answer.out) == (0, f"Written to {folder / 'croissant.json'}\n")
    assert warnings(read(folder / "croissant.json")) == []
    # The release is still whole: its metadata is not among what was hashed.
    assert type_in("data", "describe", folder, "--json").json == before
