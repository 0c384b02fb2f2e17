"""Belief propagation: exact on a tree, and what it reads of a graph."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.aggregation import adjacency, from_scipy
from graphveil.mechanisms import RandomizedResponse
from graphveil.models.answers import answer_shares, fit_answers, with_answers
from graphveil.models.belief import Edges, edges_of, propagate_beliefs
from graphveil.models.friends_answers import DISCOUNT, TEMPER, heard_of_friends
from graphveil.models.label_prior import channel
from graphveil.models.pair_messages import DAMPING, PIECE, PairMessages
from graphveil.models.shares import class_softmax
from graphveil.privacy import SeededRandomness
from tests.sizes import LargestTensor

# A tree: 0 - 1 - 2, 1 - 3, 3 - 4, 3 - 5 and the single node 6.
TREE = torch.tensor([[0, 1, 1, 3, 3], [1, 2, 3, 4, 5]])
N, C = 7, 3
PRIOR = torch.tensor([0.5, 0.3, 0.2])
REPORTS = torch.tensor([0, -1, 2, -1, 1, 1, 2])


def edges(pairs: Tensor = TREE, nodes: int = N) -> Edges:
    return edges_of(from_scipy(adjacency(torch.cat([pairs, pairs.flip(0)], dim=1), nodes), symmetric=True))


def evidence(reports: Tensor = REPORTS) -> Tensor:
    likelihood = channel(C, 0.6, 0.2)[:, reports.clamp_min(0)].T
    return torch.where(reports[:, None] >= 0, likelihood, torch.ones(())).log()


def marginals(h: float, pairs: Tensor = TREE) -> Tensor:
    """Every labelling of the nodes weighed by the model, in double precision."""
    pi, said = PRIOR.double(), evidence().double().exp()
    coupling = ((1 - h) * pi[:, None] * pi + h * torch.diag(pi)) / (pi[:, None] * pi)
    total = torch.zeros(N, C, dtype=torch.float64)
    for classes in product(range(C), repeat=N):
        weight = 1.0
        for node, k in enumerate(classes):
            weight *= float(pi[k] * said[node, k])
        for u, v in pairs.T.tolist():
            weight *= float(coupling[classes[u], classes[v]])
        for node, k in enumerate(classes):
            total[node, k] += weight
    return total / total.sum(dim=1, keepdim=True)


@pytest.mark.parametrize("h", [0.3, 0.75])
def test_beliefs_are_exact_on_a_tree(h: float) -> None:
    """To 1e-4 of brute force over 3^7 labellings; a homophily of 0.1 more is not."""
    expected = marginals(h)
    found, other = (
        torch.softmax(propagate_beliefs(edges(), evidence(), PRIOR, value, temper=1.0, discount=0.0) + PRIOR.log(), 1)
        for value in (h, h + 0.1)
    )
    assert torch.allclose(found.double(), expected, atol=1e-4)
    assert not torch.allclose(other.double(), expected, atol=1e-3)


def test_every_edge_knows_its_opposite() -> None:
    generator = torch.Generator().manual_seed(0)
    found = edges(torch.randint(0, 40, (2, 150), generator=generator), 40)
    positions = torch.arange(len(found.sender))
    assert torch.equal(found.sender[found.reverse], found.receiver)
    assert torch.equal(found.receiver[found.reverse], found.sender)
    assert torch.equal(found.reverse[found.reverse], positions)
    assert bool((found.reverse != positions).all())
    counted = torch.bincount(found.receiver, minlength=40)
    assert torch.equal(found.degree, counted.clamp_min(1).float())
    ones = found.into.times(torch.ones(len(positions), 1)).squeeze(1)
    assert torch.equal(ones, counted.float())


def test_what_a_node_hears_is_weakened_by_temper_and_discount_and_alone_it_believes_its_report() -> None:
    reports = REPORTS.clone()
    found = propagate_beliefs(edges(), evidence(reports), PRIOR, 0.75, temper=0.5, discount=0.25)
    assert torch.allclose(found[6], evidence(reports)[6], atol=1e-6)
    reports[6] = -1
    found = propagate_beliefs(edges(), evidence(reports), PRIOR, 0.75, temper=0.5, discount=0.25)
    assert found[6].tolist() == [0.0] * C
    # No temper, no influence; a discounted edge of busy nodes says less than one of quiet nodes.
    deaf = propagate_beliefs(edges(), evidence(), PRIOR, 0.75, temper=0.0, discount=0.0)
    assert torch.allclose(deaf, evidence(), atol=1e-6)
    hub = torch.tensor([[0, 0, 0, 0, 0, 6], [1, 2, 3, 4, 5, 7]])
    reports = torch.tensor([0, -1, -1, -1, -1, -1, 0, -1])
    said = propagate_beliefs(edges(hub, 8), evidence(reports), PRIOR, 0.75, temper=0.5, discount=0.5)
    assert 0 < float(said[1, 0] - said[1, 1]) < float(said[7, 0] - said[7, 1])


# ---- what friends' answers say ----


EVEN = torch.tensor([0.5, 0.5])
#: 0 - 1, 0 - 2.
BEFORE = torch.tensor([[0.5, 0.5], [0.6, 0.4], [0.5, 0.5]])


def star() -> Edges:
    return edges_of(from_scipy(adjacency(torch.tensor([[0, 1, 0, 2], [1, 0, 2, 0]]), 3), symmetric=True))


def test_the_formula_on_one_friend_and_on_busy_people() -> None:
    """Node 1 moves from 0.6 to 0.9; H is 1.5 for equal classes and 0.5 for others; all edges weigh the same."""
    after = BEFORE.clone()
    after[1] = torch.tensor([0.9, 0.1])
    found = heard_of_friends(star(), BEFORE, after, EVEN, 0.5)
    expected = TEMPER * np.log([(0.9 * 1.5 + 0.1 * 0.5) / (0.6 * 1.5 + 0.4 * 0.5), (0.45 + 0.15) / (0.3 + 0.6)])
    assert found[0].numpy() == pytest.approx(expected, rel=1e-5)
    assert not found[1:].any(), "node 1 is no friend of its own, and node 0 gave no answer"
    # A path of four: the edge in the middle has ends of degree 2.
    path = edges_of(from_scipy(adjacency(torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]), 4), symmetric=True))
    before = torch.full((4, 2), 0.5)
    after = before.clone()
    after[1] = torch.tensor([0.9, 0.1])
    heard = heard_of_friends(path, before, after, EVEN, 0.5)
    assert float(heard[0, 0] / heard[2, 0]) == pytest.approx(2**DISCOUNT, rel=1e-5)


# ---- classes from labels and answers ----


TABLE = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])


def world(people: int, epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True classes [n], posteriors from labels [n, 3] and the evidence of noisy answers [n, 2]."""
    source = np.random.default_rng(seed)
    posterior = source.dirichlet(np.full(3, 0.7), people)
    true = (source.random(people)[:, None] > posterior.cumsum(axis=1)).sum(axis=1)
    answer = (source.random(people) < TABLE[true, 1]).astype(np.int64)
    mechanism = RandomizedResponse(epsilon=epsilon, classes=2)
    return true, posterior, mechanism.evidence(mechanism.randomize(answer, randomness=SeededRandomness(seed)))


