"""One party's run from its own folder: read the data, align, train, write what it may keep.

    holder   own-files folder -> ids to points -> rows that all have, in their order -> the mode's program
    server   everybody's count of rows, then the mode's program

`run_party` is what `graphveil federation serve` and `join` call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from graphveil.errors import DataError, InputError
from graphveil.federation.core.agreement import Agreement
from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.core.id_forms import digests_of, in_form
from graphveil.federation.core.messages import Transcript
from graphveil.federation.core.publisher import Publisher
from graphveil.federation.core.states import RunContext
from graphveil.federation.crypto.commitments import SALT
from graphveil.federation.crypto.keys import Identity, fingerprint_of
from graphveil.federation.crypto.masks import as_message
from graphveil.federation.crypto.psi import MAX_IDS, Memory, align
from graphveil.federation.effects import Checkpoint, Effect, Program, Receive, Send, with_changed_effects
from graphveil.federation.modes.guesses import GuessingHolder, GuessPublisher
from graphveil.federation.modes.holder import EmbeddingHolder, Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.modes.linear import LinearHolder
from graphveil.federation.modes.programs import programs_of
from graphveil.federation.simulation import HolderResult, ServerResult
from graphveil.federation.transport.links import Links, Peer
from graphveil.federation.transport.session import Finished, Record, Session
from graphveil.files.columns import Column
from graphveil.files.serial import toml_lines
from graphveil.graphs import Graph, published_split, random_split
from graphveil.graphs.declared.column_declaration import declared_columns
from graphveil.graphs.value.checks import require_one_label
from graphveil.graphs.value.features import to_rows
from graphveil.privacy import Randomness, SecureRandomness
from graphveil.runtime.progress import ProgressCallback

T = TypeVar("T")
#: Bytes of one message that every agreement allows: more than any block of masked rows.
_LEAST_ROOM = 1 << 26


def holding_of(graph: Graph, order: Tensor, *, labels: bool, seed: int) -> Holding:
    """Return a holder's part of the rows that all share, in their order, with the edges among them.

    Args:
        graph: of the holder's own folder.
        order: its rows, int64 [n].
        labels: whether this is the label holder.
        seed: of the split, where the folder declares none.

    Raises:
        InputError: for a label holder's graph with several labels a node.
    """
    position = torch.full((int(graph.num_nodes),), -1, dtype=torch.int64)
    position[order] = torch.arange(len(order))
    # -1 for nodes that not everybody has; their edges are dropped, or they would have no row at the other holders.
    ends = position[graph.edge_index]
    rows = to_rows(graph.x)[order.numpy()] if graph.x.layout == torch.sparse_csr else graph.x[order]
    head = None
    if labels:
        require_one_label(graph)
        # Drawn over the whole folder and cut afterwards: who is aligned must not change who trains.
        split = published_split(graph) or random_split(graph, seed)
        # In the common order, as all rows from here on: nothing after this knows where a person stood in the files.
        head = LabelHead(graph.y[order], split.train[order], split.val[order], split.test[order])
    bound = max(abs(graph.schema.low), abs(graph.schema.high))
    return Holding(rows, ends[:, (ends >= 0).all(dim=0)], bound, head)


def require_agreed(graph: Graph, agreement: Agreement, name: str) -> None:
    """Refuse a folder of other columns, range, classes or direction than agreed: DataError.

    Args:
        graph: of the holder's folder.
    """
    party, schema = agreement.party(name), graph.schema
    pairs = [
        ("feature columns", schema.dimension, party.columns),
        ("range", (schema.low, schema.high), (agreement.low, agreement.high)),
        ("directed", schema.directed, agreement.directed),
    ]
    if party.kinds:
        pairs.insert(0, ("declared columns", _kinds(schema.columns), _kinds(party.kinds)))
    room = party.entries * int(graph.num_nodes)
    if agreement.setting.mode.opens_sum and graph.edge_index.shape[1] + graph.num_nodes > room:
        raise DataError(
            f"has {graph.edge_index.shape[1] / int(graph.num_nodes) + 1:.1f} connections a node, itself counted",
            where=schema.name,
            allowed=f"{party.entries}, as agreed",
            remedy="agree on more entries for this holder",
        )
    if party.labels:
        pairs.append(("classes", schema.classes, agreement.classes))
    for fact, actual, agreed in pairs:
        if actual != agreed:
            raise DataError(f"{fact}: {actual}", where=schema.name, allowed=f"{agreed}, as agreed")


def _kinds(columns: Sequence[Column]) -> str:
    return ", ".join(toml_lines(declared_columns(columns))) or "none"


@dataclass(frozen=True)
class Outcome:
    """The result of a finished party.

    Attributes:
        order: a holder's rows in the order that all share, int64 [n]; None at the server.
        head: the label holder's labels and predictions.
        result: of the mode's program.
        transcript: the messages that this process sent and received.
    """

    order: Tensor | None
    head: LabelHead | None
    result: HolderResult | ServerResult
    transcript: Transcript

    @property
    def publisher(self) -> Publisher | GuessPublisher | None:
        """A holder's publisher; None at the server, and in mode "all-shares"."""
        result = self.result
        return result.publisher if isinstance(result, EmbeddingHolder | LinearHolder | GuessingHolder) else None


