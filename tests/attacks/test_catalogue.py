"""Attacks by name."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from graphveil.attacks.catalogue import ATTACKS, PUBLISHED, SHADOW, Target, attack
from graphveil.attacks.forged_reports import KINDS, Truth, forge, forge_lists, some_of, with_fakes
from graphveil.errors import InputError
from graphveil.graphs import Graph, Split, random_split, social_graph
from graphveil.mechanisms import AdjacencyRR
from graphveil.methods import LPGNN, HeteroRR
from graphveil.methods.base.released import LocalReports, randomize_people, topology_of
from graphveil.methods.local.lpgnn import LPGNNCore
from graphveil.privacy import SeededRandomness
from tests.attacks import made

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
    found = attack(name, replace(target(), served=published()) if name == PUBLISHED else target())
    assert 0 <= found.auc.low <= found.auc.mean <= found.auc.high <= 1
    assert found.limit is not None or found.limit_note
    fresh_noise = name.startswith("averaging")  # the ledger refuses what this attack supposes
    assert found.beats_limit == fresh_noise
    if name == "averaging-labels":
        one, many = (found.figures[f"permanent reports, auc after {rounds}"] for rounds in (1, 21))
        assert found.figures["auc after 21"] > found.figures["auc after 1"] and many == pytest.approx(one)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="not known"):
        attack("guess", target())
    plain = replace(target(), method=made.plain(), train=None)
    with pytest.raises(InputError, match="graph of its own"):
        attack(SHADOW, replace(target(), shadow=None))
    for name in ("averaging", "averaging-labels", "lira"):
        with pytest.raises(InputError):
            attack(name, plain)


# ---- forged reports keep to what a device can send ----


PEOPLE, CLASSES = 200, 3


def people() -> tuple[Graph, LocalReports, Truth]:
    """A graph, what its people send, and what forgers know of them."""
    graph = social_graph(PEOPLE, average_degree=8, dimension=20, classes=CLASSES, seed=1)
    core = LPGNNCore(epsilon_x=5.0, epsilon_y=2.0)
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
    made = forge(reports, who, kind, truth, 5)
    assert torch.equal(made.labels[~who], reports.labels[~who])
    assert torch.equal(made.features.bits[~who], reports.features.bits[~who])
    # Coordinates are assigned: nobody chooses where to weigh.
    assert torch.equal(made.features.indices, reports.features.indices)
    assert torch.equal(made.labels < 0, reports.labels < 0)
    assert made.features.bits.max() <= 1 and made.labels.max() < CLASSES
    assert made.digest != reports.digest
    again, other = (forge(reports, who, "random", truth, seed) for seed in (5, 6))
    assert forge(reports, who, "random", truth, 5).digest == again.digest != other.digest


def test_labels_are_all_of_one_class_and_bits_speak_for_it() -> None:
    graph, reports, truth = people()
    who = some_of(PEOPLE, 0.2, 5)
    made = forge(reports, who, "labels", truth, 5)
    sent = who & (reports.labels >= 0)
    assert bool((made.labels[sent] == truth.commonest).all())
    columns = reports.features.indices[who].long()
    gain = truth.centres[truth.commonest][columns] - truth.centres[graph.y[who][:, None], columns]
    assert torch.equal(made.features.bits[who], (gain > 0).to(torch.uint8))


def test_who_aims_at_a_coordinate_reaches_it_only_where_it_is_assigned() -> None:
    _, reports, truth = people()
    everybody = torch.ones(PEOPLE, dtype=torch.bool)
    made = forge(reports, everybody, "coordinate", truth, 5)
    aimed = int(truth.centres.mean(dim=0).argmin())
    theirs = reports.features.indices == aimed
    assert bool((made.features.bits[theirs] == 1).all())
    assert torch.equal(made.features.bits[~theirs], reports.features.bits[~theirs])
    assert 0 < int(theirs.sum()) < PEOPLE * reports.features.indices.shape[1] / 5


def test_fakes_link_to_people_in_turn() -> None:
    graph, reports, truth = people()
    made, grown = with_fakes(reports, topology_of(graph), 10, truth, 6)
    usual = round(graph.edge_index.shape[1] / PEOPLE)
    assert grown.num_nodes == PEOPLE + 10 == len(made.labels) == len(made.features.bits)
    added = grown.edge_index[:, graph.edge_index.shape[1] :]
    assert added.shape[1] == 2 * 10 * usual
    degrees = torch.bincount(added[1], minlength=grown.num_nodes)
    assert degrees[PEOPLE:].tolist() == [usual] * 10 and degrees[:PEOPLE].max() == 1
    assert torch.equal(grown.edge_index[:, : graph.edge_index.shape[1]], graph.edge_index)
    # Each claims the class after that of the first it links to, and sends a label like people who train.
    assert bool(made.train[PEOPLE:].all()) and not bool(made.val[PEOPLE:].any())
    assert torch.equal(made.labels[:PEOPLE], reports.labels)
    LPGNNCore(epsilon_x=5.0, epsilon_y=2.0, epochs=1).fit_reports(made, grown)


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
def test_forged_lists_are_such_as_devices_send(mode: str) -> None:
    graph, _, _ = people()
    lists = AdjacencyRR(epsilon=3.0, nodes=PEOPLE, mode=mode)
    sent = lists.randomize(graph.edge_index, randomness=SeededRandomness(2))
    who = some_of(PEOPLE, 0.2, 7)
    made = forge_lists(sent, who, mode, lists.flip, 7)
    # Checked as reports of the mode: nobody names themselves, or somebody for whom they do not answer.
    lists.evidence(made)
    before, after = sent.to_edge_index(), made.to_edge_index()
    assert torch.equal(before[:, ~who[before[0]]], after[:, ~who[after[0]]])
    lengths, honest = made.starts.diff()[who].float(), sent.starts.diff()[~who].float()
    # As long as honest ones, within five standard errors of a mean of 40 lists.
    assert abs(lengths.mean() - honest.mean()) < 5 * honest.std() / 40**0.5 + 1
