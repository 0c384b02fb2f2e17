"""DP-MLP: a node's features and label, and no edge."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from graphveil.errors import BudgetError, InputError
from graphveil.graphs import make_graph
from graphveil.methods import DPMLP, load_method
from graphveil.methods.curator.dp_mlp import DPMLPCore
from graphveil.privacy import SeededRandomness
from tests.methods import curator_made as cm


def test_edges_are_never_read() -> None:
    class Edgeless(cm.Unreadable):
        x, y = cm.graph().x, cm.graph().y  # type: ignore[assignment]

    start = cm.graph()
    method = DPMLP(epsilon=2.0, **cm.FAST)
    method.fit(Edgeless(start), split=cm.split_of(start), randomness=SeededRandomness(1))
    assert torch.equal(method.predict_proba(), cm.fit("dp-mlp", start).predict_proba())


def test_it_spends_its_epsilon_once() -> None:
    method, start = cm.fit("dp-mlp"), cm.graph()
    assert method.ledger.total("nodes")[0] == 2.0
    with pytest.raises(BudgetError):
        method.fit(cm.Unreadable(start), split=cm.split_of(start), randomness=SeededRandomness(1))
    assert method.guarantee.unit.text == "one node's features and label"
    assert method.history == ()


def test_a_saved_model_predicts_other_nodes_for_free(tmp_path: Path) -> None:
    method, start = cm.fit("dp-mlp"), cm.graph(seed=2)
    other = make_graph(start.x, start.edge_index, start.y, replace(start.schema, name="elsewhere"))
    method.save(tmp_path)
    loaded = load_method(tmp_path)
    assert torch.equal(loaded.predict_proba(other), method.predict_proba(other))
    assert loaded.ledger == method.ledger and loaded.guarantee == method.guarantee
    with pytest.raises(InputError, match="each is for that node only"):
        loaded.predict_proba()


def test_units_of_edges_are_refused() -> None:
    with pytest.raises(InputError, match="reads no edges"):
        DPMLP(epsilon=1.0, unit="edge")


@pytest.mark.parametrize("hidden", [3, 16, None])
def test_a_plan_counts_the_numbers_that_are_trained(hidden: int | None) -> None:
    """The price has in it how often noise is drawn from tables: another count is another epsilon."""
    graph = cm.graph()
    own = torch.nn.Linear(graph.schema.dimension, len(graph.schema.classes))
    # None: a network of one's own.
    core = DPMLPCore(epsilon=2.0, backbone=own) if hidden is None else DPMLPCore(epsilon=2.0, hidden=hidden)
    split = cm.split_of(graph)
    planned = core.planned_noise(graph.schema, int(split.train.sum()))
    assert planned == core.collect(graph, split=split, randomness=SeededRandomness(1)).noise
    assert planned.multipliers
