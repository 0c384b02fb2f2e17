"""``graphveil compare``: methods x epsilons x seeds, into one table and one figure."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from graphveil.cli import choices, options
from graphveil.cli.console import emit, working

Methods = Annotated[str, typer.Argument(metavar="METHODS", help="Methods with commas between.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="The folder; taken up again if it is there. Default: runs/compare-<data>."),
]


def compare(
    context: typer.Context,
    methods: Methods,
    data: options.Data,
    data_root: options.DataRoot = None,
    epsilon_x: options.Epsilons = None,
    epsilon_y: options.Epsilons = None,
    epsilon_a: options.Epsilons = None,
    epsilon: options.Epsilons = None,
    delta: options.Delta = None,
    unit: options.Unit = None,
    model: options.Model = None,
    epochs: options.Epochs = None,
    settings: options.Settings = None,
    private_share: options.PrivateShare = None,
    seed: options.Seed = 0,
    repeats: options.Repeats = 3,
    split: options.SplitKind = "random",
    no_controls: options.NoControls = False,
    reproducible_noise: options.NoiseSeed = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    out: Out = None,
    as_json: options.Json = False,
) -> None:
    """Compare methods over epsilons (1,2,3) and seeds, by who is trusted; taken up again where it stopped."""
    comparison = choices.comparison(methods, data, context.params)
    choices.prepare(device, threads)

    from graphveil.cli import comparison_screen
    from graphveil.graphs import load_graph
    from graphveil.methods.runs.experiment import split_of
    from graphveil.reports.compare import cells, table
    from graphveil.reports.compare.rows import tabulate
    from graphveil.reports.compare.sheet import sheet
    from graphveil.writing import room_for

    folder = out or cells.default_folder(data)
    with working() as tell:
        graph = choices.drawn(load_graph(data, root=data_root, progress=tell), private_share, seed)
        split_of(graph, split, seed)
        takes, own = comparison.takes, comparison.methods
        given = {name: {**own[name], **dict.fromkeys(takes[name], True)} for name in own}
        defaults = choices.Defaults(given, tell)
        choices.warn_of_size([(cell.method, cell.settings) for cell in comparison.cells()], graph)
        cells.open_folder(comparison, folder)
        choices.settle_threads(threads, graph)
        how: dict[str, Any] = {"controls": not no_controls, "device": device, "split": split, "progress": defaults}
        run = cells.experimenter(graph, noise=partial(choices.noise_of_cell, reproducible_noise), **how)
        with room_for(folder / "table", choices.room_of(graph, len(list(comparison.cells())))):
            records = cells.run_missing(comparison, folder, run)
            defaults.say()
        page = sheet(comparison, tabulate(comparison, records))
        table.write(page, folder)
    answer = table.answer(page, folder, data=data)
    emit(answer, as_json=as_json, screen=lambda: comparison_screen.compared(page, folder), first=defaults.said)
