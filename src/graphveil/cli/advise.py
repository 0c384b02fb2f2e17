"""``graphveil advise``: which method to take for a graph and a trust, and what to expect of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphveil.cli import near, options
from graphveil.cli.console import emit, working
from graphveil.errors import InputError
from graphveil.methods.advise.rules import TRUSTS

if TYPE_CHECKING:
    from graphveil.graphs.parts import GraphParts
    from graphveil.methods.advise.advice import Asked

Trust = Annotated[
    str | None,
    typer.Option("--trust", metavar="|".join(TRUSTS), help="Who may see raw data. Default: a line for each."),
]
Price = Annotated[float | None, typer.Option("--epsilon", metavar="E", help="To rehearse at, in place of the advised.")]
Degree = Annotated[
    float | None,
    typer.Option("--degree", metavar="N", help="Contacts a person has, if publicly known where edges are private."),
]
_GOAL = "The smallest epsilon that reaches it, by rehearsals."
Want = Annotated[str | None, typer.Option("--want", metavar="accuracy=0.8|lift=0.02", help=_GOAL)]
Pilot = Annotated[
    str | None,
    typer.Option("--pilot", metavar="DATA", help="Rehearse on a graph that you declare public, or already paid."),
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
    """Say which method to take for a graph and a trust, why, what lift to expect, and the command to run next."""
    # Before anything is loaded: a mistyped name must not cost the reading of a large folder.
    checked = None if trust is None else trust_of(trust)
    # Five searches at once would take minutes, and each trust has a unit of its own that epsilon is the price of.
    if checked is None and (want or pilot or epsilon):
        raise InputError("--want, --pilot and --epsilon are about one trust", remedy="add --trust", allowed=_NAMES)
    _refuse_numbers(epsilon, degree)
    from graphveil.cli import advise_screen
    from graphveil.cli.next_command import told
    from graphveil.graphs import load_parts
    from graphveil.methods.advise.advice import advise as answer
    from graphveil.methods.advise.advice import all_trusts
    from graphveil.methods.advise.goal import goal_of

    goal = None if want is None else goal_of(want)
    with working() as tell:
        graph = load_parts(data, data_root, progress=tell)
        pilot_graph = None if pilot is None else load_parts(pilot, data_root, progress=tell)
        asked = asked_of(data, graph, epsilon=epsilon, degree=degree, goal=goal, pilot=pilot_graph)
        found = all_trusts(graph, asked) if checked is None else (answer(checked, graph, asked, tell),)
    content = {"data": graph.schema.name, "advice": [told(one, data) for one in found]}
    if checked is None:
        emit(content, as_json=as_json, screen=lambda: advise_screen.of_all(data, found))
    else:
        one = {"data": graph.schema.name, **told(found[0], data)}
        emit(one, as_json=as_json, screen=lambda: advise_screen.of_one(data, found[0]))


_NAMES = ", ".join(TRUSTS)
_NOBODY = "where nobody is trusted, say local for private features and labels, links for private connections"


def trust_of(name: str) -> str:
    """The trust called ``name``.

    Raises:
        InputError: there is none.
    """
    if name not in TRUSTS:
        meant = _NOBODY if name == "nobody" else near.nearest(name, TRUSTS)
        raise InputError(f"no trust {name!r}", where="--trust", allowed=_NAMES, remedy=meant)
    return name


def _refuse_numbers(epsilon: float | None, degree: float | None) -> None:
    from graphveil.privacy.limits import require_budget

    if epsilon is not None:
        require_budget("--epsilon", epsilon, "nothing here")
        if epsilon == float("inf"):
            raise InputError("epsilon inf protects nothing", where="--epsilon", allowed="a finite number above 0")
    if degree is not None and not 0 < degree < 1e6:
        raise InputError(f"{degree!r} contacts", where="--degree", allowed="a number above 0")


def asked_of(data: str, graph: GraphParts, **wanted: object) -> Asked:
    """What is asked of advice about a graph.

    Args:
        data: its name or folder; what is private in a folder is what its owner declares.
        graph: its parts.
        wanted: the other fields of `Asked`.
    """
    from graphveil.graphs.load import is_name
    from graphveil.methods.advise.advice import Asked

    return Asked(None if is_name(data) else graph.schema.private, **wanted)  # type: ignore[arg-type]
