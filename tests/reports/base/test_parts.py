"""What may be handed on of a run, and what tells that somebody changed a file of it."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphveil.errors import ModelFileError
from graphveil.graphs import load_graph, write_folder
from graphveil.methods.runs.experiment import split_of
from graphveil.privacy import Spend
from graphveil.privacy.ledger_file import LedgerFile, read_ledger
from graphveil.privacy.statement.assumption import other_assumption
from graphveil.reports.base import parts as run_parts
from graphveil.reports.compare.finished import finished_sheet
from graphveil.reports.rewrite import rewrite
from graphveil.reports.runs import folder as run_folder
from tests.reports import made

OPTIONS = {"seed": 0, "repeats": 5, "device": "cpu", "source": "/home/somebody/secret-place"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder made by hand."""
    run_folder.write_run(made.result(), tmp_path / "run", options=OPTIONS)
    return tmp_path / "run"


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every place of a JSON value that is no container, and every container that can be emptied."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        if value:
            yield path, type(value)()
        for key, item in items:
            yield from leaves(item, (*path, key))
    elif isinstance(value, bool):
        yield path, not value
    elif isinstance(value, int | float):
        yield path, value * 0.5 + 0.001
    else:
        yield path, "forged" if isinstance(value, str) else 0.001


def changed(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(content) if isinstance(content, dict) else list(content)
    copy[path[0]] = changed(content[path[0]], path[1:], value)
    return copy


def accepted(folder: Path, file: Path, check: Callable[[Path], object] = run_folder.read_run) -> list[tuple[Any, ...]]:
    """The places of a JSON file that can be edited, one at a time, without a refusal."""
    before = file.read_text()
    content, passed, tried = json.loads(before), [], 0
    for path, value in leaves(content):
        file.write_text(json.dumps(changed(content, path, value)))
        tried += 1
        try:
            check(folder)
            passed.append(path)
        except ModelFileError:
            pass
    file.write_text(before)
    assert tried > 4
    return passed


@pytest.mark.slow  # whole runs
@pytest.mark.parametrize("name", ["result.json", "public/guarantee.json", "public/ledger.json", "public/about.json"])
def test_every_edited_field_is_refused(run: Path, name: str) -> None:
    run_folder.read_run(run)
    assert accepted(run, run / name) == []
    run_folder.read_run(run)


def test_a_run_without_its_public_part_is_refused_whatever_reads_it(run: Path) -> None:
    for name in ("model.safetensors", "ledger.json"):
        (run / name).unlink()
        shutil.move(run / "public" / name, run / name)
    shutil.rmtree(run / "public")
    for read in (rewrite, run_folder.open_model, lambda path: finished_sheet([path])):
        with pytest.raises(ModelFileError):
            read(run)


@pytest.mark.parametrize("name", ["config.toml", "metrics.jsonl", "digests.json", "public/digests.json"])
def test_a_file_with_other_bytes_is_refused(run: Path, name: str) -> None:
    text = (run / name).read_text()
    (run / name).write_text(text.replace("1", "2"))
    with pytest.raises(ModelFileError):
        run_folder.read_run(run)


@pytest.mark.slow  # whole runs
@pytest.mark.parametrize(
    "name", ["public/model.safetensors", "public/ledger.json", "public/guarantee.json", "public/about.json"]
)
def test_a_missing_file_is_refused(run: Path, name: str) -> None:
    (run / name).unlink()
    for folder in (run, run / "public"):
        with pytest.raises(ModelFileError):
            rewrite(folder)


def test_a_model_of_another_run_and_a_guarantee_below_its_parts_are_refused(run: Path, tmp_path: Path) -> None:
    cheap = made.result(guarantee=made.guarantee(0.1, 0.2), ledger=made.ledger(0.1, 0.2))
    run_folder.write_run(cheap, tmp_path / "other", options=OPTIONS)
    shutil.copy(tmp_path / "other/public/model.safetensors", run / "public/model.safetensors")
    with pytest.raises(ModelFileError):
        run_folder.read_run(run)
    forged = made.result(guarantee=replace(made.guarantee(), epsilon=0.5))
    run_folder.write_run(forged, tmp_path / "forged", options=OPTIONS)
    with pytest.raises(ModelFileError, match="more than its parts"):
        run_folder.read_run(tmp_path / "forged")


def test_a_spend_without_its_prediction_is_shown(run: Path) -> None:
    """A process that died between paying and predicting: nothing contradicts, and the spend stays."""
    file = run / "public/ledger.json"
    ledger = LedgerFile(file).open(read_ledger(file)).declare("features of others", 1.0)
    paid = ledger.spend(Spend("query", "features of others", "MultiBit", {}, 1.0))
    assert run_folder.read_run(run).privacy.ledger == paid
    assert "features of others" in Path(rewrite(run)["card"] or "").read_text()


@pytest.mark.slow  # whole runs
@pytest.mark.parametrize("stop", range(8))
def test_a_writer_killed_at_any_file_leaves_a_run_that_is_read(
    run: Path, stop: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The power goes out before the file of that number is written: what is there is old or new, and neither forged."""
    file = run / "public/ledger.json"
    ledger = LedgerFile(file).open(read_ledger(file)).declare("features of others", 1.0)
    paid = ledger.spend(Spend("query", "features of others", "MultiBit", {}, 1.0)).detached()
    changed = replace(made.guarantee(), assumes=(other_assumption("somebody asked again"),))
    written, write = 0, run_parts.write_bytes

    def failing(*args: Any, **options: Any) -> None:
        nonlocal written
        if written == stop:
            raise KeyboardInterrupt
        written += 1
        write(*args, **options)

    monkeypatch.setattr(run_parts, "write_bytes", failing)
    with pytest.raises(KeyboardInterrupt):
        run_folder.keep_spending(made.Model(changed, paid), run)
    monkeypatch.undo()
    record = run_folder.read_run(run)
    assert record.privacy.ledger == paid
    assert record.privacy.guarantee in (made.guarantee(), changed)
    run_folder.keep_spending(made.Model(changed, paid, epsilon_relationship=12.0), run)
    record = run_folder.read_run(run)
    assert (record.privacy.guarantee, record.privacy.epsilon_relationship) == (changed, 12.0)
    assert json.loads((run / "public/about.json").read_text())["relationship"] == 12.0
    assert not run_parts.is_cut_off(run)


def test_a_copy_of_the_folder_is_read_and_its_old_names_agree(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "copy")
    run_folder.read_run(tmp_path / "copy")
    (tmp_path / "copy/ledger.json").write_text(json.dumps({"budget": [], "spends": []}))
    with pytest.raises(ModelFileError, match="is not the one in public"):
        run_folder.read_run(tmp_path / "copy")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_nobody_else_may_read_the_makers_own_part(run: Path) -> None:
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    own = [file for file in run.iterdir() if file.is_file() and not file.is_symlink()]
    assert len(own) == 8
    assert {stat.S_IMODE(file.stat().st_mode) for file in own} == {0o600}
    # Whoever may read one shared file may read the model too.
    assert len({file.stat().st_mode for file in (run / "public").iterdir()}) == 1
    assert "May be handed on" in (run / "public/README.md").read_text()
    assert "For the owner of this run alone" in (run / "README.md").read_text()


def test_nothing_that_was_measured_or_typed_is_in_the_public_part(run: Path) -> None:
    record = run_folder.read_run(run)
    scores = [record.scores.accuracy, record.scores.ceiling, record.scores.lift, *record.scores.controls.values()]
    numbers = {f"{100 * score.mean:.1f}" for score in scores if score is not None}
    numbers |= {repr(score.mean) for score in scores if score is not None}
    words = {"secret-place", *record.scores.controls, record.created, "ceiling"}
    for file in (run / "public").iterdir():
        text = file.read_bytes().decode("latin-1")
        assert [word for word in numbers | words if word in text and file.name != "README.md"] == [], file.name


# ---- trained runs ----

BUDGETS = {
    "lpgnn": (),
    "label-propagation": (),
    "label-pool": (),
    "solitude": (),
    "link-beliefs": (),
    "gap": ("--epsilon", 1, "--delta", 1e-4),
    "progap": ("--epsilon", 1, "--delta", 1e-4),
    "class-sums": ("--epsilon", 1, "--delta", 1e-4),
    "dp-mlp": ("--epsilon", 9, "--delta", 1e-4, "--unit", "node"),
}


def train(method: str, data: Path, out: Path, *words: object) -> None:
    from graphveil.cli import main

    typed = ["train", method, data, *BUDGETS[method], *words, "--reproducible-noise", 2, "--out", out]
    if method not in ("link-beliefs", "label-propagation", "label-pool"):
        typed += ["--epochs", 3]
    assert main([str(word) for word in typed]) == 0


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two graphs that differ in the labels of test nodes alone."""
    graph = load_graph("social-200")
    folder = tmp_path_factory.mktemp("twins")
    other = graph.clone()
    test = split_of(graph, "random", 0).test
    other.y = graph.y.clone()
    other.y[test] = (graph.y[test] + 1) % len(graph.schema.classes)
    for name, people in (("a", graph), ("b", other)):
        write_folder(people, folder / name / "people")
    return folder / "a/people", folder / "b/people"


#: The others draw pages too, which takes seconds.
QUICK = ("label-pool", "class-sums")


@pytest.mark.parametrize(
    "method", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in BUDGETS]
)
def test_labels_of_test_nodes_change_nothing_in_the_public_part(
    method: str, twins: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in no collection and no training, so no guarantee speaks of them."""
    if method in QUICK:
        monkeypatch.setattr(run_folder, "page_html", lambda *_: "a page")
    words = () if method == "lpgnn" else ("--no-controls",)
    for name, data in zip("ab", twins, strict=True):
        train(method, data, tmp_path / name, *words)
    first, other = (content(tmp_path / name / "public") for name in "ab")
    assert first == other
    assert {"model.safetensors", "ledger.json", "guarantee.json", "card.md"} <= set(first)
    assert not any(str(twins[0].parent).encode() in text for text in first.values())
    results = [json.loads((tmp_path / name / "result.json").read_text())["accuracy"] for name in "ab"]
    assert results[0] != results[1]  # the labels do matter, elsewhere
    assert run_folder.open_model(tmp_path / "a" / "public").history in ((), [])
