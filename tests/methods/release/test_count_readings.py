"""Readings of published counts: what judges them, what they may see, and what they give where counts say nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from graphveil.graphs import Split
from graphveil.graphs.neighbour_counts import NeighbourCounts
from graphveil.methods.release.count_readings import COUNTS_UNUSED, COUNTS_USED, read_counts, read_public
from graphveil.methods.release.heterorr import domain_of
from graphveil.methods.release.public_part import PublicPart, public_part_of
from tests.methods import made, released_made

RATE = 2.0


def part(graph: Any, split: Split | None = None) -> PublicPart:
    return public_part_of(graph, split or made.split_of(graph), domain_of(graph))


def telling(graph: Any, public: PublicPart) -> NeighbourCounts:
    """Counts that say everybody's class: twenty neighbours of it, and none of any other."""
    label = torch.where(graph.y < 0, 0, graph.y)
    return NeighbourCounts(public.groups(), 20 * torch.nn.functional.one_hot(label, 3))


def silent(public: PublicPart) -> NeighbourCounts:
    return NeighbourCounts(public.groups(), torch.zeros(made.NODES, 3, dtype=torch.int64))


@pytest.mark.slow
def test_counts_that_tell_are_used_and_those_that_do_not_are_left_out() -> None:
    graph = released_made.graph()
    public, split = part(graph), made.split_of(graph)
    found = read_counts(public, telling(graph, public), RATE)
    assert found.variant == COUNTS_USED
    known = split.test & (graph.y >= 0)
    assert float((found.scores.argmax(dim=1) == graph.y)[known].float().mean()) > 0.9
    quiet = read_counts(public, silent(public), RATE)
    assert quiet.variant == COUNTS_UNUSED
    assert torch.equal(quiet.scores, read_public(public))


@pytest.mark.slow
def test_labels_of_test_nodes_are_never_seen() -> None:
    """The same scores, whatever labels test nodes have: neither the public part nor the judge reads them."""
    graph = released_made.graph()
    split = made.split_of(graph)
    other = made.changed(graph, y=torch.where(split.test & (graph.y >= 0), (graph.y + 1) % 3, graph.y))
    other.public_edges = graph.public_edges
    first, second = part(graph, split), part(other, split)
    counts = telling(graph, first)
    assert torch.equal(read_counts(first, counts, RATE).scores, read_counts(second, counts, RATE).scores)


@pytest.mark.slow
def test_another_seed_trains_other_networks_and_the_same_seed_the_same() -> None:
    graph = released_made.graph()
    split, domain = made.split_of(graph), domain_of(graph)
    first, again, other = (read_public(public_part_of(graph, split, domain, seed=seed)) for seed in (3, 3, 4))
    assert torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.slow
def test_counts_of_the_wrong_people_are_left_out() -> None:
    """Rows dealt out anew among people say nothing of them, however little noise is claimed."""
    graph = released_made.graph()
    public = part(graph)
    right = telling(graph, public)
    dealt = torch.randperm(made.NODES, generator=torch.Generator().manual_seed(5))
    wrong = NeighbourCounts(right.groups, right.counts[dealt])
    assert read_counts(public, wrong, RATE).variant == COUNTS_UNUSED


@pytest.mark.slow
def test_scores_are_finite_for_counts_of_any_size() -> None:
    graph = released_made.graph()
    public = part(graph)
    table = torch.zeros(made.NODES, 3, dtype=torch.int64)
    table[0], table[1] = 10**6, -(10**6)
    assert torch.isfinite(read_counts(public, NeighbourCounts(public.groups(), table), 0.01).scores).all()
