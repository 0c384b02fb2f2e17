"""``graphveil predict``: the predictions of a trained model for its own graph or a new one with the same features."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any

import typer

from graphveil.cli.base import choices, groups, options, screens
from graphveil.cli.base.console import complain, emit, working
from graphveil.cli.base.groups import opened, require_engine_choice, require_predicting

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder written by graphveil train.")]
Data = Annotated[
    str | None, typer.Argument(metavar="DATA", help="A named data set, or a folder. Default: the graph of the run.")
]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Prediction file to write: .csv or .parquet.")]
Who = Annotated[
    str | None,
    typer.Option(
        metavar="same|other",
        help="For graphs without ids. same: row i is the same person as row i of the run, and nobody is asked again; "
        "other: nobody has reported before (the guarantee will state this).",
    ),
]


@groups.spread()
def predict(
    run: Run,
    data: Data = None,
    data_root: options.DataRoot = None,
    people: Who = None,
    out: Out = None,
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
    from graphveil.reports.base.parts import public_part
    from graphveil.reports.runs import folder as run_folder
    from graphveil.reports.runs.origin import data_of

    require_engine_choice(engine_choice)
    predictions.check_file(out)
    with working() as progress, contextlib.ExitStack() as stack:
        # One prediction at a time: two at once would not know whom the other asks, and both would pay.
        stack.enter_context(locked_folder(public_part(run), complain))
        output = None
        if out is not None:
            output = stack.enter_context(new_output(out, out, say=complain, check=predictions.check_file))
        model: Any = run_folder.open_model(run)
        require_predicting(engine_choice, model)
        if data is None:
            data, data_root = data_of(run, data_root)
        engine = stack.enter_context(opened(engine_choice))
        graph = load_plain(data, root=data_root, progress=progress, engine=engine)
        predictions.check_people(people, model)
        if output is not None:
            output.reserve(choices.room_of_predictions(graph))
        # Before the prediction: reports that cannot be stored would be paid for again next time.
        rooms = run_folder.reserve(model, run, choices.room_of_answers(graph), stack)
        ledger = model.ledger
        guarantee = model.guarantee
        identity = {} if people is None else {"people": people}
        probabilities = model.predict_proba(graph, randomness=choices.noise(None), engine=engine, **identity)
        if (
            model.guarantee != guarantee or model.ledger != ledger
        ):  # the run keeps what was sent, so nobody is asked again
            rooms.close()
            run_folder.keep_spending(model, run, say=complain)
        table = predictions.tabulate(probabilities, graph, model.schema.classes)
        if output is not None:
            output.write(lambda path: predictions.write(table, path))
            out = output.path
    note = predictions.cost(model.privacy, getattr(model, "links", None), newcomers=model.kind != "link-beliefs")
    answer = predictions.summary(table, run=str(run), data=data, out=out, note=note, guarantee=model.guarantee)
    emit(answer, as_json=as_json, screen=lambda: screens.predicted(answer, screens.promised_by(model, run)))
