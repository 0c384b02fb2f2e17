"""Trackers get released values and nothing else: planted secrets are looked for in every byte that they write."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import struct
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphveil.cli import main
from graphveil.errors import MissingExtraError, WriteError
from graphveil.graphs import load_graph
from graphveil.methods import LPGNN, ClassSums
from graphveil.methods.base.network.start import SHIPPED
from graphveil.reports.runs.folder import read_run
from graphveil.reports.tracking.released import Released, of_model, of_run
from graphveil.reports.tracking.trackers import TRACKERS, find_tracker
from tests.cli.conftest import Terminal, type_in  # noqa: F401
from tests.reports import made

#: Shares of 12 validation and 19 test nodes never meet, so that no released figure looks like a private one.
PEOPLE, SPLIT = 62, "50/20/30"
#: Nobody would write these by chance.
FEATURE, PERSON, CLASS, COLUMN, PLACE = 0.73519042, "zqperson", "zqclass", "zqcolumn", "zqplace"
#: Libraries that take seconds to load, or a process of their own, are for the second tier.
EACH = ["tensorboard", *(pytest.param(name, marks=pytest.mark.slow) for name in TRACKERS if name != "tensorboard")]
RELEASED = Released("lpgnn", {"method": "lpgnn"}, {"epsilon": 2.0}, [[{"epoch": 1, "val_accuracy": 0.5}]])


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own, and no settings of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("WANDB_", "MLFLOW_"))]:
        monkeypatch.delenv(name)
    # Files are read faster than a data base is made; both hold the same.
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")


def own_folder(folder: Path) -> Path:
    """Own files in which everything private can be recognised."""
    folder.mkdir(parents=True)
    names = [f"{PERSON}{number}" for number in range(PEOPLE)]
    rows = [f"{name},{FEATURE + number / 1e4:.8f},0.5,{CLASS}{number % 2}" for number, name in enumerate(names)]
    (folder / "nodes.csv").write_text("\n".join([f"id,{COLUMN},other,label", *rows]) + "\n")
    links = [f"{names[number]},{names[(number + step) % PEOPLE]}" for number in range(PEOPLE) for step in (1, 2)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *links]) + "\n")
    facts = f'private = ["features", "labels"]\nrange = [0, 1]\nclasses = ["{CLASS}0", "{CLASS}1"]\ndirected = false\n'
    (folder / "graph.toml").write_text(facts)
    return folder


def records(content: bytes) -> bytes:
    """The payload of a W&B file, whose blocks of 32 KiB cut records in two."""
    payload, place = b"", 7
    while place + 7 <= len(content):
        if 32768 - place % 32768 < 7:
            place += 32768 - place % 32768
        length = int.from_bytes(content[place + 4 : place + 6], "little")
        payload += content[place + 7 : place + 7 + length]
        place += 7 + length
    return payload


def everything(folder: Path) -> bytes:
    """All that was written: names of files, bytes, and what is cut up inside them put together."""
    written = []
    for file in sorted(folder.rglob("*")):
        written.append(str(file.relative_to(folder)).encode())
        if file.is_file():
            written.append(file.read_bytes())
        if file.suffix == ".wandb":
            written.append(records(file.read_bytes()))
        if file.suffix == ".db":
            written.append("\n".join(sqlite3.connect(file).iterdump()).encode())
    return b"\n".join(written)


def spelt(secret: str | float) -> Iterable[bytes]:
    """A secret in every form in which a file may hold it."""
    if isinstance(secret, str):
        return (secret.encode(),)
    # Ten digits of a decimal, and the three binary forms of protocol buffers and data bases.
    return (repr(secret)[:11].encode(), struct.pack("<d", secret), struct.pack(">d", secret), struct.pack("<f", secret))


def leaked(folder: Path, secrets: Iterable[str | float]) -> list[str | float]:
    written = everything(folder)
    return [secret for secret in secrets if any(form in written for form in spelt(secret))]


def measured(answer: dict[str, Any]) -> list[float]:
    """Every figure of a run that was computed from true labels, and what it took; whole numbers tell nothing."""
    scores = [answer["accuracy"], answer["lift"], answer["ceiling"], *answer["controls"].values()]
    figures = [score[key] for score in scores if score for key in ("mean", "low", "high")]
    figures += [answer["seconds"], answer["peak_memory_mb"]]
    return [figure for figure in figures if len(repr(figure)) >= 11]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run on noisy reports and one of a curator, of people in whom everything private can be recognised."""
    folder = tmp_path_factory.mktemp("runs")
    own = own_folder(folder / PLACE / "zqown")
    budgets = {"lpgnn": ("--epsilon-x", "1", "--epsilon-y", "1"), "gap": ("--epsilon", "2")}
    for method, how in budgets.items():
        words = ("train", method, str(own), *how, "--epochs", "2", "--split", SPLIT, "--out", str(folder / method))
        assert main(list(words)) == 0
    return {method: folder / method for method in budgets}


