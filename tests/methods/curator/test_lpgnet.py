"""LPGNet: what its counts cost and what is refused; what an edge moves is replayed in tests/audit/test_replay.py."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import BudgetError, InputError
from graphveil.graphs import make_graph
from graphveil.methods import LPGNet, load_method
from graphveil.methods.curator.controls import curator_rivals_of
from graphveil.methods.runs.plan import plan
from graphveil.privacy import SeededRandomness
from tests.methods import curator_made as cm

FAST: dict[str, Any] = {"epochs": 4, "hidden": 4}


def fit(start: Any = None, *, noise: int = 1, **settings: Any) -> Any:
    start = cm.graph() if start is None else start
    method = LPGNet(**{**FAST, "epsilon": 2.0, **settings})
    return method.fit(start, split=cm.split_of(start), randomness=SeededRandomness(noise))


@pytest.mark.parametrize(
    ("settings", "change", "relationship"),
    [({}, 2, 2.0), ({"unit": "directed-edge"}, 1, 4.0), ({"unit": "k-edges", "relationships": 4}, 8, 0.5)],
)
def test_the_price_is_of_all_counts_together(
    settings: dict[str, Any], change: int, relationship: float, tmp_path: Path
) -> None:
    method = fit(**settings)
    sigma = math.sqrt(0.5) / math.sinh(2.0 / (2 * change) / 2)
    assert method.published.noise.sigmas == pytest.approx((sigma, sigma))
    assert method.epsilon_relationship == pytest.approx(relationship)
    assert method.ledger.total("edges")[0] == 2.0
    assert method.ledger.spends[0].parameters["noise_law"] == "two-sided geometric"
    method.save(tmp_path)
    loaded = load_method(tmp_path)
    assert loaded.guarantee == method.guarantee
    assert torch.equal(loaded.predict_proba(), method.predict_proba())


def test_another_graph_is_counted_at_the_same_price() -> None:
    method, start = fit(queries=1), cm.graph(seed=2)
    one, two = (
        make_graph(start.x, start.edge_index, start.y, replace(start.schema, name=name)) for name in ("one", "two")
    )
    method.predict_proba(one, randomness=SeededRandomness(3))
    assert method.ledger.total("edges")[0] == 4.0
    with pytest.raises(BudgetError):
        method.predict_proba(two, randomness=SeededRandomness(4))


@pytest.mark.parametrize(
    "wrong", [{"unit": "node"}, {"weights": "kernel"}, {"hop_ratio": 2.0}, {"hops": 0}, {"unit": "k-edges"}]
)
def test_what_counts_cannot_promise_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        LPGNet(epsilon=1.0, **wrong)


def test_the_plan_is_that_of_the_run_and_other_runs_do_not_show_it() -> None:
    found = plan("lpgnet", cm.graph(), {"epsilon": 2.0})
    assert found.figures.noise.sigmas == fit().published.noise.sigmas
    start = cm.graph()
    shown = curator_rivals_of(cm.fit("gap"), start, cm.split_of(start), randomness=SeededRandomness(0))
    assert set(shown) == {"progap", "class-sums"}


def test_each_stage_reads_what_the_ones_before_it_said_and_counted() -> None:
    """Scores and counts in turns; counts as asinh of whole numbers, also below 0."""
    method = fit(hops=2)
    scores, counts, later, more = method.published.parts
    assert {part.shape for part in (scores, counts, later, more)} == {(60, 3)}
    for part in (counts, more):
        whole = torch.sinh(part.double())
        assert torch.allclose(whole, whole.round(), atol=1e-3) and float(whole.min()) < 0
    assert [network.head.out_features for network in method.published.networks] == [3, 3, 3]


def test_other_noise_is_another_publication() -> None:
    """Fresh noise every time, the same for the same seed; fitting again on a publication is free."""
    one, again, other = fit(), fit(), fit(noise=2)
    assert torch.equal(one.predict_proba(), again.predict_proba())
    assert not torch.equal(one.published.parts[1], other.published.parts[1])
    before, ledger = one.predict_proba(), one.ledger
    assert torch.equal(one.fit_published(one.published).predict_proba(), before)
    assert one.ledger == ledger
    with pytest.raises(BudgetError):
        one.fit_published(other.published)
