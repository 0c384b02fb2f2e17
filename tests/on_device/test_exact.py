"""Thresholds are checked in whole numbers: those of our mechanisms pass, one outcome less is refused."""

from __future__ import annotations

import random
import struct
from fractions import Fraction

import mpmath
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from graphveil.device.reports.exact import DIGIT, WORD, digits_keep, keeps, least_exp
from graphveil.device.reports.noise import words
from graphveil.mechanisms.samplers.bits import bit_law
from graphveil.mechanisms.samplers.geometric import two_sided

EPSILONS = ("0.001", "0.1", "0.5", "1", "2.180000001", "8", "40")


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("bits", [1, 3, 1433])
def test_the_threshold_of_a_bit_is_the_least_that_is_kept(epsilon: str, bits: int) -> None:
    low, share = bit_law(float(epsilon), bits).low, Fraction(epsilon) / bits
    # The mechanism's epsilon is a float, so it may lie below the decimal by 1 part in 2^52.
    slack = 2 + low // 2**50
    assert keeps(WORD - low - slack, low + slack, share)
    if low > 2 * slack:
        assert not keeps(WORD - low + slack, low - slack, share)


def test_the_lower_bound_is_one_and_is_sharp() -> None:
    above, below = least_exp(1, 1)
    e = Fraction(2.718281828459045)
    assert abs(Fraction(above, below) - e) < Fraction(1, 10**15)
    above, below = least_exp(44, 1)
    assert above // below == 12_851_600_114_359_308_275  # floor of e^44
    assert not keeps(1, 0, Fraction(1))


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "5"])
def test_digits_of_degrees_are_kept_and_weaker_ones_are_not(epsilon: str) -> None:
    digits, overflow = two_sided(float(epsilon)).thresholds
    assert digits_keep(digits, overflow, Fraction(epsilon))
    assert not digits_keep(digits, overflow, Fraction(epsilon) * Fraction(999, 1000))
    # Each number matters: a little less chance of a digit, or of going on, tells one number from the next too well.
    for place in range(len(digits)):
        weaker = [*digits[:place], digits[place] * 999 // 1000, *digits[place + 1 :]]
        assert not digits_keep(weaker, overflow, Fraction(epsilon)), place
    assert not digits_keep(digits, overflow * 999 // 1000, Fraction(epsilon))
    assert not digits_keep(digits, DIGIT // 2, Fraction(epsilon))


def test_words_are_the_keystream_of_a_counter() -> None:
    key = bytes(range(100, 132))
    values, parts = [0, 1, 2**32, 2**64 - 1, 5], [0, 1, 2**64 - 1, 2**32, 3]
    blocks = [struct.pack(">QQ", *pair) for pair in zip(values, parts, strict=True)]
    stream = [Cipher(algorithms.AES(key), modes.CTR(block)).encryptor().update(bytes(8)) for block in blocks]
    assert words(key, values, parts).tolist() == [int.from_bytes(block, "big") for block in stream]


def test_an_epsilon_is_kept_exactly_where_it_is() -> None:
    """Against e^epsilon to 400 digits: a ratio a hair below passes, one a hair above is refused."""
    source = random.Random(5)
    with mpmath.workdps(400):
        for _ in range(200):
            epsilon = Fraction(source.randrange(1, 44 * 10**9), 10**9)
            rare = source.randrange(1, 2**60)
            most = int(mpmath.floor(mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator) * rare))
            assert keeps(most, rare, epsilon)
            assert not keeps(most + 1, rare, epsilon)
    assert keeps(1, 1, Fraction(0)) and not keeps(0, 0, Fraction(1)) and not keeps(2, 1, Fraction(0))
