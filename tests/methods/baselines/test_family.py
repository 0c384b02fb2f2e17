"""Plain networks: they protect nothing, say so everywhere, and stand beside private methods as one of them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.methods import LPGNN, METHODS
from graphveil.methods.base.method import BASELINE
from graphveil.methods.baselines.family import BASELINES
from graphveil.methods.baselines.network import baseline
from graphveil.methods.registry import build_method, find_method, load_method, tagged
from graphveil.methods.runs.plan import plan
from graphveil.privacy import SeededRandomness
from tests.methods import made

NAMES = ("gcn", "sage", "gat", "mlp")
FAST: dict[str, Any] = {"epochs": 2, "hidden": 4}


def graph() -> Any:
    """People who all have a label; what is raw has no word for one that nobody knows."""
    start = made.graph(20)
    return made.changed(start, y=start.y.clamp_min(0))


def fitted(name: str) -> Any:
    return build_method(name, FAST, 3).fit(graph(), split=made.split_of(graph()), randomness=SeededRandomness(1))


def test_baselines_are_the_methods_that_protect_nothing() -> None:
    assert set(tagged(BASELINE)) == set(NAMES) == {name for name, one in METHODS.items() if one.trust == "none"}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_protected_is_said(name: str) -> None:
    model = fitted(name)
    assert math.isinf(model.guarantee.epsilon) and not model.ledger.spends
    assert model.guarantee.sentence().startswith("NOT PROTECTED")
    # No part is said to be public: none was declared so.
    assert model.guarantee.unprotected and not model.guarantee.assumes
    assert model.guarantee.unit.covers_connections is (name != "mlp")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_lpgnn_without_noise(name: str) -> None:
    """The same bits as the private method with both budgets infinite; whichever noise it is handed."""
    people, split = graph(), made.split_of(graph())
    private = LPGNN(epsilon_x=math.inf, epsilon_y=math.inf, model=name, **FAST)
    private.fit(people, split=split, randomness=SeededRandomness(9))
    assert torch.equal(fitted(name).predict_proba(), private.predict_proba())
    by_hand = baseline(name, **FAST).fit(people, split=split, randomness=SeededRandomness(3))
    assert torch.equal(by_hand.predict_proba(), private.predict_proba())


def test_only_the_perceptron_reads_no_edges() -> None:
    assert [name for name in NAMES if "edges" not in find_method(name).reads] == ["mlp"]
    start = graph()
    first = fitted("mlp").predict_proba()
    moved = graph()
    moved.edge_index = moved.edge_index[:, :0]
    again = build_method("mlp", FAST, 3).fit(moved, split=made.split_of(start), randomness=SeededRandomness(1))
    assert torch.equal(again.predict_proba(), first)
    sage = build_method("sage", FAST, 3).fit(moved, split=made.split_of(start), randomness=SeededRandomness(1))
    assert not torch.equal(sage.predict_proba(), fitted("sage").predict_proba())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("setting", ["epsilon_x", "model", "steps_x", "no_such"])
def test_what_makes_a_baseline_cannot_be_set(name: str, setting: str) -> None:
    with pytest.raises(InputError, match=setting):
        build_method(name, {setting: 1}, 3)


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_promises_nothing_and_disturbs_nothing(name: str) -> None:
    found = plan(name, graph(), FAST).to_dict()
    assert found["guarantee"]["epsilon"] == "inf" and found["epsilon"] == {"features": "inf", "labels": "inf"}
    assert found["seconds"] > 0 and found["memory_mb"] > 0 and found["advice"] == []
    assert all(row["features"] is None and row["labels"] is None for row in found["noise_to_signal"])
    assert (found["links"], found["curator"], found["release"]) == (None, None, None)


def test_private_edges_stop_no_plain_network_and_every_private_method_of_public_ones(tmp_path: Path) -> None:
    people = graph()
    people.schema = replace(people.schema, private=("features", "labels", "edges"))
    split, noise = made.split_of(people), SeededRandomness(1)
    model = build_method("gcn", FAST, 3).fit(people, split=split, randomness=noise)
    assert torch.equal(model.predict_proba(), fitted("gcn").predict_proba())
    again = load_method(model.save(tmp_path))
    assert again.kind == "plain-network" and again.guarantee == model.guarantee
    assert "declared private: features, labels, edges" in BASELINES.notes(model, people, {}, controlled=True)[0]
    # Both budgets infinite are not that door: who types a private method may have meant what it collects.
    with pytest.raises(InputError, match="declares its edges private"):
        LPGNN(epsilon_x=math.inf, epsilon_y=math.inf, model="gcn", **FAST).fit(people, split=split, randomness=noise)
