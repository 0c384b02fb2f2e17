"""What cores share: what fitting leaves, the devices' half on public and on private links, and what is stored."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.errors import BudgetError, InputError
from graphveil.mechanisms import catalogue
from graphveil.mechanisms.catalogue import mechanism_named
from graphveil.methods.base.asking import (
    pay_for,
    reports_from,
    require_queries,
    side_by_side,
)
from graphveil.methods.base.core import Stored, stored_probabilities
from graphveil.methods.base.people import BY_ID, Found
from graphveil.privacy import Ledger, SeededRandomness, Spend


def stored(probabilities: Any) -> Stored:
    return Stored({}, {"probabilities": probabilities})


@pytest.mark.parametrize(
    ("probabilities", "said"),
    [
        (torch.zeros(3, 4), r"\(3, 4\); allowed: \(nodes, 2\)"),
        (torch.zeros(2), r"\(2,\)"),
        (torch.zeros(3, 2, 1), r"\(3, 2, 1\)"),
        (torch.full((3, 2), torch.nan), "probabilities"),
        (torch.full((3, 2), torch.inf), "probabilities"),
    ],
)
def test_probabilities_of_another_shape_would_answer_for_other_people(probabilities: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        stored_probabilities(stored(probabilities), 2)


# ---- asking for a prediction ----


FEATURES = [info.name for info in catalogue() if info.kind == "features"]
SPEND = Spend("feature reports", "features", "made", {}, 1.0)


@pytest.mark.parametrize("name", FEATURES)
def test_reports_of_every_feature_mechanism_are_known_by_their_tensors(name: str) -> None:
    info = mechanism_named(name)
    more = {"delta": 1e-6} if "delta" in {option.name for option in info.options} else {}
    mechanism: Any = info.mechanism(epsilon=2.0, dimension=6, low=0.0, high=1.0, **more)
    sent = mechanism.randomize(torch.rand(9, 6), randomness=SeededRandomness(3))
    found = reports_from(sent.to_tensors())
    assert torch.equal(mechanism.estimate(found), mechanism.estimate(sent))


def test_tensors_that_no_mechanism_sends_are_named() -> None:
    with pytest.raises(InputError, match=r"reports: no feature report has tensors \['a', 'b'\]"):
        reports_from({"b": torch.zeros(2), "a": torch.zeros(2)})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-1, 4), min_size=1, max_size=9))
def test_everybody_stands_in_the_row_where_they_were_asked_about(rows: list[int]) -> None:
    """Known people show what was kept, new ones what they sent, in the order of the new graph."""
    kept = {"bits": torch.arange(5)[:, None].repeat(1, 3)}
    new = rows.count(-1)
    sent = {"bits": 100 + torch.arange(new)[:, None].repeat(1, 3)}
    found = side_by_side(Found(torch.tensor(rows)), kept, sent)["bits"]
    fresh = iter(range(100, 200))
    assert found[:, 0].tolist() == [next(fresh) if row < 0 else row for row in rows]


@pytest.mark.parametrize("queries", [-1, 1.0, True, "2", None, 10**6 + 1])
def test_a_number_of_queries_is_a_whole_one(queries: Any) -> None:
    assert require_queries(0) == 0 and require_queries(10**6) == 10**6
    with pytest.raises(InputError, match=r"queries = .* allowed: a whole number in 0\.\.1000000"):
        require_queries(queries)


def opened(**budgets: tuple[float, float]) -> Ledger:
    return Ledger.open(budgets).spend(SPEND)


def ask(ledger: Ledger, found: Found | None, *, queries: int = 0) -> tuple[Ledger, frozenset[str]]:
    return pay_for(ledger, found, [SPEND], name="town", group="g", queries=queries)


def some(*new: bool) -> Found:
    rows = torch.tensor([-1 if one else place for place, one in enumerate(new)])
    return Found(rows, tuple(bytes([place]) * 16 for place in range(len(new))), BY_ID)


def test_new_people_pay_from_a_budget_of_their_own() -> None:
    ledger = opened(features=(1.0, 0.0))
    paid, own = ask(ledger, some(True, False, True))
    (unit,) = own
    assert unit.startswith("features of town (")
    assert paid.total(unit) == (1.0, 0.0) and paid.total("features") == ledger.total("features")
    assert paid.remaining(unit)[0] == 0.0


def test_declared_queries_make_room_for_each_of_them_again() -> None:
    paid, own = ask(opened(features=(1.0, 0.0)), some(True), queries=2)
    assert paid.remaining(*own)[0] == 2.0


def test_where_nothing_tells_who_they_are_everybody_pays_again_or_nobody_is_asked() -> None:
    with pytest.raises(BudgetError, match="town has no ids to tell its people from those who have reported"):
        ask(opened(features=(1.0, 0.0)), None)
    paid, own = ask(opened(features=(2.0, 0.0)), None)
    assert own == frozenset() and paid.total("features")[0] == 2.0


class Others:
    """An account into which another process has spent meanwhile."""

    def settle(self, held: Ledger, paid: Ledger) -> Ledger:
        theirs = Ledger(paid.budget, (*held.spends, SPEND, *paid.spends[len(held.spends) :]))
        return theirs.detached()


def test_people_that_another_process_asked_meanwhile_may_be_the_same() -> None:
    ledger = Ledger(opened(features=(9.0, 0.0)).budget, account=Others())
    with pytest.raises(BudgetError, match="ledger: another process asked people of this run at the same time"):
        ask(ledger, some(True))
