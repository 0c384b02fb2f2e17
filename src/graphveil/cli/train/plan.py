"""``graphveil plan``: guarantee, expected noise and cost of a run, before anything runs."""

from __future__ import annotations

import typer

from graphveil.cli.advise import Degree, Pilot, Want
from graphveil.cli.base import choices, groups, options
from graphveil.cli.base.console import emit, working
from graphveil.cli.base.engines import require_engine
from graphveil.cli.train import configured
from graphveil.cli.train.thresholds import goal_asked, search, searched, with_found


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
    goal = goal_asked(want, pilot, degree)
    choices.prepare(speed.device, speed.threads)
    require_engine(engine_choice, info)

    from graphveil.cli.base import screens
    from graphveil.methods.runs import plan as planning

    with working() as progress:
        graph = choices.load_parts(data, source, seed, progress)
        goal_result = None
        if goal is not None:
            goal_result = search(
                method, settings, data, graph, goal, pilot, source.data_root, degree=degree, progress=progress
            )
            settings = with_found(settings, goal_result)
        run_plan = planning.plan(method, graph, settings)
        defaults = choices.Defaults({method: settings}, progress)
        if as_json:
            defaults.say()
    answer = run_plan.to_dict() | ({} if goal_result is None else {"reached": goal_result.reached.to_dict()})
    emit(
        answer,
        as_json=as_json,
        screen=lambda: searched(goal_result, pilot, screens.planned(run_plan)),
        first=defaults.sentence,
    )
