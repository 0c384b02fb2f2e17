"""The three lines of a terminal: short enough for it, and silent about nothing that nobody may miss."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from graphveil.cli.base import screens
from graphveil.federation.core.setting import MODES
from graphveil.privacy import Guarantee
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.statement.assumption_codes import ASSUMPTION_CODES
from graphveil.reports.base import brief, trust, words
from graphveil.reports.federation.card import open_lines
from tests.reports.base.test_first_line import less, promised

CARD = Path("runs/digits-lpgnn-20260102-030405/card.md")
HEADS = ("Guarantee: ", "Not protected: ", "Assumes: ")


def exposed(guarantee: Guarantee) -> tuple[str, ...]:
    """What cards list: of a federation with the mode that opens most, of everything else by its own rules."""
    if guarantee.model != "vertical":
        return words.not_protected(guarantee, {"epsilon_x": math.inf})
    outcome = {"mode": "paper", "epsilon": guarantee.epsilon, "epsilon_y": math.inf, "opens": MODES["paper"]}
    return open_lines({**outcome, "guarantee": guarantee.to_dict()})


def rows(guarantee: Guarantee, relationship: float | None = None) -> list[list[str]]:
    """The rows of a terminal of 80 columns that each line fills."""
    file = io.StringIO()
    stated = screens.three_lines(guarantee, exposed(guarantee), CARD, relationship)
    Console(file=file, width=80, color_system=None).print(stated)
    lines: list[list[str]] = []
    for row in file.getvalue().splitlines():
        if row.startswith(HEADS):
            lines.append([])
        lines[-1].append(row.strip())
    return lines


def wholes() -> Iterator[tuple[str, Guarantee]]:
    """What runs, releases and parties promise: mechanisms alone have no card."""
    return ((name, guarantee) for name, guarantee in promised().items() if ": part" not in name)


@pytest.mark.slow  # whole runs
def test_every_guarantee_is_three_lines_of_at_most_two_rows() -> None:
    for name, guarantee in wholes():
        # As long as prices get: rounded up to six digits.
        costly = replace(guarantee, epsilon=12.3456 * guarantee.epsilon, delta=1.5e-7 if guarantee.delta else 0.0)
        lines = rows(costly, 12.3457 if guarantee.unit.is_connection else None)
        assert [line[0].startswith(head) for line, head in zip(lines, HEADS, strict=True)] == [True] * 3, name
        assert max(len(line) for line in lines) <= 2, (name, lines)


def test_less_than_a_person_every_price_and_the_number_of_assumptions_are_said() -> None:
    for name, guarantee in wholes():
        first, _, third = (" ".join(line) for line in rows(guarantee))
        assert first.startswith("Guarantee: not a person but ") == less(guarantee), name
        assert first.startswith("Guarantee: NONE, ") == math.isinf(guarantee.epsilon), name
        counted = f"{len(guarantee.assumes)} fact" if guarantee.assumes else "nothing more"
        assert third.startswith(f"Assumes: {counted}") and third.endswith(f"-> {CARD}"), name
        if math.isinf(guarantee.epsilon):
            continue
        assert f"epsilon {rounded_up(guarantee.epsilon)}" in first, name
        assert (f"delta {rounded_up(guarantee.delta)}" in first) == (guarantee.delta > 0), name
        parts = trust.parts_of(guarantee)
        assert len(parts) == 1 or all(f"({rounded_up(part.epsilon)})" in first for part in parts), name


def test_an_assumption_without_which_nothing_holds_is_never_left_to_the_card() -> None:
    met = set()
    for name, guarantee in wholes():
        third = " ".join(rows(guarantee)[2])
        for code, sentence in brief.ABOVE_ALL.items():
            assert (sentence in third) == (guarantee.assumption(code) is not None), (name, code)
            met |= {code} & {fact.code for fact in guarantee.assumes}
    assert met >= {"asymptotic", "server-colludes-not", "joint-privacy", "degree-promised"}
    assert set(brief.ABOVE_ALL) <= set(ASSUMPTION_CODES)


def test_a_void_run_says_first_that_nobody_is_protected() -> None:
    guarantee = next(whole for _, whole in wholes() if whole.protects)
    first, second, _ = rows(replace(guarantee, void="noise was reproducible (seed 3)"))
    assert first == ["Guarantee: NONE, this run protects nobody: noise was reproducible (seed 3)"]
    assert second[0].startswith("Not protected: anything, in this run")


def test_the_price_of_a_relationship_stands_where_the_unit_does_not_say_it() -> None:
    """One of the two entries of an undirected edge is the unit: both together cost more."""
    guarantee = next(whole for _, whole in wholes() if whole.unit.code == "one-edge-entry")
    sentences = brief.brief_of(guarantee, (), card="c", relationship=5.7)
    assert sentences.guarantee.endswith("; one relationship: 5.7")
    for relationship in (guarantee.epsilon, math.inf, None):
        assert "one relationship" not in brief.brief_of(guarantee, (), card="c", relationship=relationship).guarantee
