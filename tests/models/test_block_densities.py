"""Densities between classes: those counted where nothing is hidden, and hardly moved by labels that are forged."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from graphveil.mechanisms import AdjacencyRR
from graphveil.methods.links.collection import pairs_of
from graphveil.models import NamedPairs
from graphveil.models.block_densities import block_densities
from graphveil.models.list_sums import unbiased_labels
from graphveil.privacy import SeededRandomness

PEOPLE, CLASSES, WITHIN, BETWEEN = 420, 7, 0.12, 0.006
KEEP, FLIP = 0.55, 0.075


def made() -> tuple[Tensor, Tensor]:
    """Links and classes of a planted partition."""
    generator = torch.Generator().manual_seed(3)
    classes = torch.arange(PEOPLE) % CLASSES
    chance = torch.where(classes[:, None] == classes, WITHIN, BETWEEN)
    drawn = torch.triu(torch.rand(PEOPLE, PEOPLE, generator=generator) < chance, diagonal=1)
    return (drawn | drawn.T).nonzero().T, classes


def reported(edges: Tensor, epsilon: float, seed: int) -> NamedPairs:
    mechanism = AdjacencyRR(epsilon=epsilon, nodes=PEOPLE, mode="both")
    return pairs_of(mechanism, mechanism.randomize(edges, randomness=SeededRandomness(seed)))


def forged(labels: Tensor, share: float = 0.05) -> Tensor:
    """The same labels, but that some name the first class."""
    return torch.where(torch.arange(PEOPLE) < share * PEOPLE, 0, labels)


def densities(pairs: NamedPairs, labels: Tensor, blocks: str, keep: float = 1.0, flip: float = 0.0) -> Tensor:
    everybody, alike = torch.ones(PEOPLE, dtype=torch.bool), torch.ones(PEOPLE, dtype=torch.float64)
    return block_densities(pairs, unbiased_labels(labels, everybody, CLASSES, keep, flip), alike, alike, blocks)


def test_where_nothing_is_hidden_densities_are_those_counted() -> None:
    edges, classes = made()
    pairs = reported(edges, 30.0, 1)
    same = classes[edges[0]] == classes[edges[1]]
    size = PEOPLE // CLASSES
    within = float(same.sum()) / (CLASSES * size * (size - 1))
    between = float((~same).sum()) / (PEOPLE * (PEOPLE - size))
    found = densities(pairs, classes, "planted")
    assert found.diag().tolist() == pytest.approx([within] * CLASSES, rel=1e-3)
    assert found[0, 1:].tolist() == pytest.approx([between] * (CLASSES - 1), rel=1e-3)
    counted = torch.zeros(CLASSES, CLASSES).double().index_put_(tuple(classes[edges]), torch.ones(1).double(), True)
    pairs_of_classes = torch.full_like(counted, size * size) - size * torch.eye(CLASSES)
    full = densities(pairs, classes, "full")
    assert torch.allclose(full, counted / pairs_of_classes, rtol=0.02)


def test_a_twentieth_of_forged_labels_moves_no_planted_density_by_a_third() -> None:
    """Neither lists nor labels are noisy here, so that nothing is left to chance."""
    edges, classes = made()
    pairs = reported(edges, 30.0, 1)
    moved = {
        blocks: float((densities(pairs, forged(classes), blocks) / densities(pairs, classes, blocks) - 1).abs().max())
        for blocks in ("full", "planted")
    }
    assert moved["planted"] < 1 / 3 < 2 / 3 < moved["full"]
