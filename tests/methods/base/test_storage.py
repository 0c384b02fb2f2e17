"""Saved methods: whatever is wrong with a file, loading says so in one line; readers trained on public graphs."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from graphveil.errors import ModelFileError
from graphveil.graphs import GraphSchema, Split, random_split, social_graph
from graphveil.methods import DPMLP, LPGNN, LabelPropagation, LinkBeliefs, load_method
from graphveil.methods.base.network.start import SHIPPED, read_start, save_start, start_notes
from graphveil.methods.base.storage import FORMAT, KEY, number, read_method, save_method, schema_facts, schema_from
from graphveil.methods.curator import sum_clues
from graphveil.methods.local import label_pool
from graphveil.methods.registry import build_method
from graphveil.models.networks.perceptrons import ClassReader
from graphveil.privacy import SeededRandomness
from tests.methods import made
from tests.methods.conformance import secrets


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A saved LPGNN."""
    method = LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=2, hidden=2, steps_x=1, steps_y=1)
    method.fit(made.graph(20), randomness=SeededRandomness(1))
    return method.save(tmp_path_factory.mktemp("saved")).read_bytes()


def refusal(path: Path) -> str:
    with pytest.raises(ModelFileError) as refused:
        load_method(path)
    assert "\n" not in str(refused.value)
    assert str(path) in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("bit", [0, 6])
def test_flipped_bits_are_noticed(content: bytes, bit: int, tmp_path: Path) -> None:
    """At 300 places over the file: header, settings, epsilons, ledger and weights alike.

    The one flip that may pass turns the last digit of a long fraction into another spelling of the same number.
    """
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    _, facts, _ = read_method(file)
    refused = 0
    for place in range(bit, len(content), len(content) // 300):
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        file.write_bytes(bytes(damaged))
        try:
            assert read_method(file)[1] == facts
        except ModelFileError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused >= 297


def test_files_of_others_are_refused_and_nothing_in_them_is_ever_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    file = tmp_path / "other.safetensors"
    for content in (b"name,age\nann,3\n" * 20, b'{"model": "lpgnn"}' * 20, bytes(500), pickle.dumps(Trap())):
        file.write_bytes(content)
        refusal(file)
    assert not (tmp_path / "sprung").exists()
    save_file({"weight": torch.zeros(3)}, file)
    assert "that graphveil did not write" in refusal(file)
    for header in ("no json", "[1, 2]", "{}", json.dumps({"format": FORMAT + 1})):
        save_file({"weight": torch.zeros(3)}, file, metadata={KEY: header})
        refusal(file)


def test_unknown_kinds_are_refused(tmp_path: Path) -> None:
    file = save_method(tmp_path, "nothing-of-ours", {}, {"weight": torch.zeros(3)})
    assert "holds a 'nothing-of-ours' model; allowed: lpgnn, label-propagation" in refusal(file)


def test_known_kinds_with_missing_facts_or_of_another_method_are_refused(content: bytes, tmp_path: Path) -> None:
    for kind in ("lpgnn", "label-propagation"):
        file = save_method(tmp_path, kind, {"seed": 0}, {"weight": torch.zeros(3)})
        assert "has a missing or damaged field" in refusal(file)
    file.write_bytes(content)
    with pytest.raises(ModelFileError, match="label-propagation"):
        LabelPropagation.load(file)


SHAPES = {
    "another dimension": lambda t: {"weights.weight1": t["weights.weight1"][:-1]},
    "another width": lambda t: {"weights.bias1": torch.zeros(7)},
    "a transposed weight": lambda t: {"weights.weight2": t["weights.weight2"].T.contiguous()},
    "a missing weight": lambda t: {"weights.bias2": None},
    "a missing first weight": lambda t: {"weights.weight1": None},
    "a weight too many": lambda t: {"weights.attention1": torch.zeros(2, 4, 2)},
    "a mean of another dimension": lambda t: {"mean": torch.zeros(1, 3)},
    "no mean": lambda t: {"mean": None},
    "no logits": lambda t: {"logits": None},
    "logits of other classes": lambda t: {"logits": t["logits"][:, :2].contiguous()},
    "logits in a row": lambda t: {"logits": t["logits"].flatten()},
}


@pytest.mark.parametrize("name", SHAPES)
def test_tensors_of_other_shapes_are_refused_at_load(content: bytes, name: str, tmp_path: Path) -> None:
    """Written with a hash that fits: the file is whole, but it is no network of these settings."""
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    kind, facts, tensors = read_method(file)
    changed = {**tensors, **SHAPES[name](tensors)}
    save_method(file, kind, facts, {key: value for key, value in changed.items() if value is not None})
    assert "has a missing or damaged field" in refusal(file)


def test_a_failed_save_leaves_the_old_file_as_it_was(tmp_path: Path) -> None:
    file = save_method(tmp_path, "kind", {"x": 1}, {"weight": torch.arange(3)})
    before = file.read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        save_method(tmp_path, "kind", {"x": float("nan")}, {"weight": torch.arange(3)})
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


def test_numbers_and_schemas_become_json_and_back_less_their_notes() -> None:
    assert [number(value) for value in (1.0, float("inf"), None)] == [1.0, "inf", None]
    schema = GraphSchema("g", 2, 0.0, 1.0, ("a", "b"), True, ("labels",), "declared", ("clipped 17 values",))
    facts = json.loads(json.dumps(schema_facts(schema)))
    assert "17" not in json.dumps(facts)
    restored = schema_from(facts)
    assert (restored.name, restored.classes, restored.private, restored.notes) == ("g", ("a", "b"), ("labels",), ())


def test_the_search_for_secrets_would_find_them(tmp_path: Path) -> None:
    """The twin of the conformance test: each secret is found in a file that does hold it."""
    graph = made.graph()
    method = LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=1).fit(graph, randomness=SeededRandomness(1))
    leaky = {"y": graph.y, "edges": graph.edge_index, "x": graph.x.to_dense(), **made.tensors_of(method.released)}
    facts = {"labels": graph.y.tolist(), "notes": list(graph.schema.notes)}
    content = save_method(tmp_path, "kind", facts, leaky).read_bytes()
    hidden = [
        name for name, secret in secrets(graph, made.tensors_of(method.released), method).items() if secret in content
    ]
    for name in ("canary as float32", "true labels as int64", "edges as int64", "features as float32"):
        assert name in hidden
    for name in ("reported labels as int64", "reported indices as int32", "reported bits as uint8"):
        assert name in hidden
    assert {"true labels as text", "notes that count private values"} <= set(hidden)


