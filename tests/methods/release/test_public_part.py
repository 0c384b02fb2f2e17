"""The public part of a release: what it reads, what it says, and that nothing private is in it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import Split
from graphveil.methods.release.count_readings import read_public
from graphveil.methods.release.heterorr import domain_of
from graphveil.methods.release.public_part import PublicPart, everybody, neighbour_sums, public_part_of
from tests.methods import made, released_made


def part(graph: Any = None, split: Split | None = None) -> PublicPart:
    graph = graph or released_made.graph()
    return public_part_of(graph, split or made.split_of(graph), domain_of(graph))


def test_sums_are_those_of_a_dense_adjacency() -> None:
    graph = released_made.graph()
    public = part(graph)
    rows = torch.rand(made.NODES, 4, dtype=torch.float64)
    dense = torch.zeros(made.NODES, made.NODES, dtype=torch.float64)
    dense[graph.edge_index[0][graph.public_edges], graph.edge_index[1][graph.public_edges]] = 1
    assert torch.allclose(neighbour_sums(public.pairs, rows), dense @ rows)
    assert torch.equal(neighbour_sums(public.pairs[:, :0], rows), torch.zeros_like(rows))


def test_another_set_of_private_edges_is_the_same_public_part() -> None:
    graph = released_made.graph()
    split = made.split_of(graph)
    other = released_made.with_private(graph, released_made.private_pairs(graph)[:, ::3])
    first, second = (part(one, split) for one in (graph, other))
    assert torch.equal(first.pairs, second.pairs)
    assert torch.equal(first.groups(), second.groups())
    assert torch.equal(read_public(first), read_public(second))


def test_groups_are_labels_where_they_are_known_and_guesses_elsewhere() -> None:
    graph = released_made.graph()
    split = made.split_of(graph)
    public, known = part(graph, split), split.train | split.val
    groups = public.groups()
    assert torch.equal(groups[known], graph.y[known])
    assert torch.equal(groups[~known], public.experts(public.sums).argmax(dim=1)[~known])
    assert int(groups.min()) >= 0 and int(groups.max()) < public.people.classes


@pytest.mark.parametrize("labelled", [0, 1, 3, 8])
def test_a_quarter_of_those_with_a_label_validates(labelled: int) -> None:
    labels = torch.full((20,), -1)
    labels[:labelled] = 1
    split = everybody(labels)
    assert (int(split.train.sum()), int(split.val.sum())) == (labelled - labelled // 4, labelled // 4)
    assert not bool((split.train & split.val).any() or split.test.any())
    again = everybody(labels)
    assert torch.equal(split.train, again.train)


def test_several_labels_a_node_are_refused() -> None:
    graph = released_made.graph()
    graph.y = torch.nn.functional.one_hot(graph.y.clamp_min(0), 3).float()
    with pytest.raises(InputError, match="several labels"):
        public_part_of(graph, made.split_of(released_made.graph()), domain_of(graph))
