"""Exact audits of tables whose epsilon is known in closed form, and rates at the ends of what can be counted."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from graphveil.audit.exact import audit_table, least_epsilon, subset_neighbours, worst_of_independent, worst_ratio
from graphveil.audit.sampled import epsilon_bound, epsilon_of_rates, mu_bound, rate_interval
from graphveil.audit.verdict import ROUNDING, Audit, exceeds, judge, timed
from graphveil.errors import InputError
from graphveil.mechanisms import RandomizedResponse
from graphveil.privacy import Guarantee


def response(epsilon: float, classes: int) -> np.ndarray:
    """log Pr[report | label] of randomized response, by its definition."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + classes - 1)
    chances = np.full((classes, classes), (1 - keep) / (classes - 1))
    np.fill_diagonal(chances, keep)
    return np.log(chances)


def promise(epsilon: float, delta: float = 0.0) -> Guarantee:
    """What a mechanism of labels promises, at a price of one's own choice."""
    fields = RandomizedResponse(epsilon=1.0, classes=3).guarantee.to_dict()
    return Guarantee.from_dict({**fields, "epsilon": epsilon, "delta": delta})


@pytest.mark.parametrize(("epsilon", "classes"), [(0.1, 2), (1.0, 3), (4.0, 5), (12.0, 2)])
def test_randomized_response_costs_exactly_its_epsilon(epsilon: float, classes: int) -> None:
    table = response(epsilon, classes)
    assert worst_ratio(table) == pytest.approx(epsilon)
    assert audit_table("rr", promise(epsilon), table).holds
    result = audit_table("rr", promise(epsilon * 0.99), table)
    assert not result.holds and result.lower_bound == pytest.approx(epsilon) and result.false_alarm == 0.0


def test_a_delta_buys_what_the_hockey_stick_says() -> None:
    """Of two labels: the least e with keep - e^e (1 - keep) <= delta is log((keep - delta) / (1 - keep))."""
    keep = math.exp(2.0) / (1 + math.exp(2.0))
    for delta in (1e-6, 0.01, 0.3):
        assert least_epsilon(response(2.0, 2), delta) == pytest.approx(math.log((keep - delta) / (1 - keep)))
    assert least_epsilon(response(2.0, 2), 0.99) == 0.0
    for none in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(InputError, match="delta"):
            least_epsilon(response(1.0, 2), none)


def test_an_output_that_one_input_alone_has_costs_everything_unless_delta_covers_it() -> None:
    with np.errstate(divide="ignore"):
        table = np.log(np.array([[0.9, 0.1, 0.0], [0.9, 0.0, 0.1]]))
    assert math.isinf(worst_ratio(table)) and math.isinf(worst_ratio(table, [(0, 1)]))
    assert math.isinf(least_epsilon(table, 0.05)) and least_epsilon(table, 0.1 + 1e-9) == 0.0
    with np.errstate(divide="ignore"):
        table = np.log(np.array([[0.6, 0.4, 0.0], [0.4, 0.6, 0.0]]))  # an output that nobody has is no evidence
    assert worst_ratio(table) == worst_ratio(table, [(0, 1), (1, 0)]) == pytest.approx(math.log(1.5))


def test_only_neighbours_are_compared() -> None:
    """Subsets of two elements: those that differ in both lie twice as far apart and are no neighbours."""
    pairs = subset_neighbours(4)
    assert sorted(pairs) == [(0, 1), (0, 2), (1, 0), (1, 3), (2, 0), (2, 3), (3, 1), (3, 2)]
    assert subset_neighbours(2) == [(0, 1), (1, 0)] and subset_neighbours(1) == []
    bit = response(1.0, 2)
    both = np.array([[bit[g & 1, o & 1] + bit[g >> 1, o >> 1] for o in range(4)] for g in range(4)])
    assert worst_ratio(both, pairs) == pytest.approx(1.0) and worst_ratio(both) == pytest.approx(2.0)


def test_independent_users_are_worst_together_where_each_is_worst() -> None:
    """Against every joint output of three users, listed one by one."""
    table = np.stack([response(epsilon, 3) for epsilon in (0.5, 1.0, 2.0)], axis=2)
    joint = np.array(
        [
            [sum(table[g, o[user], user] for user in range(3)) for o in itertools.product(range(3), repeat=3)]
            for g in range(3)
        ]
    )
    pairs = list(itertools.permutations(range(3), 2))
    assert worst_of_independent(table, pairs) == pytest.approx(worst_ratio(joint, pairs)) == pytest.approx(3.5)
    two_users = np.log(np.array([[[0.5, 0.5], [0.5, 0.5]], [[0.25, 0.25], [0.75, 0.75]]]))  # worse one way round
    assert worst_of_independent(two_users, [(0, 1)]) == pytest.approx(2 * math.log(2))
    for part, holds in ((table, False), (table[:, :, 2:], True)):
        assert audit_table("t", promise(2.0), part, independent=True).holds == holds
    table[0, 0, 0] = -np.inf  # a report that one input alone cannot give
    assert worst_of_independent(table, [(0, 1)]) == worst_of_independent(table, [(1, 0)]) == math.inf