def test_weights_that_are_no_floats_are_refused_at_load(tmp_path: Path) -> None:
    """Torch says so with a RuntimeError."""
    method = DPMLP(epsilon=4.0, delta=0.01, hidden=2, passes=1).fit(made.graph(20), randomness=SeededRandomness(1))
    file = method.save(tmp_path)
    kind, facts, tensors = read_method(file)
    for name in tensors:
        save_method(file, kind, facts, {**tensors, name: tensors[name].to(torch.int64)})
        refusal(file)


@pytest.mark.parametrize("method", [LabelPropagation(epsilon_y=1.0), LinkBeliefs(epsilon_x=None, epsilon_a=4.0)])
def test_probabilities_that_are_no_numbers_are_refused_at_load(method: Any, tmp_path: Path) -> None:
    file = method.fit(made.graph(20), randomness=SeededRandomness(1)).save(tmp_path)
    kind, facts, tensors = read_method(file)
    save_method(file, kind, facts, {**tensors, "probabilities": tensors["probabilities"] * float("nan")})
    assert "or values that are not finite" in refusal(file)


# ---- readers pre-trained on public graphs: no part of a guarantee, refused before any spend ----


SIZES = {"class-sums": (sum_clues.OWN, sum_clues.COMMON), "label-pool": (label_pool.OWN, label_pool.COMMON)}
TASKS = pytest.mark.parametrize("task", SIZES)


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


@TASKS
def test_a_card_names_the_file_that_it_was_written_for_and_all_graphs(task: str) -> None:
    file, card = SHIPPED / f"{task}.safetensors", (SHIPPED / f"{task}.md").read_text(encoding="utf-8")
    assert re.findall(r"sha256: ([0-9a-f]{64})", card) == [hashlib.sha256(file.read_bytes()).hexdigest()]
    assert file.stat().st_size < 200_000
    assert f"pretrain.py train --data-root DATA --task {task}" in card
    start = read_start("public", task, *SIZES[task])
    assert start is not None and all(graph in card for graph in start.facts["graphs"])


# ---- in a method ----


@pytest.mark.slow  # trainings
@TASKS
def test_a_start_changes_neither_what_is_released_nor_what_is_promised(task: str) -> None:
    without, beside = fitted(task, None), fitted(task, "public")
    # It is said that the start is public: `start-public`.
    assumes = tuple(fact for fact in beside.guarantee.assumes if fact.code != "start-public")
    assert (without.guarantee, without.ledger) == (replace(beside.guarantee, assumes=assumes), beside.ledger)
    assert len(assumes) == len(beside.guarantee.assumes) - 1
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
