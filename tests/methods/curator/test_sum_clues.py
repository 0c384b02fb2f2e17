"""What a reader is told of a publication: alike for every class, and worth reading."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from graphveil.methods.curator.feature_evidence import FeatureEvidence, feature_evidence
from graphveil.methods.curator.messages import corners
from graphveil.methods.curator.sum_clues import COMMON, MOST, OWN, discriminant, sum_clues
from graphveil.methods.curator.training import NodeData, read_people
from tests.methods import curator_made as cm


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def people() -> NodeData:
    start = cm.graph()
    return read_people(start, cm.split_of(start))


def test_classes_renamed_are_clues_renamed(people: NodeData) -> None:
    evidence, sums = feature_evidence(people, corners(people.classes)), 4 * drawn(people.nodes, people.classes)
    order = torch.tensor([2, 0, 1])
    place = torch.argsort(order)
    other = replace(people, labels=torch.where(people.labels < 0, -1, place[people.labels.clamp_min(0)]))
    renamed = FeatureEvidence(evidence.log_probabilities[:, order], evidence.explained)
    own, common = sum_clues(people, evidence, sums, 2.0)
    own2, common2 = sum_clues(other, renamed, sums[:, order], 2.0)
    assert torch.allclose(own2, own[:, order], atol=1e-4)
    assert torch.allclose(common2, common, atol=1e-4)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e6])
def test_clues_are_bounded_numbers_whatever_the_sums(people: NodeData, scale: float) -> None:
    evidence = feature_evidence(people, corners(people.classes))
    own, common = sum_clues(people, evidence, scale * drawn(people.nodes, people.classes), scale)
    assert own.shape == (people.nodes, people.classes, OWN)
    assert common.shape == (people.nodes, COMMON)
    for clues in (own, common):
        assert bool(clues.isfinite().all())
        assert float(clues.abs().max()) <= MOST


def test_likeness_is_the_log_ratio_of_normal_laws_up_to_a_constant() -> None:
    """Two classes at -1 and 1 on one axis, spread 1: the log ratio is 2 x, whichever nodes trained."""
    n = 40_000
    labels = torch.arange(n) % 2
    sums = drawn(n, 2)
    sums[:, 0] += 2.0 * labels - 1
    found = discriminant(sums, labels, torch.arange(n), 1.0)
    ratio = found[:, 1] - found[:, 0]
    assert torch.allclose(ratio, 2 * sums[:, 0], atol=0.25)
