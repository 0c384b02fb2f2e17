"""All kinds of messages: who sends each to whom, and what it reveals under which assumption; nothing else is accepted.

A message is a name and an array of one declared type; the reader states the shape it expects and refuses any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.effects import Receive

UNIFORM = "nothing: uniform to the reader, as long as the server colludes with no holder"
SEALED = "nothing: a salted hash of the sender's shares, so that no round is published with other data"
SERVER, HOLDER, LABELS = "server", "holder", "label holder"


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
        "labelled-rows": Kind(LABELS, SERVER, torch.int64, "which nodes train; their gradients would show it anyway"),
        "hidden": Kind(
            SERVER, LABELS, torch.float32, "the last hidden layer of all nodes: what is computed from noisy embeddings"
        ),
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
    """Refuse, before it is sent, an unknown kind or an array of another type; raises InputError."""
    listed = KINDS.get(kind)
    if listed is None:
        raise InputError(f"message {kind!r} is not on the list of what may be sent", allowed=", ".join(KINDS))
    # The element type is part of the kind: a float in place of ring elements could carry a number in the clear.
    if body.dtype != listed.dtype:
        raise InputError(f"message {kind!r} holds {body.dtype}", allowed=str(listed.dtype))


def require_shape(receive: Receive, body: Tensor) -> None:
    """Refuse a message of another type or shape than expected; raises InputError."""
    require_kind(receive.kind, body)
    fits = len(receive.shape) == body.dim() and all(
        expected in (-1, size) for expected, size in zip(receive.shape, body.shape, strict=True)
    )
    if not fits:
        raise InputError(
            f"{receive.kind} of shape {tuple(body.shape)}", where=receive.sender, allowed=str(receive.shape)
        )


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
        return [asdict(entry) | {"shape": list(entry.shape)} for entry in self.entries]

    @staticmethod
    def of(entries: Iterable[Entry]) -> Transcript:
        return Transcript(tuple(entries))