def test_an_output_that_was_left_out_is_a_finding_however_small_the_bound_is() -> None:
    table = response(1.0, 3)
    result = audit_table("rr", promise(5.0), table[:, :2])
    assert not result.holds and len(result.notes) == 2
    assert audit_table("rr", promise(5.0), table[:, :2], complete=False).holds


@pytest.mark.parametrize(("hits", "tries"), [(0, 1), (1, 1), (0, 50), (50, 50), (7, 50)])
def test_rates_are_those_of_scipy_at_both_ends_too(hits: int, tries: int) -> None:
    theirs = stats.binomtest(hits, tries).proportion_ci(0.98, "exact")
    assert rate_interval(hits, tries, 0.01) == pytest.approx((theirs.low, theirs.high))
    for wrong in ((-1, 5), (6, 5), (0, 0)):
        with pytest.raises(InputError, match="trials"):
            rate_interval(*wrong, 0.01)


def test_the_worst_ends_of_both_rates_are_compared() -> None:
    keep = math.e / (1 + math.e)
    assert epsilon_of_rates((keep, keep), (1 - keep, 1 - keep), 0.0) == pytest.approx(1.0)
    assert epsilon_of_rates((0.5, 1.0), (0.0, 0.5), 0.0) == 0.0, "the rates may be equal"
    assert epsilon_of_rates((0.1, 0.1), (0.9, 0.9), 0.0) == 0.0, "an event that is rarer is told by its complement"
    # The complement is the better evidence where nearly everybody is called: 0.5 of 0.1 against 0.9 of 0.95.
    assert epsilon_of_rates((0.95, 0.95), (0.5, 0.5), 0.0) == pytest.approx(math.log(10))
    assert epsilon_of_rates((0.95, 0.95), (0.5, 0.5), 0.45) < math.log(2)
    assert epsilon_of_rates((0.5, 1.0), (0.0, 0.0), 0.0) == math.inf
    assert epsilon_of_rates((0.1, 0.6), (0.1, 0.25), 0.2) == 0.0


@pytest.mark.parametrize("bound", [lambda a, b: epsilon_bound(a, b, 0.0), mu_bound])
def test_equal_scores_prove_nothing_and_few_scores_are_refused(bound: Any) -> None:
    assert bound(np.zeros(1000), np.zeros(1000)) == 0.0
    with pytest.raises(InputError):
        bound(np.zeros(9), np.zeros(1000))
    with pytest.raises(InputError):
        bound(np.zeros(1000), np.zeros(9))


def test_infinite_scores_are_events_as_well() -> None:
    """A ratio of certainty: 800 judged scores of each, told apart without an error, prove a finite epsilon."""
    bound = epsilon_bound(np.full(1000, np.inf), np.full(1000, -np.inf), 0.0, 1e-3)
    low = 0.0005 ** (1 / 800)
    assert bound == pytest.approx(math.log(low / (1 - low)), rel=1e-6)


FAIR: dict[str, Any] = {
    "target": "made",
    "claimed_epsilon": 1.0,
    "delta": 0.0,
    "lower_bound": 0.9,
    "false_alarm": 1e-6,
    "verdict": "holds",
}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("target", "", "Audit: the target has no name"),
        ("claimed_epsilon", -0.1, "Audit: claimed_epsilon is -0.1; allowed: a number of at least 0"),
        ("lower_bound", math.nan, "lower_bound is nan"),
        ("seconds", -1.0, "seconds is -1.0"),
        ("delta", 1.0, r"delta is 1.0; allowed: a number in \[0, 1\)"),
        ("false_alarm", 1.0, "false_alarm is 1.0"),
        ("verdict", "maybe", "verdict is 'maybe'; allowed: holds, broken"),
        ("lower_bound", 1.1, "the bound exceeds the claim; allowed: verdict broken"),
    ],
)
def test_what_no_audit_can_say_is_refused(field: str, value: object, message: str) -> None:
    assert Audit(**FAIR).holds
    with pytest.raises(InputError, match=message):
        Audit(**{**FAIR, field: value})


@pytest.mark.parametrize("claimed", [1e-6, 1.0, 100.0])
def test_rounding_is_no_breach_and_a_millionth_is_one(claimed: float) -> None:
    """At epsilon 0 a relative margin alone would call the smallest leak a breach of rounding."""
    assert not exceeds(claimed * (1 + ROUNDING / 2), claimed)
    assert exceeds(claimed * (1 + 1e-6), claimed)
    assert exceeds(1e-9, 0.0) and not exceeds(0.0, 0.0) and not exceeds(math.inf, math.inf)


def test_a_finding_breaks_a_promise_that_no_bound_covers_and_the_answer_is_json() -> None:
    result = judge("made", 1.0, 1e-6, 0.1, 0.0, notes=("slow",), findings=("a private number in a name",))
    assert (result.verdict, result.notes) == ("broken", ("a private number in a name", "slow"))
    result = timed(judge)("made", math.inf, 0.0, math.inf, 0.0)
    written = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert written["claimed_epsilon"] == written["lower_bound"] == "inf" and written["seconds"] >= 0
    assert set(written) == {*FAIR, "seconds", "notes"}
