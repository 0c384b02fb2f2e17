"""Attacks by name, forged reports, who trained, and answers that are asked for again and again."""

from __future__ import annotations

import runpy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom
from torch import Tensor

from graphveil.attacks import averaging, lira, membership
from graphveil.attacks.catalogue import ATTACKS, PUBLISHED, SHADOW, Target, attack
from graphveil.attacks.membership_inference import confidence
from graphveil.errors import InputError
from graphveil.graphs import Graph, Split, random_split, social_graph
from graphveil.mechanisms import AdjacencyRR, AnalyticGaussian, Laplace, MultiBit, RandomizedResponse
from graphveil.methods import LPGNN, HeteroRR
from graphveil.methods.base.people.released import LocalReports, randomize_people, topology_of
from graphveil.methods.baselines.network import baseline
from graphveil.privacy import SeededRandomness
from tests.attacks import made

forged = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "forged_reports.py"))
KINDS, Truth, forge = forged["KINDS"], forged["Truth"], forged["forge"]
forge_lists, some_of, with_fakes = forged["forge_lists"], forged["some_of"], forged["with_fakes"]

SPLIT = random_split(made.graph(), 0)


def published() -> Any:
    """The graph, published."""
    maker = HeteroRR(epsilon_x=float("inf"), epsilon_a=1.0)
    return maker.release(made.graph(), randomness=SeededRandomness(2))


@cache
def target() -> Target:
    method = LPGNN(epsilon_x=2.0, epsilon_y=1.0, epochs=3)
    method.fit(made.graph(), split=SPLIT, randomness=SeededRandomness(0))

    def train(graph: Any, split: Split, seed: int) -> Any:
        return LPGNN(epsilon_x=2.0, epsilon_y=1.0, epochs=3).fit(graph, split=split, randomness=SeededRandomness(seed))

    common: dict[str, Any] = {"shadow": made.graph(200, seed=8), "nodes": 80, "shadows": 4}
    return Target(method, made.graph(), made.graph(), SPLIT, train, SeededRandomness(1), **common)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "averaging" else []) for name in ATTACKS]
)
def test_every_attack_runs_and_stays_within_the_limit_or_says_why_there_is_none(name: str) -> None:
    result = attack(name, replace(target(), served=published()) if name == PUBLISHED else target())
    assert 0 <= result.auc.low <= result.auc.mean <= result.auc.high <= 1
    assert result.limit is not None or result.limit_note
    fresh_noise = name.startswith("averaging")  # the ledger refuses what this attack supposes
    assert result.beats_limit == fresh_noise
    if name == "averaging-labels":
        once, many = (result.figures[f"permanent reports, auc after {rounds}"] for rounds in (1, 21))
        assert result.figures["auc after 21"] > result.figures["auc after 1"] and many == pytest.approx(once)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="not known"):
        attack("guess", target())
    plain = replace(target(), method=made.plain(), train=None)
    with pytest.raises(InputError, match="graph of its own"):
        attack(SHADOW, replace(target(), shadow=None))
    for name in ("averaging", "averaging-labels", "lira"):
        with pytest.raises(InputError):
            attack(name, plain)
    with pytest.raises(InputError, match="shadows"):
        lira(made.Constant(), made.graph(), split=SPLIT, train=Remembers, shadows=3)


# ---- forged reports keep to what a device can send ----


PEOPLE, CLASSES = 200, 3


def people() -> tuple[Graph, LocalReports, Truth]:
    """A graph, what its people send, and what forgers know of them."""
    graph = social_graph(PEOPLE, average_degree=8, dimension=20, classes=CLASSES, seed=1)
    core = LPGNN(epsilon_x=5.0, epsilon_y=2.0)
    reports = randomize_people(graph, random_split(graph, 0), core.privacy, randomness=SeededRandomness(3))
    return graph, reports, Truth.of(graph.x, graph.y, CLASSES)


@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (0.01, 2), (0.05, 10), (0.1, 20)])
def test_as_many_forge_as_were_asked_for(share: float, count: int) -> None:
    who = some_of(PEOPLE, share, 4)
    assert int(who.sum()) == count
    assert torch.equal(who, some_of(PEOPLE, share, 4))
    # Whoever forges at a smaller share forges at a larger one, so that shares can be compared.
    assert not bool((who & ~some_of(PEOPLE, 0.5, 4)).any())


def test_shares_and_kinds_that_are_none_are_refused() -> None:
    _, reports, truth = people()
    with pytest.raises(InputError, match="share = "):
        some_of(PEOPLE, 1.0, 0)
    with pytest.raises(InputError, match="'fakes' is not known"):
        forge(reports, some_of(PEOPLE, 0.1, 0), "fakes", truth, 0)


