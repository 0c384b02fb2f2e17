"""``graphveil compare``: the grid, taking it up again, the table and the figure."""

from __future__ import annotations

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
