"""Features, and whole people, read off what a method shows of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.attacks import attribute, link_stealing, linkteller, reconstruction
from graphveil.attacks.feature_reconstruction import likeness, shows_features
from graphveil.attacks.inversion import inverted
from graphveil.attacks.result import AttackResult
from graphveil.attacks.service import labels_alone, with_features_of_others
from graphveil.errors import InputError
from graphveil.graphs import random_split
from graphveil.methods import LPGNN, HeteroRR, LabelPropagation
from graphveil.privacy import SeededRandomness
from tests.attacks import made

SPLIT = random_split(made.graph(), 0)


class Blurts:
    """Shows feature 2 in its confidence."""

    def predict_proba(self, graph: Any) -> Tensor:
        secret = graph.x.to_dense()[:, 2] * 0.2
        noise = torch.rand(len(secret), generator=torch.Generator().manual_seed(1)) * 0.1
        return torch.stack([0.4 + secret + noise, 0.3 - secret / 2 - noise, 0.3 - secret / 2], dim=1)


def test_the_planted_feature_is_found_and_another_is_not() -> None:
    result = attribute(Blurts(), made.graph(), column=2)
    assert result.auc.mean > 0.95 and result.auc.low > 0.8
    assert result.figures["variance explained beyond the mean"] > 0.5
    other = attribute(Blurts(), made.graph(), column=40)
    assert other.auc.low < 0.65


def test_a_constant_says_what_the_mean_says() -> None:
    for column in (2, None):
        result = attribute(made.Constant(), made.graph(), column=column)
        assert result.auc.low <= 0.5 <= result.auc.high
        assert abs(result.figures["variance explained beyond the mean"]) < 1e-9


def test_reported_features_have_a_limit() -> None:
    method = LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=5)
    method.fit(made.graph(), split=SPLIT, randomness=SeededRandomness(0))
    result = attribute(method, made.graph(), column=2)
    assert result.epsilon == pytest.approx(1.0) and result.limit is not None and not result.beats_limit


def test_refusals() -> None:
    with pytest.raises(InputError, match="column"):
        attribute(made.Constant(), made.graph(), column=100)
    with pytest.raises(InputError, match="known"):
        attribute(made.Constant(), made.graph(), known_share=1.0)
    with pytest.raises(InputError, match="one a node"):
        attribute(made.Constant(), made.graph(), observed=np.ones((3, 2)))
    flat = made.graph().clone()
    flat.x = torch.zeros(300, 100)
    with pytest.raises(InputError, match="same side"):
        attribute(made.Constant(), flat, column=1)


def test_what_friends_have_in_common_is_not_held_against_the_method() -> None:
    """Labels spread over the edges read no features, so they cannot break a promise about features."""
    method = LabelPropagation(epsilon_y=math.inf)
    method.fit(made.graph(), split=SPLIT, randomness=SeededRandomness(0))
    result = attribute(method, made.graph(), split=SPLIT)
    assert result.auc.low > 0.5 and result.baseline == pytest.approx(result.auc.mean)
    assert not result.beats_limit


def test_what_noise_shows_of_the_structure_is_not_held_against_the_method() -> None:
    """Rows that are the same after features were dealt out anew have nothing of one's own features in them."""
    graph = made.graph()
    x, dealt_x = (people.x.to_dense() for people in (graph, with_features_of_others(graph, 0)))
    assert not torch.equal(x, dealt_x) and torch.equal(x.sum(dim=0), dealt_x.sum(dim=0))
    rows = x.numpy()[:, :40] + 0.5
    result = attribute(made.Constant(), graph, observed=rows, dealt=[rows] * 3)
    assert result.auc.mean > 0.6 and result.baseline == pytest.approx(result.auc.mean, abs=0.02)
    assert result.baseline_note == "the same method with other people's features"
    assert result.baseline_high is not None and result.baseline_high == pytest.approx(result.baseline, abs=0.02)
    dealt = [with_features_of_others(graph, seed).x.to_dense().numpy()[:, :40] + 0.5 for seed in range(6)]
    leak = attribute(made.Constant(), graph, observed=rows, dealt=dealt)
    assert leak.baseline_high is not None and leak.baseline_high < leak.auc.low
    assert AttackResult.from_dict(leak.to_dict()) == leak


def test_a_baseline_is_as_strong_where_edges_are_declared_private() -> None:
    private = made.graph().clone()
    private.schema = replace(private.schema, private=("features", "labels", "edges"))
    alone = labels_alone(made.graph(), None, 0)
    assert alone.shape[1] > 1 and np.array_equal(labels_alone(private, None, 0), alone)


# ---- whole people rebuilt from what a method shows of them ----


class Copies:
    """Answers with the features themselves."""

    def predict_proba(self, graph: Any) -> Tensor:
        x = graph.x.to_dense() + 0.05
        return x / x.sum(dim=1, keepdim=True)


