"""What a plan promises, method by method: unit, price, who may look, what it leans on, and how much noise."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from graphveil.graphs import Graph, load_graph
from graphveil.methods import METHODS
from graphveil.methods.base.method import BASELINE
from graphveil.methods.curator.plan import ASSUMED_DEGREE
from graphveil.methods.runs.plan import Plan, plan
from graphveil.privacy import Guarantee


@cache
def people() -> Graph:
    return load_graph("social-100")


def planned(name: str, **chosen: Any) -> Plan:
    return plan(name, people(), chosen)


DEVICES, CURATED = "the server", "except the curator"


@dataclass(frozen=True)
class Promise:
    """A method with a price, and what its plan must say.

    Args:
        against: part of who may look.
        assumes: codes that must be among the assumptions; never: those that must not.
        section: where the plan's own figures stand.
    """

    method: str
    price: dict[str, Any]
    covers: set[str]
    relation: str
    model: str
    total: float
    against: str
    assumes: set[str]
    section: str
    never: set[str] = field(default_factory=set)


LOCAL = {"reports-once", "participation-public"}
PROMISES = {
    "lpgnn": Promise(
        *("lpgnn", {"epsilon_x": 1.0, "epsilon_y": 2.0}, {"features", "label"}, "replace", "local", 3.0, DEVICES),
        *(LOCAL | {"feature-range-public", "classes-public", "topology-public"}, "noise_to_signal"),
    ),
    "lpgnn, labels alone": Promise(
        *("lpgnn", {"epsilon_x": None, "epsilon_y": 2.0}, {"label"}, "replace", "local", 2.0, DEVICES),
        *(LOCAL | {"topology-public"}, "noise_to_signal", {"feature-range-public"}),
    ),
    "label-propagation": Promise(
        *("label-propagation", {"epsilon_y": 2.0}, {"label"}, "replace", "local", 2.0, DEVICES),
        *(LOCAL | {"topology-public"}, "noise_to_signal", {"feature-range-public"}),
    ),
    "solitude": Promise(
        *("solitude", {"epsilon_x": 1.0, "epsilon_a": 4.0, "epsilon_y": 2.0}, {"features", "label", "edge"}),
        *("replace", "local", 7.0, DEVICES, LOCAL | {"users-public", "lower-id-reports"}, "links", {"topology-public"}),
    ),
    "link-beliefs": Promise(
        *("link-beliefs", {"epsilon_x": 1.0, "epsilon_a": 4.0, "epsilon_y": 2.0}, {"features", "label", "edge"}),
        *("replace", "local", 7.0, DEVICES, LOCAL | {"users-public"}, "links", {"topology-public"}),
    ),
    "gap": Promise(
        *("gap", {"epsilon": 2.0}, {"edge"}, "add/remove", "central", 2.0, CURATED),
        *({"node-set-public", "features-and-labels-open"}, "curator", {"joint-privacy"}),
    ),
    "gap, nodes": Promise(
        *("gap", {"epsilon": 8.0, "unit": "node", "degree_bound": 5}, {"features", "label", "edge"}, "add/remove"),
        *("central", 8.0, CURATED, {"joint-privacy", "lists-cut"}, "curator", {"features-and-labels-open"}),
    ),
    "node-sums": Promise(
        *("node-sums", {"epsilon": 8.0, "degree_bound": 5}, {"features", "label", "edge"}, "add/remove"),
        *("central", 8.0, CURATED, {"joint-privacy", "lists-cut"}, "curator", {"features-and-labels-open"}),
    ),
    "gap, promised degrees": Promise(
        *("gap", {"epsilon": 8.0, "unit": "node", "degree_bound": 5, "rule": "declared"}),
        *({"features", "label", "edges"}, "add/remove", "central", 8.0, CURATED),
        *({"degree-promised"}, "curator", {"lists-cut"}),
    ),
    **{
        name: Promise(
            *(name, {"epsilon": 8.0, **more}, {"edge"}, "add/remove", "central", 8.0, CURATED),
            *({"features-and-labels-open"}, "curator"),
        )
        for name, more in {
            **{name: {} for name in ("progap", "class-sums", "lpgnet", "gcon", "eclipse", "caribou")},
            "dpdgc": {"batch": 10_000, "passes": 2},
        }.items()
    },
    "dp-mlp": Promise(
        *("dp-mlp", {"epsilon": 8.0}, {"features", "label"}, "add/remove", "central", 8.0, CURATED),
        *({"joint-privacy", "node-set-public"}, "curator", {"lists-cut", "degree-promised"}),
    ),
    "heterorr": Promise(
        *("heterorr", {"epsilon_x": 1.0, "epsilon_a": 2.0, "epsilon_y": 2.0}, {"features", "label", "edge"}),
        *("replace", "central", 5.0, "the released graph", {"released-once", "classes-public"}, "release"),
    ),
    "feature-rr": Promise(
        *("feature-rr", {"epsilon_x": 1.0}, {"features"}, "replace", "central", 1.0, "the released graph"),
        *({"labels-published-open", "edges-published-open"}, "release", {"private-nodes-public"}),
    ),
    "class-counts": Promise(
        *("class-counts", {"epsilon_a": 2.0}, {"edge"}, "add/remove", "central", 2.0, "the released graph"),
        *({"features-published-open", "labels-published-open"}, "release", {"feature-range-public"}),
    ),
    "edge-rr": Promise(
        *("edge-rr", {"epsilon_a": 2.0}, {"edge"}, "add/remove", "central", 2.0, "the released graph"),
        *({"features-published-open", "labels-published-open"}, "release", {"feature-range-public"}),
    ),
}


@pytest.fixture(params=PROMISES)
def said(request: pytest.FixtureRequest) -> tuple[Promise, Plan]:
    promise = PROMISES[request.param]
    return promise, planned(promise.method, **promise.price)


def test_a_plan_says_what_is_promised_to_whom_and_what_it_leans_on(said: tuple[Promise, Plan]) -> None:
    """Pure prices have no delta, a curator's noise has one; figures stand in their family's section alone."""
    promise, found = said
    guarantee, sentence = found.guarantee, found.guarantee.sentence()
    assert guarantee.unit.covers == promise.covers
    assert (guarantee.relation, guarantee.model) == (promise.relation, promise.model)
    assert guarantee.epsilon == pytest.approx(promise.total) and guarantee.void is None
    noisy = promise.section == "curator"
    assert guarantee.delta == (1e-5 if noisy else 0.0) and ("plus at most" in sentence) is noisy
    codes = {one.code for one in guarantee.assumes}
    assert promise.assumes <= codes and not promise.never & codes
    assert promise.against in str(guarantee.against)
    for part in (guarantee.unit.text, promise.against, *(one.sentence for one in guarantee.assumes)):
        assert part in sentence, part
    answer = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {name for name in ("noise_to_signal", "links", "curator", "release") if answer[name]} == {promise.section}
    assert Guarantee.from_dict(answer["guarantee"]) == guarantee and answer["guarantee_sentence"] == sentence
    assert found.seconds > 0 and found.memory_mb >= 0 and found.method == promise.method
    assert (found.report_bytes > 0) is (promise.model == "local")


def test_each_private_method_has_a_promise_here() -> None:
    """A method of another name is the same core with settings fixed, and says the same of itself."""
    cores = {METHODS[one.method].core for one in PROMISES.values()}
    private = {method.core for method in METHODS.values() if BASELINE not in method.tags}
    assert private <= cores


def test_the_noise_beside_ten_neighbours_is_that_of_a_row() -> None:
    figures: Any = planned("gap", epsilon=2.0, hidden=9, hops=3).figures
    assert len(figures.noise.sigmas) == len(figures.per_node) == 3
    assert figures.per_node == pytest.approx([3 * sigma / ASSUMED_DEGREE for sigma in figures.noise.sigmas])
    sums: Any = planned("class-sums", epsilon=2.0).figures
    classes = len(people().schema.classes)
    assert sums.per_node == pytest.approx([sums.noise.sigmas[0] * classes**0.5 / ASSUMED_DEGREE])


def test_a_release_says_which_mechanism_would_have_the_least_noise() -> None:
    found = planned("feature-rr", epsilon_x=1.0)
    figures: Any = found.figures
    assert figures.least_noisy == min(figures.noise, key=figures.noise.__getitem__)
    assert figures.least_noisy != "feature-rr" and f"features={figures.least_noisy}" in found.advice[0]
    best = planned("heterorr", epsilon_x=1.0, epsilon_a=math.inf, features=figures.least_noisy)
    assert not any("has the least noise here" in line for line in best.advice)
