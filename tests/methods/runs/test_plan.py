"""What `plan` promises before anything is collected."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, load_graph
from graphveil.graphs.value.parts import SparseRows
from graphveil.methods import METHODS
from graphveil.methods.base.cost import ASSUMED_DEGREE
from graphveil.methods.base.family import Plan
from graphveil.methods.base.method import BASELINE
from graphveil.methods.links.family import LinkPlan
from graphveil.methods.local.entries import LEAST_FEATURE_EPSILON, SATURATED, advised_split
from graphveil.methods.registry import plan
from graphveil.privacy import Guarantee, SecureRandomness
from tests.methods import links_made, made

SCHEMA = GraphSchema("made", 8, -1.0, 3.0, ("a", "b", "c"))


class Shape:
    """Labels without content: how many there are a person, and nothing else."""

    ndim = 1

    def __getattr__(self, name: str) -> Any:
        raise AssertionError("labels were read")


class Faceless:
    """A public topology whose features are a shape without content, and whose labels must not be touched."""

    def __init__(self, edges: Any, nodes: int, schema: GraphSchema = SCHEMA) -> None:
        pairs = np.asarray(edges)
        self.edge_index = torch.from_numpy(np.concatenate([pairs, pairs[:, ::-1]]).T.copy())
        self.num_nodes, self.schema = nodes, schema
        self.x = torch.empty(nodes, schema.dimension, device="meta")
        self.y = Shape()


def cycle(nodes: int) -> Faceless:
    return Faceless([(node, (node + 1) % nodes) for node in range(nodes)], nodes)


def planned(graph: Any, name: str = "lpgnn", **settings: Any) -> Any:
    return plan(name, graph, settings)


@pytest.mark.parametrize("name", METHODS)
def test_no_private_value_is_read(name: str) -> None:
    """Features without content and labels that raise are enough, for every method."""
    for graph in (cycle(30), Faceless([(0, 1)], 12)):
        figures = planned(graph, name, **({"question": "0>=0.5"} if name == "answer-pool" else {}))
        assert figures.seconds > 0 and figures.memory_mb > 0
        # Noise-to-signal where no signal arrives is infinite, which JSON cannot say as a number.
        assert json.loads(json.dumps(figures.to_dict(), allow_nan=False))["method"] == name


@pytest.mark.parametrize("name", ["lpgnn", "solitude", "heterorr", "feature-rr"])
def test_how_many_private_features_are_not_0_is_not_counted(name: str) -> None:
    graph, memory = cycle(30), []
    for stored in (1, 100_000):  # the second has more than the entries there are: enough for a MB
        empty = np.zeros(stored, np.int64)
        graph.x = SparseRows(empty.astype(np.float32), empty, np.full(31, stored), (30, 8))
        memory.append(planned(graph, name, epsilon_x=1.0).memory_mb)
    assert memory[0] == memory[1]


@pytest.mark.parametrize(("epsilon_x", "epsilon_y"), [(1.0, 2.0), (None, 1.0), (math.inf, 1.0), (1.0, math.inf)])
def test_the_guarantee_is_that_of_the_run_that_follows(epsilon_x: float | None, epsilon_y: float) -> None:
    graph = made.graph()
    before = planned(graph, epsilon_x=epsilon_x, epsilon_y=epsilon_y)
    method = METHODS["lpgnn"].load_class()(epsilon_x=epsilon_x, epsilon_y=epsilon_y, epochs=1)
    assert before.guarantee == method.fit(graph, randomness=SecureRandomness()).guarantee
    assert before.epsilon == {"features": epsilon_x or 0.0, "labels": epsilon_y}


@pytest.mark.parametrize("hops", [0, 2, 8])
def test_hops_on_a_cycle_in_closed_form(hops: int) -> None:
    """Every row of P^K is a binomial law with sum of squares binom(2K, K) / 4^K, and P^K 1 = 1.

    One bit of 8 gives a middling value the deviation sqrt(8) 2 (e + 1) / (e - 1), and a label of 3 its own by q.
    64 random signs a node and the median of 150 nodes: within 6% at this fixed seed; a variance without its root fails.
    """
    squares = math.comb(2 * hops, hops) / 4**hops
    middle = planned(cycle(300), epsilon_x=1.0, epsilon_y=1.0, steps_x=hops, steps_y=hops).figures.noise[1]
    assert middle.degree == 2
    expected = math.sqrt(8 * squares) * (math.e + 1) / (math.e - 1)
    q = 1 / (math.e + 2)
    assert middle.features == pytest.approx(expected, rel=0.06)
    assert middle.labels == pytest.approx(math.sqrt(q * (1 - q) * squares) / ((math.e - 1) * q), rel=0.06)
    assert hops == 0 or middle.features != pytest.approx(expected * math.sqrt(squares), rel=0.06)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"epsilon_x": 1.0, "epsilon_y": 1.0}, (3 + 1) / 8 + 2 / 8),  # one index of 8, one bit, one class of 3
        ({"epsilon_x": 4.5, "epsilon_y": 1.0}, 2 * (3 + 1) / 8 + 2 / 8),
        ({"epsilon_x": None, "epsilon_y": 1.0}, 2 / 8),
        ({"epsilon_x": 1.0, "epsilon_y": 1.0, "mechanism": "one-bit"}, 8 / 8 + 2 / 8),
        ({"epsilon_x": 1.0, "epsilon_y": 1.0, "mechanism": "duchi"}, (3 + 1) / 8 + 2 / 8),
        ({"epsilon_x": 1.0, "epsilon_y": 1.0, "mechanism": "piecewise"}, (3 + 8) / 8 + 2 / 8),  # 170 levels
        ({"epsilon_x": 4.0, "epsilon_y": 1.0, "mechanism": "three-outputs"}, 2 * (3 + 2) / 8 + 2 / 8),
        ({"epsilon_x": 1.0, "epsilon_y": 1.0, "mechanism": "privunit"}, 5 / 8 + 2 / 8),  # 32 codewords
        ({"epsilon_x": 1.0, "epsilon_y": 1.0, "mechanism": "laplace"}, 8 * 4 + 2 / 8),
        ({"epsilon_x": math.inf, "epsilon_y": 1.0}, 8 * 4 + 2 / 8),
    ],
)
def test_the_size_of_a_report(settings: dict[str, Any], expected: float) -> None:
    assert planned(cycle(20), **settings).report_bytes == pytest.approx(expected)


# ---- private neighbour lists ----

LISTS = ("solitude", "link-beliefs", "list-sums", "links", "blink", "dprr")


def timeless(planned_run: Plan) -> dict[str, Any]:
    """A plan without what a clock measured."""
    content = planned_run.to_dict()
    assert content.pop("seconds") > 0
    return content


@pytest.mark.parametrize("name", LISTS)
def test_true_links_are_never_looked_at(name: str) -> None:
    """Features without content, labels without content, and no links at all."""

    class Linkless(links_made.Sealed):
        x = torch.empty(60, 20, device="meta")
        y = Shape()  # type: ignore[assignment]

    graph = links_made.graph()
    sealed = planned(Linkless(graph), name)
    assert isinstance(sealed.figures, LinkPlan)
    assert timeless(sealed)["links"] == timeless(planned(graph, name))["links"]


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
def test_the_guarantee_of_a_plan_of_lists_is_that_of_the_run(mode: str) -> None:
    graph = links_made.graph(directed=mode == "directed")
    settings = {"epsilon_x": 1.0, "epsilon_a": 3.0, "epsilon_y": 2.0, "mode": mode}
    before = planned(graph, "link-beliefs", **settings)
    # Of two friends each may name the other, also where a list is about what begins at its person.
    price = 3.0 if mode == "lower" else 6.0
    assert before.epsilon == {"features": 1.0, "labels": 2.0, "one bit of a list": 3.0, "one relationship": price}
    run = METHODS["link-beliefs"].load_class()(**settings).fit(graph, randomness=SecureRandomness())
    assert before.guarantee == run.guarantee
    assert before.guarantee.epsilon == pytest.approx(9.0 if mode == "both" else 6.0)


# ---- how to split a budget ----


@pytest.mark.parametrize(("total", "classes"), [(1e-3, 1000), (1.0, 2), (4.0, 7), (8.0, 40), (100.0, 3)])
def test_a_split_never_spends_more_than_the_total(total: float, classes: int) -> None:
    epsilon_x, epsilon_y = advised_split(total, classes)
    assert epsilon_y > 0
    assert (epsilon_x or 0.0) + epsilon_y <= total * (1 + 1e-12)
    assert (epsilon_x or 0.0) + epsilon_y == pytest.approx(total)
    assert epsilon_x is None or epsilon_x >= LEAST_FEATURE_EPSILON


@pytest.mark.parametrize("classes", [2, 7])
def test_labels_come_first_up_to_saturation(classes: int) -> None:
    """At the epsilon where randomized response keeps 98% of labels the rest goes to the features."""
    enough = math.log(SATURATED * (classes - 1) / (1 - SATURATED))
    keep = math.exp(enough) / (math.exp(enough) + classes - 1)
    assert keep == pytest.approx(SATURATED)
    assert advised_split(enough, classes) == (None, enough)
    assert advised_split(enough + LEAST_FEATURE_EPSILON / 2, classes)[0] is None
    epsilon_x, epsilon_y = advised_split(enough + 1, classes)
    assert (epsilon_x, epsilon_y) == (pytest.approx(1.0), pytest.approx(enough))


@pytest.mark.parametrize("total", [0.0, -1.0, math.nan, math.inf])
def test_totals_that_are_no_budget_are_refused(total: float) -> None:
    with pytest.raises(InputError, match=r"epsilon is .*; allowed: a finite number above 0"):
        advised_split(total, 3)


def test_a_plan_of_a_release_says_how_many_pairs_and_how_much_noise() -> None:
    figures = planned(cycle(100), "heterorr", epsilon_a=4.0, edges="edge-rand").figures
    assert (figures.nodes, figures.private_nodes, figures.public_edges) == (100, 100, 0)
    assert figures.protected_pairs == 100 * 99 // 2
    assert figures.false_edges == pytest.approx(4950 / (math.exp(4) + 1), rel=1e-6)
    assert figures.noise["feature-rr"] > 5 * figures.noise["multi-bit"]
    assert planned(cycle(100), "feature-rr").figures.protected_pairs == 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "settings", "advised", "unsaid"),
    [
        ("lpgnn", {"epsilon_x": 1.0, "epsilon_y": 1.0}, "spend all of it on the label (--epsilon 2)", "delta"),
        ("lpgnn", {"epsilon_x": 8.0, "epsilon_y": 1.0}, "tells at most 4.923 nats", "spend all of it"),
        # A report of 30 tells far more than a class takes, and no total of 230 is advised.
        ("lpgnn", {"epsilon_x": 30.0, "epsilon_y": 200.0}, None, "nats"),
        ("gap", {"epsilon": 2.0, "delta": 0.05}, "delta 0.05 is not below one over 100 nodes", "nats"),
        ("gap", {"epsilon": 2.0, "delta": 1e-4}, "edges alone are protected", "is not below one over"),
        ("gap", {"epsilon": 2.0, "weights": "kernel"}, "weights kernel: on none of nine", "nats"),
        ("gap", {"epsilon": 2.0, "weights": "uniform"}, "edges alone are protected", "of nine public graphs"),
    ],
)
def test_advice_is_given_where_there_is_a_choice(
    name: str, settings: dict[str, Any], advised: str | None, unsaid: str
) -> None:
    advice = planned_here(name, **settings).advice
    assert any(advised in line for line in advice) if advised else advice == ()
    assert not any(unsaid in line for line in advice)


# ---- what a plan promises, method by method: unit, price, who may look, what it leans on, and how much noise ----


@cache
def people() -> Graph:
    return load_graph("social-100")


def planned_here(name: str, **chosen: Any) -> Plan:
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
CURATOR = {"node-set-public", "trained-once"}
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
        *(CURATOR | {"features-and-labels-open"}, "curator", {"joint-privacy"}),
    ),
    "gap, nodes": Promise(
        *("gap", {"epsilon": 8.0, "unit": "node", "degree_bound": 5}, {"features", "label", "edge"}, "add/remove"),
        *("central", 8.0, CURATED, CURATOR | {"joint-privacy", "lists-cut"}, "curator", {"features-and-labels-open"}),
    ),
    "node-sums": Promise(
        *("node-sums", {"epsilon": 8.0, "degree_bound": 5}, {"features", "label", "edge"}, "add/remove"),
        *("central", 8.0, CURATED, CURATOR | {"joint-privacy", "lists-cut"}, "curator", {"features-and-labels-open"}),
    ),
    "gap, promised degrees": Promise(
        *("gap", {"epsilon": 8.0, "unit": "node", "degree_bound": 5, "rule": "declared"}),
        *({"features", "label", "edges"}, "add/remove", "central", 8.0, CURATED),
        *(CURATOR | {"degree-promised"}, "curator", {"lists-cut"}),
    ),
    **{
        name: Promise(
            *(name, {"epsilon": 8.0, **more}, {"edge"}, "add/remove", "central", 8.0, CURATED),
            *(CURATOR | {"features-and-labels-open"}, "curator"),
        )
        for name, more in {
            **{name: {} for name in ("progap", "class-sums", "lpgnet", "gcon", "eclipse", "caribou")},
            "dpdgc": {"batch": 10_000, "passes": 2},
        }.items()
    },
    "dp-mlp": Promise(
        *("dp-mlp", {"epsilon": 8.0}, {"features", "label"}, "add/remove", "central", 8.0, CURATED),
        *(CURATOR | {"joint-privacy"}, "curator", {"lists-cut", "degree-promised"}),
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
def promise_and_plan(request: pytest.FixtureRequest) -> tuple[Promise, Plan]:
    promise = PROMISES[request.param]
    return promise, planned_here(promise.method, **promise.price)


def test_a_plan_says_what_is_promised_to_whom_and_what_it_leans_on(promise_and_plan: tuple[Promise, Plan]) -> None:
    """Pure prices have no delta, a curator's noise has one; figures stand in their family's section alone."""
    promise, planned_run = promise_and_plan
    guarantee, sentence = planned_run.guarantee, planned_run.guarantee.sentence()
    assert guarantee.unit.covers == promise.covers
    assert (guarantee.relation, guarantee.model) == (promise.relation, promise.model)
    assert guarantee.epsilon == pytest.approx(promise.total) and guarantee.void is None
    noisy = promise.section == "curator"
    assert guarantee.delta == (1e-5 if noisy else 0.0) and ("plus at most" in sentence) is noisy
    codes = {assumption.code for assumption in guarantee.assumes}
    assert promise.assumes <= codes and not promise.never & codes
    assert promise.against in str(guarantee.against)
    for part in (guarantee.unit.text, promise.against, *(assumption.sentence for assumption in guarantee.assumes)):
        assert part in sentence, part
    answer = json.loads(json.dumps(planned_run.to_dict(), allow_nan=False))
    assert {name for name in ("noise_to_signal", "links", "curator", "release") if answer[name]} == {promise.section}
    assert Guarantee.from_dict(answer["guarantee"]) == guarantee and answer["guarantee_sentence"] == sentence
    assert planned_run.seconds > 0 and planned_run.memory_mb >= 0 and planned_run.method == promise.method
    assert (planned_run.report_bytes > 0) is (promise.model == "local")


def test_each_private_method_has_a_promise_here() -> None:
    """A class that fixes settings of another says the same of itself."""
    promised = {METHODS[promise.method].load_class().kind for promise in PROMISES.values()}
    private = {method.load_class().kind for method in METHODS.values() if BASELINE not in method.tags}
    assert private <= promised


def test_the_noise_beside_ten_neighbours_is_that_of_a_row() -> None:
    figures: Any = planned_here("gap", epsilon=2.0, hidden=9, hops=3).figures
    assert len(figures.noise.sigmas) == len(figures.per_node) == 3
    assert figures.per_node == pytest.approx([3 * sigma / ASSUMED_DEGREE for sigma in figures.noise.sigmas])
    sums: Any = planned_here("class-sums", epsilon=2.0).figures
    classes = len(people().schema.classes)
    assert sums.per_node == pytest.approx([sums.noise.sigmas[0] * classes**0.5 / ASSUMED_DEGREE])


def test_a_release_says_which_mechanism_would_have_the_least_noise() -> None:
    planned_run = planned_here("feature-rr", epsilon_x=1.0)
    figures: Any = planned_run.figures
    assert figures.least_noisy == min(figures.noise, key=figures.noise.__getitem__)
    assert figures.least_noisy != "feature-rr" and f"features={figures.least_noisy}" in planned_run.advice[0]
    best = planned_here("heterorr", epsilon_x=1.0, epsilon_a=math.inf, features=figures.least_noisy)
    assert not any("has the least noise here" in line for line in best.advice)
