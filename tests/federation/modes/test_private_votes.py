"""Votes over a holder's own edges, where the unit is a person with the own list: bound, price, law and what is read."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import PerturbedSum, ReceiverRows
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.federation.core.person import SHARE_OF_VOTES, PersonPrice
from graphveil.federation.core.setting import Setting
from graphveil.federation.simulation import simulate_training
from graphveil.graphs.degree_bound import keep_lists
from graphveil.privacy import ChangedSamples, Hops, SeededRandomness, pipeline_epsilon
from graphveil.privacy.statement.unit import PERSON_AND_LIST_AT_HOLDER
from tests.federation.modes.test_private_network import (
    CLASSES,
    COLUMNS,
    TRAINING,
    N,
    effects_of,
    federation,
    head_of,
    sent_by,
)

DEGREE = 6
LABELS = torch.arange(TRAINING) % CLASSES


def with_edges(**changes: Any) -> tuple[Setting, Any]:
    return federation(**{"degree_bound": DEGREE, **changes})


def test_the_largest_change_of_one_person_is_what_the_noise_was_made_for() -> None:
    """Another list and another label: 2 D rows of length 1, or D rows that turn from one class to another."""
    price = PersonPrice(4.0, 1e-4, CLASSES, COLUMNS, DEGREE)
    assert price.votes is not None
    generator = torch.Generator().manual_seed(1)
    edges = torch.randint(0, N, (2, 4_000), generator=generator)
    labels = torch.zeros(N, CLASSES)
    labels[torch.arange(TRAINING), LABELS] = 1.0

    def sums(edges: Tensor, labels: Tensor) -> Tensor:
        plain = PerturbedSum(unit="node", degree=2 * DEGREE, sigmas=(0.0,))
        rows = ReceiverRows.of(keep_lists(edges, N, DEGREE), N)
        return plain.perturb(rows, labels, 1, SeededRandomness(0))

    before, moved = sums(edges, labels), []
    for person in range(40):
        own = edges[0] == person
        other = edges.clone()
        other[1, own] = (other[1, own] + 17) % N
        turned = labels.clone()
        turned[person] = labels[person].roll(1)
        moved += [float((sums(a, b) - before).norm()) for a, b in ((other, labels), (edges, turned), (other, turned))]
    assert max(moved) == pytest.approx(math.sqrt(2 * DEGREE), rel=2e-3)  # the grid shortens rows
    assert max(moved) <= price.votes.sensitivity


@pytest.mark.slow  # whole rounds
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_votes_and_training_cost_what_is_declared_together_and_hardly_less(epsilon: float) -> None:
    price = PersonPrice(epsilon, 1e-4, CLASSES, COLUMNS, DEGREE)
    spent, delta = price.trained_price
    assert 0.999 * epsilon < spent <= epsilon and delta <= 1e-4 and price.votes is not None
    sums = Hops(count=1, sensitivity=math.sqrt(2 * DEGREE), name="votes")
    noise = {price.training.name: (price.multiplier,), "votes": price.votes.sigmas}
    assert isinstance(price.training, ChangedSamples)
    assert pipeline_epsilon([price.training, sums], noise, 1e-4, accountant="rdp") > 0.99 * spent
    # Less noise than without votes would be too little, and twice the noise of the votes cannot make up for it.
    assert price.multiplier > PersonPrice(epsilon, 1e-4, CLASSES, COLUMNS).multiplier
    half = noise | {"votes": (price.votes.sigmas[0] / 2,)}
    assert pipeline_epsilon([price.training, sums], half, 1e-4) > epsilon * (1 + SHARE_OF_VOTES / 4)


@pytest.mark.slow  # whole rounds
def test_lists_of_those_who_do_not_train_are_not_read() -> None:
    """Under six streams of noise, one of which at least lets other lists of those who train move a guess."""
    setting, by_holder = with_edges()
    edges, features = by_holder["h2"].edge_index, by_holder["h2"].features
    training = edges[:, head_of(by_holder).train[edges[0]]]
    assert training.shape[1] < edges.shape[1]
    sent = []
    for lists in (edges, training, training.flip(0)):
        by_holder["h2"] = type(by_holder["h2"])(features, lists, 10.0)
        sent.append(torch.stack([sent_by(effects_of(setting, by_holder, seed=seed)) for seed in range(6)]))
    assert torch.equal(sent[0], sent[1]) and not torch.equal(sent[0], sent[2])


@pytest.mark.slow  # whole rounds
def test_guarantee_ledger_and_messages_say_what_is_read() -> None:
    setting, by_holder = with_edges()
    guarantee = guarantee_of(setting)
    assert (guarantee.unit, guarantee.epsilon, guarantee.delta) == (PERSON_AND_LIST_AT_HOLDER, 4.0, 1e-4)
    assert guarantee.assumption("own-lists-cut") and not guarantee.assumption("connections-unread")
    assert "that others list that person is not covered" in guarantee.sentence()
    spend = ledger_of(setting, 1).spends[0]
    votes = setting.person_price.votes
    assert votes is not None and spend.mechanism.startswith("votes and dp-sgd, or ")
    assert dict(spend.parameters)["votes"] == votes.sigmas[0] and dict(spend.parameters)["degree_bound"] == DEGREE
    simulate_training(setting, by_holder, randomness=SeededRandomness(3))
    predictions = head_of(by_holder).predictions
    assert predictions is not None and predictions.shape == (N, CLASSES)
