"""Whole people rebuilt from what a method shows of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.attacks import AttackResult, reconstruction
from graphveil.attacks.feature_reconstruction import shows_features
from graphveil.attacks.inversion import Shown, inverted
from graphveil.attacks.likeness import likeness
from graphveil.errors import InputError
from graphveil.graphs import digits_graph, random_split
from graphveil.methods import LPGNN, HeteroRR
from graphveil.methods.registry import build_method
from graphveil.privacy import SeededRandomness
from tests.attacks import made

SPLIT = random_split(made.graph(), 0)


class Copies:
    """Answers with the features themselves."""

    def predict_proba(self, graph: Any) -> Tensor:
        x = graph.x.to_dense() + 0.05
        return x / x.sum(dim=1, keepdim=True)


def fitted(name: str, **settings: Any) -> Any:
    return build_method(name, settings, 3, seed=0).fit(made.graph(), split=SPLIT, randomness=SeededRandomness(0))


@pytest.mark.slow  # attacks on trained networks
def test_answers_that_contain_the_features_are_inverted() -> None:
    found = reconstruction(Copies(), made.graph())
    assert found.auc.low > 0.9 and found.auc.low > (found.baseline or 1.0)
    assert found.figures["mean squared error"] < 0.6 * found.figures["mean squared error of the class mean"]


@pytest.mark.slow  # attacks on trained networks
def test_a_constant_shows_nothing() -> None:
    """Of five adversaries at most two may have an interval that misses 0.5: a false alarm of 0.2%."""

    def misses(several: int, **how: Any) -> int:
        aucs = [reconstruction(made.Constant(), made.graph(), seed=seed, **how).auc for seed in range(several)]
        return sum(not auc.low <= 0.5 <= auc.high for auc in aucs)

    assert misses(5) <= 2
    assert misses(1, noiseless=True) == 1


def test_a_noisy_report_stays_within_its_epsilon_and_a_copy_does_not() -> None:
    method = fitted("lpgnn", epsilon_x=1.0, epsilon_y=1.0, epochs=3)
    found = reconstruction(method, made.graph(), randomness=SeededRandomness(4))
    assert found.epsilon == pytest.approx(1.0) and found.limit == pytest.approx(0.01 * np.e)
    assert not found.beats_limit and found.baseline == 0.5 and "report" in found.target
    with pytest.raises(InputError, match="randomness"):
        reconstruction(method, made.graph())
    copied = reconstruction(method, made.graph(), noiseless=True)  # the same promise, and no noise
    assert copied.auc.mean == 1.0 and copied.beats_limit


def test_noise_that_is_too_small_for_its_claim_is_found_out() -> None:
    """A twin that claims epsilon 0.1 and adds the noise of epsilon 200."""
    said = LPGNN(epsilon_x=0.1, epsilon_y=1.0).privacy.guarantee(made.graph().schema)

    class Lies:
        privacy = LPGNN(epsilon_x=200.0, epsilon_y=1.0, mechanism="laplace").privacy
        guarantee = said

    found = reconstruction(Lies(), made.graph(), randomness=SeededRandomness(4))
    assert found.epsilon == pytest.approx(0.1) and found.beats_limit


def test_a_release_shows_its_features_and_needs_the_truth() -> None:
    method = HeteroRR(epsilon_x=1.0, epsilon_a=2.0, epochs=3)
    served = method.release(made.graph(), randomness=SeededRandomness(1))
    plain = LPGNN(epsilon_x=float("inf"), epsilon_y=float("inf"), epochs=3, steps_x=2)
    plain.fit(served, split=SPLIT, randomness=SeededRandomness(0))
    found = reconstruction(plain, made.graph(), served=served)
    assert found.epsilon == pytest.approx(1.0) and "published" in found.target and not found.beats_limit
    assert shows_features(plain, served) and not shows_features(plain, made.graph())
    with pytest.raises(InputError, match="--truth"):
        reconstruction(plain, served)
    open_features = HeteroRR(epsilon_x=float("inf"), epsilon_a=2.0, epochs=3)
    assert reconstruction(open_features.fit(made.graph(), randomness=SeededRandomness(1)), made.graph()).auc.mean == 1


def test_the_adversary_never_knew_whom_it_attacks_and_repeats_itself() -> None:
    mask = np.arange(300) % 3 == 0
    shown = made.graph().x.to_dense().numpy()[:, :5]
    one, other = (reconstruction(made.Constant(), made.graph(), shown=shown, known=mask) for _ in range(2))
    assert one == other and one.positives <= 200 and "100 nodes" in one.notes[0] and "200 others" in one.notes[0]


@pytest.mark.slow
def test_digits_leave_pictures_and_no_numbers_of_them() -> None:
    graph = digits_graph()
    shown = graph.x.numpy() @ np.random.default_rng(0).standard_normal((32, 8))
    found = reconstruction(made.Constant(), graph, shown=shown)
    assert found.auc.low > 0.8 and found.figures["structural similarity"] > 0.7
    samples = found.samples
    assert samples is not None and samples.classes == tuple("0123456789")
    assert samples.original.shape == samples.reconstructed.shape == (10, 8, 8)
    text = json.dumps(found.to_dict())
    assert "samples" not in text and AttackResult.from_dict(json.loads(text)) == found
    assert reconstruction(made.Constant(), made.graph()).samples is None


def test_an_exact_copy_comes_back_exactly() -> None:
    truth = np.random.default_rng(0).random((40, 3))
    known = np.arange(40) < 20
    moved = truth - 7.0  # as a release may move all of them
    assert np.allclose(inverted(Shown(moved, moved), known, truth[known], seed=0), truth)


def test_refusals() -> None:
    flat = made.graph().clone()
    flat.x = torch.zeros(300, 100)
    n, method = 300, made.Constant()
    for graph, settings, said in (
        (flat, {}, "no features"),
        (made.graph(), {"known": 1.0}, "share"),
        (made.graph(), {"known": 0.01}, "10 of each"),
        (made.graph(), {"known": np.ones(n)}, "mask"),
        (made.graph(), {"shown": np.ones((3, 2))}, "one for each node"),
    ):
        with pytest.raises(InputError, match=said):
            reconstruction(method, graph, **settings)


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
