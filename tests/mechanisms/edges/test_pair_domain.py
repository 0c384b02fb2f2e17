"""The set of protected pairs: its numberings, its public part, and what lies outside."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms import PairDomain, protected_pairs
from graphveil.mechanisms.edges.pair_domain import pairs_of as block_pairs

MEMBERS = torch.tensor([7, 1, 4, 2, 8])
PUBLIC = torch.tensor([[1, 0, 4, 1, 3], [4, 1, 8, 4, 5]])  # {0, 1} and {3, 5} leave the members


def pairs_of(links: list[tuple[int, int]]) -> Tensor:
    return torch.tensor(links, dtype=torch.int64).reshape(-1, 2).T.contiguous()


def both(pairs: Tensor) -> Tensor:
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def expected(nodes: int, members: Tensor | None, public: Tensor | None) -> list[tuple[int, int]]:
    """The definition of P, written out."""
    ids = range(nodes) if members is None else sorted(members.tolist())
    public_pairs = set() if public is None else set(map(tuple, public.T.tolist()))
    return [pair for pair in itertools.combinations(ids, 2) if pair not in public_pairs]


DOMAINS = [
    (1, None, None),
    (2, None, None),
    (9, None, None),
    (9, None, PUBLIC),
    (9, MEMBERS, None),
    (9, MEMBERS, PUBLIC),
    (9, MEMBERS[:1], PUBLIC),
    (9, MEMBERS[:0], None),
    (3, None, pairs_of([(0, 1), (0, 2), (1, 2)])),
]


@pytest.mark.parametrize(("nodes", "members", "public"), DOMAINS)
def test_ranks_number_the_protected_pairs_in_order(nodes: int, members: Tensor | None, public: Tensor | None) -> None:
    domain, want = PairDomain(nodes, members, public), expected(nodes, members, public)
    assert domain.size == len(want)
    assert domain.unrank(torch.arange(domain.size)).T.tolist() == [list(pair) for pair in want]
    assert domain.rank(pairs_of(want)).tolist() == list(range(domain.size))
    order = torch.randperm(domain.size, generator=torch.Generator().manual_seed(0))
    assert torch.equal(domain.rank(domain.unrank(order)), order)
    for first, stop in itertools.combinations(range(domain.size + 1), 2):
        pairs = block_pairs(np.arange(first, stop), *domain.arrays)
        assert np.array_equal(pairs, np.array(want).T[:, first:stop]) and pairs.dtype == np.int64
    every = expected(nodes, members, None)
    assert domain.pairs(torch.arange(len(every))).T.tolist() == [list(pair) for pair in every]
    assert domain.position(pairs_of(every)).tolist() == list(range(len(every)))


def test_numbers_of_the_largest_domain_fit() -> None:
    nodes = 2**31 - 1
    lists = PairDomain(nodes, torch.tensor([0, nodes - 2, nodes - 1]))
    assert lists.pairs(torch.tensor([2])).tolist() == [[nodes - 2], [nodes - 1]]
    domain = PairDomain(1_000_000)
    last = torch.tensor([domain.size - 1, 0, 999_998, 999_999])
    assert domain.unrank(last).tolist() == [[999_998, 0, 0, 1], [999_999, 1, 999_999, 2]]
    assert torch.equal(domain.rank(domain.unrank(last)), last)


def test_a_graph_is_split_by_public_facts_into_its_domain_and_its_private_edges() -> None:
    links = pairs_of([(1, 4), (2, 7), (4, 7), (0, 3)])
    marks = torch.tensor([True, False, False, True])
    domain, private = protected_pairs(9, both(links), public_edges=torch.cat([marks, marks]), members=MEMBERS)
    assert private.T.tolist() == [[2, 7], [4, 7]] and domain.size == 9
    whole, every = protected_pairs(9, both(links))
    assert whole.size == 36 and every.T.tolist() == [[0, 3], [1, 4], [2, 7], [4, 7]]
    # The same domain without one of the private edges.
    mask, numbers = torch.tensor([True, False, True] * 2), torch.arange(9)
    without, _ = protected_pairs(9, both(links[:, [0, 1, 3]]), public_edges=mask, members=MEMBERS)
    assert without.size == 9 and torch.equal(without.unrank(numbers), domain.unrank(numbers))


@pytest.mark.parametrize(
    ("links", "match"),
    [
        ([(1, 2), (1, 3)], "column 1: a private edge ends outside the declared private nodes"),
        ([(2, 7), (1, 4)], "column 1: a private edge is a public edge too"),
        ([(4, 1)], "not a pair u < v"),
        ([(4, 4)], "not a pair u < v"),
        ([(4, 9)], "not a pair u < v"),
        ([(-1, 4)], "not a pair u < v"),
    ],
)
def test_private_edges_outside_the_domain_are_refused(links: list[tuple[int, int]], match: str) -> None:
    domain = PairDomain(9, MEMBERS, PUBLIC)
    for refuse in (domain.require, domain.rank):
        with pytest.raises(InputError, match=match):
            refuse(pairs_of(links))


def test_other_mistakes_are_refused() -> None:
    for members in (torch.tensor([1, 1]), torch.tensor([9]), torch.tensor([-1]), torch.tensor([0.5]), torch.ones(2, 2)):
        with pytest.raises(InputError, match="members"):
            PairDomain(9, members)
    with pytest.raises(InputError, match="public edges, column 0"):
        PairDomain(9, None, pairs_of([(4, 1)]))
    for shape in (torch.zeros(3, 2, dtype=torch.int64), torch.zeros(2, 2)):
        with pytest.raises(InputError, match="two rows"):
            PairDomain(9).require(shape)
    for numbers, wrong in itertools.product((PairDomain(9).pairs, PairDomain(9).unrank), (36, -1)):
        with pytest.raises(InputError, match="outside the domain"):
            numbers(torch.tensor([wrong]))
    whole = both(pairs_of([(0, 1)]))
    for edges, how, message in (
        (whole[:, :1], {}, "one direction only"),
        (whole, {"public_edges": torch.tensor([True, False])}, "both alike"),
        (whole, {"public_edges": torch.tensor([True])}, "for each edge column"),
        (whole, {"members": MEMBERS}, "outside the declared private nodes"),
    ):
        with pytest.raises(InputError, match=message):
            protected_pairs(9, edges, **how)
