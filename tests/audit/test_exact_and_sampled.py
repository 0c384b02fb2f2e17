"""Exact and sampled audits: shipped mechanisms pass, weakened ones are found, bounds are what theory says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from graphveil.audit import audit_sums, epsilon_bound, mu_bound, targets
from graphveil.audit.cases import Case, audit_exactly, audit_samples, feature_cases, permanent_cases
from graphveil.audit.edge_cases import edge_cases
from graphveil.mechanisms import RandomizedResponse, catalogue
from graphveil.methods.curator import privacy as curator_privacy

CASES = {case.name: case for case in (*feature_cases(), *edge_cases())}


def test_every_mechanism_of_the_catalogue_is_audited() -> None:
    audited = targets()
    for info in catalogue():
        assert audited[info.name].mechanism, info.name


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "degree-preserving-rr" else []) for name in CASES]
)
def test_exact_audit_passes_the_mechanism_tightly_and_finds_half_the_noise(name: str) -> None:
    case = CASES[name]
    right, weak = audit_exactly(case), audit_exactly(case, actual=2 * case.epsilon)
    assert right.holds and right.false_alarm == 0.0
    assert right.lower_bound > 0.97 * right.claimed_epsilon
    assert not weak.holds and weak.lower_bound > 1.9 * weak.claimed_epsilon


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.slow if case.name in ("lap-graph", "permanent-reports, multi-bit") else [])
        for case in (*CASES.values(), *permanent_cases())
    ],
    ids=lambda case: case.name,
)
def test_sampled_audit_passes_the_mechanism_and_finds_half_the_noise(case: Case) -> None:
    """False-alarm rate 1e-6 each, seed fixed; whole graphs that are released show a third of their noise."""
    graphs, devices = case.name == "lap-graph", "permanent" in case.name
    case = replace(case, samples=1000 if graphs else 2500 if devices else min(case.samples, 40_000))
    right, weak = audit_samples(case), audit_samples(case, actual=(3 if graphs else 2) * case.epsilon)
    assert right.holds and (graphs or 0.4 * right.claimed_epsilon < right.lower_bound)
    assert not weak.holds


def test_a_sampler_that_does_not_follow_its_likelihood_is_found_by_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The likelihood still says epsilon 1, so enumeration sees nothing; the samples do."""
    real, weak = RandomizedResponse.randomize, RandomizedResponse(epsilon=1.5, classes=7)
    monkeypatch.setattr(RandomizedResponse, "randomize", lambda me, values, **rest: real(weak, values, **rest))
    case = CASES["randomized-response"]
    assert audit_exactly(case).holds
    assert not audit_samples(case).holds


@pytest.mark.parametrize("unit", ["edge", "directed-edge", pytest.param("k-edges", marks=pytest.mark.slow)])
def test_noisy_sums_pass_and_at_a_lower_price_are_found(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three relationships of one person charged as one entry, or as three edges' ends alone; a root of 2 left out."""
    how = {"relationships": 3} if unit == "k-edges" else {}
    result = audit_sums(unit, **how)
    assert result.holds and result.lower_bound > 0.75
    real = curator_privacy.sensitivity_of
    for factor in (math.sqrt(12.0), math.sqrt(2.0)):
        monkeypatch.setattr(
            curator_privacy, "sensitivity_of", lambda *given, factor=factor, **rest: real(*given, **rest) / factor
        )
        assert not audit_sums(unit, **how).holds


# ---- the numbers ----


def test_false_alarms_are_as_rare_as_stated() -> None:
    """At a rate of 10%, 400 audits of randomized response at its true epsilon: at most 66 alarms (probability 1e-5)."""
    rng = np.random.default_rng(1)
    keep, alarms = math.e / (math.e + 1), 0
    for _ in range(400):
        first, second = rng.random(500) < keep, rng.random(500) >= keep
        alarms += epsilon_bound(first.astype(float), second.astype(float), 0.0, 0.1) > 1.0
    assert alarms <= 66


def test_mu_is_bounded_from_below_and_sharply() -> None:
    rng = np.random.default_rng(2)
    shifted, other = rng.normal(1.0, 1.0, 50_000), rng.normal(0.0, 1.0, 50_000)
    assert 0.93 < mu_bound(shifted, other) < 1.0
    assert mu_bound(other, other) < 0.05
