"""All kinds of messages: who sends each to whom, and what it reveals under which assumption; nothing else is accepted.

A message is a name and an array of one declared type; the reader states the shape it expects and refuses any other.
`simulate` delivers them between the programs of all parties in one process.
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

UNIFORM = "nothing: uniform to the reader, as long as the server colludes with no holder"
SEALED = "nothing: a salted hash of the sender's shares, so that no round is published with other data"
#: Of keys and corrections of `hidden_matrix`: some bits of the corrections are always 0, all others look random.
HALF = "the agreed room for connections a node; about the connections nothing without the other side's key"
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
        "hidden-matrix": Kind(HOLDER, ANYBODY, torch.int64, HALF),
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
    """Refuse, before it is sent, what may not be; InputError for an unknown kind, or an array of another type."""
    listed = KINDS.get(kind)
    if listed is None:
        raise InputError(f"message {kind!r} is not on the list of what may be sent", allowed=", ".join(KINDS))
    # The element type is part of the kind: a float in place of ring elements could carry a number in the clear.
    if body.dtype != listed.dtype:
        raise InputError(f"message {kind!r} holds {body.dtype}", allowed=str(listed.dtype))


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

    def go_on(name: str, message: Tensor | None) -> None:
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
                entries.append(_delivered(name, effect, rounds[name], programs, mail))

    for name in programs:
        go_on(name, None)
    while len(results) < len(programs):
        # The first that can go on, in a fixed order: so one seed gives one transcript, whatever the machine.
        ready = next((name for name, expected in waiting.items() if mail[expected.sender, name]), None)
        if ready is None:
            stuck = "; ".join(
                f"{name} waits for {expected.kind} of {expected.sender}" for name, expected in waiting.items()
            )
            raise InputError(f"messages that nobody sends: {stuck}", where="simulation")
        expected = waiting[ready]
        go_on(ready, checked_body(expected, *mail[expected.sender, ready].popleft()))
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
        listed in (-1, size) for listed, size in zip(expected.shape, body.shape, strict=True)
    )
    if not fits:
        raise InputError(f"{kind} of shape {tuple(body.shape)}", where=expected.sender, allowed=str(expected.shape))
    return body


def _delivered(name: str, sent: Send, number: int, programs: Collection[str], mail: _Mail) -> Entry:
    require_kind(sent.kind, sent.body)
    if sent.to not in programs or sent.to == name:
        raise InputError(f"message {sent.kind!r} to {sent.to!r}", allowed=", ".join(programs))
    # A copy, as a wire makes one: a sender that goes on computing in place must not change what it has sent.
    mail[name, sent.to].append((sent.kind, sent.body.clone()))
    size = sent.body.numel() * sent.body.element_size()
    return Entry(number, name, sent.to, sent.kind, tuple(sent.body.shape), size, KINDS[sent.kind].reveals)
