"""``graphveil train``: one method on one graph, with its controls, into one run folder."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import choices, options
from graphveil.cli.console import emit, working

Out = Annotated[
    Path | None, typer.Option("--out", help="The run folder to make. Default: runs/<data>-<method>-<time>.")
]


def train(
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
    out: Out = None,
    as_json: options.Json = False,
) -> None:
    """Train a method and its controls, print what is protected and what it bought, save the run."""
    info = choices.find_method(method)
    chosen = choices.collect(method, info, context.params)
    choices.prepare(device, threads)

    from graphveil.cli import screens
    from graphveil.graphs import load_graph
    from graphveil.methods.runs import experiment
    from graphveil.reports.base import files
    from graphveil.reports.runs import folder as run_folder
    from graphveil.writing import room_for

    folder = out or run_folder.default_folder(data, method, datetime.now())
    files.refuse_used_folder(folder)
    with working() as tell:
        graph = choices.drawn(load_graph(data, root=data_root, progress=tell), private_share, seed)
        with room_for(folder, choices.room_of(graph, repeats)):
            defaults = choices.Defaults({method: chosen}, tell)
            choices.warn_of_size([(method, chosen)], graph)
            choices.settle_threads(threads, graph)
            result = experiment.run(
                method,
                graph,
                settings=chosen,
                repeats=repeats,
                seed=seed,
                controls=not no_controls,
                randomness=choices.noise(reproducible_noise),
                device=device,
                split=split,
                progress=defaults,
            )
            defaults.say()
        record = run_folder.write_run(result, folder, options=choices.kept(context.params))
    emit(record.to_dict(), as_json=as_json, screen=lambda: screens.run(record), first=defaults.said)
