"""How often an adversary may guess right: exact values, what reaches the bound, and what a weaker bound would miss."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import pytest
from scipy.special import ndtr

from graphveil.attacks.limits import Limit
from graphveil.mechanisms import RandomizedResponse
from graphveil.privacy import gaussian_delta
from graphveil.privacy.accounting.guessing import PRIOR, adversary, best_guess, right_guesses

Bound = Callable[[float, float], float]


def exact(epsilon: float, delta: float) -> Decimal:
    """(e^eps + delta) / (e^eps + 1), to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        grown = Decimal(epsilon).exp()
        return (grown + Decimal(delta)) / (grown + 1)


CASES = [(0.0, 0.0), (0.5, 1e-6), (1.0, 0.0), (1.0, 0.1), (4.0, 0.0), (20.0, 0.3)]


def test_the_bound_is_the_formula_and_the_limit_of_attacks() -> None:
    for epsilon, delta in CASES:
        assert abs(Decimal(best_guess(epsilon, delta)) - exact(epsilon, delta)) < Decimal("1e-15")
        advantage = Limit(epsilon, delta, "").advantage
        assert advantage is not None and (1 + advantage) / 2 == best_guess(epsilon, delta)


def test_known_values() -> None:
    assert best_guess(0.0, 0.0) == 0.5 and best_guess(math.inf, 0.0) == 1.0 and best_guess(1.0, 1.0) == 1.0
    assert best_guess(math.log(3), 0.0) == pytest.approx(0.75, abs=1e-15)
    guesses = [right_guesses(epsilon, 0.0) for epsilon in (0.0, 0.1, 1.0, 2.0, 4.0)]
    assert guesses == [(right, 100) for right in (51, 53, 74, 89, 99)]
    assert right_guesses(5.0, 0.0) == (994, 1000) and right_guesses(40.0, 0.0) is None


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.01])
def test_what_is_printed_is_never_less_than_the_bound_and_one_guess_more_at_most(delta: float) -> None:
    for epsilon in (step / 7 for step in range(80)):
        guesses = right_guesses(epsilon, delta)
        assert guesses is not None
        share = exact(epsilon, delta) * guesses[1]
        assert share <= guesses[0] <= share + 1


def response(epsilon: float) -> float:
    """The share of right guesses of who believes randomized response between two values, from its own integers."""
    mechanism = RandomizedResponse(epsilon=epsilon, classes=2)
    return float(mechanism.keep)


def likelihood_test(sigma: float) -> float:
    """The share of right guesses of the best test on normal noise and a change of 1."""
    return float(ndtr(1 / (2 * sigma)))


def covers(bound: Bound) -> bool:
    """Whether no adversary of two whose success is known exactly does better than a bound."""
    local = all(response(epsilon) <= bound(epsilon, 0.0) + 1e-9 for epsilon in (0.3, 1.0, 3.0))
    pairs = [(sigma, epsilon) for sigma in (0.5, 1.0, 2.0) for epsilon in (0.05, 0.3, 1.0, 2.0)]
    return local and all(likelihood_test(s) <= bound(e, gaussian_delta(s, e)) + 1e-9 for s, e in pairs)


def test_no_adversary_does_better_one_does_as_well_and_weaker_bounds_are_refused() -> None:
    """Half of epsilon, or no delta, is a bound that somebody exceeds."""
    assert covers(best_guess)
    assert response(1.0) == pytest.approx(best_guess(1.0, 0.0), abs=1e-6)
    assert not covers(lambda epsilon, delta: best_guess(epsilon / 2, delta))
    assert not covers(lambda epsilon, delta: best_guess(epsilon, 0.0))


def test_the_sentence_names_the_unit_the_number_and_the_prior() -> None:
    guarantee = RandomizedResponse(epsilon=1.0, classes=3).guarantee
    assert adversary(guarantee) == (
        f"of 100 guesses about {guarantee.unit.text} at most 74 are right on average, where {PRIOR}"
    )
