"""Blocks of classes behind noisy reports, against the sum over all assignments and what is counted."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy import stats
from torch import Tensor

from graphveil.errors import InputError
from graphveil.graphs import social_graph
from graphveil.mechanisms import AdjacencyRR, NoisyCounts
from graphveil.methods.links.collection import pairs_of
from graphveil.models.blocks.block_model import NamedPairs, block_beliefs
from graphveil.models.blocks.labelled_blocks import (
    QUANTILES,
    LabelledPeople,
    block_densities,
    block_fields,
    cosines,
    likeness,
    weighted_rows,
)
from graphveil.models.blocks.list_sums import unbiased_labels
from graphveil.models.labels.count_fields import CountedNeighbours, count_fields
from graphveil.models.labels.label_prior import Channel
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
    computed = block_beliefs(pairs, evidence(), rounds=400)
    beliefs, links, _ = enumerated(pairs, evidence(), computed.density)
    assert torch.allclose(torch.softmax(computed.beliefs, dim=1), beliefs, atol=2e-5)
    assert torch.allclose(computed.links, links, atol=2e-5)
    # With every log-ratio a fifth too large the same comparison fails by far.
    computed = block_beliefs(tree(directed=directed, ratios=1.2 * RATIOS), evidence(), rounds=300)
    beliefs, _, _ = enumerated(tree(directed=directed), evidence(), computed.density)
    assert not torch.allclose(torch.softmax(computed.beliefs, dim=1), beliefs, atol=1e-3)


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
    edges, classes = planted(60, 8, 0.9, seed=1)
    fields = 3 * torch.nn.functional.one_hot(classes, 3).double()
    fields[::2] = 0
    few = reported(edges, 60, 3.0)
    low, high = torch.triu_indices(60, 60, 1)
    ratio = torch.full((60, 60), few.background, dtype=torch.float64)
    ratio[few.source, few.target] = few.log_ratio
    everyone = replace(few, source=low, target=high, log_ratio=ratio[low, high])
    assert everyone.expected_links == pytest.approx(few.expected_links)
    a, b = (torch.softmax(block_beliefs(pairs, fields).beliefs, dim=1) for pairs in (few, everyone))
    assert float((a - b).abs().max()) < 0.05
    assert float((a - torch.softmax(fields, dim=1)).abs().max()) > 0.2


def one_way(edges: Tensor) -> Tensor:
    """Half of the links each way."""
    return edges[:, (edges.sum(dim=0) % 2 == 0) == (edges[0] < edges[1])]


def reported(edges: Tensor, nodes: int, epsilon: float, mode: str = "lower") -> NamedPairs:
    """The reports of a graph."""
    rows = AdjacencyRR(epsilon=epsilon, nodes=nodes, mode=mode)
    edges = one_way(edges) if mode == "directed" else edges
    return pairs_of(rows, rows.randomize(edges, randomness=SeededRandomness(1)))


def test_nothing_of_all_pairs_is_built_for_20_000_people() -> None:
    graph = social_graph(20_000, 8, 20, 4, apps=4, seed=1)
    pairs = reported(graph.edge_index, 20_000, 10.0)
    fields = torch.zeros(20_000, 4)
    with LargestTensor() as watch:
        beliefs = block_beliefs(pairs, fields, rounds=2)
    assert beliefs.beliefs.shape == (20_000, 4)
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
    pairs = reported(edges, 60, epsilon, mode)
    beliefs = block_beliefs(pairs, torch.nn.functional.one_hot(classes, 3).float())
    assert all(bool(part.isfinite().all()) for part in (beliefs.beliefs, beliefs.density, beliefs.links))
    assert epsilon < 1 or float(beliefs.links.min()) > 0.99


def test_beliefs_do_not_depend_on_the_order_of_pairs_or_ends_and_progress_is_told() -> None:
    pairs, order, events = tree(directed=False), torch.tensor([3, 1, 4, 0, 2]), []
    mixed = NamedPairs(6, pairs.target[order], pairs.source[order], RATIOS[order], 0.0, 3.0, False)
    plain = block_beliefs(pairs, evidence(), progress=lambda at: events.append((at.done, at.total)), rounds=7)
    again = block_beliefs(mixed, evidence(), rounds=7)
    assert torch.allclose(plain.beliefs - plain.beliefs.mean(1, True), again.beliefs - again.beliefs.mean(1, True))
    assert torch.allclose(plain.links[order], again.links)
    assert events == [(number, 7) for number in range(1, 8)]


# ---- fields of labelled blocks ----


def people(classes: Tensor, reporting: Tensor, count: int = 3) -> LabelledPeople:
    """Public labels of those who were asked."""
    return LabelledPeople(unbiased_labels(classes, reporting, Channel(count)), torch.where(reporting, classes, -1))


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
def test_where_all_others_are_known_a_field_is_the_likelihood_of_the_links(mode: str) -> None:
    """Epsilon 12: densities are those counted and no report is false, so that each class is a product of Bernoullis."""
    edges, classes = planted(120, 12, 0.8, seed=1)
    edges = one_way(edges) if mode == "directed" else edges
    reporting = torch.ones(120, dtype=torch.bool)
    reporting[0] = False
    pairs = reported(edges, 120, 12.0 if mode != "both" else 8.0, mode)
    field = block_fields(pairs, torch.zeros(120, 3), people(classes, reporting), degrees=False, alike=None, rounds=3)
    adjacency = torch.zeros(120, 120, dtype=torch.float64)
    adjacency[edges[0], edges[1]] = 1.0
    shares = torch.nn.functional.one_hot(classes, 3).double() * reporting[:, None]
    sizes = shares.sum(dim=0)
    density = (shares.T @ adjacency @ shares) / (sizes[:, None] * sizes - sizes.diag())

    def likelihood(links: Tensor, between: Tensor) -> Tensor:
        here = between[:, classes[1:]]
        return (links * here.log() + (1 - links) * (1 - here).log()).sum(dim=1)

    exact = likelihood(adjacency[0, 1:], density)
    if mode == "directed":
        exact = exact + likelihood(adjacency[1:, 0], density.T)
    difference = (field[0] - field[0].mean()) - (exact - exact.mean())
    assert float(difference.abs().max()) < 0.5
    assert float(exact.max() - exact.min()) > 5


def test_what_a_node_says_of_itself_is_left_out_of_its_field() -> None:
    """Others known: neither its evidence nor, for one of public class, its label's messages come back to it."""
    edges, classes = planted(120, 12, 0.8, seed=1)
    reporting = torch.ones(120, dtype=torch.bool)
    reporting[:2] = False
    pairs, who = reported(edges, 120, 2.0), people(classes, reporting)
    evidence = torch.zeros(120, 3)
    first = block_fields(pairs, evidence, who, degrees=True, alike=None, rounds=30)
    evidence[0] = torch.tensor([6.0, 0.0, 0.0])
    second = block_fields(pairs, evidence, who, degrees=True, alike=None, rounds=30)
    moved = (first - first.mean(dim=1, keepdim=True) - second + second.mean(dim=1, keepdim=True)).abs().amax(dim=1)
    assert float(moved[0]) < 0.01
    assert float(moved[2:].max()) > 0.1


