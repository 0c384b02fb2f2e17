"""Belief propagation over noisy reports, against the sum over all assignments of classes."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.graphs import social_graph
from graphveil.mechanisms import AdjacencyRR
from graphveil.models.block_model import NamedPairs, block_beliefs
from graphveil.privacy import SeededRandomness
from tests.sizes import LargestTensor

TREE = torch.tensor([[0, 1], [1, 2], [1, 3], [3, 4], [3, 5]])
RATIOS = torch.tensor([1.5, -0.7, 2.0, 0.4, -1.1], dtype=torch.float64)


def tree(*, directed: bool, ratios: Tensor = RATIOS, background: float = 0.0) -> NamedPairs:
    """Five named pairs of six nodes without a loop; background 0: nothing is said about any other."""
    source, target = TREE.T
    if directed:  # some links against the order of their ends
        source, target = (
            torch.where(torch.tensor([0, 1, 0, 1, 0]).bool(), target, source),
            torch.where(torch.tensor([0, 1, 0, 1, 0]).bool(), source, target),
        )
    return NamedPairs(6, source, target, ratios, background, 3.0, directed)


def evidence(classes: int = 3) -> Tensor:
    drawn = torch.randn(6, classes, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return torch.log_softmax(drawn, dim=1)


def enumerated(pairs: NamedPairs, fields: Tensor, density: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Marginals [n, c], Pr[link] [S] and expected links between classes [c, c], by summing over c^n assignments."""
    n, c = fields.shape
    beliefs, links, between = torch.zeros(n, c).double(), torch.zeros(len(pairs.source)).double(), torch.zeros(c, c)
    between, total = between.double(), 0.0
    ratio = pairs.log_ratio.exp()
    for classes in product(range(c), repeat=n):
        a = torch.tensor(classes)
        prior = density[a[pairs.source], a[pairs.target]]
        both = 1 - prior + prior * ratio
        weight = float(torch.exp(fields[torch.arange(n), a].sum()) * both.prod())
        total += weight
        beliefs[torch.arange(n), a] += weight
        linked = weight * prior * ratio / both
        links += linked
        between.index_put_((a[pairs.source], a[pairs.target]), linked, accumulate=True)
    return beliefs / total, links / total, between / total


@pytest.mark.slow  # seconds
@pytest.mark.parametrize(("directed", "reports"), [(False, "lower"), (True, "both")])
def test_on_a_tree_beliefs_are_those_of_all_assignments(directed: bool, reports: str) -> None:
    """Exact, given the density that was found; "both": two reports of a pair, which may contradict each other.

    The density settles slowly: after 400 rounds to 1e-5.
    """
    ratios = RATIOS if reports == "lower" else RATIOS + torch.tensor([1.5, 0.7, 2.0, -0.4, -1.1]).double()
    pairs = tree(directed=directed, ratios=ratios)
    found = block_beliefs(pairs, evidence(), rounds=400)
    beliefs, links, _ = enumerated(pairs, evidence(), found.density)
    assert torch.allclose(torch.softmax(found.beliefs, dim=1), beliefs, atol=2e-5)
    assert torch.allclose(found.links, links, atol=2e-5)
    # With every log-ratio a fifth too large the same comparison fails by far.
    found = block_beliefs(tree(directed=directed, ratios=1.2 * RATIOS), evidence(), rounds=300)
    beliefs, _, _ = enumerated(tree(directed=directed), evidence(), found.density)
    assert not torch.allclose(torch.softmax(found.beliefs, dim=1), beliefs, atol=1e-3)


def planted(nodes: int, degree: float, inside: float, seed: int) -> tuple[Tensor, Tensor]:
    """(edges [2, E] both ways, classes [n]) of 3 equal communities where a share `inside` of links stays inside."""
    generator = torch.Generator().manual_seed(seed)
    classes = torch.arange(nodes) % 3
    pairs = torch.triu_indices(nodes, nodes, 1)
    same = classes[pairs[0]] == classes[pairs[1]]
    chance = torch.where(same, 3 * inside, 1.5 * (1 - inside)) * degree / nodes
    chosen = pairs[:, torch.rand(len(same), generator=generator) < chance]
    return torch.cat([chosen, chosen.flip(0)], dim=1), classes


