"""``--want`` beside a method: the search, from what was typed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphveil.errors import InputError
from graphveil.runtime.progress import ProgressCallback

if TYPE_CHECKING:
    from rich.console import RenderableType

    from graphveil.graphs.value.parts import GraphParts
    from graphveil.methods.advise.goal import Goal
    from graphveil.methods.advise.wanted import Wanted


def goal_asked(want: str | None, pilot: str | None, degree: float | None) -> Goal | None:
    """The goal that was typed, or None.

    Args:
        want: as typed.
        pilot, degree: that say something of a goal alone.

    Raises:
        InputError: the goal cannot be read, or the others stand without one.
    """
    if want is None:
        # Idle options are refused: somebody would believe that they had changed the plan.
        if pilot is not None or degree is not None:
            raise InputError("--pilot and --degree are for a goal", where="plan", remedy="add --want lift=0.02")
        return None
    from graphveil.methods.advise.goal import goal_of

    return goal_of(want)


def search(
    method: str,
    chosen: Mapping[str, Any],
    data: str,
    graph: GraphParts,
    goal: Goal,
    pilot: str | None,
    root: Path | None,
    *,
    degree: float | None,
    tell: ProgressCallback,
) -> Wanted:
    """What the goal takes.

    Args:
        method, chosen: the method and its settings as typed.
        data, graph: the data as typed, and its parts.
        goal: what is wanted.
        pilot: a data set or folder that the user declares public or paid.
        root: the data root.
        degree: contacts a person, as publicly known.
        tell: hears of progress.
    """
    from graphveil.graphs import load_parts
    from graphveil.graphs.load import is_name
    from graphveil.methods.advise.wanted import wanted

    opened = None if pilot is None else load_parts(pilot, root, progress=tell)
    # What is private in a folder is what its owner declares; a named set is public.
    declared = None if is_name(data) else graph.schema.private
    return wanted(method, chosen, graph, goal, declared=declared, pilot=opened, degree=degree, progress=tell)


def with_found(chosen: Mapping[str, Any], found: Wanted) -> dict[str, Any]:
    """The settings with the epsilon that reaches the goal in every rehearsal, where there is one."""
    sure = found.reached.sure
    return dict(chosen) if sure is None else {**chosen, found.budget: sure}


def searched(found: Wanted | None, pilot: str | None, plan: RenderableType) -> RenderableType:
    """A plan as a screen, below what the goal takes and which epsilon the plan is for.

    Args:
        found: the answer to the goal; None: there was none, and the plan stands alone.
        pilot: what it was rehearsed on, if not on made graphs.
        plan: its screen.
    """
    if found is None:
        return plan
    from rich.console import Group
    from rich.text import Text

    from graphveil.cli.advise import PILOT

    sure = found.reached.sure
    # A goal that nothing reaches leaves the default, which could be taken for the answer.
    which = "the default epsilon" if sure is None else f"epsilon {sure:g}"
    narrower = f" For a narrower answer: {PILOT}." if pilot is None else ""
    return Group(
        Text(f"Wanted: {found.sentence}. The plan below is for {which}.{narrower}", style="bold"), Text(), plan
    )