def test_how_classes_answer_is_learned_from_noisy_answers_alone() -> None:
    """40,000 people at epsilon 2: within 0.03, where the answers of everybody are up to 0.4 away."""
    _, posterior, evidence = world(40_000, 2.0, 1)
    table = fit_answers(posterior, evidence)
    assert table == pytest.approx(TABLE, abs=0.03)
    assert np.abs(answer_shares(evidence) - TABLE).max() > 0.3
    assert answer_shares(evidence) == pytest.approx(TABLE.mean(axis=0), abs=0.02)


def test_the_formula_on_one_person() -> None:
    """0.5 x (0.9 x 0.88 + 0.1 x 0.12) against 0.5 x (0.2 x 0.88 + 0.8 x 0.12)."""
    evidence = np.log(np.array([[0.88, 0.12]]))
    found = with_answers(np.array([[0.5, 0.5]]), evidence, TABLE[:2])
    assert found[0, 0] == pytest.approx(0.804 / (0.804 + 0.272))
    assert with_answers(np.array([[0.3, 0.7]]), np.zeros((1, 2)), TABLE[:2]) == pytest.approx(np.array([[0.3, 0.7]]))
    _, posterior, few = world(12, 1.0, 3)  # few people lean on what was declared
    assert np.abs(fit_answers(posterior, few, TABLE) - TABLE).max() < 0.15
    assert np.abs(fit_answers(posterior, few) - TABLE).max() > 0.15


# ---- messages between the ends of pairs ----


CASES = [(3, 40, 25, torch.float64), (2, 3, 300, torch.float32), (11, 500, 2 * PIECE + 5, torch.float32)]