@pytest.mark.parametrize("kind", KINDS[:3])
def test_forgers_change_their_own_answers_and_nothing_else(kind: str) -> None:
    _, reports, truth = people()
    who = some_of(PEOPLE, 0.2, 5)
    forged = forge(reports, who, kind, truth, 5)
    assert torch.equal(forged.labels[~who], reports.labels[~who])
    assert torch.equal(forged.features.bits[~who], reports.features.bits[~who])
    # Coordinates are assigned: nobody chooses where to weigh.
    assert torch.equal(forged.features.indices, reports.features.indices)
    assert torch.equal(forged.labels < 0, reports.labels < 0)
    assert forged.features.bits.max() <= 1 and forged.labels.max() < CLASSES
    assert forged.digest != reports.digest
    again, other = (forge(reports, who, "random", truth, seed) for seed in (5, 6))
    assert forge(reports, who, "random", truth, 5).digest == again.digest != other.digest


def test_labels_are_all_of_one_class_and_bits_speak_for_it() -> None:
    graph, reports, truth = people()
    who = some_of(PEOPLE, 0.2, 5)
    forged = forge(reports, who, "labels", truth, 5)
    sent = who & (reports.labels >= 0)
    assert bool((forged.labels[sent] == truth.commonest).all())
    columns = reports.features.indices[who].long()
    gain = truth.centres[truth.commonest][columns] - truth.centres[graph.y[who][:, None], columns]
    assert torch.equal(forged.features.bits[who], (gain > 0).to(torch.uint8))


def test_who_aims_at_a_coordinate_reaches_it_only_where_it_is_assigned() -> None:
    _, reports, truth = people()
    everybody = torch.ones(PEOPLE, dtype=torch.bool)
    forged = forge(reports, everybody, "coordinate", truth, 5)
    aimed = int(truth.centres.mean(dim=0).argmin())
    theirs = reports.features.indices == aimed
    assert bool((forged.features.bits[theirs] == 1).all())
    assert torch.equal(forged.features.bits[~theirs], reports.features.bits[~theirs])
    assert 0 < int(theirs.sum()) < PEOPLE * reports.features.indices.shape[1] / 5


def test_fakes_link_to_people_in_turn() -> None:
    graph, reports, truth = people()
    forged, grown = with_fakes(reports, topology_of(graph), 10, truth, 6)
    usual = round(graph.edge_index.shape[1] / PEOPLE)
    assert grown.num_nodes == PEOPLE + 10 == len(forged.labels) == len(forged.features.bits)
    added = grown.edge_index[:, graph.edge_index.shape[1] :]
    assert added.shape[1] == 2 * 10 * usual
    degrees = torch.bincount(added[1], minlength=grown.num_nodes)
    assert degrees[PEOPLE:].tolist() == [usual] * 10 and degrees[:PEOPLE].max() == 1
    assert torch.equal(grown.edge_index[:, : graph.edge_index.shape[1]], graph.edge_index)
    # Each claims the class after that of the first it links to, and sends a label like people who train.
    assert bool(forged.train[PEOPLE:].all()) and not bool(forged.val[PEOPLE:].any())
    assert torch.equal(forged.labels[:PEOPLE], reports.labels)
    LPGNN(epsilon_x=5.0, epsilon_y=2.0, epochs=1).fit_reports(forged, grown)


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
def test_forged_lists_are_such_as_devices_send(mode: str) -> None:
    graph, _, _ = people()
    lists = AdjacencyRR(epsilon=3.0, nodes=PEOPLE, mode=mode)
    sent = lists.randomize(graph.edge_index, randomness=SeededRandomness(2))
    who = some_of(PEOPLE, 0.2, 7)
    forged = forge_lists(sent, who, mode, lists.flip, 7)
    # Checked as reports of the mode: nobody names themselves, or somebody for whom they do not answer.
    lists.evidence(forged)
    before, after = sent.to_edge_index(), forged.to_edge_index()
    assert torch.equal(before[:, ~who[before[0]]], after[:, ~who[after[0]]])
    lengths, honest = forged.starts.diff()[who].float(), sent.starts.diff()[~who].float()
    # As long as honest ones, within five standard errors of a mean of 40 lists.
    assert abs(lengths.mean() - honest.mean()) < 5 * honest.std() / 40**0.5 + 1


# ---- who trained; fresh noise wears off ----


class Remembers:
    """Knows the labels that trained it a little better than all others, beside what makes nodes differ."""

    def __init__(self, split: Split, seed: int = 0, gain: float = 1.0) -> None:
        self.split, self.seed, self.gain = split, seed, gain

    def predict_proba(self, graph: Any) -> Tensor:
        hard = torch.randn(int(graph.num_nodes), generator=torch.Generator().manual_seed(5)) * 3
        luck = torch.randn(len(hard), generator=torch.Generator().manual_seed(100 + self.seed)) * 0.3
        right = torch.sigmoid(hard + luck + self.gain * self.split.train)
        rows = ((1 - right) / 2)[:, None].repeat(1, 3)
        return rows.scatter(1, graph.y[:, None], right[:, None])


