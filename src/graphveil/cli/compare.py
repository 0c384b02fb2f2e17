"""``graphveil compare``: methods x epsilons x seeds, into one table and one figure."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli.base import choices, groups, options, space
from graphveil.cli.base.console import complain, emit, working

Methods = Annotated[str, typer.Argument(metavar="METHODS", help="Methods, separated by commas.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder to create, or to resume. Default: one in runs/."),
]


@groups.spread(repeats=3)
def compare(
    context: typer.Context,
    methods: Methods,
    data: options.Data,
    source: groups.Source,
    epsilons: groups.EpsilonLists,
    method_settings: groups.MethodSettings,
    repetition: groups.Repetition,
    speed: groups.Speed,
    out: Out = None,
    as_json: options.Json = False,
) -> None:
    """Compare methods over epsilons (default 1,2,3) and seeds, grouped by who is trusted; can be resumed."""
    comparison = choices.comparison(methods, data, context.params)
    choices.prepare(speed.device, speed.threads)

    from graphveil.cli import comparison_screen
    from graphveil.files.outputs import new_output
    from graphveil.files.writing import room_for
    from graphveil.methods.runs.experiment import split_of
    from graphveil.reports.compare import cells, table
    from graphveil.reports.compare.folder import write
    from graphveil.reports.compare.rows import tabulate
    from graphveil.reports.compare.sheet import sheet

    check = partial(cells.check_folder, comparison)
    # Before loading, and kept to the end: two comparisons into one folder would run each cell twice.
    with working() as progress, new_output(out, cells.default_folder(data), say=complain, check=check) as folder:
        graph = choices.load(data, source, repetition.seed, progress)
        split_of(graph, repetition.split, repetition.seed)
        takes, methods_settings = comparison.takes, comparison.methods
        settings_of = {
            name: {**methods_settings[name], **dict.fromkeys(takes[name], True)} for name in methods_settings
        }
        defaults = choices.Defaults(settings_of, progress)
        choices.warn_of_size([(cell.method, cell.settings) for cell in comparison.cells()], graph)
        cells.open_folder(comparison, folder)
        choices.settle_threads(speed.threads, graph)
        run = cells.experimenter(
            graph,
            noise=partial(choices.noise_of_cell, repetition.reproducible_noise),
            controls=not repetition.no_controls,
            device=speed.device,
            split=repetition.split,
            progress=defaults,
        )
        with room_for(folder.path / "table", space.room_of(graph, len(list(comparison.cells())))):
            records = cells.run_missing(comparison, folder, run)
            defaults.say()
        page = sheet(comparison, tabulate(comparison, records))
        folder.within(lambda path: write(page, path))
    answer = table.answer(page, folder.path, data=data)
    emit(answer, as_json=as_json, screen=lambda: comparison_screen.compared(page, folder.path), first=defaults.sentence)
