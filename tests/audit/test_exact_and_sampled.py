"""Exact and sampled audits: shipped mechanisms pass, weakened ones are found, bounds are what theory says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from graphveil.audit import audit_sums, epsilon_bound, mu_bound, targets
from graphveil.audit.cases import Case, audit_exactly, audit_samples
from graphveil.audit.edge_cases import edge_cases
from graphveil.audit.feature_cases import feature_cases, permanent_cases
from graphveil.mechanisms import RandomizedResponse, catalogue
from graphveil.mechanisms.edges import bit_flips
from graphveil.mechanisms.labels import randomized_response as labels
from graphveil.mechanisms.samplers import bits
from graphveil.mechanisms.samplers.bits import BitLaw, bit_law
from graphveil.methods.curator import privacy as curator_privacy

CASES = {case.name: case for case in (*feature_cases(), *edge_cases())}


def test_every_mechanism_of_the_catalogue_is_audited() -> None:
    known = targets()
    for info in catalogue():
        assert known[info.name].mechanism, info.name


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "degree-preserving-rr" else []) for name in CASES]
)
def test_exact_audit_passes_the_mechanism_tightly_and_finds_half_the_noise(name: str) -> None:
    case = CASES[name]
    right, weak = audit_exactly(case), audit_exactly(case, actual=2 * case.epsilon)
    assert right.holds and right.false_alarm == 0.0
    assert right.lower_bound > 0.97 * right.claimed_epsilon
    assert not weak.holds and weak.lower_bound > 1.9 * weak.claimed_epsilon


@pytest.mark.parametrize("name", [name for name in CASES if name != "lap-graph"])
def test_sampled_audit_passes_the_mechanism_and_finds_half_the_noise(name: str) -> None:
    """False-alarm rate 1e-6 each, seed fixed."""
    case = replace(CASES[name], samples=min(CASES[name].samples, 40_000))
    right, weak = audit_samples(case), audit_samples(case, actual=2 * case.epsilon)
    assert right.holds and 0.4 * right.claimed_epsilon < right.lower_bound
    assert not weak.holds


@pytest.mark.slow
def test_sampled_audit_of_released_graphs_finds_a_third_of_the_noise() -> None:
    case = replace(CASES["lap-graph"], samples=1000)
    assert audit_samples(case).holds
    assert not audit_samples(case, actual=3 * case.epsilon).holds


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow if "multi-bit" in case.name else []) for case in permanent_cases()],
    ids=lambda case: case.name,
)
def test_permanent_reports_pass_and_half_the_noise_is_found(case: Case) -> None:
    """False-alarm rate 1e-6 each, seed fixed."""
    few = replace(case, samples=2500)  # 2.4 s: fewer prove nothing
    right, weak = audit_samples(few), audit_samples(few, actual=2 * case.epsilon)
    assert right.holds and 0.4 * right.claimed_epsilon < right.lower_bound
    assert not weak.holds


@pytest.mark.slow  # many runs
def test_flips_that_are_too_rare_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants in the code, not in the epsilon: half the flips of lists, and of labels."""
    monkeypatch.setattr(bit_flips, "bit_law", lambda epsilon, count: BitLaw(bit_law(epsilon, count).low // 2))
    monkeypatch.setattr(labels, "_class_width", lambda epsilon, classes: bits.WORD // 20)
    for name in ("adjacency-rr", "adjacency-rr, both ends", "randomized-response"):
        assert not audit_exactly(CASES[name]).holds
        assert not audit_samples(CASES[name]).holds


def test_a_sampler_that_does_not_follow_its_likelihood_is_found_by_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The likelihood still says epsilon 1, so enumeration sees nothing; the samples do."""
    real, weak = RandomizedResponse.randomize, RandomizedResponse(epsilon=1.5, classes=7)
    monkeypatch.setattr(RandomizedResponse, "randomize", lambda me, values, **rest: real(weak, values, **rest))
    case = CASES["randomized-response"]
    assert audit_exactly(case).holds
    assert not audit_samples(case).holds


@pytest.mark.parametrize("unit", ["edge", "directed-edge"])
def test_noisy_sums_pass(unit: str) -> None:
    found = audit_sums(unit)
    assert found.holds and found.lower_bound > 0.75


@pytest.mark.slow  # many runs
def test_relationships_of_one_person_pass_and_at_the_price_of_one_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of one person; a copy that charges for one entry, and one that charges for three edges' ends alone."""
    found = audit_sums("k-edges", relationships=3)
    assert found.holds and found.lower_bound > 0.75
    for reach in (1.0, math.sqrt(6.0)):
        monkeypatch.setattr(curator_privacy, "sensitivity_of", lambda *_, reach=reach, **__: reach)
        assert not audit_sums("k-edges", relationships=3).holds


@pytest.mark.slow  # many runs
def test_a_missing_root_two_is_found_in_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """An undirected edge priced as one entry of the adjacency; and the noise of a unit halved."""
    real = curator_privacy.CuratorPrivacy.noise

    def scaled(factor: float) -> None:
        def noise(me: object, *arguments: object, **named: object) -> object:
            found = real(me, *arguments, **named)  # type: ignore[arg-type]
            return replace(found, sigmas=tuple(sigma / factor for sigma in found.sigmas))

        monkeypatch.setattr(curator_privacy.CuratorPrivacy, "noise", noise)

    for factor in (math.sqrt(2), 2.0):
        scaled(factor)
        assert not audit_sums("edge").holds
        assert not audit_sums("directed-edge").holds


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
    one, other = rng.normal(1.0, 1.0, 50_000), rng.normal(0.0, 1.0, 50_000)
    assert 0.93 < mu_bound(one, other) < 1.0
    assert mu_bound(other, other) < 0.05
