"""What a curator's budget buys, promises and refuses. Numbers are items of the reviewer's checklist."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.aggregation import sensitivity_of
from graphveil.errors import BudgetError, InputError
from graphveil.graphs import GraphSchema
from graphveil.methods import load_method
from graphveil.methods.curator.family import CURATOR
from graphveil.methods.curator.privacy import DEFAULT_DEGREE, CuratorPrivacy
from graphveil.methods.curator.rivals.dpdgc import TOPOLOGY
from graphveil.methods.curator.rivals.eclipse import spread
from graphveil.methods.registry import build_method, plan
from graphveil.privacy import (
    ChangedSamples,
    Descent,
    Guarantee,
    Hops,
    RepeatAndSelect,
    SeededRandomness,
    gaussian_epsilon,
    pipeline_epsilon,
)
from tests.methods import curator_made as cm

SCHEMA = GraphSchema("made", 8, 0.0, 1.0, ("a", "b", "c"))
DIRECTED = replace(SCHEMA, directed=True)


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": True},
        {"epsilon": 1.0, "degree_bound": 5},
        {"epsilon": 1.0, "unit": "node", "degree_bound": 0},
        {"epsilon": 1.0, "unit": "node", "rule": "declared"},
        {"epsilon": 1.0, "rule": "sampled"},
        {"epsilon": 1.0, "queries": -1},
        {"epsilon": 1.0, "unit": "k-edges"},
        {"epsilon": 1.0, "relationships": 3},
        {"epsilon": 1.0, "unit": "k-edges", "relationships": 0},
    ],
)
def test_what_is_no_budget_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        CuratorPrivacy(**settings)


def test_the_unit_follows_the_graph() -> None:
    privacy = CuratorPrivacy(1.0)
    assert (privacy.unit_for(SCHEMA), privacy.unit_for(DIRECTED)) == ("edge", "directed-edge")
    with pytest.raises(InputError, match="unit edge is for undirected graphs"):
        CuratorPrivacy(1.0, unit="edge").unit_for(DIRECTED)
    assert CuratorPrivacy(1.0, unit="node").degree == DEFAULT_DEGREE
    assert CuratorPrivacy(1.0, unit="edge").degree is None


@pytest.mark.parametrize("ratio", [0.5, 1.3, 4.0])
def test_unequal_noise_costs_what_equal_noise_costs(ratio: float) -> None:
    """sum_k 1 / sigma_k^2 is the same, up to the search's tolerance, and the price is exact."""
    privacy = CuratorPrivacy(2.0, 1e-6)
    equal, unequal = privacy.noise(SCHEMA, hops=3), privacy.noise(SCHEMA, hops=3, hop_ratio=ratio)
    first, second, third = unequal.sigmas
    assert second / first == pytest.approx(ratio) and third / second == pytest.approx(ratio)
    weights = [sum(sigma**-2 for sigma in noise.sigmas) for noise in (equal, unequal)]
    assert weights[1] == pytest.approx(weights[0], rel=1e-9)
    assert 2.0 * (1 - 1e-4) < gaussian_epsilon(1 / math.sqrt(2 * weights[1]), 1e-6) <= 2.0


def test_noise_of_nodes_pays_for_training_too() -> None:
    privacy = CuratorPrivacy(8.0, 1e-5, "node", degree_bound=10)
    trained = {name: (Descent(steps=20, rate=1.0, name=name), 500) for name in ("first", "last")}
    noise = privacy.noise(SCHEMA, hops=2, trained=trained)
    parts = [Hops(count=2, sensitivity=sensitivity_of("node", 1.0, 10)), *(descent for descent, _ in trained.values())]
    both = {name: (value,) for name, value in noise.multipliers.items()}
    spent = pipeline_epsilon(parts, {"hops": noise.sigmas, **both}, 1e-5)
    assert 7.9 < spent <= 8.0 and spent <= noise.epsilon <= 8.0
    more = privacy.noise(SCHEMA, hops=2, trained=trained, share_hops=0.8)
    assert more.sigmas[0] < noise.sigmas[0] and more.multipliers["last"] > noise.multipliers["last"]


def test_edges_do_not_pay_for_training() -> None:
    trained = {"first": (Descent(steps=20, rate=0.1, name="first"), 500)}
    privacy = CuratorPrivacy(1.0)
    assert privacy.noise(SCHEMA, hops=2, trained=trained) == privacy.noise(SCHEMA, hops=2)


def test_the_ledger_has_room_for_one_training_and_what_was_declared() -> None:
    privacy = CuratorPrivacy(2.0, 1e-6, "edge", queries=1)
    spend = privacy.spend("training", SCHEMA, privacy.noise(SCHEMA, hops=2))
    ledger = privacy.open_ledger().spend(*spend).spend(*spend)
    assert ledger.total("edges")[0] == 4.0
    with pytest.raises(BudgetError):
        ledger.spend(*spend)


