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
    settings: Mapping[str, Any],
    data: str,
    graph: GraphParts,
    goal: Goal,
    pilot: str | None,
    root: Path | None,
    *,
    degree: float | None,
    progress: ProgressCallback,
) -> Wanted:
    """What the goal takes.

    Args:
        method, settings: the method and its settings as typed.
        data, graph: the data as typed, and its parts.
        goal: what is wanted.
        pilot: a data set or folder that the user declares public or paid.
        root: the data root.
        degree: contacts a person, as publicly known.
        progress: hears of progress.
    """
    from graphveil.graphs import load_parts
    from graphveil.graphs.load import is_name
    from graphveil.methods.advise.wanted import wanted

    pilot_parts = None if pilot is None else load_parts(pilot, root, progress=progress)
    # What is private in a folder is what its owner declares; a named set is public.
    declared = None if is_name(data) else graph.schema.private
    return wanted(method, settings, graph, goal, declared=declared, pilot=pilot_parts, degree=degree, progress=progress)


def with_found(settings: Mapping[str, Any], goal_result: Wanted) -> dict[str, Any]:
    """The settings with the epsilon that reaches the goal in every rehearsal, where there is one."""
    sure = goal_result.reached.sure
    return dict(settings) if sure is None else {**settings, goal_result.budget: sure}


def searched(goal_result: Wanted | None, pilot: str | None, plan: RenderableType) -> RenderableType:
    """A plan as a screen, below what the goal takes and which epsilon the plan is for.

    Args:
        goal_result: the answer to the goal; None: there was none, and the plan stands alone.
        pilot: what it was rehearsed on, if not on made graphs.
        plan: its screen.
    """
    if goal_result is None:
        return plan
    from rich.console import Group
    from rich.text import Text

    from graphveil.cli.advise import PILOT

    sure = goal_result.reached.sure
    # A goal that nothing reaches leaves the default, which could be taken for the answer.
    epsilon = "the default epsilon" if sure is None else f"epsilon {sure:g}"
    remedy = f" For a narrower answer: {PILOT}." if pilot is None else ""
    return Group(
        Text(f"Wanted: {goal_result.sentence}. The plan below is for {epsilon}.{remedy}", style="bold"), Text(), plan
    )
