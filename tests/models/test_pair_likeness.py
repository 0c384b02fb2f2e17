"""How alike pairs are, against dense arithmetic."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch

from graphveil.models import NamedPairs
from graphveil.models.pair_likeness import QUANTILES, cosines, likeness, weighted_rows


def features(people: int = 200, columns: int = 30) -> sp.csr_matrix:
    drawn = np.random.default_rng(1).random((people, columns)) < 0.2
    drawn[3] = False
    drawn[11] = drawn[10]
    return sp.csr_matrix(drawn.astype(np.float32))


def test_cosines_are_those_of_weighted_rows() -> None:
    x = features().toarray()
    weights = 1 + np.log((1 + len(x)) / (1 + (x != 0).sum(axis=0)))
    rows = x * weights / np.maximum(np.linalg.norm(x * weights, axis=1, keepdims=True), 1e-12)
    source, target = torch.randint(200, (2, 40_000), generator=torch.Generator().manual_seed(1))
    found = cosines(weighted_rows(features()), source, target)
    assert np.allclose(found, (rows @ rows.T)[source, target], atol=1e-5)


def test_people_without_features_are_like_nobody_and_twins_like_each_other() -> None:
    ends = torch.tensor([[3, 10], [5, 11]])
    found = cosines(weighted_rows(features()), *ends)
    assert found[0] == 0.0
    assert abs(found[1] - 1) < 1e-5


def test_random_pairs_fill_the_classes_as_the_quantiles_say() -> None:
    named = NamedPairs(200, torch.tensor([3, 10]), torch.tensor([5, 11]), torch.zeros(2), 0.0, 1.0, False)
    found = likeness(features(), named, seed=1)
    shares = torch.bincount(found.drawn, minlength=found.bins).double() / len(found.drawn)
    stated = np.diff([0.0, *QUANTILES, 1.0])
    assert found.bins == len(QUANTILES) + 1
    assert np.allclose(shares, stated, atol=0.03)
    assert not (found.source == found.target).any()
    assert found.named.tolist() == [0, found.bins - 1]


def test_features_that_tell_nobody_apart_make_one_class_or_two() -> None:
    """All rows alike: every pair lies at the one quantile there is."""
    named = NamedPairs(50, torch.tensor([0]), torch.tensor([1]), torch.zeros(1), 0.0, 1.0, False)
    found = likeness(sp.csr_matrix(np.ones((50, 4), np.float32)), named, seed=1)
    assert len(torch.unique(torch.cat([found.drawn, found.named]))) <= 2