def test_overfitting_is_seen_by_shadows_where_confidence_hardly_does() -> None:
    plain = membership(Remembers(SPLIT), made.graph(), split=SPLIT)
    result = lira(Remembers(SPLIT), made.graph(), split=SPLIT, train=Remembers, shadows=12)
    assert result.auc.low > 0.9 > plain.auc.mean
    assert result.figures["auc of confidence alone"] == pytest.approx(plain.auc.mean)
    assert result.baseline is not None and abs(result.baseline - 0.5) < 0.12


def test_who_remembers_nothing_is_not_accused() -> None:
    """One seed; a 95% interval misses 0.5 in one of twenty, this one does not."""

    def train(split: Split, seed: int) -> Remembers:
        return Remembers(split, seed, gain=0.0)

    result = lira(train(SPLIT, 0), made.graph(), split=SPLIT, train=train, shadows=8)
    assert result.auc.low <= 0.5 <= result.auc.high
    constant = membership(made.Constant(), made.graph(), split=SPLIT)
    assert constant.auc.low <= 0.5 <= constant.auc.high


def test_confidence_is_the_log_odds_of_the_true_class() -> None:
    chances = made.plain().predict_proba().double()
    right = chances.gather(1, made.graph().y[:, None]).flatten()
    exact = torch.log(right / (chances.sum(dim=1) - right).clamp_min(1e-12)).numpy()
    assert confidence(made.plain(), made.graph()) == pytest.approx(exact, abs=1e-5)


def test_a_plain_network_that_learned_by_heart_is_caught() -> None:
    method = baseline("mlp", epochs=300, dropout=0.0, weight_decay=0.0, selection="last")
    method.fit(made.graph(), split=SPLIT, randomness=SeededRandomness(0))
    result = membership(method, made.graph(), split=SPLIT)
    assert result.auc.low > 0.6 and "public" in result.limit_note and result.limit is None


# ---- fresh noise wears off; a permanent answer does not ----


RANGE = {"dimension": 4, "low": 0.0, "high": 1.0}
LOCAL = {
    "labels": RandomizedResponse(epsilon=1.0, classes=2),
    "multi-bit": MultiBit(epsilon=1.0, **RANGE),  # type: ignore[arg-type]
    "laplace": Laplace(epsilon=1.0, **RANGE),  # type: ignore[arg-type]
    "gaussian": AnalyticGaussian(epsilon=1.0, delta=1e-6, **RANGE),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", LOCAL)
def test_fresh_reports_go_beyond_the_promise_and_one_does_not(name: str) -> None:
    once = averaging(LOCAL[name], randomness=SeededRandomness(1), rounds=1)
    assert not once.beats_limit
    often = averaging(LOCAL[name], randomness=SeededRandomness(2), rounds=21)
    assert often.beats_limit and often.auc.low > 0.7
    assert often.figures["auc after 1"] < often.figures["auc after 5"] < often.figures["auc after 21"]


@pytest.mark.slow  # attacks on trained networks
@pytest.mark.parametrize("name", LOCAL)
def test_permanent_reports_lose_nothing(name: str) -> None:
    """Checklist item 19: after any number of rounds the attack knows what it knew after one."""
    result = averaging(LOCAL[name], randomness=SeededRandomness(3), rounds=21, people=12, permanent=True)
    assert not result.beats_limit
    assert result.figures["auc after 21"] == pytest.approx(result.figures["auc after 1"])
    assert "no more" in result.limit_note


def test_a_device_may_be_given_and_not_two() -> None:
    mechanism, noise = LOCAL["labels"], SeededRandomness(3)
    stored = {label: mechanism.randomize(torch.full((500,), label), randomness=noise) for label in (0, 1)}

    def device(value: Tensor, _: int) -> Any:
        return stored[int(value[0])]

    result = averaging(mechanism, randomness=noise, rounds=101, device=device)
    assert not result.beats_limit
    assert result.figures["auc after 101"] == pytest.approx(result.figures["auc after 1"])
    with pytest.raises(InputError, match="one of the two"):
        averaging(mechanism, randomness=noise, device=device, permanent=True)
    with pytest.raises(InputError, match="0 rounds of 1 person; allowed: 1 and 2 or more"):
        averaging(mechanism, randomness=noise, rounds=0, people=1)


def test_the_majority_of_five_bits_at_epsilon_one() -> None:
    """0.876 of the people are found (exact: binomial); 2,000 of each, six standard errors."""
    result = averaging(LOCAL["labels"], randomness=SeededRandomness(4), rounds=5, people=2000)
    keep = np.e / (1 + np.e)
    right = 1 - binom.cdf(2, 5, keep)
    assert (result.advantage.mean + 1) / 2 == pytest.approx(right, abs=6 * np.sqrt(right * (1 - right) / 4000))
    assert right == pytest.approx(0.876, abs=1e-3)
