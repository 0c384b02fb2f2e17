"""Pipelines of hops and training: exact where it can be, one-sided always (checklist items 13 and 14)."""

from __future__ import annotations

import math
import random

import dp_accounting
import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from graphveil.errors import GraphveilError, InputError
from graphveil.privacy import (
    Descent,
    Hops,
    calibrate_pipeline,
    epsilon_of,
    gaussian_epsilon,
    pipeline_epsilon,
    pipeline_event,
)
from graphveil.privacy.accounting import budget_split as room
from graphveil.privacy.accounting.budget_split import least_factor

# (epsilon, delta, hops): sigma of every hop in units of the sensitivity, by the analytic curve.
PINNED_HOPS = {
    (1, 1e-05, 1): 3.73063,
    (1, 1e-05, 3): 6.46164,
    (8, 1e-05, 2): 0.84885,
    (1, 1e-07, 1): 4.67866,
    (2, 1e-07, 2): 3.46349,
    (8, 1e-07, 3): 1.21610,
}

# (epsilon, steps, rate, hops, sensitivity): sigma of the training and of a hop at delta 1e-5 with the default split.
PINNED_TRAINING = {
    (1, 40, 0.1, 1, 1.0): (4.9630, 5.1942),
    (4, 100, 0.02, 1, 5.0): (0.8693, 6.8100),
    (1, 100, 0.5, 3, 2.0): (37.3844, 18.2645),
}


def exact_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """Delta of a Gaussian release of `mu`, with 60 digits."""
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def training(steps: int, rate: float, hops: int, sensitivity: float) -> tuple[Descent, Hops, Descent]:
    return (
        Descent(steps=steps, rate=rate, name="encoder"),
        Hops(count=hops, sensitivity=sensitivity),
        Descent(steps=steps, rate=rate, name="classifier"),
    )


@pytest.mark.parametrize("setting", PINNED_HOPS, ids=str)
def test_noise_of_hops_is_pinned_and_least(setting: tuple[float, float, int]) -> None:
    epsilon, delta, hops = setting
    calibrated = calibrate_pipeline(epsilon, delta, [Hops(count=hops)])
    sigmas = calibrated.sigmas("hops")
    assert sigmas == pytest.approx([PINNED_HOPS[setting]] * hops, rel=2e-5)
    mu = math.sqrt(sum(sigma**-2 for sigma in sigmas))
    assert exact_delta(mu, epsilon) <= delta < exact_delta(mu * (1 + 1e-7), epsilon)
    assert calibrated.epsilon <= epsilon


@pytest.mark.slow
@pytest.mark.parametrize("setting", PINNED_TRAINING, ids=str)
def test_noise_of_training_is_pinned_and_bounded_from_both_sides(setting: tuple[float, int, float, int, float]) -> None:
    """Optimistic PLD <= PLD <= RDP on the calibrated pipeline, and no more than 0.02 % of epsilon is left over."""
    epsilon, steps, rate, hops, sensitivity = setting
    calibrated = calibrate_pipeline(epsilon, 1e-5, training(steps, rate, hops, sensitivity))
    encoder, hop = calibrated.sigmas("encoder")[0], calibrated.sigmas("hops")[0]
    assert (encoder, hop) == pytest.approx(PINNED_TRAINING[setting], rel=5e-4)
    assert calibrated.epsilon <= epsilon_of(calibrated.event, 1e-5, "rdp")
    assert epsilon * (1 - 2.1e-4) <= calibrated.epsilon <= epsilon
    if epsilon <= 2:  # the grid is large otherwise, and slow
        low = optimistic(steps, rate, encoder, hops, hop / sensitivity)
        assert 0.98 * calibrated.epsilon <= low <= calibrated.epsilon


def optimistic(steps: int, rate: float, sigma: float, hops: int, multiplier: float) -> float:
    """A lower bound on the epsilon of two trainings and `hops` hops: the grid rounded the other way."""
    options = {"pessimistic_estimate": False, "value_discretization_interval": 1e-4, "use_connect_dots": False}
    law = pld.from_gaussian_mechanism(sigma, sampling_prob=rate, **options).self_compose(2 * steps)
    return float(
        law.compose(pld.from_gaussian_mechanism(multiplier, **options).self_compose(hops)).get_epsilon_for_delta(1e-5)
    )


def test_sixty_targets_are_never_exceeded() -> None:
    draw = random.Random(4)
    for _ in range(60):
        epsilon, delta = 10 ** draw.uniform(-2, 1.3), 10 ** draw.uniform(-12, -3)
        hops = draw.randint(1, 6)
        sizes = tuple(draw.uniform(0.2, 5) for _ in range(hops))
        parts = [Hops(count=hops, sensitivity=draw.uniform(0.1, 30), sizes=sizes)]
        calibrated = calibrate_pipeline(epsilon, delta, parts)
        assert epsilon * (1 - 1e-9) <= calibrated.epsilon <= epsilon
        assert pipeline_epsilon(parts, calibrated.noise, delta) <= epsilon
        ratio = [sigma / size for sigma, size in zip(calibrated.sigmas("hops"), sizes, strict=True)]
        assert max(ratio) == pytest.approx(min(ratio), rel=1e-12)
        # Item 4: units scale the noise; an undirected edge needs sqrt(2).
        first = calibrate_pipeline(epsilon, delta, [Hops(count=hops, sizes=sizes)]).sigmas("hops")[0]
        assert calibrated.sigmas("hops")[0] == pytest.approx(first * parts[0].sensitivity, rel=1e-9)


