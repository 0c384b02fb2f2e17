"""Entries made by one sort, against what SciPy makes of the same pairs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.aggregation import SparseMatrix, from_scipy, normalised
from graphveil.aggregation.entries import Entries
from graphveil.aggregation.propagation import Adjacency, Normalisation
from graphveil.errors import InputError

NODES = 3_000


def pairs(kind: str) -> Tensor:
    """Some 90,000 random pairs with loops and twins; those of "sorted" as a graph holds them."""
    edges = torch.randint(0, NODES, (2, 90_000), generator=torch.Generator().manual_seed(0))
    if kind == "directed":
        return edges
    both = torch.cat([edges, edges.flip(0)], dim=1)
    return torch.unique(both[:, both[0] != both[1]], dim=1) if kind == "sorted" else both


def weights_of(edges: Tensor) -> Tensor:
    """The same weight in either direction, some of them 0."""
    return ((edges.sum(0) * 7919) % 11).float() / 10


def by_scipy(edges: Tensor, kind: Normalisation, *, loops: bool, weights: Tensor | None) -> SparseMatrix:
    """P by products of SciPy's matrices, whose order of entries and bits are those of the formula from the left."""
    source, target = edges.numpy()
    keep = source != target
    values = np.ones(len(source), np.float32) if weights is None else weights.numpy()
    a = sp.csr_matrix((values[keep], (target[keep], source[keep])), shape=(NODES, NODES))
    if weights is None:
        a.data[:] = 1.0
    a.eliminate_zeros()
    if loops:
        a = a + sp.identity(NODES, dtype=np.float32, format="csr")
    received, sent = (np.asarray(a.sum(axis=axis)).ravel() for axis in (1, 0))
    with np.errstate(divide="ignore"):
        to, by = (np.where(d > 0, np.float32(1) / d, np.float32(0)) for d in (received, np.sqrt(sent)))
        if kind == "mean":
            return from_scipy(sp.diags_array(to) @ a)
        root = np.where(received > 0, np.float32(1) / np.sqrt(received), np.float32(0))
    return from_scipy(sp.diags_array(root) @ a @ sp.diags_array(by), symmetric=(a != a.T).nnz == 0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("normalisation", ["gcn", "mean"])
@pytest.mark.parametrize("kind", ["directed", "both", "sorted"])
def test_p_has_the_entries_the_order_and_the_bits_of_scipy(
    kind: str, normalisation: Normalisation, loops: bool, weighted: bool
) -> None:
    edges = pairs(kind)
    edges = torch.unique(edges, dim=1) if weighted else edges
    weights = weights_of(edges) if weighted else None
    found = normalised(edges, NODES, normalisation, self_loops=loops, weights=weights)
    expected = by_scipy(edges, normalisation, loops=loops, weights=weights)
    for mine, theirs in ((found.forward, expected.forward), (found.backward, expected.backward)):
        for part in ("starts", "indices", "values"):
            assert getattr(mine, part).dtype == getattr(theirs, part).dtype
            assert torch.equal(getattr(mine, part), getattr(theirs, part))
    assert (found.backward is found.forward) == (normalisation == "gcn" and kind != "directed")


def test_both_normalisations_are_made_of_one_adjacency() -> None:
    a = Adjacency.of(pairs("sorted"), NODES)
    gcn, mean = a.normalised("gcn"), a.normalised("mean")
    assert a.symmetric and gcn.forward.indices.data_ptr() == mean.backward.indices.data_ptr()


def test_weights_of_two_directions_that_differ_are_not_symmetric() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    assert Adjacency.of(edges, 2, weights=torch.tensor([0.5, 0.5])).symmetric
    assert not Adjacency.of(edges, 2, weights=torch.tensor([0.5, 0.25])).symmetric


def test_pairs_out_of_order_between_two_parts_are_sorted() -> None:
    """The check reads 65,536 pairs at once: what is wrong at the seam of two parts has to be seen."""
    rows = np.arange(1 << 17)
    rows[[(1 << 16) - 1, 1 << 16]] = rows[[1 << 16, (1 << 16) - 1]]
    assert np.array_equal(Entries.of(rows, rows, 1 << 17).columns, np.arange(1 << 17))
    twin = np.arange(1 << 17)
    twin[1 << 16] = twin[(1 << 16) - 1]
    assert len(Entries.of(twin, twin, 1 << 17).columns) == (1 << 17) - 1


def test_more_rows_than_32_bits_number_are_refused() -> None:
    none = np.zeros(0, np.int64)
    with pytest.raises(InputError, match=r"2147483648 rows; allowed: below 2\^31"):
        Entries.of(none, none, 2**31)
