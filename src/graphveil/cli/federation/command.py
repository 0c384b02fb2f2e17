"""``graphveil federation``: organisations that hold different things about the same people train together."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli.base import options
from graphveil.cli.base.console import complain, emit
from graphveil.cli.federation import init as federation_init
from graphveil.graphs import Graph

Folder = Annotated[Path, typer.Argument(metavar="PARTY", help="A party's folder from federation init.")]
Nodes = Annotated[int, typer.Option("--nodes", min=2, help="Expected number of nodes that all holders share.")]
Training = Annotated[
    int | None, typer.Option("--training", min=1, help="Labelled training nodes among them. Default: a tenth.")
]
Patience = Annotated[float, typer.Option("--patience", metavar="S", help="Seconds to wait for the other parties.")]


def group() -> typer.Typer:
    """The commands of a federation."""
    app = typer.Typer(help="Train together with other organisations, over the network.")
    app.callback()(lambda: None)
    for command in (
        federation_init.split,
        federation_init.key,
        federation_init.init,
        federation_init.sign,
        plan,
        serve,
        join,
        status,
    ):
        app.command()(command)
    return app


def plan(folder: Folder, nodes: Nodes = 10_000, training: Training = None, as_json: options.Json = False) -> None:
    """Show what a run would send, cost and reveal; works before all parties have signed."""
    from graphveil.cli.federation import screens as screens
    from graphveil.reports.federation.plan import draft, planned

    agreement, unsigned = draft(folder)
    answer = planned(agreement, nodes, training or max(nodes // 10, 1), unsigned)
    emit(answer, as_json=as_json, screen=lambda: screens.planned(answer))


def serve(folder: Folder, patience: Patience = 600.0, as_json: options.Json = False) -> None:
    """Run the server: it deals masks, combines embeddings, and sees no features, edges or ids."""
    _run(folder, None, 0, patience, as_json)


def join(
    folder: Folder,
    data: options.Data,
    data_root: options.DataRoot = None,
    seed: options.Seed = 0,
    patience: Patience = 600.0,
    as_json: options.Json = False,
) -> None:
    """Run a data holder on its own files; the label holder also writes predictions."""
    from graphveil.graphs import load_plain

    _run(folder, load_plain(data, root=data_root), seed, patience, as_json)


def status(folder: Folder, as_json: options.Json = False) -> None:
    """Show how far a party's run has come."""
    from graphveil.cli.federation import screens as screens
    from graphveil.reports.federation.party import read_status

    answer = read_status(folder)
    emit(answer, as_json=as_json, screen=lambda: screens.status(answer))


def _run(folder: Path, graph: Graph | None, seed: int, patience: float, as_json: bool) -> None:
    from graphveil.cli.federation import screens as screens
    from graphveil.errors import InputError
    from graphveil.federation.core.agreement import read_agreement
    from graphveil.federation.crypto.keys import read_identity
    from graphveil.federation.party import require_agreed, run_party
    from graphveil.reports.federation import party as federation
    from graphveil.runtime.progress import Progress

    agreement, identity = read_agreement(folder), read_identity(folder)
    name, setting = identity.name, agreement.setting
    if (agreement.party(name).role == "server") != (graph is None):
        role = agreement.party(name).role
        raise InputError(f"{name} is a {role}", remedy="serve is for the server, join for holders")
    if graph is not None:
        require_agreed(graph, agreement, name)
    ids = [str(value) for value in getattr(graph, "ids", range(graph.num_nodes))] if graph is not None else None
    rounds, price = setting.rounds, setting.privacy.epsilon if graph is not None else None
    log = federation.StatusFile(folder, name, rounds, price, setting.reader)

    def show(event: Progress) -> None:
        round, epsilon = event.done, event.epsilon or 0.0
        log.write("running", round, epsilon)
        if round == 0:
            complain(f"{name}: all parties have started")
        elif round == 1 or round % max(rounds // 20, 1) == 0 or round == rounds:
            paid = f", {screens.spent(epsilon, setting.privacy.epsilon, setting.reader)}" if graph is not None else ""
            complain(f"{name}: round {round} of {rounds}{paid}")

    complain(f"{name}: waiting for {', '.join(party.name for party in agreement.parties if party.name != name)}")
    started = time.monotonic()
    with log.watched(), federation.TranscriptFile(folder, agreement).recording() as record:
        outcome = run_party(
            agreement,
            identity,
            folder,
            graph=graph,
            ids=ids,
            seed=seed,
            patience=patience,
            note=complain,
            progress=show,
            record=record,
        )
        seconds = time.monotonic() - started
        answer = federation.write_outcome(folder, name, agreement, outcome, ids=ids, seconds=seconds, say=complain)
    emit(answer, as_json=as_json, screen=lambda: screens.finished(answer))
