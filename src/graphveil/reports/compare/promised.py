"""What a group of a comparison promises, in the three lines of a run, and every fact that its rows assume."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from graphveil.reports.base import brief
from graphveil.reports.compare.rows import Row
from graphveil.reports.compare.sheet import Group


def three_lines(group: Group, where: str) -> tuple[tuple[str, str], ...]:
    """Heading and text of each line; what differs between rows is listed by method.

    Args:
        where: the file that tells every fact in full.
    """
    return (
        ("Guarantee", "; ".join(_claims(group))),
        ("Not protected", _by_methods(group.rows, lambda row: brief.open_parts(row.exposed))),
        ("Assumes", f"{_by_methods(group.rows, lambda row: brief.assumed(row.guarantee))} -> {where}"),
    )


def facts(group: Group) -> list[str]:
    """Every fact that a row leans on, as a sentence; where others of its group do not, with the methods before it."""
    everybody = _methods(group.rows)
    assumed: dict[str, list[Row]] = {}
    for row in group.rows:
        for fact in row.guarantee.assumes:
            assumed.setdefault(fact.sentence, []).append(row)
    owners = {sentence: _methods(rows) for sentence, rows in assumed.items()}
    return [text if of == everybody else f"{of}: {text}" for text, of in owners.items()]


def _claims(group: Group) -> Iterable[str]:
    if group.promise.parts:
        return (brief.claim([row.guarantee for row in group.rows]),)
    # Where nothing is protected, rows may differ in what is open, and to whom.
    return dict.fromkeys(brief.claim([row.guarantee]) for row in group.rows)


def _by_methods(rows: Iterable[Row], say: Callable[[Row], str]) -> str:
    same: dict[str, list[Row]] = {}
    for row in rows:
        same.setdefault(say(row), []).append(row)
    if len(same) == 1:
        return next(iter(same))
    return "; ".join(f"{_methods(some)}: {text}" for text, some in same.items())


def _methods(rows: Iterable[Row]) -> str:
    return ", ".join(dict.fromkeys(row.method for row in rows))
