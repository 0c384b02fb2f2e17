"""``graphveil federation``: organisations with different data about the same people train together."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphveil.cli.base import choices, options
from graphveil.cli.base.console import complain, emit
from graphveil.cli.federation import screens
from graphveil.errors import InputError
from graphveil.federation.core.mode import MODE_OF
from graphveil.graphs import Graph
from graphveil.runtime.progress import Progress, ProgressCallback

if TYPE_CHECKING:
    from graphveil.federation.transport.session import Record
    from graphveil.reports.federation.status import StatusFile

Folder = Annotated[Path, typer.Argument(metavar="PARTY", help="A party's folder from federation init.")]
Keyed = Annotated[Path, typer.Argument(metavar="PARTY", help="A folder with a key.")]
File = Annotated[
    Path | None,
    typer.Option("--agreement", metavar="FILE", help="Agreement that is not in the folder yet. sign copies it there."),
]
Nodes = Annotated[int, typer.Option("--nodes", min=2, help="Expected number of nodes that all holders share.")]
Training = Annotated[
    int | None, typer.Option(min=1, help="Labelled training nodes among them. Default: a tenth of --nodes.")
]
Patience = Annotated[float, typer.Option("--patience", metavar="S", help="Seconds to wait for the other parties.")]
Listen = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Listen here, where the agreed address leads through NAT or a tunnel."),
]
#: The exit code of a log that contradicts its agreement.
_FAILED = 3
#: The default first.
_MODES = sorted(MODE_OF, key=lambda mode: mode != "shared-linear")
New = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to create.")]
Split = Annotated[
    Path | None,
    typer.Option("--from", metavar="FOLDER", help="Folder from federation split; all its holders run on this machine."),
]
Parties = Annotated[
    list[str] | None,
    typer.Option(
        "--holder",
        metavar="NAME=HOST:PORT=COLUMNS[=ENTRIES]",
        help="A data holder, its address, its number of feature columns or the graph.toml that declares them, and for "
        "how many connections a node its graph has room (default 8); repeatable. The first holds the labels.",
    ),
]
Server = Annotated[str, typer.Option("--server", metavar="HOST:PORT", help="The server's address.")]
Port = Annotated[int, typer.Option("--port", help="With --from: first port to use on this machine.")]
Classes = Annotated[str | None, typer.Option("--classes", metavar="A,B,...", help="All class names in order.")]
Range = Annotated[str, typer.Option("--range", metavar="LOW,HIGH", help="Declared range of every feature.")]
Certificates = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=FILE",
        help="Certificate of a party that keeps its own key; repeatable. For the other parties a key is created.",
    ),
]


def group() -> typer.Typer:
    app = typer.Typer(help="Train together with other organisations, over the network.")
    app.callback()(lambda: None)
    for command in (split, key, init, review, sign, plan, serve, join, predict, status, verify):
        app.command()(command)
    return app


def split(
    data: options.Data,
    out: New,
    parties: Annotated[int, typer.Option(min=2, max=5, help="Number of holders.")] = 2,
    proportion: Annotated[
        str | None, typer.Option(metavar="A:B", help="Shares of columns and edges. Default: equal.")
    ] = None,
    data_root: options.DataRoot = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Split a graph among several holders, one folder each, for experiments."""
    from graphveil.files.outputs import new_output
    from graphveil.graphs import load_plain
    from graphveil.reports.federation.folders import shares_of, write_split

    shares = shares_of(proportion, parties)
    with new_output(out, out, say=complain) as output:
        graph = load_plain(data, root=data_root)
        output.reserve(choices.room_of_split(graph))
        answer = output.write(lambda path: write_split(graph, shares, path, seed=seed), paid=False)
    emit(answer, as_json=as_json, screen=lambda: screens.split(answer))


def key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The party's name in the agreement.")],
    out: New,
    as_json: options.Json = False,
) -> None:
    """Create a party's key and certificate. Send the certificate to whoever runs init; keep the key."""
    from graphveil.files.outputs import new_output
    from graphveil.reports.federation.folders import make_key

    with new_output(out, out, say=complain) as output:
        answer = output.write(lambda path: make_key(name, path), paid=False)
    emit(answer, as_json=as_json, screen=lambda: screens.keyed(answer))


