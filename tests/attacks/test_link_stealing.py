"""Similar answers betray links; friends who are alike anyway do not count."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from graphveil.attacks import link_stealing
from graphveil.attacks.pairs import pairs_of
from graphveil.attacks.stolen_links import DISTANCES, distances, perceptron
from graphveil.errors import InputError
from tests.attacks import made


@cache
def control() -> Any:
    return perceptron(made.graph())


def test_a_plain_network_leaks_more_than_likeness() -> None:
    found = link_stealing(made.plain(), made.graph())
    assert found.baseline is not None and found.auc.low > found.baseline > 0.5
    assert found.figures["auc above no edges"] == pytest.approx(found.auc.mean - found.baseline)
    assert found.limit is None


def test_without_edges_nothing_is_above_the_control() -> None:
    found = link_stealing(control(), made.graph(), without_edges=control())
    assert found.auc.mean == found.baseline and not found.beats_limit


def test_a_constant_is_a_coin_and_a_planted_leak_is_caught() -> None:
    constant = link_stealing(made.Constant(), made.graph(), without_edges=control())
    assert constant.auc.low <= 0.5 <= constant.auc.high
    leaky = link_stealing(made.Leaky(), made.graph(), similarity="braycurtis", without_edges=control())
    assert leaky.baseline is not None and leaky.auc.low > leaky.baseline


@pytest.mark.parametrize("how", ["known", "shadow"])
def test_what_is_learned_carries_over(how: str) -> None:
    lessons = {"known": {"known": 0.5}, "shadow": {"shadow": (made.Leaky(), made.graph(200, seed=8))}}
    found = link_stealing(made.Leaky(), made.graph(), without_edges=control(), **lessons[how])  # type: ignore[arg-type]
    assert found.auc.low > 0.6 and "learned" in found.target


def test_distances_are_those_of_each_pair() -> None:
    pairs = pairs_of(made.graph(), targets=40, seed=1)
    answers = torch.rand(300, 3, dtype=torch.float64).numpy()
    found = distances(answers, pairs, DISTANCES)
    first, second = pairs.ends()
    for column, name in enumerate(DISTANCES):
        exact = cdist(answers, answers, name)[first, second]
        assert np.allclose(found[:, column], exact)


def test_refusals() -> None:
    with pytest.raises(InputError, match="similarity"):
        link_stealing(made.Constant(), made.graph(), similarity="taste")
    with pytest.raises(InputError, match="known"):
        link_stealing(made.Constant(), made.graph(), known=1.0)
    with pytest.raises(InputError, match="known"):
        link_stealing(made.Constant(), made.graph(), known=0.5, shadow=(made.Leaky(), made.graph()))
    with pytest.raises(InputError, match="too few edges"):
        link_stealing(made.Constant(), made.graph(), known=0.01, without_edges=made.Constant())
