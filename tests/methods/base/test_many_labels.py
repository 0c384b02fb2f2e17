"""Several public labels a node: F1 by hand, and plain networks trained, saved, scored and run on them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score
from torch import Tensor

from graphveil.methods import LPGNN
from graphveil.methods.base.many_labels import f1_by_label, f1_shares, many_labels, micro_f1
from graphveil.methods.baselines.network import baseline
from graphveil.methods.runs.experiment import run
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
    again = LPGNN.load(method.save(tmp_path / "model.safetensors"))
    assert torch.equal(again.predict_proba(), method.predict_proba())
    assert again.score(graph, split.test) == method.score(graph, split.test)


def test_a_run_says_that_its_figures_are_f1() -> None:
    graph = several()
    result = run("gcn", graph, settings={"epochs": 5, "hidden": 4}, randomness=NOISE)
    assert "micro-averaged F1" in result.notes[0]
    assert result.scores.ceiling is not None
    assert 0 <= result.scores.accuracy.mean <= 1
    assert "F1" not in " ".join(run("gcn", made.graph(20), settings={"epochs": 2}, randomness=NOISE).notes)


def test_features_may_be_private_where_several_labels_are_public() -> None:
    graph = several()
    method = LPGNN(epsilon_x=1.0, epsilon_y=math.inf, epochs=3, hidden=4)
    method.fit(graph, split=made.split_of(graph), randomness=NOISE)
    assert method.guarantee.epsilon == 1.0
    assert method.released is not None
    assert not method.released.labels[made.split_of(graph).test].any()
