"""How near reconstructed rows come: each measure by its definition, and guesses that know nothing."""

from __future__ import annotations

import numpy as np
import pytest

from graphveil.attacks.likeness import likeness


def test_an_exact_copy_is_alike_in_every_measure() -> None:
    truth = np.random.default_rng(0).random((6, 10))
    found = likeness(truth, truth, truth.mean(axis=1, keepdims=True).repeat(10, 1), truth.mean(axis=0), image=True)
    assert found["mean squared error"] == 0
    assert found["correlation"] == pytest.approx(1) and found["structural similarity"] == pytest.approx(1)
    assert found["correlation of the class mean"] == 0, "a constant row has no direction"
    assert found["mean squared error of the overall mean"] == pytest.approx(truth.var(axis=0).mean())


def test_measures_are_those_of_their_definitions() -> None:
    draw = np.random.default_rng(1)
    truth, guess = draw.random((5, 12)), draw.random((5, 12))
    found = likeness(guess, truth, guess, truth.mean(axis=0), image=True)
    by_numpy = [np.corrcoef(a, b)[0, 1] for a, b in zip(guess, truth, strict=True)]
    assert found["correlation"] == pytest.approx(np.mean(by_numpy))
    similar = []
    for a, b in zip(guess, truth, strict=True):
        (va, cov), (_, vb) = np.cov(a, b, bias=True)
        light = (2 * a.mean() * b.mean() + 1e-4) / (a.mean() ** 2 + b.mean() ** 2 + 1e-4)
        similar.append(light * (2 * cov + 9e-4) / (va + vb + 9e-4))
    assert found["structural similarity"] == pytest.approx(np.mean(similar))


def test_a_picture_that_is_turned_over_is_unlike_and_rows_of_features_are_no_picture() -> None:
    truth = np.random.default_rng(2).random((4, 9))
    found = likeness(1 - truth, truth, truth, truth.mean(axis=0), image=False)
    assert found["correlation"] == pytest.approx(-1)
    assert not any("similarity" in name for name in found)