def init(
    out: New,
    source: Split = None,
    holders: Parties = None,
    server: Server = "127.0.0.1:7700",
    port: Port = 7700,
    classes: Classes = None,
    feature_range: Range = "0,1",
    name: Annotated[str, typer.Option(help="Name of the run.")] = "federation",
    directed: Annotated[bool, typer.Option("--directed", help="Edges have a direction.")] = False,
    ids: Annotated[
        str,
        typer.Option(metavar="exact|canonical|email", help="How holders compare ids; canonical: as people read them."),
    ] = "exact",
    mode: Annotated[
        str | None, typer.Option(metavar="|".join(_MODES), help="Who sees what. Default: shared-linear.")
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="Total over a holder's publications; inf: no privacy.")
    ] = None,
    settings: options.Settings = None,
    certificate: Certificates = None,
    as_json: options.Json = False,
) -> None:
    """Create one folder per party: its key, its certificate, and the agreement signed by every key created here."""
    from graphveil.files.outputs import new_output
    from graphveil.reports.federation import folders as files

    option_settings = {"mode": mode, "epsilon": epsilon}
    federation_settings = files.settings_from(
        [*(settings or []), *(f"{key}={text}" for key, text in option_settings.items() if text)]
    )
    with new_output(out, out, say=complain) as output:
        if source is not None:
            facts = files.facts_of(source, port)
        else:
            facts = files.facts_from(server, holders or [], classes, feature_range, directed=directed)
        facts = replace(facts, ids=ids)
        certificates = files.read_certificates(certificate or [])
        answer = output.write(
            lambda path: files.write_parties(path, name, facts, federation_settings, certificates), paid=False
        )
    emit(answer, as_json=as_json, screen=lambda: screens.created(answer))


def review(folder: Keyed, agreement: File = None, as_json: options.Json = False) -> None:
    """Show an agreement in plain words and record that it was reviewed, which sign requires."""
    from graphveil.reports.federation.review import note_reviewed, review_of

    answer = review_of(folder, agreement)
    emit(answer, as_json=as_json, screen=lambda: screens.reviewed(answer))
    # After the screen: what nobody could read was not reviewed.
    note_reviewed(folder, answer["agreement"])