@pytest.mark.slow  # whole runs
@pytest.mark.parametrize("tracker", EACH)
def test_nothing_private_reaches_a_tracker(tracker: str, runs: dict[str, Path], tmp_path: Path) -> None:
    for method, run in runs.items():
        find_tracker(tracker)(of_run(read_run(run)), str(tmp_path / method))
        features = [FEATURE + number / 1e4 for number in range(PEOPLE)]
        figures = measured(json.loads((run / "result.json").read_text()))
        secrets = [PERSON, CLASS, COLUMN, PLACE, "zqown", *features, *figures]
        assert len(secrets) > PEOPLE + 8
        assert leaked(tmp_path / method, secrets) == []
        # What is to be there is found in the same way, so a search that finds nothing would show.
        allowed = {method, "settings/epochs", "epsilon", *(["val_accuracy", "val_loss"] if method == "lpgnn" else [])}
        sought = [method, "settings/epochs", "epsilon", "val_accuracy", "val_loss"]
        assert set(leaked(tmp_path / method, sought)) == allowed


@pytest.mark.parametrize("tracker", EACH)
def test_an_adapter_that_leaks_is_caught(tracker: str, tmp_path: Path) -> None:
    leaky = replace(
        RELEASED,
        facts={**RELEASED.facts, "note": f"trained on {PERSON}7" + "x" * 40_000 + CLASS},
        figures={**RELEASED.figures, "accuracy": FEATURE},
        curves=[[{"epoch": 1, "test_accuracy": 0.61803398875}]],
    )
    honest, loose = tmp_path / "honest", tmp_path / "loose"
    secrets = (f"{PERSON}7", FEATURE, 0.61803398875)
    find_tracker(tracker)(RELEASED, str(honest))
    find_tracker(tracker)(leaky, str(loose))
    assert leaked(honest, secrets) == []
    assert leaked(loose, secrets) == list(secrets)


