"""Laws of every text that people read: no name moves a cursor, computes in a spreadsheet or marks up a page."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.reports.base.text import markdown, memory, plain_name, points, printable, seconds, spreadsheet
from graphveil.reports.base.text import settings as one_line

#: Texts that mean harm, among any others.
NASTY = st.one_of(
    st.text(max_size=30),
    st.text("=+-@\t\r\n '\"|\\`*_~<>[]():;\x1b\x00\u202e\uff1d09.eE/", max_size=30),
)


@settings(max_examples=200, deadline=None)
@given(NASTY)
def test_a_name_stays_on_its_line_and_moves_no_cursor(text: str) -> None:
    shown = printable(text)
    assert all(character.isprintable() for character in shown)
    assert shown == shown.strip() and "  " not in shown
    assert printable(shown) == shown


@settings(max_examples=200, deadline=None)
@given(NASTY)
def test_no_cell_begins_a_formula(text: str) -> None:
    """Either it begins with none of the signs that spreadsheets compute, or it is a plain number."""
    cell = spreadsheet(text)
    assert all(character.isprintable() for character in cell)
    if cell.lstrip()[:1] in tuple("=+-@＝＋－＠"):
        assert float(cell) == float(text)
    assert spreadsheet(cell) == cell


@settings(max_examples=200, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_reach_a_spreadsheet_as_numbers(value: float) -> None:
    assert spreadsheet(repr(value)) == repr(value)


@settings(max_examples=200, deadline=None)
@given(NASTY)
def test_markdown_says_the_text_itself(text: str) -> None:
    """Taking the backslashes away gives the text back, and nothing that marks up stands without one."""
    written = markdown(text)
    assert re.sub(r"\\(.)", r"\1", written) == printable(text)
    bare = re.sub(r"\\.", "x", written)
    assert not re.search(r"[`*<>|~]", bare)
    assert not re.search(r"\][(:]", bare)


@settings(max_examples=200, deadline=None)
@given(NASTY)
def test_a_file_name_made_of_any_name_stays_in_its_folder(text: str) -> None:
    name = plain_name(text)
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,59}", name)
    assert name not in (".", "..")


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 1e7))
def test_a_duration_is_the_one_that_was_measured(value: float) -> None:
    """Read back, it is off by half its smallest unit at most."""
    units = {"s": 1, "min": 60, "h": 3600}
    parts = [(float(count), unit) for count, unit in re.findall(r"([\d.]+) (s|min|h)", seconds(value))]
    assert parts and all(count < 60 for count, unit in parts if unit != "h")
    smallest = 0.1 if parts == [parts[0]] and parts[0][1] == "s" else units[parts[-1][1]]
    assert abs(sum(count * units[unit] for count, unit in parts) - value) <= smallest


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 1e6), st.floats(-1, 1))
def test_sizes_and_differences_are_rounded_and_signed(megabytes: float, difference: float) -> None:
    count, unit = memory(megabytes).split()
    assert abs(float(count) * {"MB": 1, "GB": 1000}[unit] - megabytes) <= {"MB": 0.5, "GB": 50}[unit] + 1e-6
    shown = points(difference)
    assert abs(float(shown) - 100 * difference) <= 0.05 + 1e-9
    assert shown == "0.0" or shown[0] == ("+" if difference > 0 else "-")


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-9, 1e3))
def test_an_epsilon_among_settings_is_never_printed_smaller(value: float) -> None:
    shown = one_line({"epsilon_x": value, "delta": value, "dropout": value})
    epsilon, delta, _ = (float(part.split(" = ")[1]) for part in shown.split(", "))
    assert epsilon >= value and delta >= value
    assert one_line({}) == "none"
