"""GAP with attention and with learned weights: where edges are read, and that all of it is charged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from graphveil.aggregation.perturbed import entries_of
from graphveil.errors import InputError
from graphveil.graphs import make_graph
from graphveil.methods import load_method
from graphveil.methods.curator.stages import recipe as room
from graphveil.methods.registry import plan
from graphveil.privacy import ChangedSamples, Hops, SeededRandomness, pipeline_epsilon
from graphveil.privacy.accounting import budget_split
from graphveil.training.attention import AttentionDescent
from tests.methods import curator_made as cm
from tests.methods import made
from tests.training.test_attention import Trace

OWN: dict[str, Any] = {"weights": "attention", "hops": 1, "batch": 10, "passes": 4}


@pytest.fixture(autouse=True)
def prices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Noise is searched by Renyi accounting, which is quick and dearer; a slow test has the price as it is."""
    if request.node.get_closest_marker("slow") is None:
        real = budget_split.pipeline_epsilon
        monkeypatch.setattr(
            budget_split, "pipeline_epsilon", lambda *parts, **how: real(*parts, **{**how, "accountant": "rdp"})
        )
    budget_split._search.cache_clear()
    yield
    budget_split._search.cache_clear()


def fit(start: Any = None, **settings: Any) -> Any:
    return cm.fit("gap", start, **{**OWN, **settings})


def price_of(row: Any, unit: str, delta: float = 1e-5) -> float:
    """What the noise that a ledger row names costs one unit, computed afresh."""
    parameters, entries = row.parameters, 1 if unit == "directed-edge" else 2
    parts = (
        Hops(count=1, sensitivity=math.sqrt(entries)),
        ChangedSamples(steps=int(parameters["steps"]), rate=float(parameters["rate"]), samples=entries),
    )
    noise = {"hops": (float(parameters["sigma_1"]),), "training": (float(parameters["multiplier_attention"]),)}
    return pipeline_epsilon(parts, noise, delta)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["edge", "directed-edge"])
def test_the_ledger_says_what_was_charged_and_it_was_enough(unit: str) -> None:
    method = fit(unit=unit)
    (row,) = method.ledger.spends
    assert row.mechanism == "noisy sums and dp-sgd on edges"
    assert (row.epsilon, row.delta, row.parameters["w_max"]) == (2.0, 1e-5, 1.0)
    assert row.parameters["targets_of_an_edge"] == entries_of(unit)  # type: ignore[arg-type]
    assert row.parameters["steps"] == 12
    assert 0.99 * 2.0 <= price_of(row, unit) <= 2.0
    assert (method.guarantee.epsilon, method.guarantee.delta) == (2.0, 1e-5)
    assert "seed 1" in (method.guarantee.void or "")
    if unit == "directed-edge":
        assert method.epsilon_relationship == pytest.approx(price_of(row, "edge"))
        assert method.epsilon_relationship > 3.0
    else:
        assert method.epsilon_relationship == 2.0


