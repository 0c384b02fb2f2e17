"""Weights learned from public labels in GAP, ProGAP: no edge is read for them, and they cost what uniform ones cost."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.methods import GAP, load_method
from graphveil.methods.curator import training as curator
from graphveil.privacy import SeededRandomness
from tests.methods import curator_made as cm
from tests.methods import made

BOTH = pytest.mark.parametrize("name", cm.KINDS)


@pytest.mark.slow  # trainings
@BOTH
def test_they_cost_what_uniform_weights_cost(name: str, tmp_path: Any) -> None:
    plain, learned = cm.fit(name), cm.fit(name, weights="learned")
    assert learned.published.noise == plain.published.noise
    assert learned.ledger.spends[0].parameters["weights"] == "learned"
    assert learned.w_max == 1.0
    learned.save(tmp_path)
    assert torch.equal(load_method(tmp_path).predict_proba(), learned.predict_proba())


@pytest.mark.slow  # trainings
@BOTH
@pytest.mark.parametrize(("weights", "share"), [("similarity", 0.7310585786), ("kernel", 1.0)])
def test_weighted_messages_pay_for_their_own_largest_weight(name: str, weights: str, share: float) -> None:
    plain, weighted = cm.fit(name), cm.fit(name, weights=weights)
    assert weighted.published.noise.sigmas[0] == pytest.approx(share * plain.published.noise.sigmas[0])


@pytest.mark.slow  # trainings
@BOTH
def test_replay_on_a_neighbour_changes_nothing_but_the_sums(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No edge is read for the weights; how far one moves the weighted sums, the audits of the checklist ask."""
    replay = cm.Replay(monkeypatch)
    first = cm.fit(name, weights="learned", sharpness=3.0)
    before = replay.again()
    second = cm.fit(name, cm.without_edge(cm.graph(), 7), weights="learned", sharpness=3.0)
    assert torch.equal(first.predict_proba(), second.predict_proba())
    assert len(before) == len(replay.calls) == 2
    assert all(torch.equal(one[2], other[2]) for one, other in zip(before, replay.calls, strict=True))


@pytest.mark.slow  # trainings
def test_they_are_learned_from_training_labels_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Tensor, Tensor, Tensor]] = []
    real = curator.learned_embedding

    def watched(x: Tensor, labels: Tensor, train: Tensor, *, seed: int) -> Tensor:
        seen.append((x, labels, train))
        return real(x, labels, train, seed=seed)

    monkeypatch.setattr(curator, "learned_embedding", watched)
    start = cm.graph()
    method = cm.fit("gap", start, weights="learned")
    split = cm.split_of(start)
    ((x, labels, train),) = seen
    assert torch.equal(train, split.train.nonzero()[:, 0])
    assert bool((labels[split.test] == -1).all())
    assert torch.allclose(x.norm(dim=1), torch.ones(60), atol=1e-5)
    other = cm.graph()
    other.y[split.test] = (other.y[split.test] + 1) % 3
    assert torch.equal(cm.fit("gap", other, weights="learned").predict_proba(), method.predict_proba())


def test_private_labels_and_other_graphs_are_refused() -> None:
    with pytest.raises(InputError, match=r"weights = learned with unit node: .*; allowed: uniform"):
        GAP(epsilon=1.0, unit="node", weights="learned")
    with pytest.raises(InputError, match="labels of another graph are not read; allowed: queries = 0"):
        GAP(epsilon=1.0, queries=1, weights="learned")
    public = cm.fit("gap", epsilon=float("inf"), weights="learned")
    other = made.changed(cm.graph(seed=2), name="elsewhere")
    with pytest.raises(InputError, match="predict: weights learned from labels exist for the training graph only"):
        public.predict_proba(other, randomness=SeededRandomness(1))
