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
    asked: groups.MethodSettings,
    speed: groups.Speed,
    place: groups.EngineChoice,
    config: configured.Config = None,
    want: Want = None,
    pilot: Pilot = None,
    degree: Degree = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Print guarantee, epsilon per unit, expected noise, time, memory and advice, without training."""
    info = choices.find_method(method, data)
    chosen = configured.collect(context, method, info)
    goal = goal_asked(want, pilot, degree)
    choices.prepare(speed.device, speed.threads)
    require_engine(place, info)

    from graphveil.cli.base import screens
    from graphveil.methods.runs import plan as planning

    with working() as tell:
        graph = choices.load_parts(data, source, seed, tell)
        found = None
        if goal is not None:
            found = search(method, chosen, data, graph, goal, pilot, source.data_root, degree=degree, tell=tell)
            chosen = with_found(chosen, found)
        made = planning.plan(method, graph, chosen)
        defaults = choices.Defaults({method: chosen}, tell)
        if as_json:
            defaults.say()
    answer = made.to_dict() | ({} if found is None else {"reached": found.reached.to_dict()})
    emit(answer, as_json=as_json, screen=lambda: searched(found, pilot, screens.planned(made)), first=defaults.said)
