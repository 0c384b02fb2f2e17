"""All kinds of messages: who sends each to whom, and what it reveals under which assumption.

A message is a name and an array.  What is checked at run time, on every message:

    sender   its kind is in `KINDS`, and the array of that kind's element type                       `require_kind`
    reader   the same, and it is of the sender, kind and shape that its program waits for            `checked_body`
             over the network also every frame, before a byte is believed                        `transport.wire`

The roles in `KINDS` are checked by no party: tests compare them, and each mode's `sent`, with what all programs send,
and `graphveil federation verify` compares them with a party's log.
`simulate` delivers messages between the programs of all parties in one process.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.effects import Checkpoint, Program, Receive, Send, Watch, advance

#: What several kinds reveal.
UNIFORM = "nothing: uniform to the reader, as long as the server colludes with no holder"
SEALED = "nothing: a salted hash of the sender's shares, so that no round is published with other data"
#: Of corrections of `hidden_matrix` beside one key: some of their bits are always 0, all others look random.
ONE_KEY = "the agreed room for connections a node; about the connections nothing without the other side's key"
SERVER, HOLDER, LABELS, ANYBODY = "server", "holder", "label holder", "all others"


@dataclass(frozen=True)
class Kind:
    """One kind of message.

    Attributes:
        sender, receiver: roles; the label holder is one of the holders.
        reveals: what the receiver learns, and under which assumption not more.
        priced: whether each message is a publication that the ledger charges.
    """

    sender: str
    receiver: str
    dtype: torch.dtype
    reveals: str
    priced: bool = False


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "mask-keys": Kind(SERVER, HOLDER, torch.uint8, "nothing: keys of masks for what holders send each other"),
        "holder-key": Kind(
            HOLDER, HOLDER, torch.uint8, "nothing: a fresh public key, of masks that the server does not know"
        ),
        "matrix-key": Kind(HOLDER, ANYBODY, torch.uint8, "nothing: one of two keys to a holder's connections"),
        "hidden-matrix": Kind(HOLDER, ANYBODY, torch.int64, ONE_KEY),
        "masked-left": Kind(HOLDER, HOLDER, torch.int64, UNIFORM),
        "masked-right": Kind(HOLDER, HOLDER, torch.int64, UNIFORM),
        "correction": Kind(SERVER, HOLDER, torch.int64, UNIFORM),
        "masked-sum": Kind(HOLDER, HOLDER, torch.int64, UNIFORM),
        "seal": Kind(HOLDER, HOLDER, torch.uint8, SEALED),
        "safe-bits": Kind(
            HOLDER, HOLDER, torch.uint8, "nothing: which masked sums lie at the ring's ends, by chance alone"
        ),
        "opened-share": Kind(
            HOLDER, HOLDER, torch.int64, "the first layer h0 of all nodes: a projection of the other holders' features"
        ),
        "hidden-share": Kind(
            HOLDER, LABELS, torch.int64, "the last hidden layer, without noise: the sum of all holders' shares alone"
        ),
        "noisy-share": Kind(
            HOLDER,
            SERVER,
            torch.int64,
            "the sum of all holders' shares alone: noisy embeddings; masked by keys that the server does not know",
            priced=True,
        ),
        "embeddings": Kind(HOLDER, SERVER, torch.float32, "one embedding a node, clipped and noisy", priced=True),
        "blinded-ids": Kind(
            HOLDER, HOLDER, torch.uint8, "how many ids a holder has; the ids are blinded by its secret"
        ),
        "blinded-set": Kind(
            HOLDER,
            HOLDER,
            torch.uint8,
            "which of the reader's own ids the sender has too; of others how many it and further holders share",
        ),
        "aligned": Kind(HOLDER, SERVER, torch.int64, "how many ids all holders share"),
        "labelled-rows": Kind(LABELS, ANYBODY, torch.int64, "which nodes train"),
        "validation-rows": Kind(LABELS, ANYBODY, torch.int64, "which nodes validate"),
        "new-rows": Kind(LABELS, ANYBODY, torch.int64, "which nodes joined after the run"),
        "kept-round": Kind(LABELS, SERVER, torch.int64, "whether this round validates best so far"),
        "best-round": Kind(SERVER, HOLDER, torch.int64, "whether this round validates best so far"),
        "hidden": Kind(SERVER, LABELS, torch.float32, "the last hidden layer: what is computed from noisy embeddings"),
        "hidden-gradient": Kind(
            LABELS,
            SERVER,
            torch.float32,
            "which nodes are labelled, and their labels up to names unless noise is added",
            priced=True,
        ),
        "embedding-gradient": Kind(
            SERVER,
            HOLDER,
            torch.float32,
            "how the labels pull at this holder's embeddings: rows of equal labels are alike",
        ),
        "training-labels": Kind(
            LABELS,
            HOLDER,
            torch.int64,
            "which nodes train, and their labels, randomized where epsilon_y is finite",
            priced=True,
        ),
        "guesses": Kind(
            HOLDER,
            LABELS,
            torch.int64,
            "one guess a node of its class, randomized where epsilon is finite",
            priced=True,
        ),
        "gradient-share": Kind(SERVER, HOLDER, torch.int64, UNIFORM),
    }
)


@dataclass(frozen=True)
class Entry:
    """The record of one message: everything but its content."""

    round: int
    sender: str
    receiver: str
    kind: str
    shape: tuple[int, ...]
    bytes: int
    reveals: str
    epsilon: float = 0.0


def require_kind(kind: str, body: Tensor) -> None:
    """Refuse a message of an unknown kind, or an array of another type than the kind's: InputError."""
    declared = KINDS.get(kind)
    if declared is None:
        raise InputError(f"message {kind!r} is not on the list of what may be sent", allowed=", ".join(KINDS))
    # The element type is part of the kind: a float in place of ring elements could carry a number in the clear.
    if body.dtype != declared.dtype:
        raise InputError(f"message {kind!r} holds {body.dtype}", allowed=str(declared.dtype))


