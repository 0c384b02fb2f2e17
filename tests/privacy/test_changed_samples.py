"""Descent in which the unit changes samples: a dominating pair, and a one-sided price (checklist items 14 and 15)."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from graphveil.errors import InputError
from graphveil.privacy import (
    ChangedSamples,
    Descent,
    Hops,
    calibrate_pipeline,
    gaussian_epsilon,
    pipeline_epsilon,
    pipeline_event,
)

# (epsilon, steps, rate, samples): sigma of training and of one hop at delta 1e-5, half of the budget each.
PINNED = {(1, 100, 0.1, 1): (10.5502, 5.2760), (8, 100, 0.05, 2): (1.7058, 1.1930)}


def density(x: np.ndarray, mean: np.ndarray, sigma: float) -> np.ndarray:
    """A normal density at points x [..., d]."""
    d = x.shape[-1]
    square = ((x - mean) ** 2).sum(axis=-1) / sigma**2
    return np.asarray(np.exp(-square / 2) / (sigma * math.sqrt(2 * math.pi)) ** d)


def mixture(x: np.ndarray, gradients: list[np.ndarray], rate: float, sigma: float) -> np.ndarray:
    """The law of a step's sum where each gradient is in the batch with probability `rate`."""
    total = np.zeros(x.shape[:-1])
    for coins in itertools.product((0, 1), repeat=len(gradients)):
        share = math.prod(rate if coin else 1 - rate for coin in coins)
        mean = sum((coin * g for coin, g in zip(coins, gradients, strict=True)), np.zeros(x.shape[-1]))
        total += share * density(x, mean, sigma)
    return total


def plane(step: float = 0.1, reach: float = 12.0) -> tuple[np.ndarray, float]:
    axis = np.arange(-reach, reach, step)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1), step**2


def a_gradient(source: random.Random) -> np.ndarray:
    angle, length = source.uniform(0, 2 * math.pi), source.choice([1.0, source.random()])
    return length * np.array([math.cos(angle), math.sin(angle)])


@pytest.mark.parametrize("samples", [1, 2])
def test_no_gradients_in_the_unit_disc_exceed_the_pair(samples: int) -> None:
    """Random clipped gradients before and after, at random rates and noise, for epsilons of both signs."""
    source = random.Random(samples)
    x, area = plane()
    for _ in range(8):
        rate, sigma = source.choice([0.05, 0.3, 0.8, 1.0]), source.choice([0.8, 1.0, 1.6])
        part = ChangedSamples(steps=1, rate=rate, samples=samples)
        before, after = ([a_gradient(source) for _ in range(samples)] for _ in range(2))
        p, q = (mixture(x, gradients, rate, sigma) for gradients in (before, after))
        for epsilon in (-1.0, -0.2, 0.0, 0.3, 1.0, 2.5):
            measured = float(np.maximum(0.0, p - math.exp(epsilon) * q).sum() * area)
            assert measured <= part.delta(epsilon, sigma) + 1e-6


@pytest.mark.parametrize(("samples", "rate", "sigma"), [(1, 0.1, 2.0), (2, 0.3, 1.2), (2, 1.0, 3.0)])
def test_opposite_gradients_reach_it(samples: int, rate: float, sigma: float) -> None:
    part = ChangedSamples(steps=1, rate=rate, samples=samples)
    x = np.linspace(-45, 45, 300_001)[:, None]
    p, q = (mixture(x, [np.array([sign])] * samples, rate, sigma) for sign in (1.0, -1.0))
    for epsilon in (-1.0, 0.0, 0.5, 2.0, 3.0):
        measured = float(np.maximum(0.0, p - math.exp(epsilon) * q).sum() * (x[1, 0] - x[0, 0]))
        assert part.delta(epsilon, sigma) == pytest.approx(measured, rel=1e-6)


def test_deltas_keep_their_digits_far_out_and_obey_symmetry() -> None:
    part = ChangedSamples(steps=1, rate=0.1, samples=2)
    deltas = [part.delta(epsilon, 2.0) for epsilon in np.linspace(0, 6, 61)]
    assert all(a >= b >= 0.0 for a, b in itertools.pairwise(deltas))
    for epsilon in (0.3, 1.0, 4.0):
        other = 1 - math.exp(-epsilon) + math.exp(-epsilon) * part.delta(epsilon, 2.0)
        assert part.delta(-epsilon, 2.0) == pytest.approx(other, rel=1e-12)


def optimistic_epsilon(part: ChangedSamples, sigma: float, delta: float, grid: float = 2e-4) -> float:
    """A lower bound: losses rounded down, composed by convolution."""
    reach = part.samples + 12 * sigma
    x = np.linspace(-reach, reach, 400_001)[:, None]
    shares = part.probabilities
    p = sum(share * density(x, np.array([k]), sigma) for k, share in enumerate(shares))
    q = sum(share * density(x, np.array([-k]), sigma) for k, share in enumerate(shares))
    mass, loss = p * (x[1, 0] - x[0, 0]), np.floor(np.log(p / q) / grid).astype(int)
    low = int(loss.min())
    size = 1 << math.ceil(math.log2(part.steps * (int(loss.max()) - low + 1)))
    whole = np.fft.irfft(np.fft.rfft(np.bincount(loss - low, mass, minlength=size)) ** part.steps, size)
    losses = (np.arange(size) + part.steps * low) * grid

    def delta_at(epsilon: float) -> float:
        over = losses > epsilon
        return float((whole[over] * -np.expm1(epsilon - losses[over])).sum())

    bottom, top = 0.0, 50.0
    for _ in range(50):
        middle = (bottom + top) / 2
        bottom, top = (middle, top) if delta_at(middle) > delta else (bottom, middle)
    return bottom


