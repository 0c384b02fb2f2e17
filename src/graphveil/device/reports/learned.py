"""What anybody can learn from reports, by the numbers of a task alone: its words are whatever its organiser wrote."""

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

#: Modes in which the reports of both ends may tell of a link: of friends, each names the other, also where lists hold
#: what begins at their person.
TWICE: Final = frozenset({"both", "directed"})
#: Above this epsilon the factor, from 485 million on, would tell nobody anything, and words do.
_TOLD: Final = 20


def learned(task: Task) -> Iterator[str]:
    """Tell how sure anybody can become about what a task asks, a line each.

    Args:
        task: that was checked, so that its thresholds keep its epsilons.
    """
    for field in task.fields:
        if isinstance(field, Features | Label):
            yield f"{'your numbers' if isinstance(field, Features) else 'which one you are'}: {_sure(field.epsilon)}"
    if _about_links(task.fields):
        yield f"{_relationship(task.fields)}: {_sure(about_one_link(task.fields))}"
        yield "all your links together can tell more about you than any one of them"
    yield f"a report that answers everything costs you epsilon {decimal(task.epsilon)}"


def about_one_link(fields: Sequence[Field]) -> Fraction:
    """Return what all reports together lose about one link: list and number leave in one report and add up.

    Args:
        fields: of a task.
    """
    return sum((field.epsilon * (2 if field.mode in TWICE else 1) for field in _about_links(fields)), Fraction(0))


def odds(epsilon: Fraction) -> str:
    """Tell how far anybody's odds can rise: by e^epsilon in four digits, rounded up, as "at most" must hold.

    Args:
        epsilon: of all that is told, without a cap; a large one is told in words.
    """
    if epsilon > _TOLD:
        return "odds up to practical certainty"
    factor = math.exp(float(epsilon))
    unit = 10.0 ** (math.floor(math.log10(factor)) - 3)
    rounded = math.ceil(factor / unit) * unit
    return f"odds at most {rounded:,.{4 if rounded < 10_000 else 9}g} times those before"


def decimal(epsilon: Fraction) -> str:
    """Return an epsilon of a task, which is a decimal of nine digits at most, as it is."""
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
