"""A task and a report in plain words: what is asked, what would be sent, and what a reader could conclude from it.

What anybody can learn from reports is computed from a task's numbers and not from its organiser's words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from graphveil.device.people.person import Person
from graphveil.device.reports.answer import NANO
from graphveil.device.reports.degree import Degree
from graphveil.device.reports.exact import DIGIT, WORD
from graphveil.device.reports.features import Features
from graphveil.device.reports.label import Label
from graphveil.device.reports.links import Links, answers_for
from graphveil.device.reports.noise import Bits, number_of
from graphveil.device.task import Field, Task, moment, short_key

#: Modes in which both ends may report a link: friends name each other, in directed lists too.
TWICE: Final = frozenset({"both", "directed"})
#: Above this epsilon the factor, from 485 million on, is put into words.
_LARGEST_IN_DIGITS: Final = 20


def learned(task: Task) -> Iterator[str]:
    """Describe how sure anybody can become about each field of a checked task, line by line."""
    for field in task.fields:
        if isinstance(field, Features | Label):
            yield f"{'your numbers' if isinstance(field, Features) else 'which one you are'}: {_odds_at(field.epsilon)}"
    if _about_links(task.fields):
        yield f"{_relationship(task.fields)}: {_odds_at(about_one_link(task.fields))}"
        yield "all your links together can tell more about you than any one of them"
    yield f"a report that answers everything costs you epsilon {decimal(task.epsilon)}"


def about_one_link(fields: Sequence[Field]) -> Fraction:
    """Return the epsilon of one link over all reports: list and number are in one report, so theirs add up."""
    return sum((field.epsilon * (2 if field.mode in TWICE else 1) for field in _about_links(fields)), Fraction(0))


def odds(epsilon: Fraction) -> str:
    """Return in words how far anybody's odds can rise at epsilon of everything reported, without a cap: e^epsilon in
    four digits, rounded up to hold as "at most"; a large one is put into words.
    """
    if epsilon > _LARGEST_IN_DIGITS:
        return "odds up to practical certainty"
    factor = math.exp(float(epsilon))
    unit = 10.0 ** (math.floor(math.log10(factor)) - 3)
    rounded = math.ceil(factor / unit) * unit
    return f"odds at most {rounded:,.{4 if rounded < 10_000 else 9}g} times those before"


def decimal(epsilon: Fraction) -> str:
    """Return a task's epsilon exactly, as a decimal of at most nine digits after the point."""
    whole, billionths = divmod(int(epsilon * NANO), NANO)
    return f"{whole}.{billionths:09}".rstrip("0").rstrip(".")


def _odds_at(epsilon: Fraction) -> str:
    return f"{odds(epsilon)} (epsilon {decimal(epsilon)})"


def _about_links(fields: Sequence[Field]) -> list[Links | Degree]:
    return [field for field in fields if isinstance(field, Links | Degree)]


def _relationship(fields: Sequence[Field]) -> str:
    about_links = _about_links(fields)
    by = " and number" if len(about_links) > 1 else ""
    both_ends = ", yours and theirs" if {field.mode for field in about_links} & TWICE else ""
    reported = "number" if isinstance(about_links[0], Degree) and not by else "list"
    return f"whether you are linked with one certain person, by {reported}{by}{both_ends}"


#: Printable, but invisible.
_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
#: The people for whom a list answers, by mode.
_MODES = {
    "lower": "among people with higher numbers than yours",
    "both": "among all people, who answer for you as well",
    "directed": "by links that begin at you",
}


def task_lines(task: Task) -> Iterator[str]:
    """Describe a checked task, line by line."""
    # The first word is ours: some terminals turn a line round whose first letter is of a right-to-left script.
    yield plain(f"collection {task.name}, by {task.organiser} ({task.contact})")
    yield f"signed by the key {short_key(task.key)}, which the organiser can confirm to you"
    yield plain(f"purpose: {task.purpose}")
    yield f"of {task.people:,} people; nothing is exported from fewer than {task.least:,} reports"
    yield f"answers are taken from {moment(task.opens)} until {moment(task.closes)}"
    for field in task.fields:
        yield f"- {_question(field)}"
    yield "what anybody can learn, whatever else they know; computed here from the noise of the task:"
    yield from (f"- {line}" for line in learned(task))
    # Free text, in which the signer may promise what the task's numbers do not keep.
    yield from (plain(f"the organiser's words: {line}") for line in task.guarantee)
    yield from (plain(f"the organiser's words on what is public: {line}") for line in task.public)
    yield f"task {task.hash.hex()}"