@dataclass(frozen=True)
class Transcript:
    """All messages of a run without their content, in the order in which they were sent."""

    entries: tuple[Entry, ...]

    @property
    def bytes(self) -> int:
        """The size of all bodies together."""
        return sum(entry.bytes for entry in self.entries)

    def between(self, sender: str, receiver: str) -> tuple[Entry, ...]:
        """Return what one party sent another, in order."""
        return tuple(entry for entry in self.entries if (entry.sender, entry.receiver) == (sender, receiver))

    def to_rows(self) -> list[dict[str, Any]]:
        """One JSON-safe row a message."""
        return [asdict(entry) | {"shape": list(entry.shape)} for entry in self.entries]


#: (sender, receiver) -> the messages under way, (kind, body) each, oldest first.
_Mail: TypeAlias = dict[tuple[str, str], deque[tuple[str, Tensor]]]


def simulate(programs: Mapping[str, Program[Any]], *, watch: Watch | None = None) -> tuple[dict[str, Any], Transcript]:
    """Run all parties to their ends in one process, deterministically; return what each returned, and the transcript.

    Args:
        watch: called with a party's name and each of its effects, for progress and tests.

    Raises:
        InputError: for parties that wait for each other, by name, or for a message that is not what was expected.
    """
    mail: _Mail = defaultdict(deque)
    results: dict[str, Any] = {}
    waiting: dict[str, Receive] = {}
    entries: list[Entry] = []
    rounds = dict.fromkeys(programs, 0)

    def resume(name: str, message: Tensor | None) -> None:
        waiting.pop(name, None)
        while True:
            try:
                effect = advance(programs[name], message)
            except StopIteration as stop:
                results[name] = stop.value
                return
            message = None
            if watch is not None:
                watch(name, effect)
            if isinstance(effect, Receive):
                waiting[name] = effect
                return
            if isinstance(effect, Checkpoint):
                rounds[name] = effect.round
            else:
                entries.append(_deliver(name, effect, rounds[name], programs, mail))

    for name in programs:
        resume(name, None)
    while len(results) < len(programs):
        # The first that can go on, in a fixed order: so one seed gives one transcript, whatever the machine.
        ready = next((name for name, expected in waiting.items() if mail[expected.sender, name]), None)
        if ready is None:
            stuck = "; ".join(
                f"{name} waits for {expected.kind} of {expected.sender}" for name, expected in waiting.items()
            )
            raise InputError(f"messages that nobody sends: {stuck}", where="simulation")
        expected = waiting[ready]
        resume(ready, checked_body(expected, *mail[expected.sender, ready].popleft()))
    left = [f"{kind} from {sender} to {to}" for (sender, to), box in mail.items() for kind, _ in box]
    # A message that nobody reads is still a message that somebody could read: it must be in the protocol or not sent.
    if left:
        raise InputError(f"messages that nobody reads: {', '.join(left)}", where="simulation")
    return results, Transcript(tuple(entries))


def checked_body(expected: Receive, kind: str, body: Tensor) -> Tensor:
    """Return the body of a message, or raise InputError where kind, type or shape are not the expected ones."""
    if kind != expected.kind:
        raise InputError(f"received message {kind!r}", where=expected.sender, allowed=expected.kind)
    require_kind(kind, body)
    fits = len(expected.shape) == body.dim() and all(
        declared in (-1, size) for declared, size in zip(expected.shape, body.shape, strict=True)
    )
    if not fits:
        raise InputError(f"{kind} of shape {tuple(body.shape)}", where=expected.sender, allowed=str(expected.shape))
    return body


def _deliver(sender: str, message: Send, round: int, programs: Collection[str], mail: _Mail) -> Entry:
    """Put a message into its receiver's mail; return its record."""
    kind, body = message.kind, message.body
    require_kind(kind, body)
    if message.to not in programs or message.to == sender:
        raise InputError(f"message {kind!r} to {message.to!r}", allowed=", ".join(programs))
    # A copy, as a wire makes one: a sender that goes on computing in place must not change what it has sent.
    mail[sender, message.to].append((kind, body.clone()))
    size = body.numel() * body.element_size()
    return Entry(round, sender, message.to, kind, tuple(body.shape), size, KINDS[kind].reveals)
