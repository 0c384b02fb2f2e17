"""``graphveil plan``: guarantee, expected noise and cost of a run, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.cli.advise import PILOT, Degree, Pilot, Want
from graphveil.cli.base import choices, groups, options, screens
from graphveil.cli.base.console import emit, working
from graphveil.cli.base.groups import require_engine
from graphveil.cli.train import configured
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.methods.advise.goal import Goal, Wanted


@groups.spread()
def plan(
    context: typer.Context,
    method: options.Method,
    data: options.Data,
    source: groups.Source,
    epsilons: groups.Epsilons,
    method_settings: groups.MethodSettings,
    speed: groups.Speed,
    engine_choice: groups.EngineChoice,
    config: configured.Config = None,
    want: Want = None,
    pilot: Pilot = None,
    degree: Degree = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Print guarantee, epsilon per unit, expected noise, time, memory and advice, without training."""
    info = choices.find_method(method, data)
    settings = configured.collect(context, method, info)
    goal = _goal(want, pilot, degree)
    choices.prepare(speed.device, speed.threads)
    require_engine(engine_choice, info)

    from graphveil.graphs import load_parts
    from graphveil.graphs.load import is_name
    from graphveil.methods.registry import plan, settings_on
    from graphveil.reports.base.drawing import picture_json
    from graphveil.reports.base.parties import parties_of

    with working() as progress:
        graph = choices.load_parts(data, source, seed, progress)
        # A named set is public; in a folder the owner declares what is private.
        declared = None if is_name(data) else graph.schema.private
        goal_result = None
        if goal is not None:
            from graphveil.methods.advise.goal import wanted  # loads what it rehearses

            # The pilot is public or paid for, by its owner's word.
            parts = None if pilot is None else load_parts(pilot, source.data_root, progress=progress)
            goal_result = wanted(
                method, settings, graph, goal, declared=declared, pilot=parts, degree=degree, progress=progress
            )
            if goal_result.reached.sure is not None:
                settings = {**settings, goal_result.budget: goal_result.reached.sure}
        run_plan = plan(method, graph, settings)
        defaults = choices.Defaults({method: settings_on(graph, method, settings)}, progress)
        if as_json:
            defaults.say()
    answer = run_plan.to_dict() | ({} if goal_result is None else {"reached": goal_result.reached.to_dict()})
    trust = parties_of(run_plan.guarantee, run_plan.method, run_plan.settings, private=declared or ())
    answer |= {"parties": picture_json(trust)} if as_json else {}
    first = defaults.notice
    emit(answer, as_json=as_json, screen=lambda: searched(goal_result, pilot, screens.planned(run_plan)), first=first)


def _goal(want: str | None, pilot: str | None, degree: float | None) -> Goal | None:
    """The goal of ``--want``, or None; InputError for one that cannot be read, or its options without one."""
    if want is None:
        # Refused, because an option without effect would seem to have changed the plan.
        if pilot is not None or degree is not None:
            raise InputError("--pilot and --degree are for a goal", where="plan", remedy="add --want lift=0.02")
        return None
    from graphveil.methods.advise.goal import goal_of

    return goal_of(want)


def searched(goal_result: Wanted | None, pilot: str | None, plan: RenderableType) -> RenderableType:
    """The screen of a plan below the result of the search, if there was one, and the epsilon that the plan is for.

    Args:
        pilot: the graph of the rehearsals; None: generated graphs.
    """
    if goal_result is None:
        return plan
    sure = goal_result.reached.sure
    # If nothing reaches the goal, the plan is for the default: say so, or it is taken for the result.
    epsilon = "the default epsilon" if sure is None else f"epsilon {sure:g}"
    remedy = f" For a narrower answer: {PILOT}." if pilot is None else ""
    return Group(
        Text(f"Wanted: {goal_result.sentence}. The plan below is for {epsilon}.{remedy}", style="bold"), Text(), plan
    )
