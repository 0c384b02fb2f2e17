"""What the server holds, and what cores share: topology, reports, and who pays for a prediction."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.aggregation import normalised
from graphveil.errors import BudgetError, InputError
from graphveil.graphs import load_parts
from graphveil.mechanisms import catalogue
from graphveil.mechanisms.catalogue import mechanism_named
from graphveil.methods.base import cost
from graphveil.methods.base.cost import fixed_integers, propagation_of
from graphveil.methods.base.people.asking import charge_people, merged_rows, reports_from_tensors
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.people.people import BY_ID, Identified
from graphveil.methods.base.people.released import Topology, randomize_people
from graphveil.methods.base.storage import Stored, stored_probabilities
from graphveil.privacy import Ledger, SecureRandomness, SeededRandomness, Spend
from tests.methods import made

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def test_any_change_of_the_topology_changes_the_fingerprint() -> None:
    other_edge = EDGES.clone()
    other_edge[1, 0] = 2
    changed = [Topology(EDGES, 4), Topology(EDGES[:, :2], 3), Topology(other_edge, 3), Topology(EDGES.flip(0), 3)]
    fingerprints = {topology.fingerprint for topology in [Topology(EDGES, 3), *changed]}
    assert len(fingerprints) == 5


def test_only_training_and_validation_nodes_send_a_label() -> None:
    graph = made.graph()
    split = made.split_of(graph)
    released = randomize_people(graph, split, LocalPrivacy(None, 50.0), randomness=SecureRandomness())
    reporting = split.train | split.val
    assert torch.equal(released.labelled, reporting)
    assert torch.equal(released.labels[reporting], graph.y[reporting])
    assert bool((released.labels[~reporting] == -1).all())


def test_reproducible_noise_is_marked_on_the_reports() -> None:
    graph = made.graph()
    for noise, void in ((SecureRandomness(), None), (SeededRandomness(9), "noise was reproducible (seed 9)")):
        for privacy in (LocalPrivacy(1.0, math.inf), LocalPrivacy(None, 1.0), LocalPrivacy(math.inf, 1.0)):
            assert randomize_people(graph, made.split_of(graph), privacy, randomness=noise).void == void


@pytest.mark.parametrize("flags", [(True, False, False), (False, True, False)], ids=["train", "validate"])
def test_label_noise_is_as_large_as_declared(flags: tuple[bool, bool, bool]) -> None:
    """3,000 labels at epsilon 1: the share kept is within 5 deviations of p (false alarm 6e-7), not of 1.2 p."""
    graph: Any = SimpleNamespace(num_nodes=3_000, y=torch.arange(3_000) % 3, schema=made.graph().schema)
    split = made.Split(*(torch.full((3_000,), flag) for flag in flags))
    released = randomize_people(graph, split, LocalPrivacy(None, 1.0), randomness=SeededRandomness(4))
    share = float((released.labels == graph.y).float().mean())
    p = math.e / (math.e + 2)
    error = 5 * math.sqrt(p * (1 - p) / 3_000)
    assert abs(share - p) < error
    assert abs(share - 1.2 * p) > error


@pytest.mark.parametrize("private", [("labels",), ("edges",)])
def test_private_edges_do_not_decide_how_many_threads_there_are(
    private: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last digits of sums follow the threads: an edge more or less at the limit would show in every prediction."""
    graph, fewer = made.graph(20), made.graph(20)
    fewer.edge_index = graph.edge_index[:, :-2]
    monkeypatch.setattr(cost, "SMALL_EDGES", graph.edge_index.shape[1])
    monkeypatch.setattr(cost, "fastest_threads", lambda product: 2)
    threads = []
    for people in (graph, fewer):
        people.schema = replace(people.schema, private=private)
        threads.append(cost.settle_threads(people))
    assert (threads[0] == threads[1]) == ("edges" in private)


# ---- the propagation of a plan beside that of a training ----


@pytest.mark.parametrize(("below", "shape"), [(2, (7, 64)), (1_000, (2, 5_000)), (1_797, (2, 33)), (1, (2, 3))])
def test_numbers_are_those_of_torch_for_the_seed_0(below: int, shape: tuple[int, ...]) -> None:
    theirs = torch.randint(0, below, shape, generator=torch.Generator().manual_seed(0))
    assert np.array_equal(fixed_integers(below, shape), theirs.numpy())