def holder_program(
    run: RunContext,
    graph: Graph,
    ids: Sequence[str],
    *,
    seed: int,
    memory: Memory | None = None,
    progress: ProgressCallback = lambda step: None,
) -> Program[tuple[Tensor, HolderResult]]:
    """Align ids and run the mode's program; return the aligned rows int64 [n] and the result.

    Args:
        run: the holder's run; its generator is seeded here, from the randomness.
        ids: of its rows, as text.
        seed: of the split where it declares none.
        memory, progress: of the alignment (`psi.align`).

    Raises:
        DataError: the folder has fewer rows than at the start of the run, or other people in them.
    """
    setting = run.setting
    order = yield from aligned_rows(run, graph, ids, memory, progress)
    people = _people(run, [ids[row] for row in order.tolist()])
    holding = holding_of(graph, order, labels=run.me == setting.label_holder, seed=seed)
    run.generator.manual_seed(_drawn_seed(run.randomness))
    if holding.head is not None:
        holding.head.open(setting, randomness=run.randomness, generator=run.generator)
    # Also when going on: the server sizes every message that it waits for by this count.
    yield Send(setting.server, "aligned", torch.tensor([len(order)]))
    result = yield from with_saved(programs_of(setting).holder(run, holding), {"order": order, **people})
    return order, result


def aligned_rows(
    run: RunContext, graph: Graph, ids: Sequence[str], memory: Memory | None, progress: ProgressCallback
) -> Program[Tensor]:
    """Return the graph's rows in the order that all share, int64 [n]: aligned, or as when the run began.

    Args:
        ids: of its rows, as text.
        memory, progress: of the alignment (`psi.align`).

    Raises:
        DataError: the folder has fewer rows than at the start of the run.
    """
    if run.state is None:
        return (yield from align(run.roster, ids, randomness=run.randomness, memory=memory, progress=progress))
    # Not aligned again: new secrets would order the rows anew, and saved shares are of the old order.
    order = run.state["order"]
    if len(order) and int(order.max()) >= int(graph.num_nodes):
        raise DataError("has fewer rows than at the start of the run", where=run.me, remedy="restore the folder")
    return order


def _people(run: RunContext, ids: Sequence[str]) -> dict[str, Tensor]:
    """Return who takes part, so that a later prediction publishes none of them again; DataError where these are others
    than at the start of the run."""
    before = run.state or {}
    salt = before["people/salt"].numpy().tobytes() if before else run.randomness.bytes(SALT)
    people = digests_of(ids, salt)
    # In the place of somebody else a person would be published whom a later prediction takes for new.
    if before and not torch.equal(people, before["people"]):
        raise DataError("other people than at the start of the run", where=run.me, remedy="restore the folder")
    return {"people": people, "people/salt": as_message(salt)}


def server_program(run: RunContext) -> Program[ServerResult]:
    """Wait for everybody's count of rows, then run the mode's program; InputError if counts differ."""
    nodes = yield from agreed_row_count(run)
    run.generator.manual_seed(_drawn_seed(run.randomness))
    program: Program[ServerResult] = programs_of(run.setting).server(run, nodes, -1)
    return (yield from program)


def agreed_row_count(run: RunContext) -> Program[int]:
    """Return how many rows all holders share, as the server hears it; InputError if counts differ."""
    counts = []
    for name in run.setting.names:
        counts.append(int((yield Receive(name, "aligned", (1,)))))
    # Honest holders cannot differ: alignment gives all the same set, and other sizes could not be added up.
    if len(set(counts)) != 1:
        raise InputError(f"the holders aligned {counts} rows", allowed="the same number everywhere")
    return counts[0]


def _drawn_seed(randomness: Randomness) -> int:
    return int(randomness.uint64(1)[0] >> 1)


def run_party(
    agreement: Agreement,
    identity: Identity,
    folder: Path,
    *,
    graph: Graph | None = None,
    ids: list[str] | None = None,
    seed: int = 0,
    patience: float = 600.0,
    listen: str | None = None,
    note: Callable[[str], None],
    progress: ProgressCallback,
    record: Record = lambda message: None,
) -> Outcome:
    """Run one party to the end over the network, from its last finished round if there is one.

    Args:
        folder: of its checkpoints.
        graph, ids: a holder's data.
        seed: of the label holder's split.
        patience: seconds to wait for other parties.
        listen: "host:port" to listen on, where the agreed address leads to another machine or port.
        note: called with a line about connections.
        progress: called after each round, with the epsilon spent; before the first with the points of an alignment,
            stage `psi.STAGE`.
        record: called with each message before it leaves, and when it is read.

    Raises:
        GraphveilError: a party is gone, refuses or stops, or a message is not what was agreed.
    """
    ids = checked_inputs(agreement, identity, folder, graph, ids)

    def build(session: Session, run: RunContext) -> Program[Any]:
        if graph is None:
            return server_program(run)
        return holder_program(run, graph, ids, seed=seed, memory=store.alignment, progress=session.computing)

    with closing(Checkpoints(folder / "checkpoints", agreement.hash.hex())) as store:
        party_run = PartyRun(agreement, identity, agreement.hash, patience, listen, note)
        finished = run_session(party_run, build, store, agreement.setting.rounds, progress, record)
    if graph is None:
        return Outcome(None, None, finished.result, finished.transcript)
    order, result = finished.result
    return Outcome(order, result.head, result, finished.transcript)