@pytest.mark.parametrize(
    ("settings", "unit", "says"),
    [
        ({}, "one undirected edge", "features and labels are NOT protected"),
        (
            {"unit": "directed-edge"},
            "one directed edge (one of the two entries of an undirected edge)",
            "NOT protected",
        ),
        (
            {"unit": "k-edges", "relationships": 5},
            "any set of up to 5 relationships of one person",
            "features and labels are NOT protected",
        ),
        ({"unit": "node"}, "one node's features, label and own list of neighbours", "joint privacy"),
        ({"unit": "node", "rule": "declared", "degree_bound": 7}, "all its edges", "no node has more than 7 edges"),
    ],
)
def test_the_guarantee_says_what_is_protected_and_what_is_not(settings: dict[str, Any], unit: str, says: str) -> None:
    """Items 1 and 10."""
    guarantee = CuratorPrivacy(2.0, **settings).guarantee(SCHEMA)
    assert (guarantee.model, guarantee.relation) == ("central", "add/remove")
    assert (guarantee.epsilon, guarantee.delta) == (2.0, 1e-5)
    assert unit in guarantee.unit.text
    assert says in guarantee.sentence()
    assert (guarantee.against.code, guarantee.assumes[0].code) == ("all-but-curator", "node-set-public")
    assert guarantee.assumption("trained-once")
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee


def test_what_the_owner_calls_private_and_no_noise_hides_is_named() -> None:
    private = replace(SCHEMA, private=("edges", "features", "labels"))
    assert CuratorPrivacy(1.0).unprotected_parts(private) == "features and labels"
    assert CuratorPrivacy(1.0, unit="node").unprotected_parts(private) == ""
    assert CuratorPrivacy(1.0).unprotected_parts(replace(SCHEMA, private=("edges",))) == ""
    assert "though made declares features and labels private" in CuratorPrivacy(1.0).guarantee(private).sentence()


def test_a_directed_entrys_epsilon_is_not_that_of_a_relationship() -> None:
    """At delta 1e-7 epsilon 4 for an entry is 5.89 for an undirected edge, as measured for the published runs."""
    privacy = CuratorPrivacy(4.0, 1e-7, "directed-edge")
    noise = privacy.noise(SCHEMA, hops=2)
    assert privacy.epsilon_relationship(SCHEMA, noise) == pytest.approx(5.89, abs=0.02)
    assert privacy.epsilon_relationship(DIRECTED, noise) == 4.0
    assert CuratorPrivacy(4.0, unit="edge").epsilon_relationship(SCHEMA, noise) == 4.0


@pytest.mark.parametrize("k", [1, 3, 10])
def test_noise_of_k_relationships_of_one_person_is_exact(k: int) -> None:
    """Whoever looks sees the person's own sum move by k and k others by one; both graph kinds cost the same."""
    privacy = CuratorPrivacy(2.0, 1e-7, "k-edges", relationships=k)
    noise = privacy.noise(SCHEMA, hops=2)
    mu = math.sqrt(k * k + k) * math.sqrt(sum(sigma**-2 for sigma in noise.sigmas))
    assert 2.0 * (1 - 1e-4) < gaussian_epsilon(1 / mu, 1e-7) <= 2.0
    assert privacy.noise(DIRECTED, hops=2) == noise
    assert (privacy.unit_for(SCHEMA), privacy.unit_for(DIRECTED)) == ("k-edges", "k-edges")
    if k == 1:
        assert noise == CuratorPrivacy(2.0, 1e-7, "edge").noise(SCHEMA, hops=2)


@pytest.mark.parametrize(("unit", "k", "change"), [("edge", None, 2), ("directed-edge", None, 1), ("k-edges", 3, 6)])
def test_sums_of_classes_pay_for_every_count_that_the_unit_moves(unit: str, k: int | None, change: int) -> None:
    """Geometric noise: epsilon over the L1 change, hops together; one relationship at its part of it."""
    privacy = CuratorPrivacy(3.0, 1e-6, unit, relationships=k)
    single, three = privacy.counted_sum(SCHEMA), privacy.counted_sum(SCHEMA, hops=3)
    assert (single.change, single.epsilon, three.hops) == (change, 3.0, 3)
    assert single.noise.rate == pytest.approx(3.0 / change) and three.noise.rate == pytest.approx(1.0 / change)
    noise = privacy.noise_of_counts(three)
    assert noise.sigmas == (three.sigma,) * 3 and noise.epsilon == 3.0
    assert privacy.relationship_by_counts(SCHEMA, single) == pytest.approx(3.0 * 2 / change)
    if unit == "directed-edge":
        assert privacy.relationship_by_counts(DIRECTED, single) == 3.0