def features(people: int = 200, columns: int = 30) -> sp.csr_matrix:
    drawn = np.random.default_rng(1).random((people, columns)) < 0.2
    drawn[3] = False
    drawn[11] = drawn[10]
    return sp.csr_matrix(drawn.astype(np.float32))


def test_cosines_are_those_of_weighted_rows() -> None:
    x = features().toarray()
    weights = 1 + np.log((1 + len(x)) / (1 + (x != 0).sum(axis=0)))
    rows = x * weights / np.maximum(np.linalg.norm(x * weights, axis=1, keepdims=True), 1e-12)
    source, target = torch.cartesian_prod(torch.arange(200), torch.arange(200)).T
    computed = cosines(weighted_rows(features()), source, target)
    assert np.allclose(computed, (rows @ rows.T)[source, target], atol=1e-5)
    assert not computed.reshape(200, 200)[3].any(), "who has no features is like nobody"


def test_random_pairs_fill_the_classes_as_the_quantiles_say() -> None:
    named = NamedPairs(200, torch.tensor([3, 10]), torch.tensor([5, 11]), torch.zeros(2), 0.0, 1.0, False)
    sorted_pairs = likeness(features(), named, seed=1)
    shares = torch.bincount(sorted_pairs.drawn, minlength=sorted_pairs.bins).double() / len(sorted_pairs.drawn)
    stated = np.diff([0.0, *QUANTILES, 1.0])
    assert sorted_pairs.bins == len(QUANTILES) + 1
    assert np.allclose(shares, stated, atol=0.03)
    assert not (sorted_pairs.source == sorted_pairs.target).any()
    assert sorted_pairs.named.tolist() == [0, sorted_pairs.bins - 1]


# ---- densities between classes ----


PEOPLE, CLASSES, WITHIN, BETWEEN = 420, 7, 0.12, 0.006


def partition() -> tuple[Tensor, Tensor]:
    """Links and classes of a planted partition."""
    generator = torch.Generator().manual_seed(3)
    classes = torch.arange(PEOPLE) % CLASSES
    chance = torch.where(classes[:, None] == classes, WITHIN, BETWEEN)
    drawn = torch.triu(torch.rand(PEOPLE, PEOPLE, generator=generator) < chance, diagonal=1)
    return (drawn | drawn.T).nonzero().T, classes


def densities(pairs: NamedPairs, labels: Tensor, blocks: str) -> Tensor:
    everybody, alike = torch.ones(PEOPLE, dtype=torch.bool), torch.ones(PEOPLE, dtype=torch.float64)
    return block_densities(pairs, unbiased_labels(labels, everybody, Channel(CLASSES)), alike, alike, blocks)


