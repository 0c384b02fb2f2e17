"""The law of one private bit, in whole numbers: its two ends, what lies between, and what a word decides."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.mechanisms.samplers.bits import WORD, BitLaw, bit_law
from tests.mechanisms.sampled_cases import exceeds
from tests.mechanisms.samplers.scripted import Scripted

epsilons = st.floats(1e-9, 44.0)


@settings(max_examples=60, deadline=None)
@given(epsilons, st.integers(1, 12))
def test_bits_that_share_epsilon_spend_all_of_it_and_no_more(epsilon: float, bits: int) -> None:
    """The ratio of both ends to the power of the number of bits, in 80 digits; one word less noise is found out."""
    law = bit_law(epsilon, bits)
    assert not exceeds(epsilon, (WORD - law.low) ** bits, law.low**bits)
    assert exceeds(epsilon, (WORD - law.low + 1) ** bits, (law.low - 1) ** bits)


@pytest.mark.parametrize("epsilon", [44.4, 50.0, 51.0, 1e6, 1e300])
def test_the_least_threshold_is_one_word_however_large_epsilon(epsilon: float) -> None:
    assert bit_law(epsilon, 1) == BitLaw(1)
    assert bit_law(epsilon, 1).gain == pytest.approx(1.0)


@settings(max_examples=60, deadline=None)
@given(epsilons, st.integers(0, 2**32))
def test_thresholds_are_linear_in_exact_integers(epsilon: float, step: int) -> None:
    """No overflow anywhere: low + span * step / 2^32, rounded down, as Python's own integers say."""
    law = bit_law(epsilon, 1)
    thresholds = law.thresholds(np.array([step / 2**32]))
    assert thresholds.tolist() == [law.low + law.span * step // 2**32]
    assert law.low <= int(thresholds[0]) <= WORD - law.low


def test_each_entry_has_a_word_and_one_below_the_threshold_says_one() -> None:
    law, fraction = bit_law(0.7, 1), np.array([0.3])
    edge = int(law.thresholds(fraction)[0])
    for word, bit in ((0, 1), (edge - 1, 1), (edge, 0), (WORD - 1, 0)):
        assert law.draw(fraction, Scripted([word])).tolist() == [bit]
    middle = WORD // 2  # says 1 at the high end and 0 at the low one
    bits = law.draw(np.array([[0.0, 1.0], [1.0, 0.0]]), Scripted([middle] * 4))
    assert bits.dtype == np.uint8 and bits.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0, 44.0])
def test_probabilities_are_those_of_the_words(epsilon: float) -> None:
    law = bit_law(epsilon, 1)
    fractions = np.linspace(0.0, 1.0, 9)
    chances = np.array([Fraction(int(word), WORD) for word in law.thresholds(fractions)], dtype=float)
    probabilities = np.exp(law.log_probability(fractions, np.ones(9, np.uint8)))
    unsaid = np.exp(law.log_probability(fractions, np.zeros(9, np.uint8)))
    assert probabilities == pytest.approx(chances, rel=1e-14)
    assert probabilities + unsaid == pytest.approx(np.ones(9), rel=1e-14)
