"""Structure statistics: against counting by hand, chance against drawing, and the curator's figures kept apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.methods.release.structure import (
    WEDGES,
    Structure,
    block_distance,
    degree_distance,
    overlap,
    preserved,
    structure_of,
)

NODES = 40


def drawn(seed: int, share: float = 0.3, nodes: int = NODES) -> Tensor:
    """A random graph with more triangles than chance: nodes near one another on a ring are joined more often."""
    generator = np.random.default_rng(seed)
    left, right = np.triu_indices(nodes, 1)
    near = np.minimum(right - left, nodes - (right - left)) < nodes // 6
    return torch.from_numpy(np.stack([left, right])[:, generator.random(len(left)) < share * np.where(near, 2, 0.3)])


def matrix(pairs: Tensor, nodes: int = NODES) -> np.ndarray:
    """The dense adjacency matrix."""
    full = np.zeros((nodes, nodes), dtype=np.int64)
    full[pairs[0], pairs[1]] = 1
    return full + full.T


def of(pairs: Tensor, **options: object) -> Structure:
    return structure_of(pairs, NODES, **options)  # type: ignore[arg-type]


def test_counts_are_those_of_the_dense_matrix() -> None:
    pairs = drawn(0)
    full = matrix(pairs)
    labels = torch.from_numpy(np.random.default_rng(1).integers(-1, 3, NODES))
    found = of(pairs, labels=labels, groups={"class": labels})
    assert found.edges == full.sum() // 2
    assert np.array_equal(found.degrees, np.sort(full.sum(axis=0)))
    known = [(u, v) for u, v in pairs.T.tolist() if labels[u] >= 0 and labels[v] >= 0]
    assert found.homophily == pytest.approx(np.mean([bool(labels[u] == labels[v]) for u, v in known]))
    for a, b in itertools.product(range(3), repeat=2):
        ours, theirs = labels.numpy() == a, labels.numpy() == b
        edges = full[ours][:, theirs].sum() // (2 if a == b else 1)
        possible = ours.sum() * (ours.sum() - 1) // 2 if a == b else ours.sum() * theirs.sum()
        assert found.blocks["class"][a, b] == edges
        assert found.pairs["class"][a, b] == possible
        assert found.densities("class")[a, b] == pytest.approx(edges / possible)


def test_clustering_is_the_share_of_closed_wedges() -> None:
    """Five standard errors: a false alarm in two million.  The mean of the local coefficients is another number."""
    star = torch.stack([torch.zeros(NODES - 1, dtype=torch.int64), torch.arange(1, NODES)])
    pairs = torch.unique(torch.cat([drawn(4), star], dim=1), dim=1)
    full = matrix(pairs)
    wedges = full.sum(axis=0) * (full.sum(axis=0) - 1)
    closed = np.diag(full @ full @ full)
    exact, other = closed.sum() / wedges.sum(), float((closed[wedges > 0] / wedges[wedges > 0]).mean())
    error = 5 * np.sqrt(exact * (1 - exact) / WEDGES)
    found = of(pairs).clustering
    assert found is not None
    assert abs(found - exact) < error
    assert abs(other - exact) > error


def test_distances_are_zero_to_oneself_and_whole_to_nothing_in_common() -> None:
    group = torch.arange(NODES) % 2
    inside = of(torch.tensor([[0, 2], [2, 4]]), groups={"side": group})
    across = of(torch.tensor([[0, 2], [1, 3]]), groups={"side": group})
    assert degree_distance(inside, inside) == 0 == block_distance(inside, inside, "side")
    assert block_distance(inside, across, "side") == 1
    assert degree_distance(inside, across) == pytest.approx(1 / NODES)  # one node of degree 2, three touched not four


@pytest.mark.parametrize("bad", [[[1], [1]], [[2], [1]], [[0], [NODES]], [[-1], [3]]])
def test_pairs_of_another_form_are_refused(bad: list[list[int]]) -> None:
    with pytest.raises(InputError, match="u < v"):
        of(torch.tensor(bad))


@pytest.mark.slow  # trainings
def test_chance_is_what_uniform_pairs_hit() -> None:
    """1,000 draws, five standard errors; half as many protected pairs would be a chance twice as large, and outside."""
    generator = np.random.default_rng(5)
    left, right = np.triu_indices(NODES, 1)
    everything = torch.from_numpy(np.stack([left, right]))
    true = everything[:, generator.permutation(len(left))[:120]]
    one = overlap(everything[:, :60], true, len(left))
    hits = np.array(
        [
            overlap(everything[:, np.sort(generator.permutation(len(left))[:60])], true, len(left)).common
            for _ in range(1_000)
        ]
    )
    error = 5 * hits.std() / np.sqrt(len(hits))
    assert abs(hits.mean() - one.chance) < error < abs(hits.mean() - 2 * one.chance)
    assert np.mean((hits >= one.low) & (hits <= one.high)) > 0.93
    with pytest.raises(InputError, match="at most the 50 protected"):
        overlap(everything[:, :60], true, 50)


def test_what_may_be_published_does_not_know_the_truth() -> None:
    labels = torch.arange(NODES) % 3
    everything = drawn(6)
    public, true, other = everything[:, ::3], everything[:, 1::3], everything[:, 2::3]
    synthetic = torch.tensor([[0, 1], [39, 38]])
    size = NODES * (NODES - 1) // 2 - public.shape[1]
    first, second = (
        preserved(NODES, public, synthetic, true=some, protected=size, labels=labels) for some in (true, other)
    )
    blind = preserved(NODES, public, synthetic, labels=labels)
    assert first.public() == second.public() == blind.public()
    assert first.curator() != second.curator()
    assert "not for release" in first.curator()["warning"]
    assert first.curator()["distance_of_synthetic_to_private_edges"]["blocks by class"] > 0
    with pytest.raises(InputError, match="true edges are not here"):
        blind.curator()
