"""The Laplace mechanism on the integer grid."""

from __future__ import annotations

import numpy as np
import pytest

from graphveil.errors import InputError
from graphveil.mechanisms import Laplace
from graphveil.mechanisms.samplers.geometric import TwoSidedGeometric, _thresholds, bernoulli
from tests.mechanisms.samplers.scripted import Scripted


def test_likelihood_is_the_product_of_the_digit_thresholds() -> None:
    """The closed form equals the law that the 256-bit thresholds define, summed out by brute force."""
    rate, bits = 0.35, 9
    digits = [(first * 2**192 + rest) / 2**256 for first, rest in _thresholds(rate, bits)]
    values = np.arange(2**bits)
    geometric = np.ones(2**bits)
    for digit, chance in enumerate(digits):
        geometric *= np.where(values >> digit & 1, chance, 1 - chance)
    exact = np.correlate(geometric, geometric, "full")
    noise = np.arange(-(2**bits) + 1, 2**bits)
    near = np.abs(noise) <= 2 ** (bits - 1)
    law = TwoSidedGeometric(rate, bits)
    assert np.allclose(law.log_pmf(noise[near]), np.log(exact[near]), atol=1e-9)
    tail = [exact[noise >= start].sum() for start in (1, 5, 60)]
    assert np.allclose(law.log_tail(np.array([1, 5, 60])), np.log(tail), atol=1e-9)


def test_bits_past_the_64th_decide_and_what_is_too_large_is_refused() -> None:
    for rest, chosen in ((999, True), (1000, False)):
        tail = b"".join(number.to_bytes(24, "little") for number in [rest] * 3)
        assert bernoulli(7, 1000, 3, Scripted([7] * 3, tail)).tolist() == [chosen] * 3
    assert bernoulli(8, 0, 3, Scripted([7] * 3)).all()
    with pytest.raises(InputError, match=r"1e\+08 ranges.*MultiBit"):
        Laplace(epsilon=1e-3, dimension=100_000)
    assert Laplace(epsilon=1e-3, dimension=10_000).lattice.reach < 2**30
