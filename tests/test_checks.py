"""Parameters are refused by name: at each end of an interval, and whatever is no number to a reader."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

import pytest

from graphveil.errors import InputError
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.runtime.checks import is_number, is_whole, require_choice, require_number, require_whole

#: interval -> which of 0, 0.5, 1 and infinity lie in it
INSIDE: Final = {
    "(0, 1)": (False, True, False, False),
    "[0, 1)": (True, True, False, False),
    "(0, 1]": (False, True, True, False),
    "[0, 1]": (True, True, True, False),
    "[0, inf)": (True, True, True, False),
    "(0, inf]": (False, True, True, True),
}


def refused(check: Callable[[], None]) -> bool:
    try:
        check()
    except InputError:
        return True
    return False


@pytest.mark.parametrize("interval", INSIDE)
def test_an_end_lies_inside_where_its_bracket_is_square(interval: str) -> None:
    values = (0.0, 0.5, 1.0, math.inf)
    assert tuple(not refused(lambda v=value: require_number(interval, share=v)) for value in values) == INSIDE[interval]
    for value in (math.nan, True, "0.5", None, -math.inf):
        assert refused(lambda v=value: require_number(interval, share=v))


def test_a_count_is_no_truth_and_no_float() -> None:
    require_whole(1, 9, None, sampled=9, nodes=1)
    for value in (0, 10, 2.0, True, None, math.nan):
        assert refused(lambda v=value: require_whole(1, 9, sampled=v))
    assert is_whole(-3) and not is_whole(False) and is_number(0) and not is_number(True)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: require_number("(0, inf)", "hops", sigma=0.0), "hops: sigma is 0.0; allowed: a finite number above 0"),
        (lambda: require_number("[0, inf)", decay=-1), "decay is -1; allowed: a finite number of at least 0"),
        (lambda: require_number("[0, 1)", dropout=1.0), "dropout is 1.0; allowed: a number in [0, 1)"),
        (lambda: require_number("(0, inf]", epsilon=0), "epsilon is 0; allowed: a number above 0, or inf"),
        (
            lambda: require_whole(0, 1, n=10**5000),
            "n is a number of more than 4300 digits; allowed: a whole number in 0..1",
        ),
        (
            lambda: LocalPrivacy(1.0, 1.0, delta=1.0),
            "delta is 1.0; allowed: a number in (0, 1), far below 1 / the number of people",
        ),
        (lambda: require_whole(1, 9, sampled=10), "sampled is 10; allowed: a whole number in 1..9"),
        (lambda: require_whole(1, None, "unit", count=0), "unit: count is 0; allowed: a whole number of at least 1"),
        (lambda: require_choice(("lower", "both"), mode="all"), "mode is 'all'; allowed: lower, both"),
    ],
)
def test_a_refusal_names_the_parameter_and_what_it_may_be(check: Callable[[], None], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        check()