def test_sums_of_classes_refuse_what_they_are_not_priced_for() -> None:
    with pytest.raises(InputError, match="do not hide a node"):
        CuratorPrivacy(1.0, unit="node").counted_sum(SCHEMA)
    with pytest.raises(InputError, match="no price for trials"):
        CuratorPrivacy(1.0, tuning=RepeatAndSelect(mean=5.0)).counted_sum(SCHEMA)
    assert CuratorPrivacy(math.inf, unit="k-edges", relationships=3).counted_sum(SCHEMA).sigma == 0.0


# ---- methods that publish noisy sums of edges by roads of their own ----


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("name", ["caribou", "dpdgc", "eclipse", "gcon", "lpgnet"])
def test_the_plan_is_that_of_the_run_and_nothing_is_charged_without_protection(name: str, tmp_path: Path) -> None:
    method = cm.fit(name, epsilon=4.0)
    assert plan(name, cm.graph(), cm.quick(name, epsilon=4.0)).figures.noise.sigmas == method.published.noise.sigmas
    assert method.guarantee.epsilon == method.epsilon_relationship == 4.0
    method.save(tmp_path)
    loaded = load_method(tmp_path)
    assert (loaded.guarantee, loaded.ledger) == (method.guarantee, method.ledger)
    assert torch.equal(loaded.predict_proba(), method.predict_proba())
    unprotected = cm.fit(name, epsilon=math.inf)
    assert unprotected.ledger.spends == () and set(unprotected.published.noise.sigmas) == {0.0}


_ONE_EDGE = ({"unit": "node"}, {"unit": "k-edges", "relationships": 3}, {"queries": 1}, {"weights": "kernel"})
REFUSED = {
    "caribou": (*_ONE_EDGE, {"unit": "directed-edge"}, {"hop_ratio": 2.0}),
    "dpdgc": (*_ONE_EDGE, {"hops": 2}),
    "eclipse": ({"unit": "node"}, {"weights": "kernel"}, {"unit": "k-edges"}),
    "gcon": (*_ONE_EDGE, {"unit": "directed-edge"}),
    "lpgnet": ({"unit": "node"}, {"weights": "kernel"}, {"hop_ratio": 2.0}, {"unit": "k-edges"}),
    "class-sums": ({"unit": "node"}, {"unit": "k-edges"}, {"hops": 2}),
}


