"""Plain networks protect nothing and say so; several public labels a node, and what stands in for features."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score
from torch import Tensor

from graphveil.errors import InputError
from graphveil.graphs import Graph, random_split, social_graph
from graphveil.methods import LPGNN, METHODS
from graphveil.methods.base.method import BASELINE
from graphveil.methods.base.network.features import STAND_INS, stand_in_features
from graphveil.methods.base.network.objectives import f1_shares, many_labels, micro_f1
from graphveil.methods.base.people.released import Topology
from graphveil.methods.baselines.family import BASELINES
from graphveil.methods.baselines.network import baseline
from graphveil.methods.registry import build_method, find_method, load_method, plan, tagged
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
    assert set(tagged(BASELINE)) == set(NAMES) == {name for name, method in METHODS.items() if method.trust == "none"}


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
    """The same bits as the network of the private method with infinite budgets; whichever noise it is handed."""
    people, split = graph(), made.split_of(graph())
    private = LPGNN(epsilon_x=math.inf, epsilon_y=math.inf, pooling="none", model=name, **FAST)
    private.fit(people, split=split, randomness=SeededRandomness(9))
    assert torch.equal(fitted(name).predict_proba(), private.predict_proba())
    by_hand = baseline(name, **FAST).fit(people, split=split, randomness=SeededRandomness(3))
    assert torch.equal(by_hand.predict_proba(), private.predict_proba())


@pytest.mark.parametrize("private", [(), ("features",), ("labels",), ("edges",), ("features", "labels", "edges")])
def test_what_is_called_public_is_what_the_graph_declares(private: tuple[str, ...]) -> None:
    people = made.changed(graph(), private=private)
    split = made.split_of(people)
    network = build_method("gcn", FAST, 3).fit(people, split=split, randomness=SeededRandomness(1))
    controls = BASELINES.controls(network, people, split, randomness=SeededRandomness(2))
    public = controls["public-only"]()
    if "labels" in private:
        assert (public == 1 / 3).all()
    else:
        assert (public == controls["majority" if "edges" in private else "label-propagation"]()).all()


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
    answer = plan(name, graph(), FAST).to_dict()
    assert answer["guarantee"]["epsilon"] == "inf" and answer["epsilon"] == {"features": "inf", "labels": "inf"}
    assert answer["seconds"] > 0 and answer["memory_mb"] > 0 and answer["advice"] == []
    assert all(row["features"] is None and row["labels"] is None for row in answer["noise_to_signal"])
    assert (answer["links"], answer["curator"], answer["release"]) == (None, None, None)


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


def test_private_edges_of_a_graph_that_is_only_predicted_stop_no_plain_network_and_lpgnn_before_anybody_pays() -> None:
    """A model would propagate over them as they are, under a guarantee of the graph that it was trained on."""
    trained, secret = graph(), made.graph(20, seed=2)
    secret.schema = replace(secret.schema, name="secret", private=("features", "labels", "edges"))
    split, noise = made.split_of(trained), SeededRandomness(1)
    assert len(build_method("gcn", FAST, 3).fit(trained, split=split, randomness=noise).predict_proba(secret))
    method = LPGNN(epsilon_x=1.0, epsilon_y=1.0, **FAST).fit(trained, split=split, randomness=noise)
    paid = method.ledger
    with pytest.raises(InputError, match="secret declares its edges private"):
        method.predict_proba(secret, randomness=noise, people="other")
    assert method.ledger == paid


# ---- several public labels a node, and what stands in for features ----


NOISE = SeededRandomness(0)


def several() -> Any:
    """The 60 people with three labels each: their community, and two that their first features decide."""
    people = graph()
    one_hot = torch.nn.functional.one_hot(people.y, 3).float()
    return made.changed(people, y=torch.stack([one_hot[:, 0], (people.x[:, 0] > 0).float(), one_hot[:, 1]], dim=1))


def drawn_labels(seed: int) -> tuple[Tensor, Tensor]:
    generator = np.random.default_rng(seed)
    return tuple(torch.from_numpy(generator.random((30, 5)) < share) for share in (0.4, 0.3))  # type: ignore[return-value]


def test_f1_is_that_of_scikit_learn() -> None:
    predicted, labels = drawn_labels(0)
    assert micro_f1(predicted, labels.float()) == pytest.approx(f1_score(labels, predicted, average="micro"))
    assert f1_shares(predicted, labels.float()).mean() == pytest.approx(f1_score(labels, predicted, average="micro"))
    nothing = torch.zeros(3, 2, dtype=torch.bool)
    assert micro_f1(nothing, nothing.float()) == 0.0


def test_the_loss_reads_training_labels_alone() -> None:
    labels = drawn_labels(1)[0].float()
    train, val = torch.arange(30) < 10, torch.arange(30) >= 25
    logits = torch.randn(30, 5)
    other = labels.clone()
    other[10:25] = 1 - other[10:25]
    first, second = (many_labels(some, train, val) for some in (labels, other))
    assert float(first.loss(logits)) == float(second.loss(logits))
    assert first.validate(logits) == second.validate(logits)
    by_hand = -(labels * logits.sigmoid().log() + (1 - labels) * (-logits).sigmoid().log())[:10].mean()
    assert float(first.loss(logits)) == pytest.approx(float(by_hand), rel=1e-5)
    assert many_labels(labels, train, torch.zeros(30, dtype=torch.bool)).validate(logits) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("model", ["gcn", "sage", "mlp"])
def test_plain_networks_learn_several_labels(model: str, tmp_path: Path) -> None:
    people = several()
    split = made.split_of(people)
    # All epochs: of so few people, validation may find none better for fifty of them.
    method = baseline(model, epochs=60, hidden=16, patience=0).fit(people, split=split, randomness=NOISE)
    predicted = method.predict()
    assert set(predicted.unique().tolist()) <= {0, 1}
    assert predicted.shape == (60, 3)
    assert method.score(people, split.test) == pytest.approx(
        f1_score(people.y[split.test].numpy(), predicted[split.test].numpy(), average="micro")
    )
    often = torch.ones(60, 3, dtype=torch.bool)
    assert method.score(people, split.train) > micro_f1(often[split.train], people.y[split.train])
    again: Any = load_method(method.save(tmp_path / "model.safetensors"))
    assert torch.equal(again.predict_proba(), method.predict_proba())
    assert again.score(people, split.test) == method.score(people, split.test)


def test_features_may_be_private_where_several_labels_are_public() -> None:
    people = several()
    method = LPGNN(epsilon_x=1.0, epsilon_y=math.inf, epochs=3, hidden=4)
    method.fit(people, split=made.split_of(people), randomness=NOISE)
    assert method.guarantee.epsilon == 1.0
    assert not method.released.labels[made.split_of(people).test].any()


# ---- what stands in for features ----


#: 0 has three neighbours, 1 to 3 have one, 4 has none.
STAR = Topology(torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]]), 5)
GRAPH = social_graph(120, average_degree=6, dimension=20, classes=3, seed=4)


def with_stand_in(people: Graph, kind: str, **settings: Any) -> Any:
    """LPGNN without features, its labels' noise and everything else the same every time."""
    own = {"epsilon_x": None, "stand_in": kind, **settings}
    model = LPGNN(**own, epsilon_y=2.0, epochs=3, seed=1)
    return model.fit(people, split=random_split(people, 0), randomness=SeededRandomness(5))


