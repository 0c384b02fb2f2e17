"""The pool of what the label holder makes of guesses: what it adds, and that it is taken only where it is better."""

from __future__ import annotations

import torch
from torch import Tensor

from graphveil.aggregation import from_scipy
from graphveil.federation.core.publication import Guessing
from graphveil.federation.modes.guess_pool import evidence_of, pooled, pooled_alone
from graphveil.federation.modes.local_network import guess_chances
from graphveil.federation.modes.propagation import transition_matrix

N, C = 600, 4


def reported_guesses(epsilon: float, *, right: float = 0.8) -> tuple[Tensor, Tensor, Tensor]:
    """Labels, the label holder's own scores, which are right for half of all, and one holder's reports."""
    generator = torch.Generator().manual_seed(6)
    labels = torch.randint(0, C, (N,), generator=generator)

    def through(chance: float, values: Tensor) -> Tensor:
        wrong = (values + torch.randint(1, C, (N,), generator=generator)) % C
        return torch.where(torch.rand(N, generator=generator) < chance, values, wrong)

    scores = torch.nn.functional.one_hot(through(0.5, labels), C).float()
    return labels, scores, through(Guessing(epsilon, C).keep, through(right, labels))


def run(epsilon: float, *, val: int = 200, right: float = 0.8) -> tuple[Tensor, Tensor]:
    """The pool's scores, and the label holder's own."""
    labels, scores, reports = reported_guesses(epsilon, right=right)
    validates = torch.arange(N) < val
    chances = guess_chances(reports[validates], labels[validates], Guessing(epsilon, C).channel, torch.eye(C))
    evidence = evidence_of([reports], [chances], torch.arange(N), N)
    alone = from_scipy(transition_matrix(torch.zeros(2, 0, dtype=torch.int64), N))
    heard = torch.eye(C).clamp_min(1e-12).log()[:, labels[validates]].T
    return pooled(scores, scores, evidence, alone, validates, heard)[0], scores


def test_guesses_that_tell_nothing_and_few_validation_nodes_leave_the_network_as_it_is() -> None:
    for epsilon, val, right in ((0.01, 200, 0.8), (4.0, 200, 1 / C), (4.0, 4, 0.8)):
        both, own = run(epsilon, val=val, right=right)
        assert torch.equal(both, own)


def test_evidence_is_the_centred_log_likelihood_of_all_holders() -> None:
    chances = [torch.tensor([[0.9, 0.1], [0.3, 0.7]]), torch.tensor([[0.5, 0.5], [0.2, 0.8]])]
    evidence = evidence_of([torch.tensor([0, 1]), torch.tensor([1, 1])], chances, torch.tensor([2, 0]), 3)
    first = torch.tensor([0.9 * 0.5, 0.3 * 0.8]).log()
    assert torch.allclose(evidence[2], first - first.mean()) and torch.equal(evidence[1], torch.zeros(2))
    assert torch.allclose(evidence.sum(dim=1), torch.zeros(3), atol=1e-6)


def test_labels_of_neighbours_join_the_own_network_where_they_tell_more() -> None:
    labels, scores, _ = reported_guesses(1.0)
    order = torch.argsort(labels)  # nodes of a class lie together: a ring over them joins a class with itself
    edges = torch.stack([order.repeat(6), torch.cat([order.roll(k + 1) for k in range(6)])])
    transition = from_scipy(transition_matrix(torch.cat([edges, edges.flip(0)], dim=1), N))
    val = torch.arange(N) < 200
    train = torch.where(val, -1, labels)
    heard = torch.eye(C).clamp_min(1e-12).log()[:, labels[val]].T
    both, _ = pooled_alone(scores, train, transition, val, heard)
    right = (both.argmax(dim=1) == labels)[val].float().mean()
    assert right > (scores.argmax(dim=1) == labels)[val].float().mean() + 0.2
    apart = from_scipy(transition_matrix(torch.zeros(2, 0, dtype=torch.int64), N))
    assert torch.equal(pooled_alone(scores, train, apart, val, heard)[0], scores)
