"""``graphveil train``: one method on one graph, with its controls, into one run folder."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli.advise import Trust
from graphveil.cli.base import choices, groups, options, space
from graphveil.cli.base.console import complain, emit, working
from graphveil.cli.base.engines import opened, require_engine
from graphveil.cli.collect.exported import is_export, train_collected
from graphveil.cli.train import configured
from graphveil.cli.train.running import run_method
from graphveil.cli.train.without_method import refuse_unnamed
from graphveil.errors import InputError

_FOLDER = "Run folder to create. Default: one in runs/, named after data, method and time."
Out = Annotated[Path | None, typer.Option("--out", "-o", help=_FOLDER)]

Track = Annotated[
    str | None,
    typer.Option(
        "--track",
        metavar="mlflow|tensorboard|wandb",
        help="Hand a tracker what the run releases: settings, guarantee, curves of released labels; no accuracy.",
    ),
]
TrackTo = Annotated[
    str | None,
    typer.Option("--track-to", metavar="PLACE", help="URI or folder of the tracker. Default: what its variables say."),
]
Predictions = Annotated[
    Path | None,
    typer.Option(
        "--predictions",
        metavar="FILE",
        help="Also write what the run (its first repeat) predicts of its own people, a row each, to .csv or .parquet, "
        "for your eyes alone. Where whole people are protected (unit node) no other file holds that, and each row is "
        "for that person's eyes alone.",
    ),
]
DataOrNone = Annotated[
    str | None,
    # Not required: who has data and no method is told which one to take.
    typer.Argument(
        metavar="DATA",
        help="A named data set, a folder with your own files or an exported collection. Without METHOD: says which "
        "one to take.",
        autocompletion=options.data_like,
    ),
]


@groups.spread()
def train(
    context: typer.Context,
    method: options.Method,
    source: groups.Source,
    epsilons: groups.Epsilons,
    method_settings: groups.MethodSettings,
    repetition: groups.Repetition,
    speed: groups.Speed,
    engine_choice: groups.EngineChoice,
    export: groups.Export,
    data: DataOrNone = None,
    config: configured.Config = None,
    track: Track = None,
    track_to: TrackTo = None,
    out: Out = None,
    predictions: Predictions = None,
    trust: Trust = None,
    as_json: options.Json = False,
) -> None:
    """Train a method and its controls, print the guarantee, the accuracy and the lift, and save the run."""
    if data is None:
        refuse_unnamed(method, trust, source.data_root, as_json=as_json)
    if trust is not None:
        raise InputError("--trust chooses a method, and one is named", where=f"train {method}", remedy="leave it out")
    info = choices.find_method(method, data)
    settings = configured.collect(context, method, info)
    choices.prepare(speed.device, speed.threads)
    require_engine(engine_choice, info)

    from graphveil.cli.base import screens
    from graphveil.cli.train.tracking import tracker
    from graphveil.files.outputs import new_output
    from graphveil.reports.base import predictions as tables
    from graphveil.reports.runs import folder as run_folder

    send = tracker(track, track_to)
    run_options, defaults_sentence = choices.run_options(context.params), None
    default = run_folder.default_folder(data, method, datetime.now())
    # Before loading: the run must not fail after hours on a folder that was taken all along.
    with working() as progress, ExitStack() as stack:
        folder = stack.enter_context(new_output(out, default, say=complain))
        rows = None
        if predictions is not None:
            check = partial(tables.check_file, where="--predictions")
            rows = stack.enter_context(new_output(predictions, predictions, say=complain, check=check))
        engine = stack.enter_context(opened(engine_choice))
        if is_export(data, export.edges):
            learned = train_collected(method, data, export, settings, repetition, speed, progress, engine)
            result, graph, run_options = learned.result, learned.graph, {**run_options, **learned.options}
        else:
            graph = choices.load(data, source, repetition.seed, progress, engine)
            # Space first: a private run that cannot be saved has spent its budget for nothing.
            folder.reserve(space.room_of(graph, repetition.repeats))
            if rows is not None:
                rows.reserve(space.room_of_predictions(graph))
            result, defaults_sentence = run_method(method, graph, settings, repetition, speed, progress, engine=engine)
        record = folder.write(lambda path: run_folder.write_run(result, path, options=run_options, graph=graph))
        predictions_note = None
        if rows is not None:
            predictions_note = rows.write(lambda path: tables.write_own(result.model, graph, path))
            predictions = rows.path
    send(record)
    answer = record.to_dict()
    answer |= (
        {} if predictions_note is None else {"predictions": str(predictions), "predictions_note": predictions_note}
    )
    emit(
        answer,
        as_json=as_json,
        screen=lambda: screens.run(record, predictions, predictions_note),
        first=defaults_sentence,
    )
