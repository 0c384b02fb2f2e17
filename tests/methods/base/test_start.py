"""Readers pre-trained on public graphs: shipped with cards, no part of a guarantee, refused before any spend."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import InputError, ModelFileError
from graphveil.graphs import Split, random_split, social_graph
from graphveil.methods import load_method
from graphveil.methods.base.start import SHIPPED, Reader, read_start, save_start, start_notes
from graphveil.methods.curator import sum_clues
from graphveil.methods.local import label_pool
from graphveil.methods.registry import build_method
from graphveil.models.class_reader import ClassReader
from graphveil.privacy import SeededRandomness

SIZES = {"class-sums": (sum_clues.OWN, sum_clues.COMMON), "label-pool": (label_pool.OWN, label_pool.COMMON)}
TASKS = pytest.mark.parametrize("task", SIZES)


def shipped(task: str) -> Reader:
    found = read_start("public", task, *SIZES[task])
    assert found is not None
    return found


def built(task: str, start: str | None) -> Any:
    more = {"epochs": 6, "hidden": 4} if task == "class-sums" else {}
    return build_method(task, {"epsilon": 2.0, "start": start, **more}, 3)


def example() -> tuple[Any, Split]:
    graph = social_graph(150, average_degree=8, dimension=20, classes=3, seed=1)
    return graph, random_split(graph, 0)


def fitted(task: str, start: str | None) -> Any:
    graph, split = example()
    return built(task, start).fit(graph, split=split, randomness=SeededRandomness(1))


def own_file(path: Path, task: str, graphs: tuple[str, ...] = ()) -> str:
    """A reader of a user's own: untrained, which is one more way to read the clues."""
    network = ClassReader(*SIZES[task], 8, generator=torch.Generator().manual_seed(0))
    return str(save_start(path, task, network, {"graphs": list(graphs)}))


# ---- what is shipped ----


@TASKS
def test_a_card_names_the_file_that_it_was_written_for_and_all_graphs(task: str) -> None:
    file, card = SHIPPED / f"{task}.safetensors", (SHIPPED / f"{task}.md").read_text(encoding="utf-8")
    assert re.findall(r"sha256: ([0-9a-f]{64})", card) == [hashlib.sha256(file.read_bytes()).hexdigest()]
    assert file.stat().st_size < 200_000
    assert f"pretrain.py train --data-root DATA --task {task}" in card
    for graph in shipped(task).facts["graphs"]:
        assert graph in card


# ---- in a method ----


@pytest.mark.slow  # trainings
@TASKS
def test_a_start_changes_neither_what_is_released_nor_what_is_promised(task: str) -> None:
    without, beside = fitted(task, None), fitted(task, "public")
    assert (without.guarantee, without.ledger) == (beside.guarantee, beside.ledger)
    assert without.guarantee.void == beside.guarantee.void is not None
    if task == "class-sums":
        assert torch.equal(without.published.sums, beside.published.sums)
    else:
        assert torch.equal(without.released.labels, beside.released.labels)
    assert not torch.equal(without.predict_proba(), beside.predict_proba())
    assert torch.equal(beside.predict_proba(), fitted(task, "public").predict_proba())


@TASKS
def test_a_saved_model_needs_its_start_no_more(task: str, tmp_path: Path) -> None:
    file = own_file(tmp_path / "mine.safetensors", task)
    model = fitted(task, file)
    model.save(tmp_path / "model.safetensors")
    Path(file).unlink()
    loaded = load_method(tmp_path / "model.safetensors")
    assert torch.equal(loaded.predict_proba(), model.predict_proba())
    # Whoever is handed the model learns which reader joined, and nothing of its maker's folders.
    assert loaded.get_params()["start"] == "mine.safetensors"


@TASKS
@pytest.mark.parametrize("trouble", ["missing", "of the other method", "of other clues", "damaged"])
def test_a_file_that_does_not_fit_is_refused_before_anything_is_spent(task: str, trouble: str, tmp_path: Path) -> None:
    other = next(name for name in SIZES if name != task)
    file = tmp_path / "mine.safetensors"
    if trouble == "of the other method":
        own_file(file, other)
    elif trouble == "of other clues":
        save_start(file, task, ClassReader(2, 2, 4, generator=torch.Generator()), {"graphs": []})
    elif trouble == "damaged":
        file.write_bytes(b"no tensors")
    graph, split = example()
    model = built(task, str(file))
    with pytest.raises(ModelFileError, match=r"mine\.safetensors"):
        model.fit(graph, split=split, randomness=SeededRandomness(1))
    assert not model.ledger.spends


@TASKS
def test_a_run_on_a_training_graph_says_so(task: str, tmp_path: Path) -> None:
    mine = own_file(tmp_path / "mine.safetensors", task, ("digits",))
    assert "was itself trained on cora:" in start_notes("public", task, "cora")[0]
    assert "was itself trained on digits:" in start_notes(mine, task, "digits")[0]
    assert start_notes("public", task, "digits") == start_notes(None, task, "cora") == ()


def test_propagation_has_no_pool_that_a_start_could_join() -> None:
    from graphveil.methods import LabelPropagation

    with pytest.raises(InputError, match="start with label-pool"):
        LabelPropagation(epsilon_y=1.0, start="public")