@pytest.mark.parametrize(("dimension", "codes"), [(6, [3, 1, 1, 1, 0]), (3, [2, 1, 1, 1, 0]), (1, [0, 0, 0, 0, 0])])
def test_degrees_are_one_hot_and_the_last_code_stands_for_all_larger_ones(dimension: int, codes: list[int]) -> None:
    centred, offset = stand_in_features("degree", STAR, dimension, 0)
    one_hot: Any = centred.toarray() + offset  # type: ignore[union-attr]
    assert one_hot.argmax(axis=1).tolist() == codes and one_hot.sum(axis=1).tolist() == [1.0] * 5
    assert set(np.unique(one_hot)) <= {0.0, 1.0}


@pytest.mark.parametrize("kind", STAND_INS)
def test_no_feature_is_read_and_only_labels_are_paid_for(kind: str) -> None:
    """Exact: whatever the features are, every probability is the same to the last bit."""
    other = GRAPH.clone()
    other.x = torch.full_like(GRAPH.x.to_dense() if GRAPH.x.layout != torch.strided else GRAPH.x, 0.125)
    first, two = with_stand_in(GRAPH, kind), with_stand_in(other, kind)
    assert torch.equal(first.predict_proba(), two.predict_proba())
    assert first.guarantee.epsilon == 2.0 and [spend.unit for spend in first.ledger.spends] == ["labels"]
    reading = [with_stand_in(people, "normal", epsilon_x=math.inf).predict_proba() for people in (GRAPH, other)]
    assert not torch.equal(*reading), "a method that does read features is not caught"


def test_degrees_are_refused_where_edges_are_private() -> None:
    private = GRAPH.clone()
    private.schema = replace(GRAPH.schema, private=("edges", "labels"))
    for kind in STAND_INS:
        with pytest.raises(InputError, match="declares its edges private"):
            with_stand_in(private, kind)


def test_kinds_differ_and_a_saved_model_keeps_its_own(tmp_path: Path) -> None:
    models = {kind: with_stand_in(GRAPH, kind) for kind in STAND_INS}
    answers = [model.predict_proba() for model in models.values()]
    assert all(not torch.equal(answers[0], other) for other in answers[1:])
    again = load_method(models["degree"].save(tmp_path / "run"))
    assert again.stand_in == "degree" and torch.equal(again.predict_proba(), models["degree"].predict_proba())


def test_what_stands_in_for_nothing_is_refused() -> None:
    with pytest.raises(InputError, match=r"beside features.*epsilon_x=none"):
        LPGNN(epsilon_x=1.0, epsilon_y=1.0, stand_in="ones")
