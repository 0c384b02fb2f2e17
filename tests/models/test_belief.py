"""Classes behind noisy labels: belief propagation, friends' answers, messages, shares."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphveil.aggregation import adjacency, from_scipy
from graphveil.mechanisms import RandomizedResponse
from graphveil.models.blocks.block_model import DAMPING, PIECE, PairMessages
from graphveil.models.labels.belief import (
    ANSWER_DISCOUNT,
    ANSWER_TEMPER,
    Edges,
    answer_shares,
    edges_of,
    fit_answers,
    friends_evidence,
    propagate_beliefs,
    update_posterior,
)
from graphveil.models.labels.label_prior import (
    HOMOPHILY_RANGE,
    LEAST_SHARE,
    Channel,
    class_shares,
    class_softmax,
    homophily,
    label_pairs,
)
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
    likelihood = Channel(C, 0.6, 0.2).matrix[:, reports.clamp_min(0)].T
    return torch.where(reports[:, None] >= 0, likelihood, torch.ones(())).log()


def marginals(h: float, pairs: Tensor = TREE) -> Tensor:
    """Every labelling of the nodes weighed by the model, in double precision."""
    pi, weights = PRIOR.double(), evidence().double().exp()
    coupling = ((1 - h) * pi[:, None] * pi + h * torch.diag(pi)) / (pi[:, None] * pi)
    total = torch.zeros(N, C, dtype=torch.float64)
    for classes in product(range(C), repeat=N):
        weight = 1.0
        for node, k in enumerate(classes):
            weight *= float(pi[k] * weights[node, k])
        for u, v in pairs.T.tolist():
            weight *= float(coupling[classes[u], classes[v]])
        for node, k in enumerate(classes):
            total[node, k] += weight
    return total / total.sum(dim=1, keepdim=True)


@pytest.mark.parametrize("h", [0.3, 0.75])
def test_beliefs_are_exact_on_a_tree(h: float) -> None:
    """To 1e-4 of brute force over 3^7 labellings; a homophily of 0.1 more is not."""
    expected = marginals(h)
    beliefs, other = (
        torch.softmax(
            propagate_beliefs(edges(), evidence(), PRIOR, value, temper=1.0, discount=0.0, rounds=(12,))[0]
            + PRIOR.log(),
            1,
        )
        for value in (h, h + 0.1)
    )
    assert torch.allclose(beliefs.double(), expected, atol=1e-4)
    assert not torch.allclose(other.double(), expected, atol=1e-3)


def test_every_edge_knows_its_opposite() -> None:
    generator = torch.Generator().manual_seed(0)
    copies = edges(torch.randint(0, 40, (2, 150), generator=generator), 40)
    positions = torch.arange(len(copies.sender))
    assert torch.equal(copies.sender[copies.reverse], copies.receiver)
    assert torch.equal(copies.receiver[copies.reverse], copies.sender)
    assert torch.equal(copies.reverse[copies.reverse], positions)
    assert bool((copies.reverse != positions).all())
    counted = torch.bincount(copies.receiver, minlength=40)
    assert torch.equal(copies.degree, counted.clamp_min(1).float())
    degrees = copies.into.times(torch.ones(len(positions), 1)).squeeze(1)
    assert torch.equal(degrees, counted.float())


def test_what_a_node_hears_is_weakened_by_temper_and_discount_and_alone_it_believes_its_report() -> None:
    reports = REPORTS.clone()
    beliefs = propagate_beliefs(edges(), evidence(reports), PRIOR, 0.75, temper=0.5, discount=0.25, rounds=(12,))[0]
    assert torch.allclose(beliefs[6], evidence(reports)[6], atol=1e-6)
    reports[6] = -1
    beliefs = propagate_beliefs(edges(), evidence(reports), PRIOR, 0.75, temper=0.5, discount=0.25, rounds=(12,))[0]
    assert beliefs[6].tolist() == [0.0] * C
    # No temper, no influence; a discounted edge of busy nodes says less than one of quiet nodes.
    deaf = propagate_beliefs(edges(), evidence(), PRIOR, 0.75, temper=0.0, discount=0.0, rounds=(12,))[0]
    assert torch.allclose(deaf, evidence(), atol=1e-6)
    hub = torch.tensor([[0, 0, 0, 0, 0, 6], [1, 2, 3, 4, 5, 7]])
    reports = torch.tensor([0, -1, -1, -1, -1, -1, 0, -1])
    hub_beliefs = propagate_beliefs(
        edges(hub, 8), evidence(reports), PRIOR, 0.75, temper=0.5, discount=0.5, rounds=(12,)
    )[0]
    assert 0 < float(hub_beliefs[1, 0] - hub_beliefs[1, 1]) < float(hub_beliefs[7, 0] - hub_beliefs[7, 1])


# ---- what friends' answers say ----


EVEN = torch.tensor([0.5, 0.5])
#: 0 - 1, 0 - 2.
BEFORE = torch.tensor([[0.5, 0.5], [0.6, 0.4], [0.5, 0.5]])


def test_the_formula_on_one_friend_and_on_busy_people() -> None:
    """Node 1 moves from 0.6 to 0.9; H is 1.5 for equal classes and 0.5 for others; all edges weigh the same."""
    after = BEFORE.clone()
    after[1] = torch.tensor([0.9, 0.1])
    field = friends_evidence(edges(torch.tensor([[0, 0], [1, 2]]), 3), BEFORE, after, EVEN, 0.5)
    expected = ANSWER_TEMPER * np.log([(0.9 * 1.5 + 0.1 * 0.5) / (0.6 * 1.5 + 0.4 * 0.5), (0.45 + 0.15) / (0.3 + 0.6)])
    assert field[0].numpy() == pytest.approx(expected, rel=1e-5)
    assert not field[1:].any(), "node 1 is no friend of its own, and node 0 gave no answer"
    # A path of four: the edge in the middle has ends of degree 2.
    path = edges(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)
    before = torch.full((4, 2), 0.5)
    after = before.clone()
    after[1] = torch.tensor([0.9, 0.1])
    heard = friends_evidence(path, before, after, EVEN, 0.5)
    assert float(heard[0, 0] / heard[2, 0]) == pytest.approx(2**ANSWER_DISCOUNT, rel=1e-5)


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
    computed = update_posterior(np.array([[0.5, 0.5]]), evidence, TABLE[:2])
    assert computed[0, 0] == pytest.approx(0.804 / (0.804 + 0.272))
    assert update_posterior(np.array([[0.3, 0.7]]), np.zeros((1, 2)), TABLE[:2]) == pytest.approx(
        np.array([[0.3, 0.7]])
    )
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
    named = PairMessages.between(source, target, cells)
    scale = torch.tensor([0.1, 1.0, 5.0, 20.0], dtype=kind)[:, None, None]
    return named, 30 * beliefs, 5 * messages, (scale * ratios).exp()


def ends_without_answers(pairs: PairMessages, messages: Tensor, beliefs: Tensor) -> tuple[Tensor, Tensor]:
    source, target = beliefs[pairs.source] - messages[0], beliefs[pairs.target] - messages[1]
    return torch.softmax(source, dim=1), torch.softmax(target, dim=1)


def renewed(pairs: PairMessages, messages: Tensor, beliefs: Tensor, ratios: Tensor) -> Tensor:
    """The formula, over all pairs at once."""
    source, target = ends_without_answers(pairs, messages, beliefs)
    table = ratios[pairs.cell.long()]
    update = torch.stack([torch.einsum("sab,sb->sa", table, target), torch.einsum("sab,sa->sb", table, source)])
    return messages.lerp(update.clamp_min(1e-30).log(), 1 - DAMPING)


def tolerance(kind: torch.dtype) -> float:
    """Thirty roundings at numbers of the size of messages."""
    return 30 * 30 * torch.finfo(kind).eps


@pytest.mark.slow  # seconds
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_messages_are_those_of_the_formula_on_all_pairs_at_once(
    case: tuple[int, int, int, torch.dtype], compiled: bool
) -> None:
    pairs, beliefs, messages, ratios = drawn_pairs(*case)
    pairs = replace(pairs, compiled=compiled)
    expected = renewed(pairs, messages, beliefs, ratios)
    other = renewed(pairs, messages.flip(0), beliefs, ratios)
    received = pairs.renew(messages, beliefs, ratios)
    assert torch.allclose(messages, expected, rtol=0, atol=tolerance(case[3]))
    assert not torch.allclose(messages, other, rtol=0, atol=1.0)
    sums = torch.zeros_like(beliefs).index_add(0, torch.cat([pairs.source, pairs.target]), messages.flatten(0, 1))
    assert torch.allclose(received, sums, rtol=1e-4, atol=tolerance(case[3]))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_classes_of_both_ends_are_those_of_the_formula(case: tuple[int, int, int, torch.dtype], compiled: bool) -> None:
    pairs, beliefs, messages, ratios = drawn_pairs(*case)
    source, target = ends_without_answers(pairs, messages, beliefs)
    both = source[:, :, None] * target[:, None]
    both /= (both * ratios[pairs.cell.long()]).sum(dim=(1, 2), keepdim=True)
    expected = torch.zeros_like(ratios).index_add(0, pairs.cell.long(), both)
    joint = replace(pairs, compiled=compiled).joint(messages, beliefs, ratios)
    assert torch.allclose(joint, expected, rtol=1e-3 if case[3] == torch.float32 else 1e-9)
    assert float((joint * ratios).sum()) == pytest.approx(len(pairs.source), rel=1e-4)


def test_a_round_builds_nothing_larger_than_beliefs_or_a_piece() -> None:
    pairs, beliefs, messages, ratios = drawn_pairs(3, 1_000, 10 * PIECE, torch.float32)
    with LargestTensor() as watch:
        pairs.renew(messages, beliefs, ratios)
        pairs.joint(messages, beliefs, ratios)
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


# ---- class shares and homophily from noisy labels, and the Gaussian process over a graph ----


SHARES = torch.tensor([0.5, 0.3, 0.2])


def noisy(labels: Tensor, epsilon: float, seed: int = 3) -> Tensor:
    return RandomizedResponse(epsilon=epsilon, classes=3).randomize(labels, randomness=SeededRandomness(seed)).labels


def behind(epsilon: float, classes: int = 3) -> Channel:
    mechanism = RandomizedResponse(epsilon=epsilon, classes=classes)
    return Channel(classes, mechanism.keep, mechanism.flip)


def drawn_labels(count: int, probabilities: Tensor) -> Tensor:
    return torch.multinomial(probabilities, count, replacement=True, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("classes", "epsilon"), [(2, 0.1), (3, 1.0), (40, 3.0), (7, 12.0)])
def test_each_row_of_the_channel_holds_all_reports_of_one_label(classes: int, epsilon: float) -> None:
    mechanism, matrix = RandomizedResponse(epsilon=epsilon, classes=classes), behind(epsilon, classes).matrix
    assert torch.allclose(matrix.sum(dim=1), torch.ones(classes), atol=1e-6)
    assert torch.allclose(matrix.double(), mechanism.transition().double(), atol=1e-7)


def test_class_shares_are_unbiased() -> None:
    """200,000 reports at epsilon 1: each share within 5 deviations (false alarm 2e-6); inverted at 1.5, not."""
    n = 200_000
    labels = drawn_labels(n, SHARES)
    reports, truth = noisy(labels, 1.0), torch.bincount(labels, minlength=3) / n
    error = 5 * 0.5 / math.sqrt(n) / behind(1.0).lean
    assert float((class_shares(reports, behind(1.0)) - truth).abs().max()) < error
    assert float((class_shares(reports, behind(1.5)) - truth).abs().max()) > error


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-1, 4), min_size=1, max_size=60), st.floats(0.05, 14))
def test_class_shares_are_on_the_simplex(reports: list[int], epsilon: float) -> None:
    """Whatever was reported: they add up to 1, and no class is thought much rarer than declared."""
    shares = class_shares(torch.tensor(reports), behind(epsilon, 5))
    assert float(shares.sum()) == pytest.approx(1, abs=1e-5)
    assert float(shares.min()) > LEAST_SHARE / 5 * 0.83


def planted(h: float, edges: int) -> tuple[Tensor, Tensor, Tensor]:
    """Edges between nodes of their own whose classes follow (1 - h) pi pi^T + h diag(pi): source, target, labels."""
    joint = (1 - h) * SHARES[:, None] * SHARES + h * torch.diag(SHARES)
    pairs = drawn_labels(edges, joint.flatten())
    first, second = torch.arange(edges), torch.arange(edges, 2 * edges)
    labels = torch.cat([pairs // 3, pairs % 3])
    return torch.cat([first, second]), torch.cat([second, first]), labels


@pytest.mark.parametrize("h", [0.65, 0.85])
def test_homophily_is_found(h: float) -> None:
    """100,000 edges at epsilon 2: within 0.03; inverted at epsilon 3, not.

    A pair of reports agrees or not (deviation at most 1/2) and the inverse of the channel stretches by 1/(p - q) at
    each end and 1/(1 - |pi|^2): a deviation of 0.006 (measured), so a false alarm has a chance of 6e-7.
    """
    source, target, labels = planted(h, 100_000)
    reports = noisy(labels, 2.0)
    assert homophily(label_pairs(source, target, reports, C), behind(2.0)) == pytest.approx(h, abs=0.03)
    assert homophily(label_pairs(source, target, reports, C), behind(3.0)) != pytest.approx(h, abs=0.03)


def test_homophily_stays_where_there_is_something_to_infer() -> None:
    nobody = torch.full((10,), -1)
    source, target = torch.arange(5), torch.arange(5, 10)
    assert homophily(label_pairs(source, target, nobody, C), behind(1.0)) == pytest.approx(sum(HOMOPHILY_RANGE) / 2)
    for h in (0.0, 1.0):
        source, target, labels = planted(h, 2_000)
        assert homophily(label_pairs(source, target, labels, C), behind(8.0)) == HOMOPHILY_RANGE[int(h)]
