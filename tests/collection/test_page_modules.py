"""The person's page and the device in Python say and refuse the same; the page's own modules run in Node."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path

from graphveil.device.errors import DeviceError
from graphveil.device.people.people import ids_hash, ids_of
from graphveil.device.reports.answer import NANO
from graphveil.device.task import Task
from graphveil.device.telling import about_one_link, odds
from tests.on_device.javascript import page_said
from tests.on_device.pretended import spelled
from tests.on_device.signing import degree, links, task_of
from tests.on_device.vectors import TWINS

MODES = ("lower", "both", "directed")

BOUNDS = """
import { readTask } from "./device.js";
import { bounds } from "./terms.js";
const found = [];
for (const one of told) {
  const task = await readTask(new TextEncoder().encode(one));
  found.push(bounds(task).map(([what, nano]) => [what, `${nano}`]));
}
say(found);
"""


def test_of_one_link_both_say_the_same_whatever_the_modes(tmp_path: Path) -> None:
    """A list and a number leave together, and of friends each names the other, also by links that begin there."""
    pairs = [(links(12, "0.7", mode), degree(12, "0.3", other)) for mode, other in product(MODES, MODES)]
    alone = [(make(12, "0.7", mode),) for make in (links, degree) for mode in MODES]
    tasks = [task_of(*fields) for fields in (*pairs, *alone)]
    page = page_said(tmp_path / "page", BOUNDS, [task.data.decode() for task in tasks])
    for task, rows in zip(tasks, page, strict=True):
        assert len(rows) == (3 if len(task.fields) > 1 else 1)
        assert Fraction(int(rows[-1][1]), NANO) == about_one_link(task.fields)
        for field, (what, nano) in zip(task.fields, rows, strict=False):
            ends = Fraction(int(nano), NANO) / field.epsilon
            assert ends == (2 if "by your answer and theirs" in what else 1)
    # Else both could be wrong alike.
    assert [float(about_one_link(task.fields)) for task in tasks[:9]] == [1, 1.3, 1.3, 1.7, 2, 2, 1.7, 2, 2]


NUMBERS = """
import { decimal, down, surest, times, up } from "./numbers.js";
const [nanos, chances] = told;
const each = (nano) => [surest(nano), times(nano), decimal(nano)];
say([nanos.map((nano) => each(BigInt(nano))), chances.map((one) => [down(one), up(one)])]);
"""


def test_odds_are_those_of_the_device_and_nothing_is_rounded_to_the_wrong_side(tmp_path: Path) -> None:
    epsilons = ("0.000000001", "0.001", "0.5", "0.693147181", "1", "3.5", "12", "20", "20.000000001", "999999999")
    chances = [0.0001, 0.25, 1 / 3, 0.5761168847658291, 0.9999, 1 - 1e-7]
    nanos = [str(int(Fraction(epsilon) * NANO)) for epsilon in epsilons]
    pages, rounded = page_said(tmp_path / "page", NUMBERS, [nanos, chances])
    ours = [odds(Fraction(epsilon)).removeprefix("odds ") for epsilon in epsilons]
    assert [times.replace("times as sure as before", "times those before") for _, times, _ in pages] == ours
    assert ours[7] == "at most 485,200,000 times those before" and ours[8:] == ["up to practical certainty"] * 2
    for epsilon, (surest, times, decimal) in zip(epsilons[:9], pages, strict=False):
        factor = Decimal(epsilon).exp()
        percent = Decimal(100) if surest.startswith("practically") else Decimal(surest.removesuffix("%"))
        # Up, by a tenth of a percent at most, and never to certainty.
        assert 0 <= percent - 100 * factor / (1 + factor) <= Decimal("0.1000001"), (epsilon, surest)
        assert surest != "100%" and Fraction(decimal) == Fraction(epsilon)
        if number := re.fullmatch(r"at most ([\d.,]+) times as sure as before", times):
            assert 1 <= Decimal(number[1].replace(",", "")) / factor <= Decimal("1.0011"), (epsilon, times)
    for chance, (below, above) in zip(chances, rounded, strict=True):
        low, high = (float(bound.rstrip("%")) for bound in (below, above))
        assert low <= 100 * chance <= high <= low + 0.21


NAMES = """
import { readTask } from "./device.js";
import { names } from "./collector.js";
const found = [];
for (const [task, lines] of told) {
  globalThis.fetch = async () => new Response(lines);
  const read = await readTask(new TextEncoder().encode(task));
  found.push(await names(read).catch(({ code }) => code));
}
say(found);
"""


def accepted(task: Task, data: bytes) -> list[str] | str:
    """The ids that the device in Python takes; "bad-ids" where it takes none."""
    try:
        return list(ids_of(task, data))
    except DeviceError:
        return "bad-ids"


def test_both_take_the_same_lists_of_people(tmp_path: Path) -> None:
    cases = [
        (3, ("Ann", "Bob", "\ufffd"), ("Ann", "Bob", "\ufffd")),
        (3, ("Ann", "Bob", "Ann"), ("Ann", "Bob", "Ann")),
        (3, ("Ann", "Bob"), ("Ann", "Bob")),
        # Another order, or others, than those whose hash the task holds.
        (3, ("Bob", "Ann", "Cem"), ("Ann", "Bob", "Cem")),
        (3, ("Ann", "Bob", "Dia"), ("Ann", "Bob", "Cem")),
        (3, ("Ann", "Bob", "Cem", "Dia"), ("Ann", "Bob", "Cem", "Dia")),
        # As many different ids as people, since there are more lines: both ends of each link would report it.
        (4, ("Ann", "Bob", "Ann", "Bob", "x", "y"), ("Ann", "Bob", "Ann", "Bob", "x", "y")),
        # No text has half of a character. Whoever writes one as U+FFFD takes two such ids for two people, and one hash.
        (2, ("\ud800", "\ud801"), ("\ufffd", "\ufffd")),
        (2, ("Ann", "\udfff"), ("Ann", "\ufffd")),
        # One person's, to everybody but a program.
        *((2, twins, twins) for twins in TWINS),
    ]
    tasks = [task_of(links(people), people=people, least=1, ids=ids_hash(hashed)) for people, _, hashed in cases]
    lists = [spelled(ids) for _, ids, _ in cases]
    put = [[task.data.decode(), data.decode()] for task, data in zip(tasks, lists, strict=True)]
    ours = [accepted(task, data) for task, data in zip(tasks, lists, strict=True)]
    assert page_said(tmp_path / "page", NAMES, put) == ours
    assert ours == [list(cases[0][1]), *["bad-ids"] * (8 + len(TWINS))]
