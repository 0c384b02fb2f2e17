"""``graphveil federation``: organisations that hold different things about the same people train together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from graphveil.cli import federation_init, options
from graphveil.cli.console import complain, emit

Folder = Annotated[Path, typer.Argument(metavar="PARTY", help="A party's folder, which federation init made.")]
Nodes = Annotated[int, typer.Option("--nodes", min=2, help="How many nodes all holders share, as far as known.")]
Patience = Annotated[float, typer.Option("--patience", metavar="S", help="Seconds to wait for the other parties.")]


def group() -> typer.Typer:
    """The commands of a federation."""
    app = typer.Typer(help="Train together with other organisations, over the network.")
    app.callback()(lambda: None)
    for command in (
        federation_init.split,
        federation_init.init,
        federation_init.sign,
        plan,
        serve,
        join,
        status,
    ):
        app.command()(command)
    return app


def plan(folder: Folder, nodes: Nodes = 10_000, as_json: options.Json = False) -> None:
    """What a run would send, cost and reveal, before anything leaves."""
    from graphveil.cli import screens
    from graphveil.federation.agreement import read_agreement
    from graphveil.reports.federation_plan import planned

    answer = planned(read_agreement(folder), nodes)
    emit(answer, as_json=as_json, screen=lambda: screens.blocks([answer]))


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
    """Run a data holder with its own files; at the label holder, write predictions."""
    from graphveil.graphs import load_graph

    _run(folder, load_graph(data, root=data_root), seed, patience, as_json)


def status(folder: Folder, as_json: options.Json = False) -> None:
    """Where a party's run stands."""
    from graphveil.cli import screens
    from graphveil.reports.federation import read_status

    answer = read_status(folder)
    emit(answer, as_json=as_json, screen=lambda: screens.blocks([answer]))


def _run(folder: Path, graph: Any, seed: int, patience: float, as_json: bool) -> None:
    from graphveil.cli import screens
    from graphveil.errors import InputError
    from graphveil.federation.agreement import read_agreement
    from graphveil.federation.keys import read_identity
    from graphveil.federation.party import require_agreed, run_party
    from graphveil.reports import federation

    agreement, identity = read_agreement(folder), read_identity(folder)
    role = agreement.party(identity.name).role
    if (role == "server") != (graph is None):
        raise InputError(f"{identity.name} is a {role}", remedy="serve is for the server, join for holders")
    if graph is not None:
        require_agreed(graph, agreement, identity.name)
    ids = [str(value) for value in getattr(graph, "ids", range(graph.num_nodes))] if graph is not None else None
    rounds = agreement.setting.publications

    def tell(round: int, epsilon: float) -> None:
        federation.write_status(folder, identity.name, round, rounds, epsilon, state="running")
        if round == 1 or round % max(rounds // 20, 1) == 0 or round == rounds:
            complain(f"{identity.name}: round {round} of {rounds}, epsilon spent {epsilon:.3g}")

    federation.write_status(folder, identity.name, 0, rounds, 0.0, state="waiting for the others")
    outcome = run_party(
        agreement, identity, folder, graph=graph, ids=ids, seed=seed, patience=patience, note=complain, tell=tell
    )
    answer = federation.write_outcome(folder, identity.name, agreement, outcome, ids=ids)
    federation.write_status(folder, identity.name, rounds, rounds, agreement.setting.epsilon, state="finished")
    emit(answer, as_json=as_json, screen=lambda: screens.blocks([answer]))
