"""``graphveil compare``: the grid, taking it up again, the table and the figure."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from graphveil.attacks.limits import Limit
from graphveil.attacks.result import judge
from graphveil.cli import main
from graphveil.federation.core.agreement import read_agreement
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.files.serial import seal, to_json
from graphveil.files.writing import write_text
from graphveil.reports.attacks.files import PLAIN
from tests.cli.conftest import Terminal
from tests.flows.kinds import Kind
from tests.reports import made

# ---- graphveil compare-runs``, the split of a comparison, and a folder from before there was one ----


FOLDERS = ("runs/lpgnn", "runs/gcn", "runs/void", "published", "fed")


def leave_attack(folder: Path, method: str) -> None:
    """What an attack leaves in a run folder, with made scores: strong against a plain network, weak against the run."""
    scores = np.arange(400) / 400
    folder.mkdir(exist_ok=True)
    results = {}
    for label, members in ((method, scores), (PLAIN, scores + 0.5)):
        results[label] = judge("linkteller", "edges", members, scores, limit=Limit(1.0, 0.0, "made")).to_dict()
    write_text(folder / "attack-linkteller.json", seal(results))


def leave_federation() -> None:
    """What the parties of a federation keep, without having run."""
    assert main(["federation", "split", "social-200", "--out", "parts"]) == 0
    assert main(["federation", "init", "--from", "parts", "--out", "fed", "--epsilon", "8"]) == 0
    for name in ("holder1", "holder2"):
        folder = Path("fed") / name
        setting = read_agreement(folder).setting
        write_text(folder / "guarantee.json", to_json(guarantee_of(setting).to_dict()))
        write_text(folder / "ledger.json", to_json(ledger_of(setting, setting.publications).to_dict()))
        scores = {"accuracy": made.interval(0.8, runs=1), "accuracy_alone": made.interval(0.7, runs=1)}
        score = {key: interval.to_dict() for key, interval in scores.items() if name == "holder1"}
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
    answer = there("compare-runs", *FOLDERS, "--json").good
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
    for words, message in (
        (("runs/gcn", "runs/../runs/gcn"), "is named twice"),
        (("runs",), "nothing finished in runs"),
        (("parts",), "nothing finished in parts"),
    ):
        there("compare-runs", *words).refused(message)
    Path("fed/holder2/guarantee.json").write_text("{")
    assert "damaged party" in there("compare-runs", "fed/holder2").err


def test_a_method_that_the_graph_refuses_is_met_before_any_other_trains(there: Terminal) -> None:
    """Else the first one would train for nothing, and leave a folder that is in the way of the next comparison."""
    answer = there("compare", "gcn,solitude", "published", "--epochs", 1, "--repeats", 1, "--out", "compared")
    answer.refused("solitude would protect data that is already public")
    assert not Path("compared").exists()


@pytest.mark.slow  # whole commands
def test_a_comparison_goes_on_with_the_same_data_alone(type_in: Terminal, tmp_path: Path) -> None:
    output = tmp_path / "compared"
    Kind("clubs", private=(), columns="numbers").write(tmp_path / "clubs")
    words = ("compare", "mlp", "clubs", "--repeats", 1, "--no-controls", "--epochs", 1, "--out", "compared")
    assert type_in(*words).code == 0
    # A finished comparison may be shown: nothing in it lets a guess of the graph be checked.
    assert not (output / "graph").exists()
    assert "was finished before, on the data as they were then" in type_in(*words).err
    (output / "table.md").unlink()
    (output / "graph").write_text("0" * 64 + " of other data\n")
    type_in(*words).refused("the graph has changed since it began; name another folder")
