"""The pool of GAP's and ProGAP's networks: when there is one, what it says, and where it may not be."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import Graph, random_split, social_graph
from graphveil.methods import GAP, ProGAP
from graphveil.methods.curator.settings import sums_by
from graphveil.methods.curator.stages.training import logits_of
from graphveil.privacy import SeededRandomness
from graphveil.reproduction.catalogue import WEIGHTED_GAP
from tests.methods import curator_made as cm
from tests.methods import made


def _graph() -> Graph:
    return social_graph(300, average_degree=4, dimension=100, classes=4, seed=1)


def _fit(kind: Any, **settings: Any) -> Any:
    method = kind(**{"epsilon": 0.05, "hidden": 2, "epochs": 40, "queries": 1, **settings})
    return method.fit(_graph(), split=random_split(_graph(), 0), randomness=SeededRandomness(0))


@pytest.mark.parametrize("kind", [GAP, ProGAP])
def test_a_pool_weighs_its_networks_here_elsewhere_and_from_a_file(kind: Any, tmp_path: Path) -> None:
    """Behind so much noise that features alone say more than the last network, which stays as it is without a pool."""
    pooled, plain, test = _fit(kind), _fit(kind, pooling="none"), random_split(_graph(), 0).test
    assert (plain.pool, pooled.guarantee) == (None, plain.guarantee)
    assert pooled.score(_graph(), test) > plain.score(_graph(), test) + 0.1
    networks, parts, features = pooled.result.networks, pooled.published.parts, pooled.published.people.features
    stages = [[features], parts] if kind is GAP else [parts[:many] for many in (1, 2, 3)]
    read = zip((networks[0], networks[-1]) if kind is GAP else networks, stages, strict=True)
    opinions = [logits_of(pooled.pool.encoder, [features]), *(logits_of(*each) for each in read)]
    total = sum(w * torch.log_softmax(z, dim=1) for w, z in zip(pooled.pool.weights, opinions, strict=True))
    by_hand = torch.softmax(torch.as_tensor(total), dim=1)
    torch.testing.assert_close(torch.as_tensor(pooled.predict_proba()), by_hand, atol=1e-4, rtol=0)
    pooled.save(tmp_path / "model")
    loaded = kind.load(tmp_path / "model")
    assert torch.equal(torch.as_tensor(loaded.predict_proba()), torch.as_tensor(pooled.predict_proba()))
    other = made.changed(_graph(), name="people whom the method has not seen")
    predictions = [torch.as_tensor(m.predict_proba(other, randomness=SeededRandomness(3))) for m in (pooled, loaded)]
    assert torch.equal(*predictions)
    assert float((predictions[0].argmax(dim=1) == other.y).float().mean()) > plain.score(_graph(), test) + 0.1


def test_nothing_is_pooled_where_labels_are_protected_or_too_few_to_judge() -> None:
    start = cm.graph()
    for kind in (GAP, ProGAP):
        with pytest.raises(InputError, match="nothing was paid"):
            kind(epsilon=4.0, unit="node", pooling="stages")
        units = ("node", "edge", "k-edges", None)
        many = [kind(epsilon=4.0, unit=unit, relationships=2 if unit == "k-edges" else None) for unit in units]
        assert [method.settings.pooling for method in many] == ["none", "stages", "stages", "stages"]
        assert int(cm.split_of(start).val.sum()) < 30
        assert kind(**{**cm.FAST, "epsilon": 0.05}).fit(start, split=cm.split_of(start)).pool is None
    assert all(entry.settings["pooling"] == "none" for entry in WEIGHTED_GAP["figure3"]())


def test_a_third_sum_is_for_large_budgets_of_one_relationship() -> None:
    budgets = [(31.0, None), (32.0, None), (45.0, "edge"), (45.0, "directed-edge"), (45.0, "node"), (45.0, "k-edges")]
    assert [sums_by(*budget, under_noise=1, without=3) for budget in budgets] == [2, 3, 3, 3, 2, 2]
    assert ProGAP(epsilon=45.0, hops=1).settings.hops == 1


def test_under_much_noise_edges_are_summed_once() -> None:
    budgets = [(2.0, None), (2.0, "k-edges"), (2.0, "node"), (2.1, None), (math.inf, None)]
    assert [sums_by(*budget, under_noise=1, without=2) for budget in budgets] == [1, 1, 1, 2, 2]
    assert (GAP(epsilon=2.0).settings.hops, ProGAP(epsilon=2.0).settings.hops) == (1, 2)
