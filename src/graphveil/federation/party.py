"""One party's run from its own folder: read the data, align, train, write what it may keep.

    holder   own-files folder -> ids to points -> rows that all have, in their order -> the mode's program
    server   waits for everybody's count, then the mode's program

`run_party` is what `graphveil federation serve` and `join` call; `program_of` is the same without a network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graphveil.errors import DataError, InputError
from graphveil.federation.core.agreement import Agreement
from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.core.messages import Entry, Receive, Send
from graphveil.federation.core.programs import Checkpoint, Program
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import State
from graphveil.federation.crypto.keys import Identity, fingerprint_of
from graphveil.federation.crypto.products import Talk
from graphveil.federation.crypto.psi import MOST_IDS, align
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelDesk
from graphveil.federation.modes.registry import holding_program, serving
from graphveil.federation.transport.links import Links, Peer
from graphveil.federation.transport.session import Finished, Session
from graphveil.graphs import Graph, published_split, random_split
from graphveil.graphs.features import to_rows
from graphveil.privacy import Randomness, SecureRandomness

#: Room for the masks' blocks of rows, whatever the agreement says.
_LEAST_ROOM = 1 << 26


def holding_of(graph: Graph, order: Tensor, *, labels: bool, seed: int) -> Holding:
    """Return a holder's part of the rows that all share, in their order.

    Edges to nodes that not everybody has are dropped: those nodes have no embedding.

    Args:
        graph: of the holder's own folder. order: its rows, int64 [n].
        labels: whether this is the label holder. seed: of the split, where the folder declares none.
    """
    place = torch.full((int(graph.num_nodes),), -1, dtype=torch.int64)
    place[order] = torch.arange(len(order))
    ends = place[graph.edge_index]
    rows = to_rows(graph.x)[order.numpy()] if graph.x.layout == torch.sparse_csr else graph.x[order]
    desk = None
    if labels:
        split = published_split(graph) or random_split(graph, seed)
        desk = LabelDesk(graph.y[order], split.train[order], split.val[order], split.test[order])
    bound = max(abs(graph.schema.low), abs(graph.schema.high))
    return Holding(rows, ends[:, (ends >= 0).all(dim=0)], bound, desk)


def require_agreed(graph: Graph, agreement: Agreement, name: str) -> None:
    """Refuse a folder that is not what was agreed, before anything is sent.

    Raises:
        DataError: another number of columns, range, classes or direction than agreed.
    """
    party, schema = agreement.party(name), graph.schema
    pairs = [
        ("feature columns", schema.dimension, party.columns),
        ("range", (schema.low, schema.high), (agreement.low, agreement.high)),
        ("directed", schema.directed, agreement.directed),
    ]
    if party.labels:
        pairs.append(("classes", schema.classes, agreement.classes))
    for what, found, agreed in pairs:
        if found != agreed:
            raise DataError(f"{what}: {found}", where=schema.name, allowed=f"{agreed}, as agreed")


def largest_of(setting: Setting) -> int:
    """Return the bytes of the largest message that can be honest: a row of every column for the most nodes."""
    columns = sum(member.columns for member in setting.members)
    return max(_LEAST_ROOM, 8 * MOST_IDS * max(columns, len(setting.members) * setting.width))


@dataclass(frozen=True)
class Outcome:
    """What a finished party has: its rows in the agreed order (holders), its parts, and the messages it saw."""

    order: Tensor | None
    desk: LabelDesk | None
    finished: Finished


def holder_program(
    name: str,
    setting: Setting,
    graph: Graph,
    ids: list[str],
    *,
    randomness: Randomness,
    seed: int,
    done: int = 0,
    state: State | None = None,
) -> Talk:
    """Align, then the mode's program; returns (order, desk, the program's result)."""
    if state is not None:
        order = state["order"]
        if len(order) and int(order.max()) >= int(graph.num_nodes):
            raise DataError("has fewer rows than when the run began", where=name, remedy="restore the folder")
    else:
        order = yield from align(name, setting.names, ids, randomness=randomness)
    holding = holding_of(graph, order, labels=name == setting.label_holder, seed=seed)
    generator = torch.Generator().manual_seed(int(randomness.uint64(1)[0] >> 1))
    if holding.desk is not None:
        holding.desk.open(setting, randomness=randomness, generator=generator)
    yield Send(setting.server, "aligned", torch.tensor([len(order)]))
    common: dict[str, Any] = {"randomness": randomness, "generator": generator, "done": done, "state": state}
    program = holding_program(name, setting, holding, **common)
    result = yield from _remembering(program, {"order": order})
    return order, holding.desk, result


def server_program(setting: Setting, *, randomness: Randomness, done: int = 0, state: State | None = None) -> Talk:
    """Wait for everybody's count, then the mode's program.

    Raises:
        InputError: the holders have aligned different numbers of rows.
    """
    counts = []
    for name in setting.names:
        counts.append(int((yield Receive(name, "aligned", (1,)))))
    if len(set(counts)) != 1:
        raise InputError(f"the holders aligned {counts} rows", allowed="the same number at all")
    generator = torch.Generator().manual_seed(int(randomness.uint64(1)[0] >> 1))
    kept: dict[str, Any] = {"randomness": randomness, "generator": generator, "done": done, "state": state}
    result = yield from serving(setting, counts[0], -1, **kept)
    return result


def run_party(
    agreement: Agreement,
    identity: Identity,
    folder: Path,
    *,
    graph: Graph | None = None,
    ids: list[str] | None = None,
    seed: int = 0,
    patience: float = 600.0,
    note: Callable[[str], None],
    tell: Callable[[int, float], None],
    record: Callable[[Entry], None] = lambda entry: None,
) -> Outcome:
    """Run one party to the end over the network, from its last finished round if there is one.

    Args:
        folder: where checkpoints are kept. graph, ids: a holder's data. seed: of the label holder's split.
        record: called with each message that was sent or received.

    Raises:
        GraphveilError: a party is gone, refuses or stops, or a message is not what was agreed.
    """
    setting, name = agreement.setting, identity.name
    me = agreement.party(name)
    if fingerprint_of(me.certificate.encode()) != identity.fingerprint:
        raise DataError(
            f"the certificate of {name} is not the one in the agreement",
            where=str(folder),
            remedy="use the folder whose certificate was agreed on, or agree anew",
        )
    if graph is not None:
        require_agreed(graph, agreement, name)
    randomness = SecureRandomness()

    def build(done: int, state: Mapping[str, Tensor] | None) -> Program:
        if me.role == "server":
            return server_program(setting, randomness=randomness, done=done, state=state)
        if graph is None:
            raise InputError(f"{name} holds data", remedy="hand over its graph")
        kept: dict[str, Any] = {"randomness": randomness, "seed": seed, "done": done, "state": state}
        return holder_program(name, setting, graph, ids or [], **kept)

    places = {party.name: place for place, party in enumerate(agreement.parties)}
    peers = tuple(
        Peer(places[party.name], party.name, party.address, party.certificate.encode())
        for party in agreement.parties
        if party.name != name
    )
    store = Checkpoints(folder / "checkpoints", agreement.hash.hex())
    others = tuple(peer.name for peer in peers)
    session = Session(name, setting.server, others, build, store, patience=patience, tell=tell, record=record)
    session.links = Links(
        identity,
        places[name],
        me.address,
        peers,
        agreement.hash,
        largest=largest_of(setting),
        patience=patience,
        on_control=session.on_control,
        on_restart=session.on_restart,
        note=note,
    )
    try:
        session.links.open()
        finished = session.run()
    finally:
        session.links.close()
        store.close()
    if me.role == "server":
        return Outcome(None, None, finished)
    order, desk, result = finished.result
    return Outcome(order, desk, Finished(result, finished.transcript))


def _with(made: Callable[[], Mapping[str, Tensor]], more: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {**made(), **more}


def _remembering(program: Talk, more: Mapping[str, Tensor]) -> Talk:
    """Run a program, adding `more` to each of its checkpoints."""
    reply = None
    while True:
        try:
            effect = program.send(reply)
        except StopIteration as stop:
            return stop.value
        if isinstance(effect, Checkpoint):
            effect = Checkpoint(effect.round, partial(_with, effect.state, more), effect.epsilon)
        reply = yield effect