def test_hops_agree_with_the_accountants() -> None:
    parts, noise = [Hops(count=3, sensitivity=1.5)], {"hops": (4.0, 5.0, 6.0)}
    exact = pipeline_epsilon(parts, noise, 1e-5)
    each = dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(sigma / 1.5) for sigma in noise["hops"]])
    assert exact <= epsilon_of(each, 1e-5) <= exact + 1e-3
    assert exact < pipeline_epsilon(parts, noise, 1e-5, accountant="rdp") == epsilon_of(each, 1e-5, "rdp")


def test_every_step_of_training_is_charged() -> None:
    step = dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(2.0))
    every = epsilon_of(dp_accounting.SelfComposedDpEvent(step, 10), 1e-5, "rdp")
    assert pipeline_epsilon([Descent(steps=10, rate=0.1)], {"training": (2.0,)}, 1e-5, accountant="rdp") == every


def test_descent_that_sees_everybody_is_a_stack_of_gaussians() -> None:
    parts = [Descent(steps=100, rate=1.0, sensitivity=2.0)]
    assert pipeline_epsilon(parts, {"training": (40.0,)}, 1e-5) == gaussian_epsilon(2.0, 1e-5)
    calibrated = calibrate_pipeline(1.0, 1e-5, parts)
    assert calibrated.sigmas("training")[0] == pytest.approx(3.73063 * 20, rel=1e-5)


def test_reserved_delta_is_not_spent_twice() -> None:
    plain = calibrate_pipeline(1.0, 1e-6, [Hops(count=1)])
    calibrated = calibrate_pipeline(1.0, 1e-5, [Hops(count=1)], reserved=9e-6)
    assert calibrated.sigmas("hops")[0] == pytest.approx(plain.sigmas("hops")[0], rel=1e-9)
    assert (calibrated.delta, calibrated.reserved) == (1e-5, 9e-6)


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"epsilon": 0.0}, "epsilon is 0.0"),
    ({"epsilon": math.nan}, "epsilon is nan"),
    ({"delta": 0.0}, "delta is 0.0"),
    ({"reserved": 1e-5}, "reserved is"),
    ({"reserved": -1e-9}, "reserved is"),
    ({"parts": []}, "parts named"),
    ({"parts": [Hops(count=1), Hops(count=2)]}, "parts named"),
    ({"split": {"other": 1.0}}, "the split names"),
    ({"split": {"hops": 0.0}}, "hops is 0.0"),
    ({"split": {"hops": math.nan}}, "hops is nan"),
]


def test_bad_requests_are_refused() -> None:
    for change, message in REFUSED:
        request: dict[str, object] = {"epsilon": 1.0, "delta": 1e-5, "parts": [Hops(count=1)], **change}
        with pytest.raises(InputError, match=message):
            calibrate_pipeline(**request)  # type: ignore[arg-type]


def test_noise_must_fit_the_parts() -> None:
    for sigma in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="sigma"):
            pipeline_epsilon([Hops(count=1)], {"hops": (sigma,)}, 1e-5)
    with pytest.raises(InputError, match="2 standard deviations"):
        pipeline_event([Hops(count=1)], {"hops": (1.0, 1.0)})
    with pytest.raises(InputError, match="noise for"):
        pipeline_event([Hops(count=1)], {})
    with pytest.raises(InputError, match="no part named"):
        calibrate_pipeline(1.0, 1e-5, [Hops(count=1)]).sigmas("other")


def test_bad_parts_are_refused() -> None:
    wrong: list[tuple[type[Hops] | type[Descent], dict[str, object]]] = [
        (Hops, {"count": 0}),
        (Hops, {"count": True}),
        (Hops, {"count": 2, "sizes": (1.0,)}),
        (Hops, {"count": 1, "sensitivity": math.nan}),
        (Hops, {"count": 1, "sizes": (0.0,)}),
        (Descent, {"steps": 0, "rate": 0.1}),
        *((Descent, {"steps": 1, "rate": rate}) for rate in (0.0, 1.5, math.nan)),
        (Descent, {"steps": 1, "rate": 0.1, "sensitivity": -1.0}),
    ]
    for kind, fields in wrong:
        with pytest.raises(InputError):
            kind(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("lie", [0.0, math.inf, math.nan, 1.5])
def test_a_broken_accountant_fails_closed(lie: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """GAP's calibration returned no noise when the accountant broke; ours returns nothing."""
    monkeypatch.setattr(room, "pipeline_epsilon", lambda *_, **__: lie)
    with pytest.raises(GraphveilError):
        calibrate_pipeline(1.0, 1.2345e-5, [Hops(count=1)])  # a delta of its own: answers are kept


def test_the_search_errs_to_the_private_side() -> None:
    for power in (0.3, 1.0, 2.5):
        for start in (1e-3, 1.0, 1e4):
            factor, price = least_factor(lambda x, power=power: x**-power, 0.5, start)
            assert price == factor**-power
            assert 0.5 * (1 - 3e-4) <= price <= 0.5
    with pytest.raises(InputError, match="no noise reaches"):
        least_factor(lambda x: 1.0 + 1 / x, 0.5, 1.0)
    # A start a little above the target is not good enough: the two-sided tolerance of others is.
    factor, price = least_factor(lambda x: 1 / x, 0.5, 2 / 1.0005)
    assert price == 1 / factor <= 0.5


def test_the_sensitivity_of_a_sampled_part_scales_its_noise() -> None:
    def price(sensitivity: float, sigma: float) -> float:
        part = Descent(steps=10, rate=0.1, sensitivity=sensitivity)
        return pipeline_epsilon([part], {"training": (sigma,)}, 1e-5, accountant="rdp")

    assert price(4.0, 8.0) == price(1.0, 2.0) < price(4.0, 2.0) / 2
