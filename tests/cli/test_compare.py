"""``graphveil compare``: the grid, taking it up again, the table and the figure."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphveil.attacks.limits import Limit
from graphveil.attacks.result import judge
from graphveil.cli import main
from graphveil.federation.core.agreement import read_agreement
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.methods.runs import experiment
from graphveil.reports.attacks.files import PLAIN
from graphveil.reports.base.files import sealed, to_json, write_text
from graphveil.reports.compare import finished
from tests.cli.conftest import Terminal
from tests.reports import made

GRID = ("compare", "lpgnn,label-propagation", "social-100", "--epsilon-y", "1,inf", "--epochs", 2, "--no-controls")
OUT = ("--out", "cmp")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any, int]]:
    """The cells that are really run."""
    seen: list[tuple[str, Any, int]] = []
    real = experiment.run

    def counted(name: str, graph: Any, **arguments: Any) -> experiment.Result:
        seen.append((name, dict(arguments["settings"]), arguments["seed"]))
        return real(name, graph, **arguments)

    monkeypatch.setattr(experiment, "run", counted)
    return seen


@pytest.mark.slow  # whole commands
@pytest.mark.usefixtures("quick_pages")
def test_each_method_takes_part_in_its_own_settings_and_other_ones_are_refused(
    type_in: Terminal, runs: list[Any]
) -> None:
    words = (*GRID, "--epsilon-x", "1,2", "--repeats", 1, *OUT)
    answer = type_in(*words, "--json")
    assert answer.code == 0
    assert len(runs) == 4 + 2
    assert all("epsilon_x" not in settings for name, settings, _ in runs if name == "label-propagation")
    assert all(settings["epochs"] == 2 for name, settings, _ in runs if name == "lpgnn")
    rows = answer.json["rows"]
    assert [(row["method"], row["group"]) for row in rows] == [
        *[("lpgnn", "A")] * 2,  # features and label
        *[("lpgnn", "B")] * 2,  # features alone
        ("label-propagation", "C"),
        ("label-propagation", "D"),  # nothing
    ]
    assert rows[2]["settings"] == {"epsilon_x": 1.0, "epsilon_y": "inf"}
    folder = Path("cmp")
    before = sorted((entry.name, entry.stat().st_mtime_ns) for entry in folder.rglob("*"))
    for change, differs in (
        (("--set", "steps_x=2"), "methods"),
        (("--reproducible-noise", 1), "options"),
        (("--split", "75/10/15"), "options"),
    ):
        refused = type_in(*words, *change)
        assert refused.code == 2 and f"holds a comparison with other {differs}" in refused.err
    assert before == sorted((entry.name, entry.stat().st_mtime_ns) for entry in folder.rglob("*"))
    assert type_in(*words, "--threads", 1).code == 0 and len(runs) == 6  # speed may change
    cell = min((folder / "cells").iterdir())
    for content in ("[]", '{"cell": {}, "result": {}}'):
        cell.write_text(content)
        damaged = type_in(*words)
        assert damaged.code == 2 and str(cell) in damaged.err and "delete it" in damaged.err
    cell.unlink()
    assert type_in(*words).code == 0


@pytest.mark.usefixtures("quick_pages")
def test_it_goes_on_where_it_stopped(type_in: Terminal, runs: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    counted = experiment.run

    def stops(name: str, graph: Any, **arguments: Any) -> experiment.Result:
        if len(runs) == 3:
            raise KeyboardInterrupt
        return counted(name, graph, **arguments)

    monkeypatch.setattr(experiment, "run", stops)
    stopped = type_in(*GRID, "--repeats", 2, *OUT, "--json")
    assert (stopped.code, stopped.out) == (130, "")
    assert stopped.err.endswith("interrupted; no partial files remain\n")
    assert len(list(Path("cmp/cells").iterdir())) == 3
    assert not Path("cmp/table.md").exists()

    monkeypatch.setattr(experiment, "run", counted)
    done = type_in(*GRID, "--repeats", 2, *OUT, "--json")
    assert done.code == 0
    assert len(runs) == 8
    assert len({(name, str(settings), seed) for name, settings, seed in runs}) == 8
    again = type_in(*GRID, "--repeats", 2, *OUT, "--json")
    assert again.json == done.json
    assert len(runs) == 8


@pytest.mark.slow  # whole commands
def test_screen_tables_and_figure_are_there_and_noise_that_is_known_voids(type_in: Terminal) -> None:
    shown = type_in(*GRID, "--repeats", 2, "--reproducible-noise", 1, *OUT)
    assert shown.code == 0 and "VOID" in shown.out
    assert max(len(line) for line in shown.out.splitlines()) <= 80
    tables = ("table.md", "table.csv", "table.json", "table.html")
    assert {entry.name for entry in Path("cmp").iterdir()} == {
        *("comparison.json", "cells", *tables, "figure.png", "figure.svg")
    }
    assert "VOID" in Path("cmp/table.md").read_text() and "lpgnn" in Path("cmp/figure.svg").read_text()
    with Path("cmp/table.csv").open() as file:
        assert [row["runs"] for row in csv.DictReader(file)] == ["2"] * 4
    found = [json.loads(cell.read_text())["result"]["guarantee"]["void"] for cell in Path("cmp/cells").iterdir()]
    assert len(set(found)) == 3  # seed 1, seed 2, and none where nothing is randomized


# ---- graphveil compare-runs``, the split of a comparison, and a folder from before there was one ----


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


def leave_federation() -> None:
    """What the parties of a federation keep, without having run."""
    assert main(["federation", "split", "social-200", "--out", "parts"]) == 0
    assert main(["federation", "init", "--from", "parts", "--out", "fed", "--epsilon", "8"]) == 0
    for name in ("holder1", "holder2"):
        folder = Path("fed") / name
        setting = read_agreement(folder).setting
        write_text(folder / "guarantee.json", to_json(guarantee_of(setting).to_dict()))
        write_text(folder / "ledger.json", to_json(ledger_of(setting, setting.publications).to_dict()))
        found = {"accuracy": made.interval(0.8, runs=1), "accuracy_alone": made.interval(0.7, runs=1)}
        score = {key: one.to_dict() for key, one in found.items() if name == "holder1"}
        write_text(folder / "outcome.json", to_json({"seconds": 3.0, **score}))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """FOLDERS, finished."""
    folder = tmp_path_factory.mktemp("ended")
    noise = ("--epsilon-x", "2", "--reproducible-noise", "1")
    quick = ("--epochs", "2", "--no-controls", "--out")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["train", "lpgnn", "social-200", *quick, "runs/lpgnn"]) == 0
        assert main(["train", "gcn", "social-200", *quick, "runs/gcn"]) == 0
        assert main(["train", "lpgnn", "social-200", *noise, *quick, "runs/void"]) == 0
        assert main(["release", "feature-rr", "social-200", "--epsilon-x", "4", "-o", "published"]) == 0
        leave_federation()
        for place, method in (("runs/lpgnn", "lpgnn"), ("fed", "shared-linear"), ("published.curator", "feature-rr")):
            leave_attack(Path(place), method)
    yield folder


@pytest.fixture
def there(type_in: Terminal, ended: Path, tmp_path: Path) -> Terminal:
    """A terminal in a copy of them."""
    shutil.copytree(ended, tmp_path, symlinks=True, dirs_exist_ok=True)
    return type_in


@pytest.mark.slow  # whole commands
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


@pytest.mark.slow  # whole commands
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


@pytest.mark.slow  # whole commands
def test_a_release_has_the_accuracy_of_a_network_trained_on_it(
    there: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = made.record()
    monkeypatch.setattr(finished, "read_lift", lambda folder: real)
    answer = there("compare-runs", "published", "--json")
    (row,) = answer.json["rows"]
    # Whose test nodes are others is told.
    assert there("train", "mlp", "social-200", *QUICK, "--split", "75/10/15", "--out", "b").code == 0
    (note,) = there("compare-runs", "runs/gcn", "b", "--json").json["notes"]
    assert note.startswith("Not all were tested on the same nodes")
    assert (row["method"], row["trust"]) == ("feature-rr", "release")
    assert row["accuracy"]["mean"] == real.scores.accuracy.mean
    assert row["best_control"] == real.scores.best_control
    assert any("labels in it" in note for note in answer.json["notes"])


COMPARE = ("compare", "mlp,label-propagation", "social-200", "--epsilon-y", 2, "--repeats", 1, *QUICK, "--out", "cmp")


@pytest.mark.slow  # whole commands
@pytest.mark.usefixtures("quick_pages")
def test_a_comparison_splits_as_train_does_and_an_older_one_is_taken_up(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in ("75", "declared"):
        answer = type_in(*COMPARE, "--split", wrong)
        assert (answer.code, answer.out) == (2, "") and not Path("cmp").exists()
    split = type_in(*COMPARE[:-1], "split", "--split", "75/10/15", "--json")
    assert split.code == 0 and "split 75/10/15" in Path("split/table.md").read_text()
    assert json.loads(Path("split/comparison.json").read_text())["options"]["split"] == "75/10/15"
    assert type_in(*COMPARE[:-1], "split").code == 2
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