CASES = [(0.1, 4.0, 40, 2), (0.05, 3.0, 30, 1)]


@pytest.mark.slow  # searches for noise
@pytest.mark.parametrize(("rate", "sigma", "steps", "samples"), CASES)
def test_the_price_lies_between_an_optimistic_one_and_renyi(
    rate: float, sigma: float, steps: int, samples: int
) -> None:
    part = ChangedSamples(steps=steps, rate=rate, samples=samples)
    noise = {"training": (sigma,)}
    price = pipeline_epsilon([part], noise, 1e-5)
    lower = optimistic_epsilon(part, sigma, 1e-5)
    assert lower <= price <= lower + 0.02
    assert price <= pipeline_epsilon([part], noise, 1e-5, accountant="rdp")
    # A wrong price: an undirected edge as if it changed one target. The optimistic bound rejects it.
    if samples == 2:
        assert pipeline_epsilon([ChangedSamples(steps=steps, rate=rate, samples=1)], noise, 1e-5) < 0.8 * lower


def test_removal_alone_is_no_bound_for_a_replacement() -> None:
    """Accounting as if a sample of norm 1 came or went, as published, costs less than what is lost at the least."""
    part = ChangedSamples(steps=40, rate=0.1, samples=1)
    published = pipeline_epsilon([Descent(steps=40, rate=0.1)], {"training": (4.0,)}, 1e-5)
    assert published < 0.6 * optimistic_epsilon(part, 4.0, 1e-5)


@pytest.mark.parametrize("samples", [1, 2])
def test_without_sampling_it_is_a_gaussian_of_twice_the_norm(samples: int) -> None:
    part = ChangedSamples(steps=9, rate=1.0, samples=samples)
    assert part.exact
    assert pipeline_epsilon([part], {"training": (12.0,)}, 1e-6) == gaussian_epsilon(12.0, 1e-6, 2 * samples * 3)
    nearly = ChangedSamples(steps=9, rate=1 - 1e-12, samples=samples)
    price = gaussian_epsilon(12.0, 1e-6, 2 * samples * 3)
    assert pipeline_epsilon([nearly], {"training": (12.0,)}, 1e-6) == pytest.approx(price, rel=1e-4)


@pytest.mark.parametrize(
    ("key", "sigmas"),
    [pytest.param(*pinned, marks=[pytest.mark.slow] if pinned[0][0] == 8 else []) for pinned in PINNED.items()],
)
def test_calibration_is_pinned_and_one_sided(key: tuple[int, int, float, int], sigmas: tuple[float, float]) -> None:
    epsilon, steps, rate, samples = key
    parts = (Hops(count=1, sensitivity=math.sqrt(samples)), ChangedSamples(steps=steps, rate=rate, samples=samples))
    calibrated = calibrate_pipeline(epsilon, 1e-5, parts)
    assert (calibrated.sigmas("training")[0], calibrated.sigmas("hops")[0]) == pytest.approx(sigmas, rel=1e-3)
    assert epsilon * 0.999 <= calibrated.epsilon <= epsilon
    assert pipeline_epsilon(parts, calibrated.noise, 1e-5) <= epsilon
    less = {name: tuple(0.99 * sigma for sigma in sigmas) for name, sigmas in calibrated.noise.items()}
    assert pipeline_epsilon(parts, less, 1e-5) > epsilon


def test_what_cannot_be_priced_is_refused() -> None:
    part = ChangedSamples(steps=3, rate=0.5, samples=1)
    with pytest.raises(InputError, match="changed samples have no single event"):
        pipeline_event([part], {"training": (1.0,)})
    both = [part, Descent(steps=3, rate=0.5, name="other")]
    with pytest.raises(InputError, match="protect different units"):
        pipeline_epsilon(both, {"training": (1.0,), "other": (1.0,)}, 1e-5)
    with pytest.raises(InputError, match=r"delta is 1\.5"):
        pipeline_epsilon([part], {"training": (1.0,)}, 1.5)
    wrong: list[tuple[dict[str, float], str]] = [
        ({"samples": 3}, "samples is 3"),
        ({"samples": 0}, "samples is 0"),
        ({"steps": 0}, "steps is 0"),
        ({"rate": 0.0}, r"rate is 0\.0"),
        ({"rate": math.nan}, "rate is nan"),
    ]
    for changed, what in wrong:
        with pytest.raises(InputError, match=what):
            ChangedSamples(**{"steps": 3, "rate": 0.5, "samples": 1, **changed})
