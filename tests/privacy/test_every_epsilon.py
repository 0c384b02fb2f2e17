"""Noise exists at every epsilon from 0.01 to 200: it costs at most that, hardly less, and 2% less of it costs more."""

from __future__ import annotations

import pytest

from graphveil.graphs import GraphSchema
from graphveil.methods import GAP
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.privacy import ChangedSamples, Descent, Hops, calibrate_pipeline, gaussian_epsilon, pipeline_epsilon
from graphveil.training.noisy_updates import PrivateSchedule

EPSILONS = (0.01, 0.05, 0.3, 1.0, 8.0, 50.0, 100.0, 200.0)
DELTA = 1e-5
SCHEMA = GraphSchema("made", 8, 0.0, 1.0, ("a", "b", "c"))
UNITS = ({"unit": "edge"}, {"unit": "directed-edge"}, {"unit": "k-edges", "relationships": 4}, {"unit": "node"})
#: In batches of everybody, whose price has a closed form; and in samples, whose price has none.
WHOLE = {
    "sums": [Hops(count=3, sensitivity=10.0)],
    "training": [Descent(steps=30, rate=1.0)],
    "both": [Hops(count=1), Descent(steps=30, rate=1.0)],
    "edges": [Hops(count=1), ChangedSamples(steps=30, rate=1.0, samples=2, name="weights")],
}
SAMPLED = {
    "training": [Descent(steps=4, rate=0.3)],
    "both": [Hops(count=1), Descent(steps=4, rate=0.3)],
    "edges": [ChangedSamples(steps=3, rate=0.5, samples=2)],
}


def require_tight(parts: list[Hops | Descent | ChangedSamples], epsilon: float) -> None:
    """Calibrate, and ask the accountant of the noise as it is and of 2% less."""
    noise = calibrate_pipeline(epsilon, DELTA, parts).noise
    less = {name: tuple(0.98 * sigma for sigma in sigmas) for name, sigmas in noise.items()}
    assert 0.9995 * epsilon <= pipeline_epsilon(parts, noise, DELTA) <= epsilon
    assert pipeline_epsilon(parts, less, DELTA) > epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_pipeline_without_samples_is_priced_tightly(epsilon: float) -> None:
    for parts in WHOLE.values():
        require_tight(parts, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_pipeline_of_samples_is_priced_tightly(epsilon: float) -> None:
    for parts in SAMPLED.values():
        require_tight(parts, epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit["unit"])
def test_a_curator_has_noise_that_can_be_drawn_and_is_charged_with_its_rounding(
    unit: dict[str, object], epsilon: float
) -> None:
    """Also where noise is so small that its ends show: they lie beyond all that one unit moves."""
    privacy = CuratorPrivacy(epsilon, DELTA, **unit)  # type: ignore[arg-type]
    trained = {"network": (Descent(steps=10, rate=1.0, name="network"), 1000)}
    noise = privacy.noise(SCHEMA, hops=2, trained=trained)
    assert 0.999 * epsilon < noise.epsilon <= epsilon
    sums = privacy.sums(SCHEMA, noise)
    sums.require_noise(weighted=False)
    assert (privacy.protects_nodes and noise.multipliers) or gaussian_epsilon(0.98 / sums.mu, DELTA) > epsilon
    for multiplier in noise.multipliers.values():
        schedule = PrivateSchedule(steps=10, rate=1.0, expected_batch=1.0, noise_multiplier=multiplier)
        assert schedule.noise.sigma >= multiplier * schedule.grid.cap
        assert schedule.price(epsilon, DELTA / 2, 1000)[1] < DELTA


@pytest.mark.slow  # losses of small noise take long tables
def test_a_large_epsilon_in_small_batches_has_noise() -> None:
    method = GAP(epsilon=100.0, unit="node", degree_bound=5, batch=10)
    assert 99.9 < method.planned_noise(SCHEMA, 120).epsilon <= 100.0
