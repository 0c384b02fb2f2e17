"""``graphveil compare-runs``, the split of a comparison, and a folder from before there was one."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphveil.attacks.limits import Limit
from graphveil.attacks.result import judge
from graphveil.federation.core.agreement import read_agreement
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.methods.runs import experiment
from graphveil.reports.attacks.files import PLAIN
from graphveil.reports.base.files import sealed, to_json, write_text
from graphveil.reports.compare import finished
from tests.cli.conftest import Terminal
from tests.reports import made

QUICK = ("--epochs", 2, "--no-controls")
FOLDERS = ("runs/lpgnn", "runs/gcn", "runs/void", "published", "fed")


def leave_attack(folder: Path, method: str) -> None:
    """What an attack leaves in a run folder, with made scores: strong against a plain network, weak against the run."""
    scores = np.arange(400) / 400
    folder.mkdir(exist_ok=True)
    found = {}
    for label, members in ((method, scores), (PLAIN, scores + 0.5)):
        found[label] = judge("linkteller", "edges", members, scores, limit=Limit(1.0, 0.0, "made")).to_dict()
    write_text(folder / "attack-linkteller.json", sealed(found))


def leave_federation(type_in: Terminal) -> None:
    """What the parties of a federation keep, without having run."""
    assert type_in("federation", "split", "social-200", "--out", "parts").code == 0
    assert type_in("federation", "init", "--from", "parts", "--out", "fed", "--epsilon", 8).code == 0
    for name in ("holder1", "holder2"):
        folder = Path("fed") / name
        setting = read_agreement(folder).setting
        write_text(folder / "guarantee.json", to_json(guarantee_of(setting).to_dict()))
        write_text(folder / "ledger.json", to_json(ledger_of(setting, setting.publications).to_dict()))
        found = {"accuracy": made.interval(0.8, runs=1), "accuracy_alone": made.interval(0.7, runs=1)}
        score = {key: one.to_dict() for key, one in found.items() if name == "holder1"}
        write_text(folder / "outcome.json", to_json({"seconds": 3.0, **score}))


@pytest.fixture
def there(type_in: Terminal) -> Terminal:
    """FOLDERS, finished."""
    train = ("train", "gcn", "social-200", *QUICK)
    assert type_in("train", "lpgnn", "social-200", *QUICK, "--out", "runs/lpgnn").code == 0
    assert type_in(*train, "--out", "runs/gcn").code == 0
    noise = ("--epsilon-x", 2, "--reproducible-noise", 1)
    assert type_in("train", "lpgnn", "social-200", *noise, *QUICK, "--out", "runs/void").code == 0
    assert type_in("release", "feature-rr", "social-200", "--epsilon-x", 4, "-o", "published").code == 0
    leave_federation(type_in)
    for place, method in (("runs/lpgnn", "lpgnn"), ("fed", "shared-linear"), ("published.curator", "feature-rr")):
        leave_attack(Path(place), method)
    return type_in


def test_finished_folders_stand_side_by_side(there: Terminal) -> None:
    answer = there("compare-runs", *FOLDERS, "--json")
    assert answer.code == 0, answer.err
    rows = {row["folder"]: row for row in answer.json["rows"]}
    assert {folder: row["trust"] for folder, row in rows.items()} == {
        "runs/lpgnn": "local",
        "runs/gcn": "none",
        "runs/void": "local",
        "published": "release",
        "fed": "vertical",
    }
    assert rows["runs/lpgnn"]["group"] == rows["runs/void"]["group"] == "A"
    assert rows["runs/lpgnn"]["void"] is None
    assert "seed 1" in rows["runs/void"]["void"]
    assert rows["published"]["accuracy"] is None
    assert rows["fed"]["accuracy"]["mean"] == pytest.approx(made.interval(0.8, runs=1).mean)
    assert rows["fed"]["best_control"] == "label holder alone"
    assert rows["fed"]["lift"]["mean"] == pytest.approx(0.1)
    assert rows["fed"]["collected"].endswith(" publications")
    assert rows["fed"]["protects"]["features"] == "partly"
    attacked = rows["runs/lpgnn"]["attacks"]["linkteller"]
    assert attacked["auc"]["mean"] == 0.5 < attacked["auc_without_protection"]
    assert [folder for folder in FOLDERS if not rows[folder]["attacks"]] == ["runs/gcn", "runs/void"]
    assert answer.json["folder"] is None
    assert {entry.name for entry in Path().iterdir()} >= {"runs", "fed"}


def test_screen_and_files_say_who_is_trusted_and_mark_what_is_void(there: Terminal) -> None:
    answer = there("compare-runs", *FOLDERS, "--out", "side")
    assert max(len(line) for line in answer.out.splitlines()) <= 80
    flat = " ".join(answer.out.split())
    for words in (
        "A. Nobody is trusted",
        "B. Organisations and a server",
        "C. A curator is trusted once: what it publishes is public for ever",
        "D. Nothing is protected",
        "VOID: this run protects nobody",
        "without protection 0.",
        "epsilon allows 2.7",
        "no epsilon here covers them",
        "neither a weaker nor a stronger promise",
        "Accuracies on different data say nothing about each other",
    ):
        assert words in flat, words
    names = {"table.md", "table.csv", "table.json", "table.html", "figure.png", "figure.svg"}
    assert {entry.name for entry in Path("side").iterdir()} == names
    assert "(VOID)" in Path("side/table.md").read_text()
    assert {row["folder"] for row in csv.DictReader(io.StringIO(Path("side/table.csv").read_text()))} == set(FOLDERS)
    again = there("compare-runs", "runs/gcn", "--out", "side")
    assert (again.code, "side is not empty" in again.err) == (2, True)


def test_what_is_not_finished_or_named_twice_is_refused(there: Terminal) -> None:
    for words, said in (
        (("runs/gcn", "runs/../runs/gcn"), "is named twice"),
        (("runs",), "nothing finished in runs"),
        (("nowhere",), "nothing finished in nowhere"),
        (("parts",), "nothing finished in parts"),
    ):
        answer = there("compare-runs", *words)
        assert (answer.code, answer.out) == (2, "")
        assert said in answer.err, answer.err
    Path("fed/holder2/guarantee.json").write_text("{")
    assert "damaged party" in there("compare-runs", "fed/holder2").err


def test_a_release_has_the_accuracy_of_a_network_trained_on_it(
    there: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = made.record()
    monkeypatch.setattr(finished, "read_lift", lambda folder: real)
    answer = there("compare-runs", "published", "--json")
    (row,) = answer.json["rows"]
    assert (row["method"], row["trust"]) == ("feature-rr", "release")
    assert row["accuracy"]["mean"] == real.scores.accuracy.mean
    assert row["best_control"] == real.scores.best_control
    assert any("labels in it" in note for note in answer.json["notes"])


def test_other_test_nodes_are_noticed(type_in: Terminal) -> None:
    for name, more in (("a", ()), ("b", ("--split", "75/10/15"))):
        assert type_in("train", "mlp", "social-200", *QUICK, *more, "--out", name).code == 0
    (note,) = type_in("compare-runs", "a", "b", "--json").json["notes"]
    assert note.startswith("Not all were tested on the same nodes")
    assert type_in("compare-runs", "a", "--json").json["notes"] == []


COMPARE = ("compare", "mlp,label-propagation", "social-200", "--epsilon-y", 2, "--repeats", 1, *QUICK, "--out", "cmp")


def test_a_comparison_splits_as_train_does(type_in: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, int]] = []
    real = experiment.split_of

    def counted(graph: Any, kind: str, seed: int) -> Any:
        found = real(graph, kind, seed)
        seen.append((kind, int(found.test.sum())))
        return found

    monkeypatch.setattr(experiment, "split_of", counted)
    answer = type_in(*COMPARE, "--split", "75/10/15", "--json")
    assert answer.code == 0, answer.err
    assert set(seen) == {("75/10/15", 30)}
    assert len(seen) == 3  # a look before anything is written, and one for each cell
    assert json.loads(Path("cmp/comparison.json").read_text())["options"]["split"] == "75/10/15"
    assert type_in(*COMPARE).code == 2
    assert "split 75/10/15" in Path("cmp/table.md").read_text()


@pytest.mark.parametrize("split", ["75", "declared", "x"])
def test_a_split_that_cannot_be_is_refused_before_anything_is_written(type_in: Terminal, split: str) -> None:
    answer = type_in(*COMPARE, "--split", split)
    assert (answer.code, answer.out) == (2, "")
    assert not Path("cmp").exists()


def test_a_folder_from_before_there_was_a_choice_is_taken_up(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = type_in(*COMPARE, "--json").json
    plan = Path("cmp/comparison.json")
    assert "split" not in json.loads(plan.read_text())["options"]
    for cell in Path("cmp/cells").iterdir():  # as they were written then
        content = json.loads(cell.read_text())
        content["result"]["options"].pop("split")
        del content["sha256"]
        cell.write_text(json.dumps(content))
    for name in ("table.json", "table.html", "figure.png"):
        (Path("cmp") / name).unlink()
    monkeypatch.setattr(experiment, "run", pytest.fail)
    assert type_in(*COMPARE, "--json").json == first
    assert Path("cmp/table.json").exists()
