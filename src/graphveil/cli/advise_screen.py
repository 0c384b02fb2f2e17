"""Advice as people read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.cli.next_command import command_of, question_command
from graphveil.cli.tables import pairs, rows
from graphveil.methods.advise.rules import TRUSTS
from graphveil.methods.base.cost import ASSUMED_DEGREE
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
    if rule.method is not None:
        lines.append(("Weak where", rule.loses))
        lines += _several("Measured", [cell.sentence for cell in advice.alike] or ["on no graph like this one"])
        if advice.reached is not None:
            lines.append(("Wanted", advice.reached.sentence))
        lines.append(("Expected lift", _expected_line(advice)))
        lines += _several("Narrower by", _narrower(advice))
        lines.append(("Adversary", str(advice.adversary)))
    lines += [("Not protected", rule.open), ("Read", rule.page)]
    lines.append(("Run next", command_of(advice, data) or "nothing"))
    asked = question_command(advice, data)
    return lines if asked is None else [*lines, ("Or ask too", f"{asked}; {_ASKED}")]


_ASKED = (
    "people without a label then answer one question. This one is an example: take one that says much of the class, "
    "known from elsewhere"
)


def _narrower(advice: Advice) -> tuple[str, ...]:
    """What the user may declare public so that the band of made graphs becomes narrower."""
    # One world is a pilot, or public edges that lie as private ones do: nothing is left to declare.
    if not _several_worlds(advice):
        return ()
    degree = f"--degree N, contacts a person has on average, if that is public; {ASSUMED_DEGREE:g} were assumed"
    return (PILOT, *([degree] if advice.facts.degree is None else []))


def _several_worlds(advice: Advice) -> bool:
    """Whether it was rehearsed on several graphs because one would have to be chosen by what is private."""
    return advice.rehearsal is not None and len({trial.world for trial in advice.rehearsal.trials}) > 1


#: What narrows a band most, and what has to be true of it.
PILOT = "--pilot DATA, a graph like yours that is public or already paid for"


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
        measured = f"{advice.expected.points} points, on the most similar graphs measured"
        if advice.trust == "federation":
            return f"{measured}; a federation is not rehearsed, so no accuracy is known for yours"
        return f"{measured}; not rehearsed on yours"
    found = f"{advice.expected.points} points at epsilon {rounded_up(advice.epsilon)}"
    return f"{found}, rehearsed in {seconds(advice.seconds)} on {advice.on}"


def _rehearsed(advice: Advice) -> list[RenderableType]:
    if advice.rehearsal is None:
        return []
    lines = (
        (
            one.world,
            percent(one.accuracy.mean),
            f"{points(one.lift.mean)} ({points(one.lift.low)} to {points(one.lift.high)})",
            one.control,
        )
        for one in advice.rehearsal.trials
    )
    table = rows(("rehearsed where", "accuracy, %", "lift, points (95%)", "over"), lines)
    return [Text(), table, *([Text(_WORLDS)] if _several_worlds(advice) else [])]


_WORLDS = (
    "How often contacts lie inside a class is not public, so a graph was made for each of three answers (equal rows: "
    "classes cannot follow your contacts more). The expected lift spans all their intervals."
)
