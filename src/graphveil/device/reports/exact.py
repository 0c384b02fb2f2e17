"""Whether integers keep an epsilon: exact, in whole numbers, the same in every language.

e^x  >=  sum of x^k / k!, k = 0 .. K        (all terms are positive, so the sum is a lower bound)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

#: 2^64, the number of words; 2^256 for a digit of a degree.
WORD, DIGIT = 1 << 64, 1 << 256
#: The largest epsilon that thresholds of 64 bits can represent: e^44 < 2^64.
LARGEST = 44
_TERMS = 320


@lru_cache(maxsize=64)
def least_exp(numerator: int, denominator: int) -> tuple[int, int]:
    """Return a fraction (a, b) with a / b <= e^(numerator / denominator), short of it by less than 1 part in 2^200.

    Args:
        numerator: of the exponent, which is at most 44.
        denominator: of it, above 0.
    """
    # Horner from the last term, over one denominator: whole numbers alone.
    above, below = 1, 1
    for k in range(_TERMS, 0, -1):
        above, below = below * k * denominator + above * numerator, below * k * denominator
    return above, below


def keeps(likely: int, rare: int, epsilon: Fraction) -> bool:
    """Return whether likely / rare <= e^epsilon, for certain.

    Args:
        likely: how many outcomes give an answer under one value.
        rare: how many give it under another.
        epsilon: the bound; above 44 it counts as 44.
    """
    if rare <= 0:
        return False
    above, below = least_exp(*_capped(epsilon))
    return likely * below <= rare * above


def digits_keep(digits: Sequence[int], overflow: int, epsilon: Fraction) -> bool:
    """Return whether the difference of two numbers with these random binary digits hides a change of 1 at epsilon.

    From k to k + 1 a number's probability changes by o_i / (o_0 ... o_(i-1)), where i is the lowest digit that is 0
    in k, o its odds of being 1; the overflow takes the place of the digit after the last.  Each of these must lie
    within e^-epsilon and 1.

    Args:
        digits: 2^256 times the probabilities that a digit is 1.
        overflow: that 2^digits more is added, again and again.
        epsilon: for a change of 1.
    """
    if not all(0 < digit < DIGIT // 2 for digit in digits) or not 0 < overflow < DIGIT // 2:
        return False
    above, below = least_exp(*_capped(epsilon))
    numerator, denominator = 1, 1  # the odds of all lower digits being 1
    for digit in digits:
        if not _within(digit * denominator, (DIGIT - digit) * numerator, above, below):
            return False
        numerator, denominator = numerator * digit, denominator * (DIGIT - digit)
    return _within(overflow * denominator, DIGIT * numerator, above, below)


def _within(numerator: int, denominator: int, above: int, below: int) -> bool:
    """Return whether below / above <= numerator / denominator <= 1."""
    return numerator <= denominator and numerator * above >= denominator * below


def _capped(epsilon: Fraction) -> tuple[int, int]:
    return min(epsilon, Fraction(LARGEST)).as_integer_ratio()
