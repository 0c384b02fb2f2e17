"""What is printed of epsilon and delta is never less than they are, anywhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphveil.privacy import Guarantee
from graphveil.privacy.accounting.printed import rounded_up, rounded_up_to
from graphveil.privacy.statement.observer import SERVER
from graphveil.privacy.statement.unit import USER_LABEL
from tests import source

SOURCE = Path(__file__).parents[2] / "src" / "graphveil"
PRIVATE = re.compile(r"epsilon|delta\b|\bprice")
#: Names for other things, or numbers that are no upper bound of a price.
OTHERS = re.compile(r"len\(|isinf|isfinite|is None|/ |timedelta\(")


@settings(max_examples=300, deadline=None)
@given(st.floats(0.0, allow_nan=False), st.integers(1, 8))
@example(0.0149, 2)
@example(1.0000049, 6)
@example(0.1 + 0.2, 6)
@example(5e-324, 1)
@example(1.7976931348623157e308, 3)
def test_nothing_is_printed_below_what_it_is(value: float, digits: int) -> None:
    text = rounded_up(value, digits)
    assert float(text) >= value
    if float(f"{value:.{digits}g}") == value:
        assert text == f"{value:.{digits}g}"
    elif 1e-300 < value < 1e300:
        assert float(text) <= value * (1 + 10.0 ** (1 - digits)) * (1 + 1e-12)


@settings(max_examples=200, deadline=None)
@given(st.floats(0.0, 1e9), st.integers(0, 6))
def test_nothing_is_printed_below_what_it_is_with_places(value: float, places: int) -> None:
    assert value <= float(rounded_up_to(value, places)) <= value + 10.0**-places * (1 + 1e-6)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.0, 1e6), st.floats(0.0, 0.999))
@example(0.0149, 0.0)
@example(1.0000049, 1.0000049e-6)
def test_every_number_of_a_sentence_is_at_least_the_truth(epsilon: float, delta: float) -> None:
    kind = {"unit": USER_LABEL, "relation": "replace", "model": "local", "against": SERVER, "assumes": ()}
    part = Guarantee(**kind, epsilon=epsilon, delta=delta)
    whole = Guarantee(**kind, epsilon=epsilon, delta=delta, parts=(part,))
    text = whole.sentence()
    assert all(float(number) >= epsilon for number in re.findall(r"(?:e\^|epsilon = )([0-9.e+-]*[0-9])", text))
    deltas = re.findall(r"(?:delta = |plus at most )([0-9.e+-]*[0-9])", text)
    assert len(deltas) == (3 if delta else 2) and all(float(number) >= delta for number in deltas)
    assert len(re.findall("epsilon = ", text)) == 2


def unrounded(nodes: Iterable[ast.AST], *, rendered: bool) -> list[str]:
    """Prints of an epsilon or delta in source text that are rounded to the nearest; `rendered`: `number` prints."""
    rounded = []
    for node in nodes:
        printed = isinstance(node, ast.FormattedValue) and node.format_spec is not None
        called = isinstance(node, ast.Call) and ast.unparse(node.func) in ("number", "text.number", "round")
        if printed or (called and rendered):
            expression = ast.unparse(node.value if isinstance(node, ast.FormattedValue) else node.args[0])  # type: ignore[attr-defined]
            spec = ast.unparse(node.format_spec) if isinstance(node, ast.FormattedValue) and node.format_spec else "g"
            if PRIVATE.search(expression) and not OTHERS.search(expression) and re.search("[gfe]", spec):
                rounded.append(expression)
    return rounded


# Parses all of the source: what is printed too low is found before it lands.
def test_no_source_file_prints_an_epsilon_rounded_to_the_nearest() -> None:
    faults = {
        str(file.relative_to(SOURCE)): lines
        for file in sorted(SOURCE.rglob("*.py"))
        if (lines := unrounded(source.nodes(file), rendered=file.relative_to(SOURCE).parts[0] in ("reports", "cli")))
    }
    assert faults == {}
    for template in SOURCE.rglob("*.j2"):
        assert not re.search(r"(epsilon|delta)[^}|]*\| *number", template.read_text()), template


@pytest.mark.parametrize(
    ("text", "rendered", "expected"),
    [
        ('f"epsilon {self.epsilon:g}"', False, ["self.epsilon"]),
        ('f"{number(found.delta)}"', True, ["found.delta"]),
        ('f"{x:g}, {rounded_up(epsilon)}"', True, []),
    ],
)
def test_the_search_finds_what_it_is_for(text: str, rendered: bool, expected: list[str]) -> None:
    assert unrounded(ast.walk(ast.parse(text)), rendered=rendered) == expected
