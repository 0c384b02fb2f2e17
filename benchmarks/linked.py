"""A party's session on real streams between processes of this machine, for benchmarks that start parties themselves."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.crypto.keys import Identity
from graphveil.federation.effects import Program
from graphveil.federation.transport.links import Links, Peer
from graphveil.federation.transport.session import Finished, Session
from graphveil.runtime.progress import Progress


def linked_session(
    name: str,
    identities: Mapping[str, Identity],
    addresses: Mapping[str, str],
    build: Callable[[int, Any], Program[Any]],
    store: Checkpoints,
    *,
    patience: float,
    largest: int,
    progress: Callable[[Progress], None] = lambda step: None,
) -> Session:
    """Return a party's session, with its links not yet open.

    Args:
        name: of the party.
        identities: of all parties, the server first.
        addresses: "host:port" of each.
        build: makes the program of a session.
        store: checkpoints.
        patience: seconds to wait for peer_names.
        largest: bytes of the largest message.
        progress: called after each round.
    """
    names = list(identities)
    peers = tuple(
        Peer(place, other, addresses[other], identities[other].certificate)
        for place, other in enumerate(names)
        if other != name
    )
    peer_names = tuple(peer.name for peer in peers)
    session = Session(name, names[0], peer_names, build, store, patience=patience, progress=progress)
    session.links = Links(
        identities[name],
        names.index(name),
        addresses[name],
        peers,
        hashlib.sha256(b"benchmark").digest(),
        largest=largest,
        patience=patience,
        on_control=session.on_control,
        on_restart=session.on_restart,
        note=lambda text: None,
    )
    return session


def finish(session: Session, store: Checkpoints) -> Finished:
    """Run a session to its end, and close what it holds."""
    session.links.open()
    finished = session.run()
    session.links.close()
    store.close()
    return finished