@pytest.mark.slow
def test_nothing_private_reaches_a_data_base_of_mlflow(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    write = find_tracker("mlflow")
    write(RELEASED, f"sqlite:///{tmp_path}/kept/runs.db")
    assert leaked(tmp_path / "kept", [PERSON, FEATURE, "val_accuracy"]) == ["val_accuracy"]
    write(replace(RELEASED, figures={"accuracy": FEATURE}), f"sqlite:///{tmp_path}/kept/runs.db")
    assert leaked(tmp_path / "kept", [PERSON, FEATURE]) == [FEATURE]


def test_what_cannot_be_tracked_is_refused_before_training(
    type_in: Terminal,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert set(TRACKERS) <= set(declared["project"]["optional-dependencies"])
    monkeypatch.setattr("graphveil.runtime.extras.find_spec", lambda name: None)
    cases = [
        (("--track", tracker), f"the package {tracker} is not installed; run: pip install 'graphveil[{tracker}]'")
        for tracker in TRACKERS
    ]
    for words, refusal in (
        *cases,
        (("--track", "mlfow"), "--track: 'mlfow'; allowed: mlflow, tensorboard, wandb; did you mean mlflow?"),
        (("--track-to", "x"), "--track-to: goes with --track"),
    ):
        answer = type_in("train", "lpgnn", "digits", *words)
        assert (answer.code, answer.err.count("\n")) == (2, 1) and refusal in answer.err
    with pytest.raises(MissingExtraError):
        find_tracker("wandb")
    assert list(Path.cwd().iterdir()) == []


def test_a_tracker_that_fails_leaves_the_run(type_in: Terminal) -> None:  # noqa: F811
    Path("taken").write_text("a file")
    words = ("--epochs", 2, "--no-controls", "--out", "run", "--track", "tensorboard", "--track-to", "taken")
    answer = type_in("train", "lpgnn", "social-100", *words)
    assert answer.code == 2
    assert "--track: tensorboard refused" in answer.err and "the run itself is saved" in answer.err
    assert read_run(Path("run")).method == "lpgnn"
    with pytest.raises(WriteError):
        find_tracker("tensorboard")(RELEASED, "taken")
    run = ("label-propagation", "social-100", "--no-controls", "--track", "tensorboard", "--track-to", "kept")
    assert "tracked by tensorboard: " in type_in("train", *run).err


def test_what_is_released_depends_on_who_added_the_noise(runs: dict[str, Path]) -> None:
    noisy, curated = (of_run(read_run(run)) for run in runs.values())
    assert (noisy.figures["epsilon"], noisy.facts["settings/epochs"], noisy.facts["void"]) == (2.0, 2, False)
    assert "data" not in noisy.facts and of_run(made.record(options={"source": "cora"})).facts["data"] == "cora"
    assert {*noisy.curves[0][0]} >= {"epoch", "loss", "val_accuracy"}
    assert [step for step, _ in noisy.points()] == [1, 2]
    # A curator who read true labels, labels that left as they are, noise that can be repeated: no curves.
    settings = {"epsilon_x": 1.0, "epsilon_y": math.inf}
    bare = of_run(made.record(settings=settings, guarantee=made.guarantee(1.0, math.inf)))
    void = of_run(made.record(settings={"epsilon_x": 1.0, "epsilon_y": 2.0}, void="seed 3"))
    assert [tracked.curves for tracked in (curated, bare, void)] == [[], [], []]
    assert bare.facts["settings/epsilon_y"] == bare.facts["epsilon"] == "inf" and "epsilon" not in bare.figures
    assert void.facts["void"]
    twice = of_run(made.record(settings={"epsilon_x": 1.0, "epsilon_y": 2.0}, runs=2))
    assert {key for _, row in twice.points() for key in row} >= {"loss/run 1", "loss/run 2"}


@pytest.mark.slow  # whole runs
def test_a_model_in_python_is_told_by_the_same_rule() -> None:
    graph = load_graph("social-100")
    local = of_model(LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=2).fit(graph))
    assert (local.title, local.figures["epsilon"], len(local.curves[0])) == ("lpgnn", 2.0, 2)
    assert "data" not in local.facts
    sums = of_model(ClassSums(epsilon=1.0, start="public").fit(graph))
    assert (sums.curves, sums.facts["settings/start"]) == ([], "public")
    path = str(SHIPPED / "class-sums.safetensors")  # of whoever trained: not told
    assert "settings/start" not in of_model(ClassSums(epsilon=1.0, start=path).fit(graph)).facts
    for model in (local, sums):
        assert json.loads(json.dumps(dict(model.facts))) == dict(model.facts)


@pytest.mark.slow
def test_mlflow_adds_nothing_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither user, script nor commit; 700 steps are more than it takes at once."""
    from mlflow.tracking import MlflowClient

    monkeypatch.setenv("MLFLOW_TRACKING_URI", str(tmp_path / "kept"))
    many = [{"epoch": number, "loss": 1.0 / number} for number in range(1, 701)]
    run_id = find_tracker("mlflow")(replace(RELEASED, curves=[many]), None).rpartition(" ")[2]
    client = MlflowClient(tracking_uri=str(tmp_path / "kept"))
    first = client.get_run(run_id)
    assert set(first.data.tags) <= {"mlflow.runName"} and first.info.user_id == "unknown"
    losses = client.get_metric_history(run_id, "loss")
    assert [(point.step, point.value) for point in losses] == [(row["epoch"], row["loss"]) for row in many]


@pytest.mark.slow
def test_wandb_stays_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("WANDB_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    before = set(children.read_text().split()) if children.is_file() else set()
    address = find_tracker("wandb")(RELEASED, None)
    left = set(children.read_text().split()) - before if children.is_file() else set()
    assert [pid for pid in left if "wandb" in Path(f"/proc/{pid}/comm").read_text()] == []  # its service ends
    assert "offline-run-" in address
    assert address.startswith(str(tmp_path / "elsewhere"))
    written = everything(tmp_path / "elsewhere")
    assert all(word in written for word in (b"mine", b"val_accuracy", b"lpgnn"))
    # The words of this process, the script, git and packages: W&B collects them unless it is told not to.
    assert not list((tmp_path / "elsewhere").rglob("*metadata.json"))
    assert not list((tmp_path / "elsewhere").rglob("requirements.txt"))


def test_figures_that_are_no_numbers_are_left_out() -> None:
    rows = [{"epoch": 1, "loss": float("nan"), "val_loss": None, "val_accuracy": 0.5, "val_estimate": float("inf")}]
    run = made.record(method="lpgnn", settings={"epsilon_x": 1.0, "epsilon_y": 1.0}, history=[rows])
    assert of_run(run).curves == [[{"epoch": 1.0, "val_accuracy": 0.5}]]
    assert of_run(replace(run, method="gap")).curves == []
