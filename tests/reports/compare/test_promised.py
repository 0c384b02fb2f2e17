"""The three lines of a group: of all its rows, and silent about nothing that nobody may miss."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from graphveil.privacy import Guarantee, Ledger
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base import brief
from graphveil.reports.compare import table
from graphveil.reports.compare.rows import Row, facts
from graphveil.reports.compare.sheet import Group, Sheet, assumed_facts, three_lines
from tests.reports.base.test_first_line import promised as every_guarantee


def row(method: str, guarantee: Guarantee) -> Row:
    ledger = Ledger.open({"one report": (1.0, 0.0)})
    return Row(method, {}, "here", **facts(method, guarantee, ledger, {}), accuracy=None)


def groups(*rows: Row) -> tuple[Group, ...]:
    return Sheet("here", rows).groups


def wholes() -> Iterator[Guarantee]:
    """What runs, releases and parties promise: mechanisms alone are not compared so."""
    return (guarantee for name, guarantee in every_guarantee().items() if ": part" not in name)


def protecting() -> Guarantee:
    return next(guarantee for guarantee in wholes() if guarantee.protects and not guarantee.parts)


def test_no_critical_assumption_of_any_row_is_left_out() -> None:
    met = set()
    for guarantee in wholes():
        bare = replace(guarantee, assumes=())
        # Beside a row that assumes nothing, which must not speak for both.
        (group,) = groups(row("first", bare), row("second", guarantee))
        assumes = dict(three_lines(group, "table.md"))["Assumes"]
        for fact in guarantee.assumes:
            if fact.code in brief.ABOVE_ALL:
                assert brief.ABOVE_ALL[fact.code] in assumes.partition("second: ")[2]
                met.add(fact.code)
        listed = assumed_facts(group)
        assert listed == [f"second: {fact.sentence}" for fact in guarantee.assumes]
        assert all(table.markdown(line) in table.markdown_text(Sheet("here", group.rows)) for line in listed)
    assert met >= {"asymptotic", "server-colludes-not", "joint-privacy", "degree-promised"}


def test_rows_alike_are_told_once_with_the_least_and_the_largest_price() -> None:
    guarantee = replace(protecting(), epsilon=1.0)
    (group,) = groups(*(row("first", replace(guarantee, epsilon=price)) for price in (2.0, 1.0, 4.00001)))
    lines = dict(three_lines(group, "study/table.md"))
    assert f": epsilon 1 to {rounded_up(4.00001)}, " in lines["Guarantee"]
    assert lines["Assumes"] == f"{brief.assumption_summary(guarantee)} -> study/table.md"
    assert not any(text.startswith("first: ") for text in (*lines.values(), *assumed_facts(group)))


def test_what_one_of_two_runs_of_a_method_leans_on_is_not_told_of_both() -> None:
    guarantee = next(guarantee for guarantee in wholes() if guarantee.assumes)
    promised = (replace(guarantee, assumes=()), guarantee)
    rows = (replace(row("first", claim), folder=folder) for claim, folder in zip(promised, ("a", "b"), strict=True))
    (group,) = groups(*rows)
    assert assumed_facts(group) == [f"first (b): {fact.sentence}" for fact in guarantee.assumes]
    assert "first (b): " in dict(three_lines(group, "table.md"))["Assumes"]


def test_a_void_row_lends_its_price_to_no_other() -> None:
    guarantee = replace(protecting(), epsilon=2.0)
    void = replace(guarantee, epsilon=1.0, void="noise was reproducible (seed 3)")
    (group,) = groups(row("first", void), row("second", guarantee))
    lines = dict(three_lines(group, "table.md"))
    assert "epsilon 2," in lines["Guarantee"]
    assert lines["Not protected"].startswith("first: anything, in this run; ")
    (alone,) = groups(row("first", void))
    assert three_lines(alone, "table.md")[0] == ("Guarantee", f"NONE, this run protects nobody: {void.void}")


def test_where_nothing_is_protected_each_row_says_what_is_open_to_whom() -> None:
    first, other = (replace(guarantee, epsilon=math.inf, parts=()) for guarantee in (protecting(), another()))
    (group,) = groups(row("first", first), row("second", other), row("third", first))
    text = dict(three_lines(group, "table.md"))["Guarantee"]
    assert text == "; ".join(brief.claim([each]) for each in (first, other))
    assert text.startswith("NONE, ")


def another() -> Guarantee:
    protected = (guarantee for guarantee in wholes() if guarantee.protects and not guarantee.parts)
    return next(guarantee for guarantee in protected if guarantee.unit != protecting().unit)
