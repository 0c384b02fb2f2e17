"""Several public labels a node: F1 by hand, and plain networks trained, saved, scored and run on them."""

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
from graphveil.methods import LPGNN, load_method
from graphveil.methods.base.many_labels import f1_by_label, f1_shares, many_labels, micro_f1
from graphveil.methods.base.released import Topology
from graphveil.methods.base.stand_ins import STAND_INS, stand_in_features
from graphveil.methods.baselines.network import baseline
from graphveil.privacy import SeededRandomness
from tests.methods import made

NOISE = SeededRandomness(0)


def several(seed: int = 1) -> Any:
    """The 60 people with three labels each: their community, and two that their first features decide."""
    graph = made.graph(20, seed=seed)
    graph.y[made.UNKNOWN] = 0
    one_hot = torch.nn.functional.one_hot(graph.y, 3).float()
    return made.changed(graph, y=torch.stack([one_hot[:, 0], (graph.x[:, 0] > 0).float(), one_hot[:, 1]], dim=1))


def drawn(seed: int) -> tuple[Tensor, Tensor]:
    generator = np.random.default_rng(seed)
    return tuple(torch.from_numpy(generator.random((30, 5)) < share) for share in (0.4, 0.3))  # type: ignore[return-value]


def test_f1_is_that_of_scikit_learn() -> None:
    found, labels = drawn(0)
    assert micro_f1(found, labels.float()) == pytest.approx(f1_score(labels, found, average="micro"))
    assert f1_shares(found, labels.float()).mean() == pytest.approx(f1_score(labels, found, average="micro"))
    assert f1_by_label(found, labels.float()) == pytest.approx(f1_score(labels, found, average=None))
    nothing = torch.zeros(3, 2, dtype=torch.bool)
    assert micro_f1(nothing, nothing.float()) == 0.0
    assert f1_by_label(nothing, nothing.float()).tolist() == [0.0, 0.0]


def test_the_loss_reads_training_labels_alone() -> None:
    labels = drawn(1)[0].float()
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
    graph = several()
    split = made.split_of(graph)
    # All epochs: of so few people, validation may find none better for fifty of them.
    method = baseline(model, epochs=60, hidden=16, patience=0).fit(graph, split=split, randomness=NOISE)
    found = method.predict()
    assert set(found.unique().tolist()) <= {0, 1}
    assert found.shape == (60, 3)
    assert method.score(graph, split.test) == pytest.approx(
        f1_score(graph.y[split.test].numpy(), found[split.test].numpy(), average="micro")
    )
    often = torch.ones(60, 3, dtype=torch.bool)
    assert method.score(graph, split.train) > micro_f1(often[split.train], graph.y[split.train])
    again: Any = load_method(method.save(tmp_path / "model.safetensors"))
    assert torch.equal(again.predict_proba(), method.predict_proba())
    assert again.score(graph, split.test) == method.score(graph, split.test)


def test_features_may_be_private_where_several_labels_are_public() -> None:
    graph = several()
    method = LPGNN(epsilon_x=1.0, epsilon_y=math.inf, epochs=3, hidden=4)
    method.fit(graph, split=made.split_of(graph), randomness=NOISE)
    assert method.guarantee.epsilon == 1.0
    assert method.released is not None
    assert not method.released.labels[made.split_of(graph).test].any()


# ---- what stands in for features ----


#: 0 has three neighbours, 1 to 3 have one, 4 has none.
STAR = Topology(torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]]), 5)
GRAPH = social_graph(120, average_degree=6, dimension=20, classes=3, seed=4)


def rows(kind: str, dimension: int, seed: int = 0) -> np.ndarray:
    """All features that stand in on the star."""
    centred, offset = stand_in_features(kind, STAR, dimension, seed)
    dense = centred if isinstance(centred, np.ndarray) else centred.toarray()  # type: ignore[union-attr]
    return dense + offset


def fitted(graph: Graph, kind: str, **settings: Any) -> Any:
    """LPGNN without features, its labels' noise and everything else the same every time."""
    own = {"epsilon_x": None, "stand_in": kind, **settings}
    model = LPGNN(**own, epsilon_y=2.0, epochs=3, seed=1)
    return model.fit(graph, split=random_split(graph, 0), randomness=SeededRandomness(5))


@pytest.mark.parametrize(("dimension", "codes"), [(6, [3, 1, 1, 1, 0]), (3, [2, 1, 1, 1, 0]), (1, [0, 0, 0, 0, 0])])
def test_degrees_are_one_hot_and_the_last_code_stands_for_all_larger_ones(dimension: int, codes: list[int]) -> None:
    found = rows("degree", dimension)
    assert found.argmax(axis=1).tolist() == codes and found.sum(axis=1).tolist() == [1.0] * 5
    assert set(np.unique(found)) <= {0.0, 1.0}


@pytest.mark.parametrize("kind", STAND_INS)
def test_no_feature_is_read_and_only_labels_are_paid_for(kind: str) -> None:
    """Exact: whatever the features are, every probability is the same to the last bit."""
    other = GRAPH.clone()
    other.x = torch.full_like(GRAPH.x.to_dense() if GRAPH.x.layout != torch.strided else GRAPH.x, 0.125)
    one, two = fitted(GRAPH, kind), fitted(other, kind)
    assert torch.equal(one.predict_proba(), two.predict_proba())
    assert one.guarantee.epsilon == 2.0 and [spend.unit for spend in one.ledger.spends] == ["labels"]
    reading = [fitted(graph, "normal", epsilon_x=math.inf).predict_proba() for graph in (GRAPH, other)]
    assert not torch.equal(*reading), "a method that does read features is not caught"


def test_degrees_are_refused_where_edges_are_private() -> None:
    private = GRAPH.clone()
    private.schema = replace(GRAPH.schema, private=("edges", "labels"))
    for kind in STAND_INS:
        with pytest.raises(InputError, match="declares its edges private"):
            fitted(private, kind)


def test_kinds_differ_and_a_saved_model_keeps_its_own(tmp_path: Path) -> None:
    models = {kind: fitted(GRAPH, kind) for kind in STAND_INS}
    answers = [model.predict_proba() for model in models.values()]
    assert all(not torch.equal(answers[0], other) for other in answers[1:])
    again = load_method(models["degree"].save(tmp_path / "run"))
    assert again.stand_in == "degree" and torch.equal(again.predict_proba(), models["degree"].predict_proba())
    assert models["degree"].get_params()["stand_in"] == "degree"


def test_what_stands_in_for_nothing_is_refused() -> None:
    with pytest.raises(InputError, match=r"beside features.*epsilon_x = none"):
        LPGNN(epsilon_x=1.0, epsilon_y=1.0, stand_in="ones")
    with pytest.raises(InputError, match=r"'one' is not known.*allowed: normal, uniform, ones, degree"):
        LPGNN(epsilon_x=None, epsilon_y=1.0, stand_in="one")
