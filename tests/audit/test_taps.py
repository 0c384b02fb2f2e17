"""What the replay reads of each mechanism: how far two questions lie apart, in units of what the mechanism hides."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.aggregation import PerturbedSum, ReceiverRows
from graphveil.audit.hooks import DESCENT, SUMS, TREE, all_taps, report_tap
from graphveil.mechanisms import AdjacencyRR, MultiBit, RandomizedResponse, catalogue
from graphveil.privacy import SeededRandomness
from graphveil.training.noisy_updates import NoisyUpdates, PrivateSchedule

FEATURES = report_tap(MultiBit, "features")
LABELS = report_tap(RandomizedResponse, "labels")
LISTS = report_tap(AdjacencyRR, "lists")


def noise(seed: int = 1) -> SeededRandomness:
    return SeededRandomness(seed)


def rows(*changed: int, dimension: int = 4) -> Tensor:
    """Five people; those named have other values."""
    people = torch.full((5, dimension), 0.25)
    people[list(changed)] = 0.75
    return people


def test_every_mechanism_of_the_catalogue_is_watched() -> None:
    taps = all_taps()
    watched = {tap.owner for tap in taps}
    named = {info.mechanism for info in catalogue() if isinstance(info.mechanism, type)}
    assert named <= watched and {PerturbedSum, NoisyUpdates} <= watched
    assert len({(tap.owner, tap.attribute) for tap in taps}) == len(taps)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_a_whole_vector_is_one_unit_however_much_of_it_changed() -> None:
    mechanism = MultiBit(epsilon=1.0, dimension=4)
    answer = mechanism.randomize(rows(), randomness=noise())
    single, two = rows(2), rows(2, 4)
    single[2, 1:] = 0.25
    for changed, units in ((rows(), 0.0), (single, 1.0), (two, 2.0)):
        weighed = FEATURES.weigh(mechanism, answer, rows(), changed)
        assert weighed.change == units
        assert weighed.declared == (1.0 if units else 0.0)
    for form in (lambda x: x.numpy(), lambda x: sp.csr_matrix(x.numpy()), lambda x: x.to_sparse_csr()):
        assert FEATURES.weigh(mechanism, answer, form(rows()), form(single)).change == 1.0
    response, labels = RandomizedResponse(epsilon=1.0, classes=3), torch.tensor([0, 1, 2, 0])
    answers = response.randomize(labels, randomness=noise())
    assert LABELS.weigh(response, answers, labels, torch.tensor([1, 1, 2, 2])).change == 2.0


def test_the_ratio_of_an_answer_is_that_of_its_likelihoods_and_within_what_is_declared() -> None:
    mechanism = MultiBit(epsilon=1.0, dimension=4)
    for seed in range(20):
        answer = mechanism.randomize(rows(), randomness=noise(seed))
        weighed = FEATURES.weigh(mechanism, answer, rows(), rows(3))
        expected = mechanism.log_likelihood(answer, rows()) - mechanism.log_likelihood(answer, rows(3))
        assert weighed.pure == pytest.approx(float(expected.sum())) and abs(weighed.pure) <= 1.0 + 1e-9


EDGES = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.mark.parametrize(("mode", "units"), [("lower", 1.0), ("both", 1.0), ("directed", 2.0)])
def test_an_edge_is_one_relationship_and_two_directed_links(mode: Any, units: float) -> None:
    mechanism = AdjacencyRR(epsilon=4.0, nodes=4, mode=mode)
    answer = mechanism.randomize(torch.from_numpy(EDGES), randomness=noise())
    weighed = LISTS.weigh(mechanism, answer, torch.from_numpy(EDGES), torch.from_numpy(EDGES[:, :2]))
    assert weighed.change == units and weighed.declared == mechanism.guarantee.epsilon
    assert abs(weighed.pure) <= units * mechanism.guarantee.epsilon + 1e-9
    again = torch.from_numpy(EDGES[:, ::-1].copy())
    assert LISTS.weigh(mechanism, answer, torch.from_numpy(EDGES), again).change == 0.0


def test_how_many_people_there_are_is_public_and_how_many_edges_is_not() -> None:
    people = MultiBit(epsilon=1.0, dimension=4)
    reading = FEATURES.read(people, {"self": people, "values": rows(), "randomness": noise()})
    assert reading.constants == (people, (5, 4)) and reading.public == ()
    lists = AdjacencyRR(epsilon=4.0, nodes=4, mode="lower")
    assert LISTS.read(lists, {"self": lists, "edges": torch.from_numpy(EDGES), "randomness": noise()}).constants == (
        lists,
    )


def test_what_was_asked_is_kept_as_it_was() -> None:
    """A caller may go on to write over it, and a descent adds its noise in place."""
    mechanism = MultiBit(epsilon=1.0, dimension=4)
    for values in (rows(), rows().numpy()):
        reading = FEATURES.read(mechanism, {"self": mechanism, "values": values, "randomness": noise()})
        values[0] = 0.5
        assert float(np.asarray(reading.private)[0, 0]) == 0.25
    descent, totals = updates(), torch.ones(3)
    reading = DESCENT.read(descent, {"totals": totals})
    totals += 5
    assert reading.private.tolist() == [1.0, 1.0, 1.0] and reading.private.dtype == torch.float64
    assert reading.constants == ((3,), descent.schedule)


PAIR = torch.tensor([[0, 1], [1, 0]])


def asked_sum(mechanism: PerturbedSum, edges: Tensor) -> Any:
    """A question of sums over 400 rows that all point the same way."""
    x = torch.zeros(400, 4)
    x[:, 0] = 1.0
    rows = ReceiverRows.of(edges, 400)
    return SUMS.read(mechanism, {"self": mechanism, "rows": rows, "x": x, "hop": 1, "randomness": noise()})


def test_one_edge_moves_a_sum_by_what_is_declared_and_shows_by_the_noise_that_was_added() -> None:
    """The noise is measured over 1,600 numbers: mu is at most the true one but for a false alarm of 1e-6."""
    mechanism = PerturbedSum(unit="edge", sigmas=(2.0,))
    first, second = asked_sum(mechanism, PAIR), asked_sum(mechanism, PAIR[:, :0])
    rows, x, hop = first.private
    answer = mechanism.perturb(rows, x, hop, noise())
    assert first.constants == second.constants and len(first.public) == 1
    weighed = SUMS.weigh(mechanism, answer, first.private, second.private)
    true = math.sqrt(2) / 2.0
    assert weighed.change == pytest.approx(1.0, rel=0.01) and 0.8 * true < weighed.mu <= true
    assert SUMS.weigh(mechanism, answer, first.private, first.private).change == 0.0
    exact = torch.zeros_like(answer)
    exact[:2, 0] = 1.0
    assert SUMS.weigh(mechanism, exact, first.private, second.private).mu > 100
    half = SUMS.weigh(mechanism, exact + (answer - exact) / 2, first.private, second.private)
    assert half.mu == pytest.approx(2 * weighed.mu, rel=0.01)


def test_rows_are_public_where_edges_are_protected_and_private_with_nodes() -> None:
    node = PerturbedSum(unit="node", sigmas=(2.0,), degree=3)
    assert asked_sum(node, PAIR).public == ()
    public = asked_sum(PerturbedSum(unit="edge", sigmas=(2.0,)), PAIR)
    assert torch.equal(public.public[0], public.private[1])


def updates(samples: int = 1) -> Any:
    """A private descent, by its schedule and how many samples one unit changes."""
    schedule = PrivateSchedule(steps=2, rate=0.5, expected_batch=4.0, noise_multiplier=1.0)
    return SimpleNamespace(schedule=schedule, samples=samples)


def test_a_sample_that_changes_moves_a_clipped_sum_by_two_norms_at_most() -> None:
    tap, grid = updates(), updates().schedule.grid
    opposite = torch.zeros(5, dtype=torch.float64)
    opposite[0] = 2 * grid.clip / grid.step
    still = torch.zeros_like(opposite)
    assert DESCENT.weigh(tap, opposite, opposite, still).change == pytest.approx(1.0)
    assert DESCENT.weigh(updates(2), opposite, opposite, still).change == pytest.approx(0.5)


def test_a_drawn_tree_declares_its_own_price_for_each_edge() -> None:
    private = np.array([[0, 2], [1, 3]])
    public = {"nodes": 4, "members": None, "public": None, "steps": 5, "chains": 1, "start": None}
    reading = TREE.read(4, {**public, "epsilon": 1.5, "private": private})
    fewer = TREE.read(4, {**public, "epsilon": 1.5, "private": private[:, :1]})
    assert reading.constants == fewer.constants and 1.5 in reading.constants
    private[:] = 0
    weighed = TREE.weigh(4, None, reading.private, fewer.private)
    assert (weighed.change, weighed.declared) == (1.0, 1.5)
    turned = (1.5, reading.private[1][::-1])
    assert TREE.weigh(4, None, reading.private, turned).change == 0.0
