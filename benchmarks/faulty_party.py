"""A command of the federation in a process with a fault of its own; benchmarks/federation_faults.py starts it.

    python benchmarks/faulty_party.py FAULT federation join PARTY DATA ...

    right        none
    replayed     sends a message twice                          both under this party's own certificate, in its own
    reordered    sends a message before the one before it       stream, after `MESSAGES` right ones
    truncated    sends less of an array than its shape says
    oversize     announces an array of a tebibyte
    overlong     sends a frame longer than any may be
    full-R       its disk is full from the checkpoint of round R on
    clock-S      its clock is S seconds ahead of the others' (behind, where S is below 0)
    expired-N    federation init: N's certificate ended half an hour ago

Initial weights are the same in every run, so that an undisturbed one is a reference; masks and noise are as always.
"""

from __future__ import annotations

import datetime
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

from graphveil.cli import main
from graphveil.federation import party
from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.crypto import keys
from graphveil.federation.transport import links, wire
from graphveil.federation.transport.mailbox import Mailbox
from graphveil.reports.federation import folders

#: Right messages before the wrong frame: beyond the alignment.
MESSAGES = 12
FRAMES = ("replayed", "reordered", "truncated", "oversize", "overlong")
_YEARS = 2 * 365 * 86_400
_HALF_AN_HOUR = 1_800


def begin(fault: str) -> None:
    """Plant a fault in this process."""
    party._drawn_seed = lambda randomness: 1
    kind, _, about = fault.partition("-")
    if kind in FRAMES:
        plant_frame(kind)
    elif kind == "full":
        plant_full_disk(int(about))
    elif kind == "clock":
        shifted_clock(float(about)).start()
    elif kind == "expired":
        plant_expired(about)
    elif fault != "right":
        raise SystemExit(f"no fault {fault!r}")


def plant_frame(kind: str) -> None:
    """Spoil frames of one message of this process."""
    outgoing, spoil, left = Mailbox.outgoing, SPOILED[kind], [MESSAGES]
    if kind == "overlong":
        links._OPTIONS = [pair for pair in links._OPTIONS if "send_message" not in pair[0]]
        links._OPTIONS.append(("grpc.max_send_message_length", -1))

    def spoiled(box: Mailbox, stream: int) -> Iterator[bytes]:
        frames = outgoing(box, stream)
        for data in frames:
            left[0] -= wire.parse(data).type == wire.DATA
            yield from [data] if left[0] else spoil(data, frames)
            left[0] -= not left[0]

    Mailbox.outgoing = spoiled


def replayed(data: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    """Send a frame twice."""
    yield from (data, data)


def reordered(data: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    """Send a message after the next."""
    between = []
    for after in rest:
        between.append(after)
        if wire.parse(after).type == wire.DATA:
            break
    yield from (*reversed(between), data)


def resealed(**changes: Any) -> Callable[[bytes, Iterator[bytes]], Iterator[bytes]]:
    """Return what changes a frame's fields under a right seal."""

    def change(data: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
        frame = wire.parse(data)
        yield replace(frame, **{name: value(frame) for name, value in changes.items()}).to_bytes()

    return change


SPOILED = {
    "replayed": replayed,
    "reordered": reordered,
    "truncated": resealed(body=lambda frame: frame.body[:-8]),
    "oversize": resealed(shape=lambda frame: (1 << 20, 1 << 17), parts=lambda frame: 1 << 20),
    "overlong": resealed(body=lambda frame: bytes(3 * wire.CHUNK)),
}


def plant_full_disk(round: int) -> None:
    """Let no file of this process grow from a checkpoint on; what it has written stays."""
    save = Checkpoints.save

    def saved(store: Checkpoints, number: int, state: Any) -> None:
        if number == round:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        save(store, number, state)

    Checkpoints.save = saved


def shifted_clock(seconds: float) -> Any:
    """Return a patch under which this process's dates are ahead; TLS takes the machine's own."""

    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Shifted:
            return cls.fromtimestamp(time.time() + seconds, tz)

    return mock.patch.object(keys.datetime, "datetime", Shifted)


def plant_expired(name: str) -> None:
    """Have `federation init` make a certificate for a party that was made two years and half an hour ago."""
    new_identity = keys.new_identity

    def planted_identity(party_name: str) -> keys.Identity:
        if party_name != name:
            return new_identity(party_name)
        with shifted_clock(-_YEARS - _HALF_AN_HOUR):
            return new_identity(party_name)

    folders.new_identity = planted_identity


if __name__ == "__main__":
    begin(sys.argv.pop(1))
    sys.exit(main())
