"""Solitude and the denoisers in its place: the contract, and what the method adds."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest

from graphveil.errors import InputError
from graphveil.methods import Solitude
from graphveil.methods.links.names import DENOISERS
from graphveil.privacy import SeededRandomness
from tests.methods import links_made, made
from tests.methods.cases import Case, Inductive
from tests.methods.conformance import MethodSuite

SHORT: dict[str, Any] = {"epochs": 3, "hidden": 4}


def of(x: float | None, a: float, y: float, mode: str, inductive: Inductive = "reports", **settings: Any) -> Case:
    asked = None if settings.pop("left_open", False) else mode
    build = partial(Solitude, epsilon_x=x, epsilon_a=a, epsilon_y=y, mode=asked, **{**SHORT, **settings})
    return Case(build, x or 0.0, y, inductive, 20, links=a, mode=mode)


CASES = {
    "lower": of(1.0, 4.0, math.inf, "lower", mechanism="gaussian"),
    "both": of(1.0, 3.0, 2.0, "both", model="gcn"),
    "mode left open": of(math.inf, 4.0, math.inf, "lower", left_open=True),
    "links public": of(1.0, math.inf, 1.0, "lower", model="mlp"),
    "all public": of(math.inf, math.inf, math.inf, "lower", "public"),
    "no features": of(None, 4.0, 1.0, "lower", "never"),
    "complement": of(1.0, 4.0, math.inf, "both", complement=10),
    "none": of(1.0, 4.0, math.inf, "directed", denoiser="none", steps_y=2),
    "beliefs": of(1.0, 4.0, 1.0, "lower", denoiser="beliefs", model="gat"),
    "dprr": of(1.0, 4.0, math.inf, "both", denoiser="degree-preserving"),
    "blink-hybrid": of(math.inf, 6.0, math.inf, "lower", denoiser="blink-hybrid", degree_share=1 / 3),
    "blink-soft": of(1.0, 4.0, 1.0, "directed", denoiser="blink-soft"),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


class TestSolitude(MethodSuite):
    pass


def short(**settings: Any) -> Solitude:
    return Solitude(**{"epsilon_x": 1.0, "epsilon_a": 4.0, **SHORT, **settings})


# ---- settings ----


def test_hops_left_open_are_those_that_each_part_needs() -> None:
    for x, y, denoiser, hops in (
        (1.0, math.inf, "calibration", (4, 0)),
        (math.inf, 1.0, "calibration", (0, 4)),
        (None, 1.0, "none", (0, 4)),
        (1.0, 1.0, "blink-soft", (0, 0)),
    ):
        for left_open in ({}, {"steps_x": None, "steps_y": None}):
            found = Solitude(epsilon_x=x, epsilon_a=4.0, epsilon_y=y, denoiser=denoiser, **left_open).settings
            assert (found.steps_x, found.steps_y) == hops


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
def test_a_mode_that_does_not_fit_the_links_is_refused_before_they_are_read(mode: str) -> None:
    graph = links_made.Sealed(links_made.graph(directed=mode != "directed"))
    method = short(mode=mode)
    with pytest.raises(InputError, match=f"mode {mode} for a graph whose links are"):
        method.randomize(graph, split=None, randomness=SeededRandomness(1))  # type: ignore[arg-type]
    assert method.ledger.spends == ()


@pytest.mark.parametrize("epsilon", [1e-3, 50.0])
@pytest.mark.parametrize("denoiser", DENOISERS)
def test_extreme_epsilons_train_to_finite_numbers(denoiser: str, epsilon: float) -> None:
    """Nearly every pair reported, or exactly the true ones."""
    method = short(epsilon_a=epsilon, denoiser=denoiser, mode="both")
    graph = links_made.graph()
    found = method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1)).predict_proba()
    assert bool(found.isfinite().all())


# ---- calibration ----


@pytest.mark.parametrize(("mode", "tied"), [("lower", True), ("both", False), ("directed", False)])
def test_calibration_weighs_the_reported_links_and_no_others(mode: str, tied: bool) -> None:
    """The two entries of a pair that one end reported move as one; where each end reports, each has its own weight."""
    graph = links_made.graph(directed=mode == "directed")
    method = short(mode=mode, epochs=20, learning_rate_a=0.05, selection="last")
    method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1))
    topology, released = method.topology, method.released
    assert topology is not None and released is not None and topology.weights is not None  # type: ignore[union-attr]
    lists = released.lists["lists"].to_edge_index()
    codes = {(int(i), int(j)) for i, j in lists.T}
    entries = [(int(i), int(j)) for i, j in topology.edge_index.T]  # type: ignore[union-attr]
    expected = codes if mode == "directed" else {(j, i) for i, j in codes}
    assert set(entries) == (expected | codes if mode == "lower" else expected)
    weights = dict(zip(entries, topology.weights.tolist(), strict=True))  # type: ignore[union-attr]
    assert 0 <= min(weights.values()) < 0.9
    assert max(weights.values()) <= 1
    pairs = [(w, weights[j, i]) for (i, j), w in weights.items() if (j, i) in weights]
    assert all(first == second for first, second in pairs) == tied
