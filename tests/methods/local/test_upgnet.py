"""UPGNet: LPGNN's collection, other layers before the network."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch

from graphveil.methods import LPGNN
from graphveil.privacy import SeededRandomness
from tests.methods import made
from tests.methods.cases import Case
from tests.methods.conformance import MethodSuite

SHORT: dict[str, Any] = {"epochs": 3, "hidden": 4, "steps_x": 2, "steps_y": 2}
UPGNET = partial(LPGNN, denoising="upgnet", epsilon_x=4.0, epsilon_y=1.0, **SHORT)
CASES = {
    "sparse reports": Case(UPGNET, 4.0, 1.0, "reports"),
    "dense reports": Case(partial(UPGNET, mechanism="one-bit"), 4.0, 1.0, "reports", 20),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


class TestUpgnet(MethodSuite):
    pass


def predicted(**settings: Any) -> torch.Tensor:
    graph = made.graph()
    method = LPGNN(**{"epsilon_x": 4.0, "epsilon_y": 1.0, **SHORT, **settings})
    answer: torch.Tensor = method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1)).predict_proba()
    return answer


def test_the_same_reports_are_read_through_other_layers() -> None:
    plain, upgnet = LPGNN(epsilon_x=4.0, epsilon_y=1.0), UPGNET()
    graph, split = made.graph(), made.split_of(made.graph())
    sent = [one.randomize(graph, split=split, randomness=SeededRandomness(1)).digest for one in (plain, upgnet)]
    assert sent[0] == sent[1]
    assert not torch.equal(predicted(), predicted(denoising="upgnet"))


@pytest.mark.parametrize("epsilon_x", [math.inf, None])
def test_what_holds_no_noise_is_left_as_lpgnn_reads_it(epsilon_x: float | None) -> None:
    assert torch.equal(predicted(epsilon_x=epsilon_x), predicted(epsilon_x=epsilon_x, denoising="upgnet"))


def test_the_units_of_features_change_nothing() -> None:
    """The threshold is one for features in [0, 1]: declared in other units, features give the same network."""
    graph = made.graph(20)
    wide = made.changed(graph, x=16 * made.dense(graph.x), low=16 * graph.schema.low, high=16 * graph.schema.high)
    found = [
        UPGNET(seed=0).fit(one, split=made.split_of(one), randomness=SeededRandomness(1)).predict_proba()
        for one in (graph, wide)
    ]
    assert torch.allclose(found[0], found[1], atol=1e-4)