def test_where_nothing_is_hidden_densities_are_those_counted() -> None:
    edges, classes = partition()
    pairs = reported(edges, PEOPLE, 30.0, "both")
    same = classes[edges[0]] == classes[edges[1]]
    size = PEOPLE // CLASSES
    within = float(same.sum()) / (CLASSES * size * (size - 1))
    between = float((~same).sum()) / (PEOPLE * (PEOPLE - size))
    density = densities(pairs, classes, "planted")
    assert density.diag().tolist() == pytest.approx([within] * CLASSES, rel=1e-3)
    assert density[0, 1:].tolist() == pytest.approx([between] * (CLASSES - 1), rel=1e-3)
    counted = torch.zeros(CLASSES, CLASSES).double().index_put_(tuple(classes[edges]), torch.ones(1).double(), True)
    pairs_of_classes = torch.full_like(counted, size * size) - size * torch.eye(CLASSES)
    full = densities(pairs, classes, "full")
    assert torch.allclose(full, counted / pairs_of_classes, rtol=0.02)


def test_a_twentieth_of_forged_labels_moves_no_planted_density_by_a_third() -> None:
    """Neither lists nor labels are noisy here, so that nothing is left to chance."""
    edges, classes = partition()
    pairs, forged = reported(edges, PEOPLE, 30.0, "both"), torch.where(torch.arange(PEOPLE) < PEOPLE / 20, 0, classes)
    moved = {
        blocks: float((densities(pairs, forged, blocks) / densities(pairs, classes, blocks) - 1).abs().max())
        for blocks in ("full", "planted")
    }
    assert moved["planted"] < 1 / 3 < 2 / 3 < moved["full"]


# ---- likelihoods of noisy counts ----


KINDS = 3


def counted(
    people: int, rate: float, *, private: float, public: float, seed: int = 0, uneven: bool = True
) -> tuple[CountedNeighbours, torch.Tensor]:
    """Rows of people who have four times as many neighbours of their own class as of each other one, and classes."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, KINDS, people)
    mean = np.ones((KINDS, KINDS)) + 3 * np.eye(KINDS)
    degree = rng.gamma(4.0, 0.25, people)[:, None] if uneven else np.ones((people, 1))
    first, second = (rng.poisson(size * degree * mean[label] / mean[0].sum()) for size in (private, public))
    noise = NoisyCounts(epsilon=rate)
    sent = noise.randomize(torch.from_numpy(first.reshape(-1)), randomness=SeededRandomness(seed))
    rows = sent.view(people, KINDS).float(), torch.from_numpy(second).float()
    return CountedNeighbours(*rows, rate), torch.from_numpy(label)


def by_hand(row: np.ndarray, expected: np.ndarray, rate: float) -> float:
    """log of the sum over all true counts, to 400."""
    true = np.arange(400)
    total = 0.0
    for noisy, mean in zip(row, expected, strict=True):
        noise = np.tanh(rate / 2) * np.exp(-rate * np.abs(noisy - true))
        total += math.log(float((stats.poisson.pmf(true, mean) * noise).sum()))
    return total


@pytest.mark.parametrize("rate", [0.25, 4.0])
def test_a_field_is_the_likelihood_of_its_row(rate: float) -> None:
    """With everybody of one degree: differences between classes are those of the sum over all true counts."""
    table, label = counted(400, rate, private=12.0, public=3.0, uneven=False)
    train = torch.arange(300)
    field = count_fields(table, label, train)
    member = torch.nn.functional.one_hot(label[train], KINDS).double()
    size = member.sum(dim=0)[:, None]
    public_means = (member.T @ table.public[train].double() / size).numpy()
    private_means = (member.T @ table.private[train].double() / size).numpy()
    expected = public_means / public_means.sum(axis=1, keepdims=True) * private_means.sum(axis=1, keepdims=True)
    noise = table.variance / size.numpy()
    beyond = np.maximum((private_means - expected) ** 2 - noise, 0).mean()
    rates = expected + (private_means - expected) * beyond / (beyond + noise)
    for node in range(300, 330):
        likely = [
            by_hand(table.private[node].numpy(), rates[a], rate)
            + stats.poisson.logpmf(table.public[node].numpy(), public_means[a]).sum()
            for a in range(KINDS)
        ]
        gaps = field[node].double().numpy() - field[node, 0].item()
        assert gaps == pytest.approx(np.array(likely) - likely[0], abs=2e-3)


def test_counts_weighed_one_after_the_other_give_the_same_field() -> None:
    table, label = counted(200, 1.0, private=12.0, public=3.0)
    train = torch.arange(100)
    at_once = count_fields(table, label, train)
    assert torch.allclose(count_fields(table, label, train, at_once=1), at_once, rtol=1e-6)
    assert torch.allclose(count_fields(table, label, train, at_once=300), at_once, rtol=1e-6)


def test_rows_far_from_every_class_stay_finite() -> None:
    table, label = counted(200, 3.0, private=4.0, public=1.0)
    table.private[150] = torch.tensor([5000.0, -5000.0, 0.0])
    field = count_fields(table, label, torch.arange(100))
    assert torch.isfinite(field).all()
    assert int(field[150].argmax()) == 0
    table, label = counted(200, 1.0, private=6.0, public=0.0)  # no public edges, and nobody of a class trains
    assert torch.isfinite(count_fields(table, torch.where(label == 2, 0, label), torch.arange(100))).all()