def drawn_pairs(classes: int, nodes: int, pairs: int, kind: torch.dtype) -> tuple[PairMessages, Tensor, Tensor, Tensor]:
    """Who tells whom, beliefs, old messages and ratios, some of which leave no doubt."""
    generator = torch.Generator().manual_seed(classes)
    source, target = torch.randint(nodes, (2, pairs), generator=generator)
    cells = torch.randint(4, (pairs,), generator=generator)
    beliefs, messages, ratios = (
        torch.randn(*shape, generator=generator, dtype=kind)
        for shape in ((nodes, classes), (2, pairs, classes), (4, classes, classes))
    )
    told = PairMessages.between(source, target, cells)
    scale = torch.tensor([0.1, 1.0, 5.0, 20.0], dtype=kind)[:, None, None]
    return told, 30 * beliefs, 5 * messages, (scale * ratios).exp()


def ends_without_answers(told: PairMessages, messages: Tensor, beliefs: Tensor) -> tuple[Tensor, Tensor]:
    source, target = beliefs[told.source] - messages[0], beliefs[told.target] - messages[1]
    return torch.softmax(source, dim=1), torch.softmax(target, dim=1)


def renewed(told: PairMessages, messages: Tensor, beliefs: Tensor, ratios: Tensor) -> Tensor:
    """The formula, over all pairs at once."""
    source, target = ends_without_answers(told, messages, beliefs)
    table = ratios[told.cell.long()]
    said = torch.stack([torch.einsum("sab,sb->sa", table, target), torch.einsum("sab,sa->sb", table, source)])
    return messages.lerp(said.clamp_min(1e-30).log(), 1 - DAMPING)


def tolerance(kind: torch.dtype) -> float:
    """Thirty roundings at numbers of the size of messages."""
    return 30 * 30 * torch.finfo(kind).eps


@pytest.mark.slow  # seconds
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_messages_are_those_of_the_formula_on_all_pairs_at_once(
    case: tuple[int, int, int, torch.dtype], compiled: bool
) -> None:
    told, beliefs, messages, ratios = drawn_pairs(*case)
    told = replace(told, compiled=compiled)
    expected = renewed(told, messages, beliefs, ratios)
    other = renewed(told, messages.flip(0), beliefs, ratios)
    received = told.renew(messages, beliefs, ratios)
    assert torch.allclose(messages, expected, rtol=0, atol=tolerance(case[3]))
    assert not torch.allclose(messages, other, rtol=0, atol=1.0)
    sums = torch.zeros_like(beliefs).index_add(0, torch.cat([told.source, told.target]), messages.flatten(0, 1))
    assert torch.allclose(received, sums, rtol=1e-4, atol=tolerance(case[3]))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_classes_of_both_ends_are_those_of_the_formula(case: tuple[int, int, int, torch.dtype], compiled: bool) -> None:
    told, beliefs, messages, ratios = drawn_pairs(*case)
    source, target = ends_without_answers(told, messages, beliefs)
    both = source[:, :, None] * target[:, None]
    both /= (both * ratios[told.cell.long()]).sum(dim=(1, 2), keepdim=True)
    expected = torch.zeros_like(ratios).index_add(0, told.cell.long(), both)
    found = replace(told, compiled=compiled).joint(messages, beliefs, ratios)
    assert torch.allclose(found, expected, rtol=1e-3 if case[3] == torch.float32 else 1e-9)
    assert float((found * ratios).sum()) == pytest.approx(len(told.source), rel=1e-4)


def test_a_round_builds_nothing_larger_than_beliefs_or_a_piece() -> None:
    told, beliefs, messages, ratios = drawn_pairs(3, 1_000, 10 * PIECE, torch.float32)
    with LargestTensor() as watch:
        told.renew(messages, beliefs, ratios)
        told.joint(messages, beliefs, ratios)
    assert watch.numbers == 2 * PIECE * 3


@pytest.mark.parametrize("shape", [(1, 1), (5, 2), (200, 7), (0, 3)])
def test_values_and_slopes_of_torchs_own(shape: tuple[int, int]) -> None:
    logits = 100 * torch.randn(shape, generator=torch.Generator().manual_seed(0))
    weights = torch.rand(shape, generator=torch.Generator().manual_seed(1))
    slopes = []
    for softmax in (class_softmax, lambda x: torch.softmax(x, dim=1)):
        x = logits.clone().requires_grad_()
        (softmax(x) * weights).sum().backward()  # type: ignore[no-untyped-call]
        slopes.append(x.grad)
    assert torch.allclose(class_softmax(logits), torch.softmax(logits, dim=1), atol=1e-6)
    assert torch.allclose(slopes[0], slopes[1], atol=1e-6)


def test_scores_that_overflow_alone_stay_shares() -> None:
    found = class_softmax(torch.tensor([[1e4, 1e4, -1e4]]))
    assert found.tolist() == [[0.5, 0.5, 0.0]]
