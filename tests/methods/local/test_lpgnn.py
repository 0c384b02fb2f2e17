"""LPGNN and the non-private baselines, which are the same network with nothing protected."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import Split
from graphveil.methods import LPGNN, baseline
from graphveil.methods.base.released import topology_of
from graphveil.privacy import SeededRandomness
from tests.methods import made
from tests.methods.cases import Case
from tests.methods.conformance import MethodSuite
from tests.sizes import LargestTensor

SHORT: dict[str, Any] = {"epochs": 3, "hidden": 4, "steps_x": 2, "steps_y": 2}
EPSILONS: dict[str, tuple[float | None, float]] = {
    "private features": (1.0, math.inf),
    "private labels": (math.inf, 1.0),
    "both private": (1.0, 2.0),
    "no features": (None, 1.0),
}
PAIRS = (("sage", "private labels"), ("gcn", "both private"), ("gat", "private features"), ("mlp", "no features"))


def private(epsilon_x: float | None, epsilon_y: float, dimension: int = 100, **settings: Any) -> Case:
    inductive = "never" if epsilon_x is None else "public" if math.isinf(epsilon_x) else "reports"
    build = partial(LPGNN, epsilon_x=epsilon_x, epsilon_y=epsilon_y, **{**SHORT, **settings})
    return Case(build, epsilon_x or 0.0, epsilon_y, inductive, dimension)


CASES = {
    # In pairs: every backbone and every combination of budgets once. A core treats all mechanisms alike, but for those
    # with a delta and those whose reports are dense.
    **{f"{model}, {name}": private(*EPSILONS[name], model=model) for model, name in PAIRS},
    **{m: private(1.0, 1.0, dimension=20, mechanism=m) for m in ("one-bit", "gaussian")},
    "several bits": private(8.0, 1.0, steps_x=0, steps_y=0, scaling="published", selection="published"),
    **{
        f"plain {model}": Case(partial(baseline, model, epochs=3, hidden=4), math.inf, math.inf, "public", dimension)
        for model, dimension in (("gcn", 100), ("mlp", 20))
    },
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


class TestLpgnn(MethodSuite):
    pass


def short(**settings: Any) -> LPGNN:
    return LPGNN(**{"epsilon_x": 1.0, "epsilon_y": 1.0, **SHORT, **settings})


# ---- settings ----


def test_hops_left_open_are_those_that_each_part_needs() -> None:
    """Noise is averaged out over neighbours; what is public needs no averaging."""
    for epsilon_x, epsilon_y, hops in ((1.0, 1.0, (8, 4)), (math.inf, 1.0, (0, 4)), (1.0, math.inf, (8, 0))):
        for left_open in ({}, {"steps_x": None, "steps_y": None}):
            found = LPGNN(epsilon_x=epsilon_x, epsilon_y=epsilon_y, **left_open).settings
            assert (found.steps_x, found.steps_y) == hops
    assert LPGNN(epsilon_x=math.inf, epsilon_y=1.0, steps_x=3).settings.steps_x == 3


def test_the_default_split_comes_from_the_seed_and_without_labels() -> None:
    graph = made.graph()
    first, again, other = (short(seed=s).fit(graph, randomness=SeededRandomness(1)).released for s in (0, 0, 1))
    assert torch.equal(first.train, again.train)
    assert not torch.equal(first.train, other.train)
    assert not bool(first.labelled[made.UNKNOWN])


# ---- training ----


def test_nothing_of_size_n_times_d_is_built_where_features_stay_sparse() -> None:
    """From collection to prediction; the server holds one number a person."""
    from graphveil.graphs import social_graph

    n, d = 1_500, 6_000
    graph = social_graph(n, 6, d, 3, apps=5, seed=1)
    method = LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=2, steps_x=2, steps_y=2)
    with LargestTensor() as watch:
        method.fit(graph, randomness=SeededRandomness(1)).predict()
    assert watch.numbers < n * d / 20


def test_predictions_are_those_of_the_epoch_that_was_kept() -> None:
    method = short(epochs=15, dropout=0.0)
    graph = made.graph()
    method.fit(graph, randomness=SeededRandomness(1))
    kept = method.core.result.network.epoch
    stopped = short(epochs=kept, dropout=0.0, selection="last").fit_reports(method.released, topology_of(graph))
    assert torch.allclose(method.predict_proba(), stopped.predict_proba(), atol=1e-6)


def test_a_split_without_training_nodes_is_refused() -> None:
    graph = made.graph()
    none = torch.zeros(made.NODES, dtype=torch.bool)
    with pytest.raises(InputError, match="no training node carries a label"):
        short().fit(graph, split=Split(none, graph.y >= 0, none), randomness=SeededRandomness(1))


def test_labels_that_reach_no_training_node_are_a_clear_error() -> None:
    graph = made.graph()
    graph.edge_index = torch.zeros(2, 0, dtype=torch.int64)
    with pytest.raises(
        InputError, match=r"no label reaches a training node in 2 hops: too few edges; .* --set steps_y=0"
    ):
        short().fit(graph, randomness=SeededRandomness(1))


@pytest.mark.parametrize("selection", ["robust", "published"])
def test_without_validation_nodes_the_last_epoch_is_kept(selection: str) -> None:
    """Nothing says that the first, untrained one is best."""
    graph = made.graph()
    nobody = torch.zeros(made.NODES, dtype=torch.bool)
    split = Split(graph.y >= 0, nobody, nobody)
    fitted = [
        short(selection=name, epochs=5).fit(graph, split=split, randomness=SeededRandomness(1)).predict_proba()
        for name in (selection, "last")
    ]
    assert torch.equal(*fitted)