@pytest.mark.parametrize("name", ["digits", "social-200"])
def test_a_plan_counts_what_a_training_holds(name: str) -> None:
    parts = load_parts(name)
    planned = propagation_of(parts.edge_index, parts.num_nodes)
    trained = normalised(torch.from_numpy(parts.edge_index), parts.num_nodes)
    assert (planned.nodes, planned.entries, planned.nbytes) == (parts.num_nodes, trained.entries, trained.nbytes)
    x = torch.randn(parts.num_nodes, 3, generator=torch.Generator().manual_seed(1))
    np.testing.assert_allclose(planned.matrix @ x.numpy(), (trained @ x).numpy(), rtol=1e-4, atol=1e-6)


def test_a_directed_graph_is_held_twice() -> None:
    edges = np.array([[0, 1, 2], [1, 2, 0]])
    assert propagation_of(edges, 3).nbytes == normalised(torch.from_numpy(edges), 3).nbytes == 2 * (4 * 4 + 8 * 3)


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        (torch.zeros(3, 4), r"\(3, 4\); allowed: \(nodes, 2\)"),
        (torch.zeros(2), r"\(2,\)"),
        (torch.zeros(3, 2, 1), r"\(3, 2, 1\)"),
        (torch.full((3, 2), torch.nan), "probabilities"),
        (torch.full((3, 2), torch.inf), "probabilities"),
    ],
)
def test_probabilities_of_another_shape_would_answer_for_other_people(probabilities: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        stored_probabilities(Stored({}, {"probabilities": probabilities}), 2)


# ---- asking for a prediction ----


FEATURES = [info.name for info in catalogue() if info.kind == "features"]
SPEND = Spend("feature reports", "features", "made", {}, 1.0)


@pytest.mark.parametrize("name", FEATURES)
def test_reports_of_every_feature_mechanism_are_known_by_their_tensors(name: str) -> None:
    info = mechanism_named(name)
    more = {"delta": 1e-6} if "delta" in {option.name for option in info.options} else {}
    mechanism: Any = info.mechanism(epsilon=2.0, dimension=6, low=0.0, high=1.0, **more)
    sent = mechanism.randomize(torch.rand(9, 6), randomness=SeededRandomness(3))
    reports = reports_from_tensors(sent.to_tensors())
    assert torch.equal(mechanism.estimate(reports), mechanism.estimate(sent))


def test_tensors_that_no_mechanism_sends_are_named() -> None:
    with pytest.raises(InputError, match=r"reports: no feature report has tensors \['a', 'b'\]"):
        reports_from_tensors({"b": torch.zeros(2), "a": torch.zeros(2)})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-1, 4), min_size=1, max_size=9))
def test_everybody_stands_in_the_row_where_they_were_asked_about(rows: list[int]) -> None:
    """Known people show what was kept, new ones what they sent, in the order of the new graph."""
    stored = {"bits": torch.arange(5)[:, None].repeat(1, 3)}
    new = rows.count(-1)
    sent = {"bits": 100 + torch.arange(new)[:, None].repeat(1, 3)}
    joined = merged_rows(Identified(torch.tensor(rows)), stored, sent)["bits"]
    fresh = iter(range(100, 200))
    assert joined[:, 0].tolist() == [next(fresh) if row < 0 else row for row in rows]


def opened(**budgets: tuple[float, float]) -> Ledger:
    return Ledger.open(budgets).spend(SPEND)


def ask(ledger: Ledger, people: Identified | None, *, queries: int = 0) -> tuple[Ledger, frozenset[str]]:
    return charge_people(ledger, people, [SPEND], name="town", group="g", queries=queries)


def some(*new: bool) -> Identified:
    rows = torch.tensor([-1 if fresh else place for place, fresh in enumerate(new)])
    return Identified(rows, tuple(bytes([place]) * 16 for place in range(len(new))), BY_ID)


def test_declared_queries_make_room_for_each_of_them_again() -> None:
    paid, own = ask(opened(features=(1.0, 0.0)), some(True), queries=2)
    assert paid.remaining(*own)[0] == 2.0


class Others:
    """An account into which another process has spent meanwhile."""

    def settle(self, own: Ledger, paid: Ledger) -> Ledger:
        theirs = Ledger(paid.budget, (*own.spends, SPEND, *paid.spends[len(own.spends) :]))
        return theirs.detached()


def test_people_that_another_process_asked_meanwhile_may_be_the_same() -> None:
    ledger = Ledger(opened(features=(9.0, 0.0)).budget, account=Others())
    with pytest.raises(BudgetError, match="ledger: another process asked people of this run at the same time"):
        ask(ledger, some(True))
