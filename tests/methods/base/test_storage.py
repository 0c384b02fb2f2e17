"""Saved methods: whatever is wrong with a file, loading says so in one line."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from graphveil.errors import ModelFileError
from graphveil.graphs import GraphSchema
from graphveil.methods import DPMLP, LPGNN, LabelPropagation, LinkBeliefs, load_method
from graphveil.methods.base.storage import FORMAT, KEY, number, read_method, save_method, schema_facts, schema_from
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


def test_a_changed_epsilon_is_noticed(content: bytes, tmp_path: Path) -> None:
    """The guarantee is restored from the settings in the header: they are hashed like the weights."""
    before, after = b'\\"epsilon_x\\": 1.0', b'\\"epsilon_x\\": 9.0'
    assert content.count(before) >= 1
    file = tmp_path / "model.safetensors"
    file.write_bytes(content.replace(before, after))
    assert "does not match its recorded hash" in refusal(file)


def test_files_of_others_are_refused_and_nothing_in_them_is_ever_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    file = tmp_path / "other.safetensors"
    for found in (b"name,age\nann,3\n" * 20, b'{"model": "lpgnn"}' * 20, bytes(500), pickle.dumps(Trap())):
        file.write_bytes(found)
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
    found = schema_from(facts)
    assert (found.name, found.classes, found.private, found.notes) == ("g", ("a", "b"), ("labels",), ())


def test_the_search_for_secrets_would_find_them(tmp_path: Path) -> None:
    """The twin of the conformance test: each secret is found in a file that does hold it."""
    graph = made.graph()
    method = LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=1).fit(graph, randomness=SeededRandomness(1))
    leaky = {"y": graph.y, "edges": graph.edge_index, "x": graph.x.to_dense(), **made.tensors_of(method.released)}
    facts = {"labels": graph.y.tolist(), "notes": list(graph.schema.notes)}
    found = save_method(tmp_path, "kind", facts, leaky).read_bytes()
    hidden = [
        name for name, secret in secrets(graph, made.tensors_of(method.released), method).items() if secret in found
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