@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name, some in REFUSED.items() for wrong in some])
def test_what_is_not_priced_is_refused(name: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        build_method(name, {"epsilon": 1.0, **wrong}, 3)


@pytest.mark.parametrize("name", ["gcon", "caribou"])
def test_directed_graphs_are_refused_before_anything_is_read(name: str) -> None:
    """The bound on what an edge moves leans on every edge being there in both directions."""
    start, method = cm.Unreadable(cm.graph()), build_method(name, {"epsilon": 2.0}, 3)
    start.schema = replace(start.schema, directed=True)
    with pytest.raises(InputError, match="for undirected graphs"):
        method.fit(start, split=cm.split_of(cm.graph()), randomness=SeededRandomness(1))
    assert method.ledger.spends == ()


@pytest.mark.parametrize("hops", [1, 6])
def test_a_chain_costs_what_one_release_of_its_growth_costs(hops: int) -> None:
    """All steps cost what one release does that moves by sqrt(growth) times what a step moves by."""
    method = cm.fit("caribou", hops=hops)
    (row,) = method.ledger.spends
    sigmas, chain = method.published.noise.sigmas, method.chain
    assert sigmas == (row.parameters["sigma_1"],) * hops
    mu = chain.sensitivity * math.sqrt(chain.growth) / sigmas[0]
    assert 0.99 * 2.0 <= gaussian_epsilon(1 / mu, 1e-5) <= 2.0
    assert (row.parameters["states"], row.parameters["floor"]) == ("the last alone is released", 20)
    assert len(method.published.parts) == 2


@pytest.mark.parametrize(("unit", "entries"), [("edge", 2), ("directed-edge", 1)])
def test_learned_rows_and_their_sums_are_charged_together(unit: str, entries: int) -> None:
    method = cm.fit("dpdgc", epsilon=4.0, unit=unit)
    (row,) = method.ledger.spends
    assert row.mechanism == "noisy sums and dp-sgd on edges"
    parameters, costs = row.parameters, {}
    noise = {"hops": (float(parameters["sigma_1"]),), "training": (float(parameters[f"multiplier_{TOPOLOGY}"]),)}
    for moved in (1, 2):
        training = ChangedSamples(steps=int(parameters["steps"]), rate=float(parameters["rate"]), samples=moved)
        costs[moved] = pipeline_epsilon((Hops(count=1, sensitivity=math.sqrt(moved)), training), noise, 1e-5)
    assert 0.99 * 4.0 <= costs[entries] <= 4.0
    assert method.epsilon_relationship == pytest.approx(costs[2], rel=0.01)


# ---- eclipse ----


@pytest.mark.slow  # trainings
@pytest.mark.parametrize(
    ("settings", "squared"),
    [({}, 2), ({"hops": 3}, 2), ({"unit": "directed-edge"}, 1), ({"unit": "k-edges", "relationships": 4}, 20)],
)
def test_the_price_is_of_all_products_together(settings: dict[str, Any], squared: int) -> None:
    method = cm.fit("eclipse", **settings)
    sigmas = method.published.noise.sigmas
    assert len(sigmas) == settings.get("hops", 3)
    mu = math.sqrt(sum(squared / sigma**2 for sigma in sigmas))
    assert gaussian_epsilon(1 / mu, 1e-5) == pytest.approx(2.0, rel=1e-3)
    (row,) = method.ledger.spends
    assert (row.mechanism, row.parameters["sigma_1"]) == ("noisy sums", sigmas[0])


def test_a_full_basis_gives_the_graph_itself_and_a_smaller_one_its_part() -> None:
    """B = A where the basis has n columns; with fewer B is A on the basis and 0 beside it."""
    drawn = torch.Generator().manual_seed(3)
    matrix = torch.randn(12, 12, generator=drawn, dtype=torch.float64)
    x = torch.randn(12, 5, generator=drawn, dtype=torch.float64)
    basis = torch.randn(12, 12, generator=drawn, dtype=torch.float64)
    assert torch.allclose(spread(matrix @ basis, basis, x).double(), matrix @ x, atol=1e-4)
    part = basis[:, :3]
    beside = x - part @ torch.linalg.pinv(part) @ x
    assert float(spread(matrix @ part, part, beside).abs().max()) < 1e-5
    assert torch.allclose(spread(matrix @ part, part, part).double(), matrix @ part, atol=1e-4)


def test_head_and_sum_are_one_stack_of_normal_releases() -> None:
    """mu^2 = 2 / sigma^2 of the sum, whose edge moves two rows, and (2 / multiplier)^2 of the head."""
    (row,) = cm.fit("gcon", share_hops=0.6).ledger.spends
    parts = 2 / float(row.parameters["sigma_1"]) ** 2, 4 / float(row.parameters["multiplier_head"]) ** 2
    assert gaussian_epsilon(1 / math.sqrt(sum(parts)), 1e-5) == pytest.approx(2.0, rel=1e-3)
    assert parts[0] / sum(parts) == pytest.approx(0.6, rel=1e-3)
    assert (row.parameters["restart"], row.parameters["penalty"], row.parameters["depth"]) == (0.5, 0.1, 2)


# ---- lpgnet ----


@pytest.mark.parametrize(
    ("settings", "change", "relationship"),
    [({}, 2, 2.0), ({"unit": "directed-edge"}, 1, 4.0), ({"unit": "k-edges", "relationships": 4}, 8, 0.5)],
)
def test_the_price_is_of_all_counts_together(settings: dict[str, Any], change: int, relationship: float) -> None:
    method = cm.fit("lpgnet", hops=2, **settings)
    sigma = math.sqrt(0.5) / math.sinh(2.0 / (2 * change) / 2)
    assert method.published.noise.sigmas == pytest.approx((sigma, sigma))
    assert method.epsilon_relationship == pytest.approx(relationship)
    assert method.ledger.total("edges")[0] == 2.0
    assert method.ledger.spends[0].parameters["noise_law"] == "two-sided geometric"


def test_each_stage_reads_what_the_ones_before_it_said_and_counted() -> None:
    """Scores and counts in turns; counts as asinh of whole numbers, also below 0. Other runs do not show the method."""
    method, start = cm.fit("lpgnet", hops=2), cm.graph()
    scores, counts, later, more = method.published.parts
    assert {part.shape for part in (scores, counts, later, more)} == {(60, 3)}
    for part in (counts, more):
        whole = torch.sinh(part.double())
        assert torch.allclose(whole, whole.round(), atol=1e-3) and float(whole.min()) < 0
    assert [network.head.out_features for network in method.published.networks] == [3, 3, 3]
    rivals = CURATOR.rivals(cm.fit("gap"), start, cm.split_of(start), randomness=SeededRandomness(0))
    assert set(rivals) == {"progap", "class-sums"}
