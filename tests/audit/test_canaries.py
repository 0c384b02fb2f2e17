"""One-run audits: the bound is the published one, shipped methods pass, gross leaks are found."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from scipy import stats

from graphveil.aggregation import CountedSum, PerturbedSum
from graphveil.audit import audit_edge_canaries, audit_people_canaries, one_run_bound, run_audits, targets
from graphveil.audit.canaries import EDGE_CANARIES, chance_of_guesses, right_guesses
from graphveil.audit.catalogue import GROUPS
from graphveil.audit.pipelines import PIPELINES
from graphveil.audit.tree_cases import tree_cases
from graphveil.errors import InputError
from graphveil.mechanisms import EdgeRand, RandomizedResponse
from graphveil.mechanisms.labels import randomized_response as labels
from graphveil.methods import METHODS
from graphveil.methods.release.entries import CHAINS, EDGE_METHODS
from graphveil.runtime.progress import Progress

EDGES = {name: replay.settings for name, replay in PIPELINES.items() if replay.changes == "private edge"}


def test_the_largest_bounds_are_the_known_ones() -> None:
    """With 100, 1,000 and 5,000 guesses, all right, at a false-alarm rate of 5%."""
    for many, largest in ((100, 3.49), (1000, 5.81), (5000, 7.42)):
        assert one_run_bound(many, many, many, 0.0, 0.05) == pytest.approx(largest, abs=0.005)


def test_the_bound_without_delta_is_a_binomial_test_and_with_it_is_lower() -> None:
    epsilon = one_run_bound(750, 1000, 1000, 0.0, 0.01)
    assert stats.binom(1000, 1 / (1 + math.exp(-epsilon))).sf(749) == pytest.approx(0.01, rel=1e-6)
    assert one_run_bound(500, 1000, 1000, 0.0) == 0.0
    assert one_run_bound(0, 10, 10, 1e-5) == 0.0
    bounds = [one_run_bound(450, 500, 1000, delta) for delta in (0.0, 1e-5, 1e-4, 1e-3)]
    assert bounds == sorted(bounds, reverse=True) and bounds[-1] < bounds[0], "delta weakens a bound"
    with pytest.raises(InputError, match="guesses"):
        chance_of_guesses(11, 10, 1000, 1.0, 0.0)


def test_false_alarms_of_guesses_are_as_rare_as_stated() -> None:
    """1,000 runs of randomized response at its true epsilon, rate 10%: at most 142 alarms (probability 1e-5)."""
    rng = np.random.default_rng(3)
    truth = rng.random((1000, 200)) < 0.5
    sent = np.where(rng.random(truth.shape) < math.e / (1 + math.e), truth, ~truth)
    right = [right_guesses(s.astype(float), t, 200) for s, t in zip(sent, truth, strict=True)]
    within = {v: chance_of_guesses(v, 200, 200, 1.0, 0.0) <= 0.1 for v in set(right)}
    assert sum(within[v] for v in right) <= 142
    assert within[max(right)] == (one_run_bound(max(right), 200, 200, 0.0, 0.1) > 1.0)


@pytest.mark.slow  # many runs
@pytest.mark.parametrize("name", EDGE_CANARIES)
def test_shipped_methods_pass(name: str) -> None:
    result = audit_edge_canaries(name)
    assert result.holds, result.notes
    assert result.lower_bound > 0.2 or name in ("lap-graph", "edge-rr", "priv-hrg", "heterorr")


def test_people_pass_and_weak_label_reports_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    result = audit_people_canaries()
    assert result.holds and result.lower_bound > 1.2
    real, weak = RandomizedResponse.randomize, RandomizedResponse(epsilon=6.0, classes=2)
    monkeypatch.setattr(labels.RandomizedResponse, "randomize", lambda me, values, **rest: real(weak, values, **rest))
    assert not audit_people_canaries().holds


@pytest.mark.parametrize("name", ["gap", "progap", "class-sums"])
def test_almost_no_noise_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real, counts = PerturbedSum.noise_of, cast(property, CountedSum.noise).fget
    assert counts is not None
    monkeypatch.setattr(
        PerturbedSum,
        "noise_of",
        lambda me, hop, bits: real(replace(me, sigmas=tuple(sigma / 16 for sigma in me.sigmas)), hop, bits),
    )
    monkeypatch.setattr(CountedSum, "noise", property(lambda me: counts(replace(me, epsilon=16 * me.epsilon))))
    result = audit_edge_canaries(name)
    assert not result.holds and result.lower_bound > 3.0


def test_a_release_of_true_edges_beside_the_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EdgeRand, "randomize", lambda me, pairs, **rest: pairs)
    assert not audit_edge_canaries("edge-rand").holds


def test_every_method_and_release_is_a_target_or_promises_nothing() -> None:
    audited = targets()
    for name, info in METHODS.items():
        if info.trust == "none":
            with pytest.raises(InputError, match="promises nothing"):
                run_audits(name)
        else:
            assert audited[name].method, name


def test_every_way_to_make_edges_and_to_draw_trees_is_audited() -> None:
    replayed = {settings.get("edges", "public-tree" if name == "edge-rr" else name) for name, settings in EDGES.items()}
    assert set(EDGE_METHODS) <= replayed
    assert {tree.name.split(", ")[-1] for tree in tree_cases()} == set(CHAINS)


def test_a_target_runs_its_audits_and_an_unknown_one_is_refused() -> None:
    audited, events = targets(), []
    assert len(audited["edge-rand"].audits()) == len(audited["edge-rand"].audits("mechanisms")) + 2
    assert not audited["gap"].audits("mechanisms") and "mechanisms" in GROUPS
    results = run_audits("randomized-response", progress=events.append)
    assert [audit.verdict for audit in results] == ["holds", "holds"]
    assert events == [Progress(done, 2, "audit randomized-response") for done in (0, 1)]
    with pytest.raises(InputError, match="target"):
        run_audits("nothing")
    with pytest.raises(InputError, match="canary"):
        audit_edge_canaries("lpgnn")
