"""What an audit may say: fields that cannot be are refused, a bound above the claim is never called a success."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.audit.verdict import ROUNDING, Audit, exceeds, judge, timed
from graphveil.errors import InputError

FAIR: dict[str, Any] = {
    "target": "made",
    "claimed_epsilon": 1.0,
    "delta": 0.0,
    "lower_bound": 0.9,
    "false_alarm": 1e-6,
    "verdict": "holds",
}


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("target", "", "Audit: the target has no name"),
        ("claimed_epsilon", -0.1, "Audit: claimed_epsilon is -0.1; allowed: a number of at least 0"),
        ("claimed_epsilon", math.nan, "claimed_epsilon is nan"),
        ("lower_bound", -1.0, "lower_bound is -1.0"),
        ("lower_bound", math.nan, "lower_bound is nan"),
        ("seconds", -1.0, "seconds is -1.0"),
        ("delta", 1.0, r"delta is 1.0; allowed: a number in \[0, 1\)"),
        ("delta", -1e-9, "delta is -1e-09"),
        ("false_alarm", 1.0, "false_alarm is 1.0"),
        ("false_alarm", math.nan, "false_alarm is nan"),
        ("verdict", "maybe", "verdict is 'maybe'; allowed: holds, broken"),
        ("lower_bound", 1.1, "the bound exceeds the claim; allowed: verdict broken"),
        ("lower_bound", math.inf, "the bound exceeds the claim"),
    ],
)
def test_what_no_audit_can_say_is_refused(field: str, value: object, said: str) -> None:
    assert Audit(**FAIR).holds
    with pytest.raises(InputError, match=said):
        Audit(**{**FAIR, field: value})


@settings(max_examples=100, deadline=None)
@given(st.floats(0, 1e6), st.floats(-1.0, 1e6))
def test_a_target_is_broken_exactly_when_its_bound_exceeds_the_claim(claimed: float, bound: float) -> None:
    found = judge("made", claimed, 0.0, bound, 0.0)
    assert found.holds != exceeds(bound, claimed)
    assert found.lower_bound == max(bound, 0.0)


@pytest.mark.parametrize("claimed", [1e-6, 1.0, 100.0])
def test_rounding_is_no_breach_and_a_millionth_is_one(claimed: float) -> None:
    """At epsilon 0 a relative margin alone would call the smallest leak a breach of rounding."""
    assert not exceeds(claimed * (1 + ROUNDING / 2), claimed)
    assert exceeds(claimed * (1 + 1e-6), claimed)
    assert exceeds(1e-9, 0.0) and not exceeds(0.0, 0.0) and not exceeds(math.inf, math.inf)


def test_a_finding_breaks_a_promise_that_no_bound_covers() -> None:
    found = judge("made", 1.0, 1e-6, 0.1, 0.0, notes=("slow",), findings=("a private number in a name",))
    assert (found.verdict, found.notes) == ("broken", ("a private number in a name", "slow"))


def test_the_answer_is_json_whatever_is_infinite() -> None:
    found = timed(lambda: judge("made", math.inf, 0.0, math.inf, 0.0))
    assert found.seconds >= 0 and found.holds
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert written["claimed_epsilon"] == written["lower_bound"] == "inf"
    assert set(written) == {"target", "claimed_epsilon", "delta", "lower_bound", "false_alarm", "verdict"} | {
        "seconds",
        "notes",
    }
