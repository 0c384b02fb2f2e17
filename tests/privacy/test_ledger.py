"""The ledger: whole steps or nothing, integers, and storage."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphveil.errors import BudgetError, InputError
from graphveil.privacy import Budget, Ledger, Spend


def spend(epsilon: float, unit: str = "features", delta: float = 0.0, name: str = "reports") -> Spend:
    return Spend(name, unit, "multi-bit", {"dimension": 3, "low": 0.0, "note": "x"}, epsilon, delta)


def test_a_number_bent_by_floating_point_is_forgiven_and_no_more() -> None:
    assert Ledger.open({"features": (3.3, 0.0)}).spend(spend(1.1 * 3)).remaining("features") == (0.0, 0.0)
    with pytest.raises(BudgetError):
        Ledger.open({"features": (1.0, 0.0)}).spend(spend(1.000000001))


@given(st.floats(1e-6, 20), st.floats(1e-12, 0.05), st.integers(1, 12))
@settings(max_examples=40, deadline=None)
@example(1 / 3, 1e-5, 2)
@example(0.1 + 0.2, 1e-5, 1)
@example(1.2345167891, 1.04496789e-5, 2)
def test_room_for_several_payments_pays_for_them_all(epsilon: float, delta: float, many: int) -> None:
    """Rounding each of them up would let none but round prices be paid as often as was declared."""
    ledger = Ledger.open({"features": (epsilon * many, delta * many)})
    for _ in range(many):
        ledger = ledger.spend(spend(epsilon, delta=delta))
    assert ledger.total("features")[0] >= math.fsum([epsilon] * many) * (1 - 1e-11)
    assert min(ledger.remaining("features")) >= 0.0
    with pytest.raises(BudgetError):
        ledger.spend(spend(1e-9))


def test_small_amounts_are_rounded_up_and_never_to_nothing() -> None:
    """One of 0.4e-9 shows as a whole unit; 25 of them fill a budget of 1e-8, and no other fits."""
    ledger = Ledger.open({"unit": (1e-8, 1e-17)}).spend(Spend("s", "unit", "m", {}, 0.4e-9, 0.4e-18))
    assert ledger.total("unit") == (1e-9, 1e-18)
    for _ in range(24):
        ledger = ledger.spend(Spend("s", "unit", "m", {}, 0.4e-9, 0.4e-18))
    assert ledger.total("unit") == (1e-8, 1e-17)
    with pytest.raises(BudgetError):
        ledger.spend(Spend("s", "unit", "m", {}, 0.4e-9))


def test_delta_is_a_budget_too() -> None:
    ledger = Ledger.open({"features": (10.0, 1e-6)}).spend(spend(1.0, delta=6e-7))
    assert ledger.remaining("features") == (9.0, pytest.approx(4e-7, rel=1e-9))
    with pytest.raises(BudgetError, match="delta 6e-07"):
        ledger.spend(spend(1.0, delta=6e-7))


def test_units_without_a_budget_are_refused() -> None:
    ledger = Ledger.open({"features": (1.0, 0.0)})
    for use in (lambda: ledger.spend(spend(0.1, "edges")), lambda: ledger.total("edges")):
        with pytest.raises(BudgetError, match=r"'edges'; allowed: features"):
            use()
    with pytest.raises(BudgetError):
        ledger.remaining("edges")


def test_an_infinite_budget_declares_a_unit_unprotected() -> None:
    ledger = Ledger.open({"labels": (math.inf, 0.0)}).spend(spend(math.inf, "labels"))
    assert ledger.total("labels") == (math.inf, 0.0)
    assert Ledger.from_dict(json.loads(json.dumps(ledger.to_dict(), allow_nan=False))) == ledger
    assert ledger.remaining("labels") == (math.inf, 0.0)
    with pytest.raises(BudgetError):
        Ledger.open({"labels": (10.0, 0.0)}).spend(spend(math.inf, "labels"))


@pytest.mark.parametrize(
    "make",
    [
        *(lambda words=words: Budget(*words) for words in (("", 1.0), ("a", -1.0), ("a", math.nan))),
        *(lambda delta=delta: Budget("a", 1.0, delta) for delta in (1.0, math.nan)),
        *(lambda words=words: spend(**words) for words in ({"epsilon": math.nan}, {"epsilon": -0.1})),
        *(lambda words=words: spend(0.1, **words) for words in ({"delta": -0.1}, {"name": ""})),
        lambda: Spend("a", "b", "c", {"list": [1]}, 1.0),  # type: ignore[dict-item]
        lambda: Ledger((Budget("a", 1.0), Budget("a", 2.0))),
        lambda: Ledger(()),
        *(lambda budgets=budgets: Ledger.open(budgets) for budgets in (None, {}, {"a": 1.0}, {"a": (1.0,)})),
    ],
)
def test_invalid_entries_are_refused(make: Any) -> None:
    with pytest.raises(InputError):
        make()
