"""``graphveil tune``: choose settings on one collection, at no privacy cost, and train with the best."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from graphveil.cli import choices, options
from graphveil.cli.console import emit, working
from graphveil.cli.train import Out

Over = Annotated[
    list[str],
    typer.Option("--over", metavar="KEY=V1,V2,...", help="A setting to choose, and the values to try; repeatable."),
]
Trials = Annotated[int, typer.Option("--trials", min=1, help="At most so many combinations, drawn with --seed.")]


def tune(
    context: typer.Context,
    method: options.Method,
    data: options.Data,
    over: Over,
    trials: Trials = 20,
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
    """Collect once, train every candidate on the same reports, keep the best on released validation labels."""
    info = choices.find_method(method)
    chosen = choices.collect(method, info, context.params)
    tried = choices.grid(method, info, over, chosen, trials)
    choices.prepare(device, threads)

    from graphveil.cli import screens
    from graphveil.graphs import load_graph
    from graphveil.methods import experiment
    from graphveil.reports import files, run_folder

    folder = out or run_folder.default_folder(data, f"{method}-tuned", datetime.now())
    files.refuse_used_folder(folder)
    with working() as tell:
        graph = load_graph(data, root=data_root, progress=tell)
        choices.warn_of_size([(method, chosen)], graph)
        choices.settle_threads(threads, graph)
        result = experiment.run(
            method,
            graph,
            settings=chosen,
            over=tried,
            trials=trials,
            repeats=repeats,
            seed=seed,
            controls=not no_controls,
            randomness=choices.noise(reproducible_noise),
            device=device,
            split=split,
            progress=tell,
        )
        kept = {
            "seed": seed,
            "repeats": repeats,
            "split": split,
            "controls": not no_controls,
            "device": device,
            "source": data,
        }
        record = run_folder.write_run(result, folder, options=kept)
    emit(record.to_dict(), as_json=as_json, screen=lambda: screens.run(record))
