"""What anybody can learn from reports, computed from a task's numbers and not from its organiser's words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from graphveil.device.reports.answer import NANO
from graphveil.device.reports.degree import Degree
from graphveil.device.reports.features import Features
from graphveil.device.reports.label import Label
from graphveil.device.reports.links import Links
from graphveil.device.task import Field, Task

#: Modes in which both ends may report a link: friends name each other, even where a list holds only links that begin at
#: its person.
TWICE: Final = frozenset({"both", "directed"})
#: Above this epsilon the factor, from 485 million on, is put into words.
_TOLD: Final = 20


def learned(task: Task) -> Iterator[str]:
    """Describe how sure anybody can become about each field of a checked task, line by line."""
    for field in task.fields:
        if isinstance(field, Features | Label):
            yield f"{'your numbers' if isinstance(field, Features) else 'which one you are'}: {_sure(field.epsilon)}"
    if _about_links(task.fields):
        yield f"{_relationship(task.fields)}: {_sure(about_one_link(task.fields))}"
        yield "all your links together can tell more about you than any one of them"
    yield f"a report that answers everything costs you epsilon {decimal(task.epsilon)}"


def about_one_link(fields: Sequence[Field]) -> Fraction:
    """Return the epsilon of one link over all reports: list and number leave in one report and add up."""
    return sum((field.epsilon * (2 if field.mode in TWICE else 1) for field in _about_links(fields)), Fraction(0))


def odds(epsilon: Fraction) -> str:
    """Return in words how far anybody's odds can rise: e^epsilon in four digits, rounded up to hold as "at most".

    Args:
        epsilon: of everything reported, without a cap; a large one is put into words.
    """
    if epsilon > _TOLD:
        return "odds up to practical certainty"
    factor = math.exp(float(epsilon))
    unit = 10.0 ** (math.floor(math.log10(factor)) - 3)
    rounded = math.ceil(factor / unit) * unit
    return f"odds at most {rounded:,.{4 if rounded < 10_000 else 9}g} times those before"


def decimal(epsilon: Fraction) -> str:
    """Return a task's epsilon exactly, as a decimal of at most nine digits after the point."""
    whole, billionths = divmod(int(epsilon * NANO), NANO)
    return f"{whole}.{billionths:09}".rstrip("0").rstrip(".")


def _sure(epsilon: Fraction) -> str:
    return f"{odds(epsilon)} (epsilon {decimal(epsilon)})"


def _about_links(fields: Sequence[Field]) -> list[Links | Degree]:
    return [field for field in fields if isinstance(field, Links | Degree)]


def _relationship(fields: Sequence[Field]) -> str:
    about_links = _about_links(fields)
    by = " and number" if len(about_links) > 1 else ""
    theirs = ", yours and theirs" if {field.mode for field in about_links} & TWICE else ""
    reported = "number" if isinstance(about_links[0], Degree) and not by else "list"
    return f"whether you are linked with one certain person, by {reported}{by}{theirs}"
