"""``graphveil predict``: what a trained model says about a new graph with the same features."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import choices, options
from graphveil.cli.console import emit, working

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that graphveil train wrote.")]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Where to write them: a .csv or .parquet file.")
]


def predict(
    run: Run,
    data: options.Data,
    data_root: options.DataRoot = None,
    out: Out = None,
    as_json: options.Json = False,
) -> None:
    """Predict the class of every node of a graph with the model of a run.

    On the graph of the run this costs no more privacy. On another graph everybody there sends one randomized report of
    what the run collected (features, neighbour list), at the epsilon of the run; the run keeps the answer, so asking
    again costs nothing.
    """
    from graphveil.cli import screens
    from graphveil.graphs import load_graph
    from graphveil.reports import predictions, run_folder

    predictions.check_file(out)
    with working() as tell:
        model = run_folder.open_model(run)
        graph = load_graph(data, root=data_root, progress=tell)
        paid = model.ledger
        found = model.predict_proba(graph, randomness=choices.noise(None))
        if model.ledger != paid:  # people reported: the run keeps their answer, so nobody is asked again
            run_folder.keep_spending(model, run)
        made = predictions.tabulate(found, graph, model.schema.classes)
        if out is not None:
            predictions.write(made, out)
    note = predictions.cost(model.privacy, getattr(model, "links", None), others=model.kind != "link-beliefs")
    answer = predictions.summary(made, run=str(run), data=data, out=out, note=note)
    emit(answer, as_json=as_json, screen=lambda: screens.predicted(answer))
