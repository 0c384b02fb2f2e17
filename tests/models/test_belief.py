"""Belief propagation: exact on a tree, and what it reads of a graph."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import adjacency, from_scipy
from graphveil.models.belief import Edges, edges_of, propagate_beliefs
from graphveil.models.label_prior import channel

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
