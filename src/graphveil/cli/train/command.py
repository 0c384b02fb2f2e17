"""``graphveil train``: one method on one graph, with its controls; ``predict``: what its model says of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from graphveil.cli.advise import Trust, command_of, of_all, request_of, require_trust
from graphveil.cli.base import choices, groups, options, screens
from graphveil.cli.base.console import complain, emit, working
from graphveil.cli.base.groups import open_engine, require_engine, require_engine_choice, require_predicting
from graphveil.cli.collect.exported import is_export, train_collected
from graphveil.cli.train import configured
from graphveil.errors import InputError
from graphveil.methods.registry import METHODS
from graphveil.runtime.words import nearest

if TYPE_CHECKING:
    from graphveil.engine import Engine
    from graphveil.graphs import Graph
    from graphveil.methods.runs.result import Result
    from graphveil.methods.runs.search import Search
    from graphveil.reports.base.record import RunRecord
    from graphveil.runtime.progress import ProgressCallback

_FOLDER = "Run folder to create. Default: one in runs/, named after data, method and time."
Out = Annotated[Path | None, typer.Option("--out", "-o", help=_FOLDER)]

Track = Annotated[
    str | None,
    typer.Option(
        metavar="mlflow|tensorboard|wandb",
        help="Send a tracker what the run releases: settings, guarantee, curves on released labels; no accuracy.",
    ),
]
TrackTo = Annotated[
    str | None,
    typer.Option(metavar="PLACE", help="URI or folder of the tracker. Default: from its environment variables."),
]
Predictions = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Also write what the run (its first repeat) predicts for its own people, one row each, to .csv or "
        ".parquet, for your eyes only. With unit node no other file holds these predictions, and each row is for that "
        "person's eyes only.",
    ),
]
DataOrNone = Annotated[
    str | None,
    # Optional, so that DATA alone prints which method to use.
    typer.Argument(
        metavar="DATA",
        help="A named data set, a folder with your own files or an exported collection. DATA without METHOD prints "
        "which method to use.",
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
        _refuse_unnamed(method, trust, source.data_root, as_json=as_json)
    if trust is not None:
        raise InputError("--trust chooses a method, and one is named", where=f"train {method}", remedy="leave it out")
    info = choices.find_method(method, data)
    settings = configured.collect(context, method, info)
    choices.prepare(speed.device, speed.threads)
    require_engine(engine_choice, info)

    from graphveil.files.outputs import new_output
    from graphveil.reports.base import predictions as tables
    from graphveil.reports.runs import folder as run_folder

    send = _tracker(track, track_to)
    run_options, defaults_sentence = choices.run_options(context.params), None
    default = run_folder.default_folder(data, method, datetime.now())
    # Before loading: the run must not fail after hours because its folder is in use.
    with working() as progress, ExitStack() as stack:
        output = stack.enter_context(new_output(out, default, say=complain))
        predictions_output = None
        if predictions is not None:
            check = partial(tables.check_file, where="--predictions")
            predictions_output = stack.enter_context(new_output(predictions, predictions, say=complain, check=check))
        engine = stack.enter_context(open_engine(engine_choice))
        if is_export(data, export.edges):
            learned = train_collected(method, data, export, settings, repetition, speed, progress, engine)
            result, graph, run_options = learned.result, learned.graph, {**run_options, **learned.options}
        else:
            graph = choices.load(data, source, repetition.seed, progress, engine)
            # Space first: a private run that cannot be saved would spend its budget for nothing.
            output.reserve(choices.room_of(graph, repetition.repeats))
            if predictions_output is not None:
                predictions_output.reserve(choices.room_of_predictions(graph))
            result, defaults_sentence = run_method(method, graph, settings, repetition, speed, progress, engine=engine)
        record = output.write(lambda path: run_folder.write_run(result, path, options=run_options, graph=graph))
        predictions_note = None
        if predictions_output is not None:
            predictions_note = predictions_output.write(lambda path: tables.write_own(result.model, graph, path))
            predictions = predictions_output.path
    send(record)
    answer = record.to_dict()
    if predictions_note is not None:
        answer |= {"predictions": str(predictions), "predictions_note": predictions_note}
    screen = partial(screens.run, record, predictions, predictions_note)
    emit(answer, as_json=as_json, screen=screen, first=defaults_sentence)


def _tracker(name: str | None, destination: str | None) -> Callable[[RunRecord], None]:
    """A function that sends a finished run to one of `TRACKERS`; made before training, so that it can refuse in time.

    Raises:
        InputError: no such tracker, or a destination without one; MissingExtraError: its library is not installed.
    """
    from graphveil.reports.tracking.trackers import TRACKERS, find_tracker

    if name is None:
        if destination is not None:
            raise InputError("goes with --track", where="--track-to", allowed=", ".join(TRACKERS))
        return lambda record: None
    if name not in TRACKERS:
        raise InputError(f"{name!r}", where="--track", allowed=", ".join(TRACKERS), remedy=nearest(name, TRACKERS))
    write = find_tracker(name)

    def send(record: RunRecord) -> None:
        from graphveil.reports.tracking.released import of_run

        complain(f"tracked by {name}: {write(of_run(record), destination)}")

    return send


def _refuse_unnamed(data: str, trust: str | None, data_root: Path | None, *, as_json: bool) -> NoReturn:
    """Print which methods are advised for the data, typed in the place of METHOD, and refuse to train without one:
    always an InputError, for a missing DATA, an unknown name, or with the command to type.
    """
    if data in METHODS:
        raise InputError("DATA is missing", where=f"train {data}", allowed="a named data set, or a folder")
    from graphveil.graphs.load import is_name

    # Neither a data set nor a folder: probably a mistyped method, so the error suggests the nearest name.
    if not is_name(data) and not Path(data).is_dir():
        choices.find_method(data)
    if trust is not None:
        require_trust(trust)
    from graphveil.graphs import load_parts
    from graphveil.methods.advise.advice import all_trusts

    with working() as progress:
        graph = load_parts(data, data_root, progress=progress)
        all_advices = all_trusts(graph, request_of(data, graph))
    advices = [advice for advice in all_advices if trust in (None, advice.trust)]
    # A command that fails prints no JSON.
    if not as_json:
        emit({}, as_json=False, screen=lambda: of_all(data, advices, why=trust is not None))
    commands = [command for advice in advices if (command := command_of(advice, data)) is not None]
    # An error: a script that forgot the method must not go on as if it had trained.
    raise InputError(
        "no method is named, so nothing was trained",
        where="train",
        remedy=f"type {commands[0]}" if len(commands) == 1 else "type one of the commands above, or add --trust",
    )


def run_method(
    method: str,
    graph: Graph,
    settings: Mapping[str, Any],
    repetition: groups.Repetition,
    speed: groups.Speed,
    progress: ProgressCallback,
    search: Search | None = None,
    engine: Engine | None = None,
) -> tuple[Result, str | None]:
    """Return the result of a run, and the sentence printed about budgets left at their defaults.

    Args:
        search: the settings to search in each run; None: no search.
        engine: processes blocks of rows; None: one after the other in this process.
    """
    from graphveil.engine import LOCAL
    from graphveil.methods.registry import settings_on
    from graphveil.methods.runs import experiment

    settings = settings_on(graph, method, settings)
    defaults = choices.Defaults({method: {**settings, **({} if search is None else search.over)}}, progress)
    choices.warn_of_size([(method, settings)], graph)
    choices.settle_threads(speed.threads, graph)
    result = experiment.run(
        method,
        graph,
        settings=settings,
        search=search,
        repeats=repetition.repeats,
        seed=repetition.seed,
        controls=not repetition.no_controls,
        randomness=choices.noise(repetition.reproducible_noise),
        device=speed.device,
        split=repetition.split,
        progress=defaults,
        engine=LOCAL if engine is None else engine,
    )
    defaults.say()
    return result, defaults.notice


Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder written by graphveil train.")]
OtherData = Annotated[
    str | None, typer.Argument(metavar="DATA", help="A named data set, or a folder. Default: the graph of the run.")
]
PredictionFile = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Prediction file to write: .csv or .parquet.")
]
Who = Annotated[
    str | None,
    typer.Option(
        metavar="same|other",
        help="For graphs without ids. same: row i is the same person as row i of the run, and nobody is asked again; "
        "other: nobody has reported before (the guarantee will state this).",
    ),
]


@contextmanager
def _warn_of_charges(model: Any) -> Iterator[None]:
    """Warn where the block fails after a charge: its answer is lost, and the ledger is not turned back."""
    before = model.ledger
    try:
        yield
    except Exception:
        if model.ledger != before:
            complain("warning: this prediction ends without an answer, and what it was charged stays charged")
        raise


@groups.spread()
def predict(
    run: Run,
    data: OtherData = None,
    data_root: options.DataRoot = None,
    people: Who = None,
    out: PredictionFile = None,
    *,
    engine_choice: groups.EngineChoice,
    as_json: options.Json = False,
) -> None:
    """Predict the class of every node of a graph with the model of a run.

    On the graph of the run this costs no more privacy. On another graph, people who have reported are recognized by
    their ids and not asked again; new people send one randomized report of what the run collected (features,
    neighbour list), at the run's epsilon. A graph without ids needs --people: without it everybody counts as asked
    again, which the run must have budgeted for (--set queries=1).
    """
    from graphveil.files.outputs import locked_folder, new_output
    from graphveil.graphs import load_plain
    from graphveil.reports.base import predictions
    from graphveil.reports.base.parts import public_part, whole_run
    from graphveil.reports.runs import folder as run_folder
    from graphveil.reports.runs.origin import data_of, no_graph

    require_engine_choice(engine_choice)
    predictions.check_file(out)
    run = whole_run(run)
    with working() as progress, ExitStack() as stack:
        # One prediction at a time: two at once would not know whom the other asks, and both would pay.
        stack.enter_context(locked_folder(public_part(run), complain))
        output = None
        if out is not None:
            output = stack.enter_context(new_output(out, out, say=complain, check=predictions.check_file))
        model: Any = run_folder.open_model(run, say=complain)
        require_predicting(engine_choice, model)
        if data is None:
            data, data_root = data_of(run, data_root)
        elif is_export(data, None):
            raise no_graph("it holds reports of people's devices:", Path(data))
        engine = stack.enter_context(open_engine(engine_choice))
        graph = load_plain(data, root=data_root, progress=progress, engine=engine)
        predictions.check_people(people, model)
        if output is not None:
            output.reserve(choices.room_of_predictions(graph))
        # Before the prediction: reports that cannot be stored would be paid for again next time.
        reserved = run_folder.reserve(model, run, choices.room_of_answers(graph), stack)
        ledger = model.ledger
        guarantee = model.guarantee
        stack.enter_context(_warn_of_charges(model))
        identity = {} if people is None else {"people": people}
        probabilities = model.predict_proba(graph, randomness=choices.noise(None), engine=engine, **identity)
        if (
            model.guarantee != guarantee or model.ledger != ledger
        ):  # the run keeps what was sent, so nobody is asked again
            reserved.close()
            run_folder.keep_spending(model, run, say=complain)
        table = predictions.tabulate(probabilities, graph, model.schema.classes)
        if output is not None:
            output.write(lambda path: predictions.write(table, path))
            out = output.path
    edges, newcomers = getattr(model, "reads_edges", True), model.kind != "link-beliefs"
    note = predictions.cost_sentence(model.privacy, getattr(model, "links", None), newcomers=newcomers, edges=edges)
    note += predictions.paid_sentence(model.ledger.spends[len(ledger.spends) :])
    note += f"; {predictions.SEVERAL}" if model.several else ""
    answer = predictions.summary(table, run=str(run), data=data, out=out, note=note, guarantee=model.guarantee)
    emit(answer, as_json=as_json, screen=lambda: screens.predicted(answer, screens.guarantee_of_model(model, run)))