def test_pairs_that_nobody_named_are_summed_in_closed_form() -> None:
    """Against naming every pair of the graph: the same beliefs to the order of what single pairs tell."""
    rows = AdjacencyRR(epsilon=3.0, nodes=60, mode="lower")
    edges, classes = planted(60, 8, 0.9, seed=1)
    said = rows.evidence(rows.randomize(edges, randomness=SeededRandomness(1)))
    fields = 3 * torch.nn.functional.one_hot(classes, 3).double()
    fields[::2] = 0
    few = NamedPairs(60, said.source, said.target, said.log_ratio, said.background, chi_square(rows), False)
    low, high = torch.triu_indices(60, 60, 1)
    ratio = torch.full((60, 60), said.background, dtype=torch.float64)
    ratio[said.source, said.target] = said.log_ratio
    everyone = NamedPairs(60, low, high, ratio[low, high], said.background, chi_square(rows), False)
    assert everyone.expected_links == pytest.approx(few.expected_links)
    a, b = (torch.softmax(block_beliefs(pairs, fields).beliefs, dim=1) for pairs in (few, everyone))
    assert float((a - b).abs().max()) < 0.05
    assert float((a - torch.softmax(fields, dim=1)).abs().max()) > 0.2


def chi_square(rows: AdjacencyRR) -> float:
    flip = rows.flip
    return float((1 - flip) ** 2 / flip + flip**2 / (1 - flip)) ** (2 if rows.mode == "both" else 1) - 1


def reported(edges: Tensor, nodes: int, epsilon: float, mode: str, seed: int) -> NamedPairs:
    """The reports of a graph (directed: half its links each way)."""
    rows = AdjacencyRR(epsilon=epsilon, nodes=nodes, mode=mode)
    if mode == "directed":
        edges = edges[:, (edges.sum(dim=0) % 2 == 0) == (edges[0] < edges[1])]
    said = rows.evidence(rows.randomize(edges, randomness=SeededRandomness(seed)))
    return NamedPairs(nodes, said.source, said.target, said.log_ratio, said.background, chi_square(rows), said.directed)


def test_nothing_of_all_pairs_is_built_for_20_000_people() -> None:
    graph = social_graph(20_000, 8, 20, 4, apps=4, seed=1)
    pairs = reported(graph.edge_index, 20_000, 10.0, "lower", seed=1)
    fields = torch.zeros(20_000, 4)
    with LargestTensor() as watch:
        found = block_beliefs(pairs, fields, rounds=2)
    assert found.beliefs.shape == (20_000, 4)
    assert watch.numbers < 20_000**2 / 200
    assert watch.numbers <= 2 * 4 * len(pairs.source) + 4 * 20_000


def test_evidence_that_is_not_finite_or_of_another_size_is_refused() -> None:
    for wrong in (math.nan, math.inf, -math.inf):
        fields = evidence()
        fields[2, 1] = wrong
        with pytest.raises(InputError, match=r"evidence \(6, 3\); allowed: finite numbers \[6, classes\]"):
            block_beliefs(tree(directed=False), fields)
    with pytest.raises(InputError, match=r"evidence \(5, 3\)"):
        block_beliefs(tree(directed=False), evidence()[:5])


@pytest.mark.parametrize(("epsilon", "mode"), [(0.01, "lower"), (60.0, "both"), (60.0, "directed")])
def test_extreme_epsilons_give_finite_beliefs(epsilon: float, mode: str) -> None:
    edges, classes = planted(60, 6, 0.8, seed=1)
    pairs = reported(edges, 60, epsilon, mode, seed=1)
    found = block_beliefs(pairs, torch.nn.functional.one_hot(classes, 3).float())
    assert all(bool(part.isfinite().all()) for part in (found.beliefs, found.density, found.links))
    assert epsilon < 1 or float(found.links.min()) > 0.99


def test_beliefs_do_not_depend_on_the_order_of_pairs_or_ends_and_progress_is_told() -> None:
    pairs, order, told = tree(directed=False), torch.tensor([3, 1, 4, 0, 2]), []
    mixed = NamedPairs(6, pairs.target[order], pairs.source[order], RATIOS[order], 0.0, 3.0, False)
    plain = block_beliefs(pairs, evidence(), progress=lambda at: told.append((at.done, at.total)), rounds=7)
    again = block_beliefs(mixed, evidence(), rounds=7)
    assert torch.allclose(plain.beliefs - plain.beliefs.mean(1, True), again.beliefs - again.beliefs.mean(1, True))
    assert torch.allclose(plain.links[order], again.links)
    assert told == [(number, 7) for number in range(1, 8)]