def sign(
    folder: Keyed,
    agreement: File = None,
    signatures: Annotated[
        list[Path] | None,
        typer.Option("--with", metavar="FILE", help="Another party's signatures.json to add; repeatable."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Sign the agreement in a party's folder; review it first."""
    from graphveil.federation.crypto.keys import read_identity
    from graphveil.reports.federation.folders import add_signature, take_agreement

    if agreement is not None:
        read_identity(folder)
        take_agreement(folder, agreement)
    answer = add_signature(folder, signatures or ())
    emit(answer, as_json=as_json, screen=lambda: screens.signed(answer))


def plan(
    folder: Folder,
    nodes: Nodes = 10_000,
    training: Training = None,
    validation: Annotated[
        int | None, typer.Option(min=0, help="Labelled validation nodes among them. Default: as many as train.")
    ] = None,
    line: Annotated[
        str | None, typer.Option(metavar="RATE/DELAY", help="Network between every two parties, such as 100Mbit/50ms.")
    ] = None,
    joining: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Also a prediction for N people who join after the run.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show what a run would send, cost and reveal; works even before all parties have signed."""
    from graphveil.federation.transport.line import Line
    from graphveil.reports.federation.plan import draft, plan_of
    from graphveil.reports.federation.prediction import planned_prediction

    network = Line.parse(line) if line is not None else None
    agreement, unsigned = draft(folder)
    answer = plan_of(agreement, nodes, training or max(nodes // 10, 1), unsigned, network, validation=validation)
    if joining is not None:
        answer["joining"] = planned_prediction(agreement, nodes, joining, network)
    emit(answer, as_json=as_json, screen=lambda: screens.planned(answer))


def serve(folder: Folder, patience: Patience = 600.0, listen: Listen = None, as_json: options.Json = False) -> None:
    """Run the server: it deals masks and trains on what holders send; plan says what that reveals."""
    _run(folder, None, seed=0, patience=patience, listen=listen, as_json=as_json)


def join(
    folder: Folder,
    data: options.Data,
    data_root: options.DataRoot = None,
    seed: options.Seed = 0,
    patience: Patience = 600.0,
    listen: Listen = None,
    as_json: options.Json = False,
) -> None:
    """Run a data holder on its own files; the label holder also writes predictions."""
    from graphveil.graphs import load_plain

    _run(folder, load_plain(data, root=data_root), seed=seed, patience=patience, listen=listen, as_json=as_json)


def predict(
    folder: Folder,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help="A holder's folder, of everybody now.")] = None,
    name: Annotated[str, typer.Option(help="Of the prediction, the same at all parties.")] = "new",
    patience: Patience = 600.0,
    listen: Listen = None,
    as_json: options.Json = False,
) -> None:
    """Predict people who joined after a finished run; the server gives no DATA."""
    from graphveil.federation.core.agreement import read_agreement
    from graphveil.federation.crypto.keys import read_identity
    from graphveil.federation.modes.joined import ROUNDS
    from graphveil.federation.predicting import folder_of, predict_party
    from graphveil.graphs import load_plain
    from graphveil.reports.federation.log import TranscriptFile, remove_if_silent
    from graphveil.reports.federation.prediction import published_once, write_prediction
    from graphveil.reports.federation.status import StatusFile

    agreement, identity = read_agreement(folder), read_identity(folder)
    prediction_folder = folder_of(folder, name)
    setting, graph = agreement.setting, load_plain(data) if data is not None else None
    price = setting.privacy.epsilon if graph is not None else None
    log = TranscriptFile(prediction_folder, published_once(agreement), identity=identity, say=complain)
    status = StatusFile(prediction_folder, identity.name, ROUNDS, price, setting.mode.reader)

    @contextmanager
    def recording() -> Iterator[Record]:
        with status.watched(), log.recording() as record:
            yield record

    complain(f"{identity.name}: waiting for the other parties")
    started = time.monotonic()
    with remove_if_silent(prediction_folder):
        predicted = predict_party(
            agreement,
            identity,
            folder,
            name,
            graph=graph,
            ids=[str(value) for value in getattr(graph, "ids", range(graph.num_nodes))] if graph is not None else None,
            patience=patience,
            listen=listen,
            note=complain,
            progress=_show_steps(identity.name, ROUNDS, price, setting.mode.reader, status),
            log=recording,
        )
    seconds = time.monotonic() - started
    answer = write_prediction(folder, identity.name, name, agreement, predicted, seconds=seconds)
    emit(answer, as_json=as_json, screen=lambda: screens.predicted(answer))


def status(folder: Folder, as_json: options.Json = False) -> None:
    """Show how far a party's run and predictions have come, what has left this machine, and what it could reveal."""
    from graphveil.reports.federation.status import status_of

    answer = status_of(folder)
    emit(answer, as_json=as_json, screen=lambda: screens.status(answer))


def verify(
    folder: Folder,
    other: Annotated[
        Path | None, typer.Argument(metavar="LOG", help="transcript.jsonl of another party, to compare with.")
    ] = None,
    prediction: Annotated[
        str | None, typer.Option(metavar="NAME", help="Look at the log of this prediction, not at the run's.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check a party's log of messages against the agreement, and another party's log; exit code 3 if one fails."""
    from graphveil.reports.federation.verify import verify_log

    answer = verify_log(folder, other, prediction=prediction)
    emit(answer, as_json=as_json, screen=lambda: screens.verified(answer))
    if answer["faults"]:
        raise typer.Exit(_FAILED)


def _run(folder: Path, graph: Graph | None, *, seed: int, patience: float, listen: str | None, as_json: bool) -> None:
    from graphveil.federation.core.agreement import read_agreement
    from graphveil.federation.crypto.keys import read_identity
    from graphveil.federation.party import require_agreed, run_party
    from graphveil.reports.federation.earlier import paid_earlier
    from graphveil.reports.federation.log import TranscriptFile
    from graphveil.reports.federation.party import write_outcome
    from graphveil.reports.federation.review import ending_soon
    from graphveil.reports.federation.status import StatusFile

    agreement, identity = read_agreement(folder), read_identity(folder)
    name, setting = identity.name, agreement.setting
    if (agreement.party(name).role == "server") != (graph is None):
        role = agreement.party(name).role
        raise InputError(f"{name} is a {role}", remedy="serve is for the server, join for holders")
    if graph is not None:
        require_agreed(graph, agreement, name)
    ids = [str(value) for value in getattr(graph, "ids", range(graph.num_nodes))] if graph is not None else None
    rounds, price = setting.rounds, setting.privacy.epsilon if graph is not None else None
    status = StatusFile(folder, name, rounds, price, setting.mode.reader)
    for line in (*ending_soon(agreement), *paid_earlier(folder, agreement)):
        complain(f"warning: {line}")
    log = TranscriptFile(folder, agreement, identity=identity, say=complain)
    complain(f"{name}: waiting for {', '.join(party.name for party in agreement.parties if party.name != name)}")
    started = time.monotonic()
    with status.watched(), log.recording() as record:
        outcome = run_party(
            agreement,
            identity,
            folder,
            graph=graph,
            ids=ids,
            seed=seed,
            patience=patience,
            listen=listen,
            note=complain,
            progress=_show_steps(name, rounds, price, setting.mode.reader, status),
            record=record,
        )
        seconds = time.monotonic() - started
        answer = write_outcome(folder, name, agreement, outcome, ids=ids, seconds=seconds, say=complain)
    emit(answer, as_json=as_json, screen=lambda: screens.finished(answer))


def _show_steps(name: str, rounds: int, price: float | None, reader: str, status: StatusFile) -> ProgressCallback:
    """Return what writes each step to the terminal and to the status file."""
    from graphveil.federation.crypto.psi import STAGE

    def show(event: Progress) -> None:
        if event.stage == STAGE:
            if event.done < event.total:  # the last of small sets needs no word
                status.write(f"aligning ids, {event.done / event.total:.0%}", 0, 0.0)
                complain(f"{name}: aligning ids, {event.done / event.total:.0%}")
            return
        round, epsilon = event.done, event.epsilon or 0.0
        status.write("running", round, epsilon)
        if round == 0:
            complain(f"{name}: all parties have started")
        elif round == 1 or round % max(rounds // 20, 1) == 0 or round == rounds:
            spent_note = f", {screens.spent(epsilon, price, reader)}" if price is not None else ""
            complain(f"{name}: round {round} of {rounds}{spent_note}")

    return show
