"""``graphveil plan``: what a run would promise, disturb and cost, before anything runs."""

from __future__ import annotations

import typer

from graphveil.cli import choices, options
from graphveil.cli.console import emit, working


def plan(
    context: typer.Context,
    method: options.Method,
    data: options.Data,
    data_root: options.DataRoot = None,
    epsilon_x: options.EpsilonX = None,
    epsilon_y: options.EpsilonY = None,
    epsilon_a: options.EpsilonA = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    unit: options.Unit = None,
    model: options.Model = None,
    epochs: options.Epochs = None,
    settings: options.Settings = None,
    private_share: options.PrivateShare = None,
    seed: options.Seed = 0,
    repeats: options.Repeats = 1,
    split: options.SplitKind = "random",
    no_controls: options.NoControls = False,
    reproducible_noise: options.NoiseSeed = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    as_json: options.Json = False,
) -> None:
    """Print guarantee, epsilon per unit, expected noise, time, memory and advice; nothing is trained."""
    chosen = choices.collect(method, choices.find_method(method), context.params)
    choices.prepare(device, threads)

    from graphveil.cli import screens
    from graphveil.graphs import load_graph
    from graphveil.methods.runs import plan as planning

    with working() as tell:
        graph = choices.drawn(load_graph(data, root=data_root, progress=tell), private_share, seed)
        made = planning.plan(method, graph, chosen)
        defaults = choices.Defaults({method: chosen}, tell)
        if as_json:
            defaults.say()
    emit(made.to_dict(), as_json=as_json, screen=lambda: screens.planned(made), first=defaults.said)
