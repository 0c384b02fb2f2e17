"""Laws of every ledger, over drawn budgets and drawn spends: exact sums, refusals that change nothing, round trips."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.errors import BudgetError, InputError
from graphveil.privacy import Budget, Ledger, Spend

#: Amounts as people write them: few decimals, so that sums are exact on paper.
amounts = st.integers(0, 400).map(lambda hundredths: hundredths / 100)
deltas = st.integers(0, 40).map(lambda parts: float(f"{parts}e-8"))
prices = st.tuples(st.sampled_from(["features", "labels"]), amounts, deltas)


def spend(unit: str, epsilon: float, delta: float, name: str = "reports") -> Spend:
    return Spend(name, unit, "made", {"k": 3, "share": 0.5, "kind": "x"}, epsilon, delta)


def exact(values: list[float]) -> Fraction:
    """The sum as on paper."""
    return sum((Fraction(repr(value)) for value in values), Fraction())


def opened(epsilon: float, delta: float) -> Ledger:
    return Ledger.open({"features": (epsilon, delta), "labels": (math.inf, 0.5)})


@settings(max_examples=60, deadline=None)
@given(amounts, deltas, st.lists(prices, max_size=12))
def test_a_spend_is_paid_exactly_when_the_sum_on_paper_fits(
    epsilon: float, delta: float, wanted: list[tuple[str, float, float]]
) -> None:
    ledger, paid = opened(epsilon, delta), list[tuple[str, float, float]]()
    for price in wanted:
        mine = [price for price in [*paid, price] if price[0] == "features"]
        fits = exact([p[1] for p in mine]) <= exact([epsilon]) and exact([p[2] for p in mine]) <= exact([delta])
        before = ledger.to_dict()
        if fits:
            ledger, paid = ledger.spend(spend(*price)), [*paid, price]
        else:
            with pytest.raises(BudgetError, match="nothing was spent"):
                ledger.spend(spend(*price))
            assert ledger.to_dict() == before
    mine = [price for price in paid if price[0] == "features"]
    total, left = ledger.total("features"), ledger.remaining("features")
    assert total[0] == pytest.approx(float(exact([p[1] for p in mine])), abs=1e-9)
    assert total[0] + left[0] == pytest.approx(epsilon, abs=2e-9)
    assert total[1] + left[1] == pytest.approx(delta, abs=2e-18)
    assert ledger.remaining("labels")[0] == math.inf


@settings(max_examples=30, deadline=None)
@given(st.lists(prices, max_size=8), st.integers(0, 8))
def test_a_step_of_many_spends_is_all_of_them_or_none(wanted: list[tuple[str, float, float]], cut: int) -> None:
    """One step and one by one agree on what is paid; where the last does not fit, the step leaves nothing behind."""
    ledger = opened(400.0, 1e-4)
    together = ledger.spend(*(spend(*price) for price in wanted))
    one_by_one = ledger
    for price in wanted:
        one_by_one = one_by_one.spend(spend(*price))
    assert together == one_by_one
    steps = [spend(*price) for price in wanted]
    steps.insert(min(cut, len(steps)), spend("features", 1e6, 0.0, name="far too much"))
    with pytest.raises(BudgetError, match=r"'far too much' costs epsilon .*on 'features'.*nothing was spent"):
        ledger.spend(*steps)
    assert ledger.spends == ()


@settings(max_examples=30, deadline=None)
@given(amounts, st.lists(prices, max_size=6))
def test_a_ledger_comes_back_from_json_the_same_unless_it_spent_too_much(
    epsilon: float, wanted: list[tuple[str, float, float]]
) -> None:
    ledger = opened(400.0 + epsilon, 1e-4).spend(spend("features", 0.0, 0.0), *(spend(*price) for price in wanted))
    text = json.dumps(ledger.to_dict(), allow_nan=False)
    assert Ledger.from_dict(json.loads(text)) == ledger
    written = ledger.to_dict()
    written["spends"][0] |= {"epsilon": 1500.0}
    with pytest.raises(BudgetError, match=r"allowed: epsilon 4"):
        Ledger.from_dict(written)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(1, 999))
def test_what_remains_may_be_spent_and_nothing_more(parts: int, thousandths: int) -> None:
    """However a budget was cut up, what `remaining` prints is granted, and a thousandth more is refused."""
    budget = thousandths / 1000
    ledger = Ledger.open({"edges": (budget, 0.0)}).spend(spend("edges", budget / (parts + 1), 0.0))
    left = ledger.remaining("edges")[0]
    assert ledger.spend(spend("edges", left, 0.0)).remaining("edges")[0] <= 1e-9
    with pytest.raises(BudgetError):
        ledger.spend(spend("edges", left + budget / 1000, 0.0))


def test_budgets_that_are_declared_later_pay_for_themselves_alone() -> None:
    ledger = opened(1.0, 0.0).declare("features of town", 2.0)
    assert ledger.budget[-1] == Budget("features of town", 2.0)
    spent = ledger.spend(spend("features of town", 2.0, 0.0))
    assert spent.total("features") == (0.0, 0.0)
    with pytest.raises(BudgetError, match=r"epsilon 2 and delta 0 in total"):
        spent.spend(spend("features of town", 0.001, 0.0))
    assert spent.spend(spend("features", 1.0, 0.0)).remaining("features") == (0.0, 0.0)


class Kept:
    """An account that remembers what it was asked to keep, and may have been spent by others."""

    def __init__(self, refuse: bool = False) -> None:
        self.seen: list[tuple[int, int]] = []
        self.refuse = refuse

    def settle(self, previous: Ledger, paid: Ledger) -> Ledger:
        self.seen.append((len(previous.spends), len(paid.spends)))
        if self.refuse:
            raise BudgetError("others have spent what was left")
        return paid


def test_an_account_keeps_a_step_before_anybody_sees_it_paid() -> None:
    account = Kept()
    ledger = Ledger((Budget("features", 2.0),), account=account)
    ledger = ledger.spend(spend("features", 1.0, 0.0)).spend(spend("features", 1.0, 0.0))
    assert account.seen == [(0, 1), (1, 2)]
    with pytest.raises(BudgetError):
        ledger.spend(spend("features", 0.5, 0.0))
    assert account.seen == [(0, 1), (1, 2)], "what cannot be paid never reaches the account"
    account.refuse = True
    free = Ledger((Budget("features", 2.0),), account=account)
    with pytest.raises(BudgetError, match="others have spent"):
        free.spend(spend("features", 1.0, 0.0))
    assert free.spends == ()
    assert free.detached().spend(spend("features", 1.0, 0.0)).total("features")[0] == 1.0
    assert account.seen[-1] == (0, 1), "a detached ledger asks no account"


def test_what_is_no_ledger_is_refused_as_one() -> None:
    written = opened(1.0, 0.0).spend(spend("features", 0.5, 0.0)).to_dict()
    no_spends = ({"spends": None}, {"spends": [{"name": "x"}]}, {"spends": ["x"]})
    for change in (*no_spends, {"budget": 7}, {"budget": [None]}, {"budget": []}, {"more": []}):
        with pytest.raises(InputError, match="ledger"):
            Ledger.from_dict({**written, **change})
    for field, value in (("epsilon", -1.0), ("epsilon", "much"), ("delta", 1.0), ("unit", " "), ("name", "")):
        with pytest.raises(InputError):
            Ledger.from_dict({**written, "spends": [{**written["spends"][0], field: value}]})
