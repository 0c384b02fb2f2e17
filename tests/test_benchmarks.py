"""A speed on the page of benchmarks is a ratio first; seconds stand beside it, with a processor, and bear it out."""

from __future__ import annotations

import re

import pytest

from tests.pages import ROOT

PAGE = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
SECONDS = re.compile(r"\b(CPU m?s|(micro|milli)?seconds)\b|[\d)] (CPU )?([mnµ]?s)\b")
PROCESSOR = re.compile(r"\b(Intel|AMD|Arm|Apple|NVIDIA)\b")
#: What a ratio is headed by; a cell of one holds a number, or says that nothing was run.
RATIO = re.compile(r" / |\btimes\b|\bratio\b")
FILLED = re.compile(r"\d|not run")
NUMBER = re.compile(r"[\d,]+(\.\d+)?")


def cells(line: str) -> list[str]:
    return [cell.strip(" *") for cell in line.strip().strip("|").split("|")]


def faults_of(title: str, table: str) -> list[str]:
    """What is wrong with a table, where the heading of its section or of a column tells seconds.

    A table of how seconds grow needs no ratios: its exponents compare a program with itself.
    """
    header, _, *rows = (cells(line) for line in table.strip().splitlines())
    timed = [place for place, name in enumerate(header) if SECONDS.search(name)]
    if "exponent" in header or not (timed or SECONDS.search(title)):
        return []
    ratios = [place for place, name in enumerate(header[: timed[0]] if timed else header) if RATIO.search(name)]
    if not ratios or not all(FILLED.search(row[place]) for row in rows for place in ratios):
        return ["no ratio"]
    pairs = zip(ratios, timed, strict=False)
    return ["another ratio" for place, at in pairs if not all(follows(row[place], row[at]) for row in rows)]


def follows(ratio: str, seconds: str) -> bool:
    """Whether a ratio is that of "a / b" or of b / a, as far as they are rounded; anything else is not judged."""
    numbers = [ratio, *seconds.split(" / ")]
    if len(numbers) != 3 or not all(NUMBER.fullmatch(number) for number in numbers):
        return True
    (least, most), (a, b), (c, d) = map(span, numbers)
    return any(
        low / up <= most and (down == 0 or least <= high / down) for low, high, down, up in ((a, b, c, d), (c, d, a, b))
    )


def span(number: str) -> tuple[float, float]:
    """The least and the most that a number may have been before it was rounded to its last digit."""
    value, half = float(number.replace(",", "")), 0.5 * 0.1 ** len(number.partition(".")[2])
    return max(value - half, 0.0), value + half


def faults(page: str) -> list[str]:
    """What is wrong with each section."""
    wrong = []
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title, tables = section.partition("\n")[0], re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
        own = ["no processor"] * bool(SECONDS.search(section) and not PROCESSOR.search(section))
        wrong += [
            f"{fault}: {title}" for fault in own + [fault for table in tables for fault in faults_of(title, table)]
        ]
    return wrong


def test_speeds_are_ratios_and_seconds_name_their_processor() -> None:
    assert len(re.findall(SECONDS, PAGE)) > 10
    assert faults(PAGE) == []


TABLE = (
    "## S\n\nOn an Intel Xeon.\n\n| what | ours / plain | CPU s |\n| --- | --- | --- |\n| a | **0.67** | 1.0 / 1.5 |\n"
)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("", "", []),
        ("0.67", "1.5", []),
        ("0.67", "0.72", []),
        ("0.67", "0.75", ["another ratio: S"]),
        ("On an Intel Xeon", "On a server", ["no processor: S"]),
        ("ours / plain | CPU s", "rows | CPU s", ["no ratio: S"]),
        ("ours / plain | CPU s", "CPU s | ours / plain", ["no ratio: S"]),
        ("**0.67**", "", ["no ratio: S"]),
        ("ours / plain | CPU s", "CPU s | exponent", []),
        ("## S", "## S: CPU ms", []),
    ],
)
def test_a_table_of_seconds_without_a_ratio_that_they_bear_out_is_found(old: str, new: str, fault: list[str]) -> None:
    assert faults(TABLE.replace(old, new)) == fault