@pytest.mark.slow
def test_an_undirected_edge_at_the_price_of_an_entry_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above fails for noise that was computed as if an undirected edge changed one target."""
    monkeypatch.setattr(room, "entries_of", lambda unit: 1)
    assert price_of(fit(unit="edge").ledger.spends[0], "edge") > 2.2


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("edge", [0, 7, 20])
def test_replay_on_a_neighbour_moves_steps_and_sums_within_their_bounds(
    edge: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every noisy answer frozen, nothing but exact sums differs, each by what was declared."""
    replay, steps = cm.Replay(monkeypatch), list[Trace]()
    for start in (cm.graph(), cm.without_edge(cm.graph(), edge)):
        with pytest.MonkeyPatch.context() as patch:
            steps.append(Trace(patch, *steps))
            fitted = fit(start)
        if len(steps) == 1:
            before, first = replay.again(), fitted
    assert torch.equal(first.predict_proba(), fitted.predict_proba())
    sums = list(zip(steps[0].sums, steps[1].sums, strict=True))
    assert len(sums) == 12 and all(float((a - b).norm()) <= 4 * steps[0].cap for a, b in sums)
    assert any(not torch.equal(a, b) for a, b in sums)
    ((sums, rows, x, _),) = before
    ((_, rows2, x2, _),) = replay.calls
    assert torch.equal(x, x2)
    whole, other = rows.to_scipy(), rows2.to_scipy()
    moved = (whole - other).tocoo()
    assert moved.nnz == 2
    assert float(abs(moved.data).max()) * 2.0**-rows.weight_bits <= sums.w_max == 1.0


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("gap", {**OWN, "unit": "node"}, r"weights is attention with unit node: .*; allowed: uniform, similarity"),
        ("gap", {**OWN, "hops": 2}, "hops=1"),
        ("progap", {"weights": "attention", "hops": 1}, "weights is attention with progap"),
        ("gap", {**OWN, "unit": "k-edges", "relationships": 3}, "priced for one edge"),
        ("gap", {"unit": "node", "weights": "learned"}, r"weights is learned with unit node: .*; allowed: uniform"),
        ("gap", {"queries": 1, "weights": "learned"}, "labels of another graph are not read; allowed: queries=0"),
    ],
)
def test_what_does_not_go_together_is_refused(name: str, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        cm.KINDS[name](epsilon=1.0, **settings)


def test_it_is_saved_and_a_query_reads_a_sum_alone(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    method = fit(queries=1)
    method.save(tmp_path)
    again = load_method(tmp_path)
    assert torch.equal(again.predict_proba(), method.predict_proba())
    assert again.ledger == method.ledger
    assert again.epsilon_relationship == method.epsilon_relationship
    trained: list[int] = []
    monkeypatch.setattr(AttentionDescent, "step", lambda *_: trained.append(1))
    other = cm.graph(seed=2)
    other = make_graph(other.x, other.edge_index, other.y, replace(other.schema, name="elsewhere"))
    probabilities = again.predict_proba(other, randomness=SeededRandomness(5))
    assert probabilities.shape == (60, 3)
    assert not trained
    query = again.ledger.spends[-1]
    assert (query.mechanism, query.epsilon) == ("noisy sums", 2.0)
    assert "multiplier_attention" not in query.parameters


def test_the_plan_shows_the_price() -> None:
    planned = plan("gap", cm.graph(), {"epsilon": 2.0, **OWN})
    noise = planned.figures.noise
    plain = plan("gap", cm.graph(), {"epsilon": 2.0, "hops": 1}).figures
    assert set(noise.multipliers) == {"attention"}
    assert noise.sigmas[0] == pytest.approx(math.sqrt(2) * plain.noise.sigmas[0], rel=0.03)
    assert any("attention is trained on edges" in line and "1.4 times" in line for line in planned.advice)
    assert planned.to_dict()["curator"]["noise"]["changed"]["samples"] == 2


# ---- weights learned from public labels: no edge is read for them, and they cost what uniform ones cost ----


BOTH = pytest.mark.parametrize("name", cm.KINDS)


@pytest.mark.slow  # trainings
@BOTH
def test_they_cost_what_uniform_weights_cost(name: str, tmp_path: Any) -> None:
    plain, learned = cm.fit(name, rows="published"), cm.fit(name, weights="learned")
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
    first = cm.fit(name, hops=2, weights="learned", sharpness=3.0)
    before = replay.again()
    second = cm.fit(name, cm.without_edge(cm.graph(), 7), hops=2, weights="learned", sharpness=3.0)
    assert torch.equal(first.predict_proba(), second.predict_proba())
    assert len(before) == len(replay.calls) == 2
    assert all(torch.equal(call[2], other[2]) for call, other in zip(before, replay.calls, strict=True))


@pytest.mark.slow  # trainings
def test_they_are_learned_from_training_labels_alone() -> None:
    method, other = cm.fit("gap", weights="learned"), cm.graph()
    test = cm.split_of(other).test
    other.y[test] = (other.y[test] + 1) % 3
    assert torch.equal(cm.fit("gap", other, weights="learned").predict_proba(), method.predict_proba())


def test_other_graphs_are_refused() -> None:
    public = cm.fit("gap", epsilon=float("inf"), weights="learned")
    other = made.changed(cm.graph(seed=2), name="elsewhere")
    with pytest.raises(InputError, match="predict: weights learned from labels exist for the training graph only"):
        public.predict_proba(other, randomness=SeededRandomness(1))
