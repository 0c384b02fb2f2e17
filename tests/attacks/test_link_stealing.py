"""Similar answers betray links; friends who are alike anyway do not count."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from graphveil.attacks import link_stealing
from graphveil.attacks.pairs import belief_figures, pairs_of
from graphveil.attacks.stolen_links import DISTANCES, distances, perceptron
from graphveil.errors import InputError
from tests.attacks import made


def test_a_plain_network_leaks_more_than_likeness() -> None:
    found = link_stealing(made.plain(), made.graph())
    assert found.baseline is not None and found.auc.low > found.baseline > 0.5
    assert found.figures["auc above no edges"] == pytest.approx(found.auc.mean - found.baseline)
    assert found.limit is None


def test_without_edges_nothing_is_above_the_control() -> None:
    control = perceptron(made.graph())
    found = link_stealing(control, made.graph(), without_edges=control)
    assert found.auc.mean == found.baseline and not found.beats_limit


def test_a_constant_is_a_coin_and_a_planted_leak_is_caught() -> None:
    constant = link_stealing(made.Constant(), made.graph())
    assert constant.auc.low <= 0.5 <= constant.auc.high
    control = perceptron(made.graph())
    leaky = link_stealing(made.Leaky(), made.graph(), similarity="braycurtis", without_edges=control)
    assert leaky.baseline is not None and leaky.auc.low > leaky.baseline


@pytest.mark.parametrize("how", ["known", "shadow"])
def test_what_is_learned_carries_over(how: str) -> None:
    lessons = {"known": {"known": 0.5}, "shadow": {"shadow": (made.Leaky(), made.graph(200, seed=8))}}
    found = link_stealing(made.Leaky(), made.graph(), **lessons[how])  # type: ignore[arg-type]
    assert found.auc.low > 0.6 and "learned" in found.target


def test_distances_are_those_of_each_pair() -> None:
    pairs = pairs_of(made.graph(), targets=40, seed=1)
    answers = torch.rand(300, 3, dtype=torch.float64).numpy()
    found = distances(answers, pairs, DISTANCES)
    first, second = pairs.ends()
    for column, name in enumerate(DISTANCES):
        exact = cdist(answers, answers, name)[first, second]
        assert np.allclose(found[:, column], exact)


def test_pairs_are_all_pairs_with_the_true_edges() -> None:
    pairs = pairs_of(made.graph(), targets=50, seed=2)
    assert len(pairs.edge) == 50 * 49 // 2
    known = {tuple(pair) for pair in made.graph().edge_index.t().tolist()}
    first, second = pairs.ends()
    assert [(i, j) in known for i, j in zip(first.tolist(), second.tolist(), strict=True)] == pairs.edge.tolist()


def test_public_edges_are_no_secret() -> None:
    shown = made.graph().clone()
    low = shown.edge_index.min(dim=0).values
    shown.public_edges = low < 100
    pairs, whole = pairs_of(shown), pairs_of(made.graph())
    assert pairs.edge.sum() == (shown.edge_index[:, ~shown.public_edges]).shape[1] // 2
    assert len(whole.edge) - len(pairs.edge) == int(shown.public_edges.sum()) // 2


def test_beliefs_call_so_many_pairs() -> None:
    scores, edge = np.array([5.0, 4, 3, 2, 1, 0]), np.array([True, False, True, False, False, False])
    found = belief_figures(scores, edge, (0.5, 1.0, 2.0))
    assert found["precision at belief 0.5"] == 1 and found["f1 at belief 0.5"] == pytest.approx(2 / 3)
    assert found["precision at belief 1"] == 0.5 and found["recall at belief 2"] == 1


def test_refusals() -> None:
    with pytest.raises(InputError, match="similarity"):
        link_stealing(made.Constant(), made.graph(), similarity="taste")
    with pytest.raises(InputError, match="known"):
        link_stealing(made.Constant(), made.graph(), known=1.0)
    with pytest.raises(InputError, match="known"):
        link_stealing(made.Constant(), made.graph(), known=0.5, shadow=(made.Leaky(), made.graph()))
    with pytest.raises(InputError, match="too few edges"):
        link_stealing(made.Constant(), made.graph(), known=0.01, without_edges=made.Constant())
