"""``graphveil advise``: which method to use for a graph and a trust, and what to expect of it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.cli.base import choices, options
from graphveil.cli.base.console import emit, working
from graphveil.cli.base.tables import listed, pairs, rows
from graphveil.errors import InputError
from graphveil.methods.advise.rules import TRUSTS
from graphveil.methods.base.cost import ASSUMED_DEGREE
from graphveil.privacy.accounting.limits import require_budget
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base.text import percent, points, printable, seconds
from graphveil.runtime.words import nearest

if TYPE_CHECKING:
    from graphveil.graphs.value.parts import GraphParts
    from graphveil.methods.advise.advice import Advice, Request


_NONE_FITS = {
    "local": "connections are declared private, and these methods show them to the server: see --trust links",
    "links": "connections are declared public: there is nothing to hide in lists; see --trust local",
    "curator": "nothing is declared private",
    "release": "nothing is declared private: publish the graph as it is",
    "federation": "nothing is declared private",
}


def of_all(data: str, advices: Sequence[Advice], *, why: bool = False) -> RenderableType:
    """The screen of advice for every trust: a line for each and its command; with the reason if ``why``."""
    head = Text(f"{printable(data)}: which method for which trust model", style="bold")
    lines: list[tuple[str, str]] = []
    for advice in advices:
        lift = "" if advice.expected is None else f", lift {advice.expected.points} points"
        lines.append((advice.trust, f"{_method(advice)}{lift}"))
        lines += [("", _reason(advice))] if why else []
        lines.append(("", command_of(advice, data) or _reason(advice)))
    return Group(head, Text(), pairs(lines), Text(), Text(_LIFTS))


_LIFTS = "Lifts are those of the most similar graphs measured. --trust adds why, a rehearsal and what is not protected."


def of_one(data: str, advice: Advice) -> RenderableType:
    head = Text(f"{printable(data)}, trust {advice.trust}: {_method(advice)}", style="bold")
    return Group(head, Text(), pairs(_facts(data, advice)), *_rehearsal_parts(advice))


def _facts(data: str, advice: Advice) -> list[tuple[str, str]]:
    rule, lines = advice.rule, [("Trusted", TRUSTS[advice.trust])]
    hidden = ", ".join(advice.facts.hidden) or "nothing is hidden"
    lines += listed("Known", (*advice.facts.sentences, f"not read: {hidden}"))
    lines.append(("Why", _reason(advice)))
    if rule is None:
        return lines
    if rule.method is not None:
        lines.append(("Weak where", rule.loses))
        lines += listed("Measured", [cell.sentence for cell in advice.alike] or ["on no graph like this one"])
        if advice.reached is not None:
            lines.append(("Wanted", advice.reached.sentence))
        lines.append(("Expected lift", _expected_line(advice)))
        # In one world, of a pilot or of public edges, nothing is left to declare.
        if _has_several_worlds(advice):
            degree = f"--degree N, contacts a person has on average, if that is public; {ASSUMED_DEGREE:g} were assumed"
            lines += listed("Narrower by", (PILOT, *([degree] if advice.facts.degree is None else [])))
        lines.append(("Adversary", str(advice.adversary)))
    lines += [("Not protected", rule.open), ("Read", rule.page)]
    lines.append(("Run next", command_of(advice, data) or "nothing"))
    question = _question_command(advice, data)
    return lines if question is None else [*lines, ("Or ask too", f"{question}; {_QUESTION_NOTE}")]


_QUESTION_NOTE = (
    "people without a label then answer one question. This one is an example: choose one whose answer is known to say "
    "much about the class"
)


def _has_several_worlds(advice: Advice) -> bool:
    """Whether the rehearsal used several graphs, because to choose one would take private facts."""
    return advice.rehearsal is not None and len({trial.world for trial in advice.rehearsal.trials}) > 1


#: What narrows the interval most, and what must be true of it.
PILOT = "--pilot DATA, a graph like yours that is public or already paid for"


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
    expected = f"{advice.expected.points} points at epsilon {rounded_up(advice.epsilon)}"
    return f"{expected}, rehearsed in {seconds(advice.seconds)} on {advice.on}"


def _rehearsal_parts(advice: Advice) -> list[RenderableType]:
    if advice.rehearsal is None:
        return []
    lines = (
        (
            trial.world,
            percent(trial.accuracy.mean),
            f"{points(trial.lift.mean)} ({points(trial.lift.low)} to {points(trial.lift.high)})",
            trial.control,
        )
        for trial in advice.rehearsal.trials
    )
    table = rows(("rehearsed where", "accuracy, %", "lift, points (95%)", "over"), lines)
    return [Text(), table, *([Text(_WORLDS)] if _has_several_worlds(advice) else [])]


_WORLDS = (
    "How often contacts lie inside a class is not public, so a graph was generated for each of three values (equal "
    "rows: classes cannot follow your contacts more). The expected lift spans all their intervals."
)


def command_of(advice: Advice, data: str) -> str | None:
    """The command to run next; None: nothing should be run.

    Args:
        advice: for one trust.
    """
    if advice.rule is None or advice.rule.method is None:
        return None
    # A folder's name may hold spaces, and a user pastes this line.
    quoted_data = shlex.quote(data)
    flags = [f"{choices.flag(key)} {_epsilon_text(value)}" for key, value in advice.settings.items()]
    # A federation takes several commands, and a release has one of its own.
    if advice.trust == "federation":
        split_command = f"graphveil federation split {quoted_data} --out parts"
        init_command = "graphveil federation init --from parts --out run --mode guesses --set unit=person"
        return f"{split_command} && {init_command} {' '.join(flags)}"
    if advice.trust == "release":
        return f"graphveil release {advice.rule.method} {quoted_data} {' '.join(flags)} --out runs/released"
    return f"graphveil train {advice.rule.method} {quoted_data} {' '.join(flags)}"


def _question_command(advice: Advice, data: str) -> str | None:
    """The command that also asks people without a label one question, where labels alone are advised."""
    rule = advice.rule
    if rule is None or rule.method != "label-pool" or "features" not in advice.facts.hidden or advice.epsilon is None:
        return None
    question = shlex.quote(f"question={advice.facts.question}")
    return f"graphveil train answer-pool {shlex.quote(data)} --epsilon {_epsilon_text(advice.epsilon)} --set {question}"


def _epsilon_text(epsilon: float | None) -> str:
    return "none" if epsilon is None else rounded_up(epsilon)


def _answer(advice: Advice, data: str) -> dict[str, object]:
    command = _question_command(advice, data)
    question_field = {} if command is None else {"question_command": command}
    return {**advice.to_dict(), "command": command_of(advice, data), **question_field}


Trust = Annotated[
    str | None, typer.Option(metavar="|".join(TRUSTS), help="Who may see raw data. Default: advice for each.")
]
Price = Annotated[
    float | None, typer.Option(metavar="E", help="Epsilon of the rehearsal, in place of the advised one.")
]
Degree = Annotated[
    float | None,
    typer.Option(metavar="N", help="Average contacts of a person, where edges are private and this number is public."),
]
_GOAL = "A goal: rehearse to find the smallest epsilon that reaches it."
Want = Annotated[str | None, typer.Option("--want", metavar="accuracy=0.8|lift=0.02", help=_GOAL)]
Pilot = Annotated[
    str | None,
    typer.Option(metavar="DATA", help="Rehearse on this graph, which you declare public or already paid for."),
]


def advise(
    data: options.Data,
    trust: Trust = None,
    epsilon: Price = None,
    degree: Degree = None,
    want: Want = None,
    pilot: Pilot = None,
    data_root: options.DataRoot = None,
    as_json: options.Json = False,
) -> None:
    """Advise a method for a graph and a trust model, with the reason, the expected lift and the command to run next."""
    # Before loading: a mistyped name must not cost the time to read a large folder.
    if trust is not None:
        require_trust(trust)
    # Five searches would take minutes, and each trust has another unit for epsilon.
    if trust is None and (want or pilot or epsilon):
        raise InputError("--want, --pilot and --epsilon apply to one trust model", remedy="add --trust", allowed=_NAMES)
    if epsilon is not None:
        require_budget("--epsilon", epsilon, "nothing here")
        if epsilon == float("inf"):
            raise InputError("epsilon inf protects nothing", where="--epsilon", allowed="a finite number above 0")
    if degree is not None and not 0 < degree < 1e6:
        raise InputError(f"{degree!r} contacts", where="--degree", allowed="a number above 0")
    from graphveil.graphs import load_parts
    from graphveil.methods.advise.advice import advise as advice_for
    from graphveil.methods.advise.advice import all_trusts
    from graphveil.methods.advise.goal import goal_of

    goal = None if want is None else goal_of(want)
    with working() as progress:
        graph = load_parts(data, data_root, progress=progress)
        pilot_graph = None if pilot is None else load_parts(pilot, data_root, progress=progress)
        request = request_of(data, graph, epsilon=epsilon, degree=degree, goal=goal, pilot=pilot_graph)
        advices = all_trusts(graph, request) if trust is None else (advice_for(trust, graph, request, progress),)
    answers = [_answer(advice, data) for advice in advices]
    if trust is None:
        answer = {"data": graph.schema.name, "declares": list(graph.schema.private), "advice": answers}
        emit(answer, as_json=as_json, screen=lambda: of_all(data, advices))
    else:
        emit({"data": graph.schema.name, **answers[0]}, as_json=as_json, screen=lambda: of_one(data, advices[0]))


_NAMES = ", ".join(TRUSTS)
_NOBODY_TRUSTED = "where nobody is trusted, say local for private features and labels, links for private connections"


def require_trust(trust: str) -> None:
    """Refuse the name of a trust that does not exist: InputError."""
    if trust not in TRUSTS:
        remedy = _NOBODY_TRUSTED if trust == "nobody" else nearest(trust, TRUSTS)
        raise InputError(f"no trust {trust!r}", where="--trust", allowed=_NAMES, remedy=remedy)


def request_of(data: str, graph: GraphParts, **fields: object) -> Request:
    """The request for advice about a graph; `fields` are the others of `Request`.

    Args:
        data: name or folder; a named set counts as public, in a folder the owner declares what is private.
    """
    from graphveil.graphs.load import is_name
    from graphveil.methods.advise.advice import Request

    return Request(None if is_name(data) else graph.schema.private, **fields)  # type: ignore[arg-type]
