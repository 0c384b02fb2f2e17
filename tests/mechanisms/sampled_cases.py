"""Exact checks of laws on sampled coordinates, from the very integers that decide their draws."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from graphveil.mechanisms.samplers.laws import Law

WORD = 2**64
Weights = Sequence[Sequence[int]]


def exceeds(epsilon: float, high: int, low: int) -> bool:
    """Whether high / low > e^epsilon, in 80 digits."""
    with localcontext() as context:
        context.prec = 80
        return Decimal(high) / Decimal(low) > Decimal(epsilon).exp()


def check_weights(weights: Weights, law: Law, words: int = WORD) -> None:
    """Exactly, of weights [position][level]: they sum to `words`, means are linear, second moments are as stated."""
    steps, moments, values = len(weights) - 1, law.second_moments(), [Fraction(float(v)) for v in law.values()]
    scale = max(value.denominator for value in values)
    whole = [int(value * scale) for value in values]
    for position, row in enumerate(weights):
        assert sum(row) == words
        mean = Fraction(sum(w * v for w, v in zip(row, whole, strict=True)), words * scale)
        second = Fraction(sum(w * v * v for w, v in zip(row, whole, strict=True)), words * scale**2)
        assert abs(mean - (Fraction(2 * position, steps) - 1)) <= Fraction(1, 2**50) * (1 + max(values))
        assert abs(float(second) - moments[position]) <= 1e-9 * max(moments)


def check_ratio(weights: Weights, epsilon: float) -> None:
    """The worst ratio over all levels and pairs of inputs is at most e^epsilon, exactly, and nearly that.

    Between positions likelihoods mix, so that the worst pair of inputs lies on two positions.
    """
    pairs = [(max(column), min(column)) for column in zip(*weights, strict=True) if max(column)]
    high, low = max(pairs, key=lambda pair: Fraction(*pair))
    assert low > 0
    assert not exceeds(min(epsilon, 50.0), high, low)
    assert epsilon > 20 or exceeds(epsilon * (1 - 1e-6), high, low)
