"""``graphveil plan``: guarantee, expected noise and cost of a run, before anything runs."""

from __future__ import annotations

import typer

from graphveil.cli import choices, configured, groups, options
from graphveil.cli.console import emit, working


@groups.spread()
def plan(
    context: typer.Context,
    method: options.Method,
    data: options.Data,
    source: groups.Source,
    epsilons: groups.Epsilons,
    asked: groups.MethodSettings,
    speed: groups.Speed,
    config: configured.Config = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Print guarantee, epsilon per unit, expected noise, time, memory and advice, without training."""
    chosen = configured.collect(context, method, choices.find_method(method))
    choices.prepare(speed.device, speed.threads)

    from graphveil.cli import screens
    from graphveil.methods.runs import plan as planning

    with working() as tell:
        graph = choices.load_parts(data, source, seed, tell)
        made = planning.plan(method, graph, chosen)
        defaults = choices.Defaults({method: chosen}, tell)
        if as_json:
            defaults.say()
    emit(made.to_dict(), as_json=as_json, screen=lambda: screens.planned(made), first=defaults.said)
