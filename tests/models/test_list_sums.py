"""Sums over noisy lists: their exact law, by all reports there can be, and what they never hold."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from graphveil.mechanisms import AdjacencyRR, EdgeReports, RandomizedResponse
from graphveil.methods.links.collection import pairs_of
from graphveil.models import NamedPairs
from graphveil.models.blocks.list_sums import (
    list_sums,
    named_by_sums,
    neighbour_means,
    noise_scale,
    shared_sums,
    unbiased_labels,
)
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy import SeededRandomness

MODES = ("lower", "both", "directed")
NODES = {"lower": 4, "both": 3, "directed": 3}
#: Links of 0 with 1 and 2, and of 1 with 2 where there is a fourth person.
LINKS = {"lower": [(0, 1), (0, 2), (1, 3)], "both": [(0, 1), (0, 2)], "directed": [(0, 1), (2, 0), (2, 1)]}


def edges_of(mode: str, links: list[tuple[int, int]]) -> Tensor:
    """The true lists as `randomize` takes them."""
    pairs = torch.tensor(links, dtype=torch.int64).reshape(-1, 2).T
    return pairs if mode == "directed" else torch.cat([pairs, pairs.flip(0)], dim=1)


def places(mode: str) -> list[tuple[int, int]]:
    """Who may name whom."""
    n = NODES[mode]
    return [(i, j) for i in range(n) for j in range(n) if i != j and (mode != "lower" or i < j)]


def every_report(mode: str) -> list[EdgeReports]:
    """All lists that can be sent: 64 of each mode."""
    reports = []
    for bits in product([False, True], repeat=len(places(mode))):
        named = [place for place, bit in zip(places(mode), bits, strict=True) if bit]
        starts = torch.tensor([sum(i < v for i, _ in named) for v in range(NODES[mode] + 1)])
        reports.append(EdgeReports(starts, torch.tensor([j for _, j in named], dtype=torch.int32)))
    return reports


def moments(
    mode: str, epsilon: float, read_as: float, links: list[tuple[int, int]]
) -> tuple[Tensor, Tensor, Tensor, float]:
    """Mean of both sums, the variance of the first [n, k] and the mean number of links, over all reports exactly."""
    channel = AdjacencyRR(epsilon=epsilon, nodes=NODES[mode], mode=mode)
    reader = AdjacencyRR(epsilon=read_as, nodes=NODES[mode], mode=mode)
    edges, messages = edges_of(mode, links), messages_of(mode)
    total, number, mean, back, square = 0.0, 0.0, 0.0 * messages, 0.0 * messages, 0.0 * messages
    for sent in every_report(mode):
        chance = float(channel.log_likelihood(sent, edges).sum().exp())
        pairs = pairs_of(reader, sent)
        sums = list_sums(pairs, messages)
        total, mean, square = total + chance, mean + chance * sums, square + chance * sums.square()
        back, number = back + chance * named_by_sums(pairs, messages), number + chance * pairs.expected_links
    assert total == pytest.approx(1.0)
    return mean, back, square - mean.square(), number


def messages_of(mode: str) -> Tensor:
    return torch.randn(NODES[mode], 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def adjacency(mode: str) -> Tensor:
    edges = edges_of(mode, LINKS[mode])
    matrix = torch.zeros(NODES[mode], NODES[mode], dtype=torch.float64)
    matrix[edges[0], edges[1]] = 1.0
    return matrix


@pytest.mark.parametrize(("mode", "epsilon"), [("lower", 0.3), ("both", 1.5), ("directed", 5.0)])
def test_sums_are_unbiased_exactly(mode: str, epsilon: float) -> None:
    """Over all 64 reports, each by its exact probability: A M, A^T M of those who are named, and how many links."""
    mean, back, _, number = moments(mode, epsilon, epsilon, LINKS[mode])
    assert torch.allclose(mean, adjacency(mode) @ messages_of(mode), atol=1e-9)
    assert torch.allclose(back, adjacency(mode).T @ messages_of(mode), atol=1e-9)
    assert number == pytest.approx(len(LINKS[mode]))


@pytest.mark.parametrize("mode", MODES)
def test_a_weakened_channel_is_told_from_the_stated_one(mode: str) -> None:
    """Lists sent with a tenth more epsilon than they are read with: the same exact mean is off by far."""
    mean, _, _, _ = moments(mode, 1.65, 1.5, LINKS[mode])
    assert float((mean - adjacency(mode) @ messages_of(mode)).abs().max()) > 0.02


@pytest.mark.parametrize("mode", MODES)
def test_where_nobody_is_linked_the_noise_is_as_stated(mode: str) -> None:
    """The variance is |m_k|^2 / chi^2 without the own message, exactly."""
    _, _, variance, number = moments(mode, 1.0, 1.0, [])
    assert number == pytest.approx(0.0, abs=1e-9)
    messages = messages_of(mode)
    pairs = pairs_of(AdjacencyRR(epsilon=1.0, nodes=NODES[mode], mode=mode), every_report(mode)[5])
    stated = noise_scale(pairs, messages).square() - messages.square() / pairs.information
    assert torch.allclose(variance, stated, atol=1e-9)


def whole_matrix(pairs: NamedPairs) -> Tensor:
    """The estimates of all pairs [n, n]."""
    named, other = pairs.estimate
    whole = torch.full((pairs.nodes, pairs.nodes), other, dtype=torch.float64)
    whole[pairs.source, pairs.target] = named.double()
    if not pairs.directed:
        whole[pairs.target, pairs.source] = named.double()
    return whole.fill_diagonal_(0.0)


def random_pairs(nodes: int, mode: str) -> NamedPairs:
    """Lists of strangers at epsilon 1/2: more named pairs than one piece holds."""
    mechanism = AdjacencyRR(epsilon=0.5, nodes=nodes, mode=mode)
    nobody = torch.zeros(2, 0, dtype=torch.int64)
    return pairs_of(mechanism, mechanism.randomize(nobody, randomness=SeededRandomness(1)))


@pytest.mark.parametrize("mode", MODES)
def test_sums_in_pieces_are_those_of_the_whole_matrix(mode: str) -> None:
    pairs = random_pairs(650, mode)
    whole = whole_matrix(pairs)
    messages = torch.randn(650, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    assert len(pairs.source) > 1 << 16
    assert torch.allclose(list_sums(pairs, messages), whole @ messages)
    assert torch.allclose(named_by_sums(pairs, messages), whole.T @ messages)


@pytest.mark.parametrize("mode", MODES)
def test_two_steps_are_those_of_the_whole_matrix_without_the_way_back(mode: str) -> None:
    pairs = random_pairs(60, mode)
    whole = whole_matrix(pairs)
    messages = torch.randn(60, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    least = max(1.0, float((60 / pairs.information) ** 0.5))
    steps = whole / whole.sum(dim=0).clamp_min(least) @ whole.T
    assert torch.allclose(shared_sums(pairs, messages), steps.fill_diagonal_(0.0) @ messages)
    means = whole.T @ messages / whole.sum(dim=0).clamp_min(least)[:, None]
    assert torch.allclose(neighbour_means(pairs, messages), means)


def test_label_reports_are_set_right_by_their_channel() -> None:
    """Over all reports by their exact probability the mean is the true class; who was not asked says nothing."""
    mechanism = RandomizedResponse(epsilon=1.0, classes=3)
    channel, reports = Channel(3, mechanism.keep, mechanism.flip), torch.arange(3)
    shares = unbiased_labels(reports, torch.ones(3, dtype=torch.bool), channel)
    assert torch.allclose(mechanism.transition().float() @ shares, torch.eye(3), atol=1e-6)
    assert not unbiased_labels(reports, torch.zeros(3, dtype=torch.bool), channel).any()