def report_lines(task: Task, person: Person, answers: Sequence[Bits | None]) -> Iterator[str]:
    """Describe a report field by field, with how reliable each answer is to a reader.

    Args:
        answers: of each field.
    """
    for field, bits in zip(task.fields, answers, strict=True):
        if bits is None:
            yield f"- {field.kind}: not answered, which can be seen"
            continue
        yield f"- {field.kind}: {_reported(field, bits, person)}"
        yield f"  {_odds_line(field)}"


def person_name(number: int, id: str | None) -> str:
    """Return a person's id and number in words; `id` is None where it is not known."""
    return f"person {number}" if id is None else plain(f'"{id}", person {number}')


def plain(text: str) -> str:
    """Return a foreign text without letters that move the cursor, or hide or turn round their neighbours."""
    return "".join("?" if _is_hidden(letter) else letter for letter in " ".join(text.split()))


def hidden_in(text: str) -> str | None:
    """Return the first invisible letter: a control, a mark of direction, a filler; None without one."""
    # Fast for lists of millions of ids.
    if text.isprintable() and not any(filler in text for filler in _FILLERS):
        return None
    return next((letter for letter in text if _is_hidden(letter) and not letter.isspace()), None)


def _is_hidden(letter: str) -> bool:
    # Joiners stay: Persian, many Indian scripts and emoji need them.
    return letter in _FILLERS or not (letter.isprintable() or letter in "\u200c\u200d")


def _question(field: Field) -> str:
    price = f"epsilon {decimal(field.epsilon)}"
    match field:
        case Features():
            numbers = f"{len(field.names):,} numbers from {field.low:g} to {field.high:g} ({_first_five(field.names)})"
            return f"{numbers}; of {field.sampled:,} of them a yes or no each, {price}"
        case Label():
            return f"which you are: {_first_five(field.classes)}; one of them, {price}"
        case Links():
            return f"whom you are linked to {_MODES[field.mode]}; a yes or no for each person, {price} for each of them"
        case Degree():
            return f"how many you are linked to {_MODES[field.mode]}; a number near it, {price}"


def _reported(field: Field, bits: Bits, person: Person) -> str:
    match field:
        case Features():
            answers = [
                f"{field.names[column]} {'high' if bit else 'low'}"
                for column, bit in zip(field.coordinates(person), bits, strict=True)
            ]
            return f"says {_first_five(answers)}"
        case Label():
            return plain(f"says {field.classes[number_of(bits)]}")
        case Links():
            return f"names {int(bits.sum()):,} of {int(answers_for(field.people, field.mode, person).sum()):,} people"
        case Degree():
            return f"says {number_of(bits) + field.lowest:,}"


def _odds_line(field: Field) -> str:
    """Return in words how likely an answer is if it is true, and if it is not."""
    match field:
        case Features():
            low = field.threshold / WORD
            bits = f"each says high with {1 - low:.1%} at the top of the range and {low:.1%} at its bottom"
            return f"{bits}{_reader_odds(field)}"
        case Label():
            share = field.share / WORD
            truth = 1 - (len(field.classes) - 1) * share
            return f"the truth is said with {truth:.1%}, each other answer with {share:.1%}{_reader_odds(field)}"
        case Links():
            return f"each person is told wrongly with {field.threshold / WORD:.1%}{_reader_odds(field)}"
        case Degree():
            # The digits of a geometric number with ratio r have the odds r, r^2, r^4 ...
            digits = [int(digit) for digit in field.digits]
            ratio = digits[0] / (DIGIT - digits[0]) if digits else field.overflow / DIGIT
            return f"it lies {2 * ratio / (1 - ratio**2):.1f} beside the truth on average{_reader_odds(field)}"


def _reader_odds(field: Field) -> str:
    return f"; whoever reads it has {odds(field.epsilon)}"


def _first_five(names: Sequence[str]) -> str:
    listed = ", ".join(names[:5])
    return plain(listed if len(names) <= 5 else f"{listed} and {len(names) - 5:,} more")