@pytest.mark.slow  # attacks on trained networks
def test_answers_that_contain_the_features_are_inverted() -> None:
    result = reconstruction(Copies(), made.graph())
    assert result.auc.low > 0.9 and result.auc.low > (result.baseline or 1.0)
    assert result.figures["mean squared error"] < 0.6 * result.figures["mean squared error of the class mean"]


def test_a_noisy_report_stays_within_its_epsilon_and_a_copy_does_not() -> None:
    method = LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=3)
    method.fit(made.graph(), split=SPLIT, randomness=SeededRandomness(0))
    result = reconstruction(method, made.graph(), randomness=SeededRandomness(4))
    assert result.epsilon == pytest.approx(1.0) and result.limit == pytest.approx(0.01 * np.e)
    assert not result.beats_limit and result.baseline == 0.5 and "report" in result.target
    with pytest.raises(InputError, match="randomness"):
        reconstruction(method, made.graph())
    copied = reconstruction(method, made.graph(), noiseless=True)  # the same promise, and no noise
    assert copied.auc.mean == 1.0 and copied.beats_limit


def test_noise_that_is_too_small_for_its_claim_is_found_out() -> None:
    """A twin that claims epsilon 0.1 and adds the noise of epsilon 200."""
    claim = LPGNN(epsilon_x=0.1, epsilon_y=1.0).privacy.guarantee(made.graph().schema)

    class Lies:
        privacy = LPGNN(epsilon_x=200.0, epsilon_y=1.0, mechanism="laplace").privacy
        guarantee = claim

    result = reconstruction(Lies(), made.graph(), randomness=SeededRandomness(4))
    assert result.epsilon == pytest.approx(0.1) and result.beats_limit


def test_a_release_shows_its_features_and_needs_the_truth() -> None:
    method = HeteroRR(epsilon_x=1.0, epsilon_a=2.0, epochs=3)
    served = method.release(made.graph(), randomness=SeededRandomness(1))
    plain = LPGNN(epsilon_x=float("inf"), epsilon_y=float("inf"), epochs=3, steps_x=2)
    plain.fit(served, split=SPLIT, randomness=SeededRandomness(0))
    result = reconstruction(plain, made.graph(), served=served)
    assert result.epsilon == pytest.approx(1.0) and "published" in result.target and not result.beats_limit
    assert shows_features(plain, served) and not shows_features(plain, made.graph())
    attacks: tuple[Any, ...] = (reconstruction, attribute, linkteller, link_stealing)
    for attempt in attacks:  # what a release lists is public: to find it is no leak
        with pytest.raises(InputError, match="--truth"):
            attempt(plain, served)
    open_features = HeteroRR(epsilon_x=float("inf"), epsilon_a=2.0, epochs=3)
    assert reconstruction(open_features.fit(made.graph(), randomness=SeededRandomness(1)), made.graph()).auc.mean == 1


def test_the_adversary_never_knew_whom_it_attacks_and_repeats_itself() -> None:
    mask = np.arange(300) % 3 == 0
    columns = made.graph().x.to_dense().numpy()[:, :5]
    first, other = (reconstruction(made.Constant(), made.graph(), observed=columns, auxiliary=mask) for _ in range(2))
    assert first == other and first.positives <= 200
    assert "100 nodes" in first.notes[0] and "200 others" in first.notes[0]


def test_an_exact_copy_comes_back_exactly() -> None:
    truth = np.random.default_rng(0).random((40, 3))
    public = np.arange(40) < 20
    moved = truth - 7.0  # as a release may move all of them
    assert np.allclose(inverted(moved, public, truth[public], seed=0, estimate=moved), truth)


def test_refusals_of_reconstruction() -> None:
    flat = made.graph().clone()
    flat.x = torch.zeros(300, 100)
    n, method = 300, made.Constant()
    for graph, settings, message in (
        (flat, {}, "no features"),
        (made.graph(), {"auxiliary": 1.0}, "auxiliary is"),
        (made.graph(), {"auxiliary": 0.01}, "10 of each"),
        (made.graph(), {"auxiliary": np.ones(n)}, "mask"),
        (made.graph(), {"observed": np.ones((3, 2))}, "one for each node"),
    ):
        with pytest.raises(InputError, match=message):
            reconstruction(method, graph, **settings)


def test_measures_are_those_of_their_definitions() -> None:
    draw = np.random.default_rng(1)
    truth, guess = draw.random((5, 12)), draw.random((5, 12))
    measures = likeness(guess, truth, guess, truth.mean(axis=0), image=True)
    by_numpy = [np.corrcoef(a, b)[0, 1] for a, b in zip(guess, truth, strict=True)]
    assert measures["correlation"] == pytest.approx(np.mean(by_numpy))
    similar = []
    for a, b in zip(guess, truth, strict=True):
        (va, cov), (_, vb) = np.cov(a, b, bias=True)
        light = (2 * a.mean() * b.mean() + 1e-4) / (a.mean() ** 2 + b.mean() ** 2 + 1e-4)
        similar.append(light * (2 * cov + 9e-4) / (va + vb + 9e-4))
    assert measures["structural similarity"] == pytest.approx(np.mean(similar))