def checked_inputs(
    agreement: Agreement, identity: Identity, folder: Path, graph: Graph | None, ids: list[str] | None
) -> list[str]:
    """Return a holder's ids in the agreed form, none at the server, once its certificate and data are as agreed.

    Args:
        graph, ids: a holder's data.

    Raises:
        DataError: for another certificate or data than agreed.
        InputError: a holder has no graph.
    """
    name = identity.name
    party = agreement.party(name)
    # Reported here, where the wrong folder is; each peer would only say that it does not know this certificate.
    if fingerprint_of(party.certificate.encode()) != identity.fingerprint:
        remedy = "use the folder with the agreed certificate, or make a new agreement"
        raise DataError(f"the certificate of {name} is not the one in the agreement", where=str(folder), remedy=remedy)
    # TLS would fail at every peer, and blame another file.
    for party_name, end in agreement.ends.items():
        if end < datetime.now(UTC):
            raise DataError(
                f"the certificate of {party_name} ended on {end:%Y-%m-%d at %H:%M} UTC",
                where=str(folder),
                remedy="check the clock, or make a new key and a new agreement",
            )
    if graph is None:
        if party.role != "server":
            raise InputError(f"{name} holds data", remedy="hand over its graph")
        return []
    # Before a connection is opened: no other party should hear what is wrong with this party's files.
    require_agreed(graph, agreement, name)
    return in_form(agreement.ids, ids or [], name)


@dataclass(frozen=True)
class PartyRun:
    """What a party's session needs besides its program.

    Attributes:
        run_hash: in every frame: of the agreement, or of the agreement and the name of a prediction.
        patience: seconds to wait for other parties.
        listen: "host:port" in place of the agreed address.
        note: called with a line about connections.
    """

    agreement: Agreement
    identity: Identity
    run_hash: bytes
    patience: float
    listen: str | None
    note: Callable[[str], None]


def run_session(
    party_run: PartyRun,
    build: Callable[[Session, RunContext], Program[Any]],
    store: Checkpoints,
    rounds: int,
    progress: ProgressCallback,
    record: Record,
) -> Finished:
    """Run a party's program over the network, from its last finished round if there is one.

    Args:
        build: makes the program of a session.
        rounds: of the program.
        progress: called after each.
        record: called with each message before it leaves, and when it is read.

    Raises:
        GraphveilError: a party is gone, refuses or stops, or a message is not what was agreed.
    """
    agreement, name = party_run.agreement, party_run.identity.name
    setting, randomness = agreement.setting, SecureRandomness()
    # The order of the agreement: of two parties the first listens, and frames carry places in place of names.
    places = {each.name: number for number, each in enumerate(agreement.parties)}
    peers = tuple(
        Peer(places[each.name], each.name, each.address, each.certificate.encode())
        for each in agreement.parties
        if each.name != name
    )
    session = Session(
        name,
        setting.server,
        tuple(peer.name for peer in peers),
        lambda done, state: build(session, RunContext(name, setting, randomness, done=done, state=state)),
        store,
        patience=party_run.patience,
        progress=lambda step: progress(replace(step, total=step.total or rounds)),
        record=record,
    )
    session.links = Links(
        party_run.identity,
        places[name],
        party_run.listen or agreement.party(name).address,
        peers,
        party_run.run_hash,
        # Rows of every column for the most nodes.
        largest=max(_LEAST_ROOM, 8 * MAX_IDS * max(setting.columns, len(setting.members) * setting.model.width)),
        patience=party_run.patience,
        on_control=session.on_control,
        on_restart=session.on_restart,
        note=party_run.note,
    )
    # The folder's lock goes last, at the caller: until then no other process of this party may begin.
    with closing(session.links) as links:
        links.open()
        return session.run()


def with_saved(program: Program[T], tensors: Mapping[str, Tensor]) -> Program[T]:
    """Run a program, adding tensors to each of its checkpoints."""

    def add(effect: Effect) -> Effect:
        if not isinstance(effect, Checkpoint):
            return effect
        state = effect.state
        return replace(effect, state=lambda: {**state(), **tensors})

    return with_changed_effects(program, add)
