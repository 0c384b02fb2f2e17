"""What stands in for features: made of the topology and a seed alone, whatever people's features are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import Graph, random_split, social_graph
from graphveil.methods import LPGNN, load_method
from graphveil.methods.base.released import Topology
from graphveil.methods.base.stand_ins import STAND_INS, stand_in_features
from graphveil.privacy import SeededRandomness

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
    model = LPGNN(epsilon_x=None, epsilon_y=2.0, stand_in=kind, epochs=3, seed=1, **settings)
    return model.fit(graph, split=random_split(graph, 0), randomness=SeededRandomness(5))


@pytest.mark.parametrize(("dimension", "codes"), [(6, [3, 1, 1, 1, 0]), (3, [2, 1, 1, 1, 0]), (1, [0, 0, 0, 0, 0])])
def test_degrees_are_one_hot_and_the_last_code_stands_for_all_larger_ones(dimension: int, codes: list[int]) -> None:
    found = rows("degree", dimension)
    assert found.argmax(axis=1).tolist() == codes and found.sum(axis=1).tolist() == [1.0] * 5
    assert set(np.unique(found)) <= {0.0, 1.0}


def test_uniform_numbers_fill_the_unit_interval_evenly_and_follow_the_seed() -> None:
    many = stand_in_features("uniform", replace(STAR, num_nodes=2000), 20, 7)[0]
    assert isinstance(many, np.ndarray) and many.dtype == np.float32 and many.min() >= 0 and many.max() < 1
    # 40,000 numbers: five deviations of their mean and of each tenth's share; false alarms below 1e-5.
    assert abs(many.mean() - 0.5) < 5 * (1 / 12 / 40_000) ** 0.5
    shares = np.histogram(many, bins=10, range=(0, 1))[0] / 40_000
    assert abs(shares - 0.1).max() < 5 * (0.09 / 40_000) ** 0.5
    assert (rows("uniform", 3, 1) == rows("uniform", 3, 1)).all() and (
        rows("uniform", 3, 1) != rows("uniform", 3, 2)
    ).any()


@pytest.mark.parametrize("kind", STAND_INS)
def test_no_feature_is_read_and_only_labels_are_paid_for(kind: str) -> None:
    """Exact: whatever the features are, every probability is the same to the last bit."""
    other = GRAPH.clone()
    other.x = torch.full_like(GRAPH.x.to_dense() if GRAPH.x.layout != torch.strided else GRAPH.x, 0.125)
    one, two = fitted(GRAPH, kind), fitted(other, kind)
    assert torch.equal(one.predict_proba(), two.predict_proba())
    assert one.guarantee.epsilon == 2.0 and [spend.unit for spend in one.ledger.spends] == ["labels"]


def test_a_method_that_does_read_features_is_caught_by_that_comparison() -> None:
    other = GRAPH.clone()
    other.x = torch.full_like(GRAPH.x.to_dense() if GRAPH.x.layout != torch.strided else GRAPH.x, 0.125)
    models = [
        LPGNN(epsilon_x=float("inf"), epsilon_y=2.0, epochs=3, seed=1).fit(
            graph, split=random_split(graph, 0), randomness=SeededRandomness(5)
        )
        for graph in (GRAPH, other)
    ]
    assert not torch.equal(models[0].predict_proba(), models[1].predict_proba())


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
