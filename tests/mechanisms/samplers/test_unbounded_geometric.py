"""Geometric variables without an upper end: which words make which number, and where draws stop."""

from __future__ import annotations

from decimal import Decimal, localcontext

from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.mechanisms.samplers.bits import WORD
from graphveil.mechanisms.samplers.geometric import Geometric, bernoulli_of, geometric_by_ratio, geometric_by_success
from tests.mechanisms.samplers.scripted import Scripted

NEVER, ALWAYS = WORD - 1, 0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**256 - 1))
def test_a_threshold_keeps_all_256_bits_and_rounds_down(whole: int) -> None:
    with localcontext() as context:
        context.prec = 300  # so many digits has a multiple of 2^-256
        first, rest = bernoulli_of(Decimal(whole) / 2**256)
        assert bernoulli_of(Decimal(2) / 3) == divmod(2**257 // 3, 2**192)
    assert (first << 192) + rest == whole


@settings(max_examples=20, deadline=None)
@given(st.integers(1, WORD - 1))
def test_both_ways_of_naming_a_law_agree(low: int) -> None:
    with localcontext() as context:
        context.prec = 120
        ratio = Decimal(WORD - low) / WORD
    assert geometric_by_success(low, 1 << 40) == geometric_by_ratio(ratio, 1 << 40)


def test_words_spell_out_the_binary_digits_and_the_rest_is_drawn_trial_by_trial() -> None:
    law = geometric_by_ratio(Decimal("0.9"), 1 << 30)
    places = range(len(law.digits))
    assert len(law.digits) > 3
    for wanted in (0, 1, 5, 2 ** len(law.digits) - 1):
        words = [ALWAYS if wanted >> place & 1 else NEVER for place in places]
        assert law.draw(1, Scripted([*words, NEVER])).tolist() == [wanted]
    digits = [NEVER] * len(law.digits)
    for rounds in (1, 2, 7):
        draws = law.draw(1, Scripted([*digits, *[ALWAYS] * rounds, NEVER]))
        assert draws.tolist() == [rounds << len(law.digits)]


def test_draws_go_on_by_themselves_and_stop_at_the_limit() -> None:
    """A source of zeros alone: every coin says to go on."""
    law = geometric_by_ratio(Decimal("0.999"), 1000)
    assert law.draw(3, Scripted([ALWAYS] * 100_000)).tolist() == [1000] * 3
    law = Geometric(digits=(), overflow=bernoulli_of(Decimal("0.5")), limit=100)
    stop, go = WORD // 2 + 1, WORD // 2 - 1
    draws = law.draw(3, Scripted([stop, go, stop, go, stop]))
    assert draws.tolist() == [0, 2, 0]


def test_ties_of_the_first_word_are_decided_by_the_rest() -> None:
    law = Geometric(digits=(), overflow=(WORD // 2, 2**191), limit=100)
    below, above = (2**191 - 1).to_bytes(24, "little"), (2**191).to_bytes(24, "little")
    assert law.draw(1, Scripted([WORD // 2, NEVER], below)).tolist() == [1]
    assert law.draw(1, Scripted([WORD // 2], above)).tolist() == [0]
