"""Advice as people read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.cli.next_command import command_of
from graphveil.cli.tables import pairs, rows
from graphveil.methods.advise.rules import TRUSTS
from graphveil.privacy.printed import rounded_up
from graphveil.reports.base.text import percent, points, printable, seconds

if TYPE_CHECKING:
    from graphveil.methods.advise.advice import Advice

_NONE_FITS = {
    "local": "connections are declared private, and these methods show them to the server: see --trust links",
    "links": "connections are declared public: there is nothing to hide in lists; see --trust local",
    "curator": "nothing is declared private",
    "release": "nothing is declared private: publish the graph as it is",
    "federation": "nothing is declared private",
}


def of_all(data: str, found: Sequence[Advice], *, why: bool = False) -> RenderableType:
    """A line for each trust, and its command; with the reason where that is asked for."""
    head = Text(f"{printable(data)}: which method for which trust", style="bold")
    lines = [
        line
        for one in found
        for line in (
            (one.trust, f"{_method(one)}{_lift(one)}"),
            *([("", _reason(one))] if why else []),
            ("", command_of(one, data) or _reason(one)),
        )
    ]
    return Group(head, Text(), pairs(lines), Text(), Text(_LIFTS))


_LIFTS = (
    "Lifts are those of the most similar graphs measured. With --trust: why, a rehearsal, and what is not protected."
)


def _lift(advice: Advice) -> str:
    return "" if advice.expected is None else f", lift {advice.expected.points} points"


def of_one(data: str, advice: Advice) -> RenderableType:
    """All about one trust."""
    head = Text(f"{printable(data)}, trust {advice.trust}: {_method(advice)}", style="bold")
    return Group(head, Text(), pairs(_facts(data, advice)), *_rehearsed(advice))


def _facts(data: str, advice: Advice) -> list[tuple[str, str]]:
    rule, lines = advice.rule, [("Trusted", TRUSTS[advice.trust])]
    lines += _several("Known", (*advice.facts.sentences, _hidden(advice)))
    lines.append(("Why", _reason(advice)))
    if rule is None:
        return lines
    lines += [("It loses", rule.loses)]
    if rule.method is not None:
        lines += _several("Measured", [cell.sentence for cell in advice.alike] or ["not on the panel"])
        if advice.reached is not None:
            lines.append(("Wanted", advice.reached.sentence))
        lines.append(("Expected lift", _expected_line(advice)))
        lines.append(("Adversary", str(advice.adversary)))
    lines += [("Not protected", rule.open), ("Read", rule.page), ("Took", seconds(advice.seconds))]
    return [*lines, ("Run next", _next(data, advice))]


def _hidden(advice: Advice) -> str:
    return f"not read: {', '.join(advice.facts.hidden) or 'nothing is hidden'}"


def _several(name: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    return [(name if place == 0 else "", text) for place, text in enumerate(texts)]


def _method(advice: Advice) -> str:
    return "collect and publish nothing" if advice.rule is None or advice.rule.method is None else advice.rule.method


def _reason(advice: Advice) -> str:
    return _NONE_FITS[advice.trust] if advice.rule is None else advice.rule.why


def _expected_line(advice: Advice) -> str:
    if advice.rule is None or advice.rule.method is None:
        return "none: nothing is spent"
    if advice.expected is None:
        return "unknown: neither rehearsed nor measured on graphs like this one"
    if advice.rehearsal is None or advice.epsilon is None:
        return f"{advice.expected.points} points, on the most similar graphs measured; not rehearsed on yours"
    return f"{advice.expected.points} points at epsilon {rounded_up(advice.epsilon)}, rehearsed on {advice.on}"


def _next(data: str, advice: Advice) -> str:
    first = f"graphveil federation split {data} --out parts, then " if advice.trust == "federation" else ""
    command = command_of(advice, data)
    return "nothing" if command is None else f"{first}{command}"


def _rehearsed(advice: Advice) -> list[RenderableType]:
    if advice.rehearsal is None:
        return []
    lines = (
        (
            one.world,
            percent(one.accuracy.mean),
            points(one.lift.mean),
            f"{points(one.lift.low)} to {points(one.lift.high)}",
            one.control,
        )
        for one in advice.rehearsal.trials
    )
    return [Text(), rows(("rehearsed where", "accuracy, %", "lift, points", "95% interval", "over"), lines)]
