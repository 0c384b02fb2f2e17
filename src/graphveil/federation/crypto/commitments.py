"""Commitments to publications, so that no round is published again with other data under the same noise.

    commitment of i   SHA-256(salt_i, data and fixed shares, share of A)   holder i -> others, before each publication
    publication       SHA-256(round, all commitments in the holders' order)

What is opened depends on the shares of all holders, so all of them name the publication together: noise, count and note
on disk follow from that name before anything leaves.  A round that runs again from the same checkpoints has the same
name, and the same sum is published; with another state of any holder it has another name and is refused.  The salt
stays in the holder's checkpoints, so nobody can compare a commitment with guesses of the shares (salted hashes hide;
SHA-256 binds).  On the wire a commitment is a "seal".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from graphveil.federation.crypto.masks import as_message
from graphveil.federation.effects import Program, Receive, Roster, Send

_BYTES = 32
#: Bytes of a secret salt.
SALT = 32


@dataclass(frozen=True)
class Commitment:
    """Commits to one holder's shares: the digest of a secret salt and of what never changes."""

    fixed: bytes = field(repr=False)

    @staticmethod
    def of(fixed: Iterable[Tensor | np.ndarray], salt: bytes) -> Commitment:
        """Return a commitment to what never changes in a run.

        Args:
            fixed: this holder's data and shares as whole numbers, in one order.
            salt: secret, 32 bytes, the same for the whole run.
        """
        # Hashed once. Salt and shapes come first at fixed lengths: no other values give the same bytes.
        digest = hashlib.sha256(salt)
        for numbers in fixed:
            array = np.ascontiguousarray(numbers)
            digest.update(f"{array.dtype.str} {array.shape} ".encode().ljust(64))
            digest.update(array.data)
        return Commitment(digest.digest())

    def to(self, share: Tensor) -> bytes:
        """Return the commitment to this holder's inputs of a publication: what never changes, and its share of A."""
        return hashlib.sha256(b"graphveil/seal/2" + self.fixed + _bytes(share)).digest()


def name_publication(roster: Roster, round: int, own: bytes) -> Program[str]:
    """Exchange commitments with all other holders; return the publication's name, hexadecimal, the same at all holders.

    Args:
        own: this holder's commitment, 32 bytes.
    """
    commitments = {roster.me: own}
    for name in roster.other_holders:
        # All send before any reads, so no two holders wait for each other.
        yield Send(name, "seal", as_message(own))
    for name in roster.other_holders:
        commitments[name] = _bytes((yield Receive(name, "seal", (_BYTES,))))
    in_order = b"".join(commitments[name] for name in roster.holders)
    # The round is in the name: a later round has other noise, and must never pass for a repetition that costs nothing.
    return hashlib.sha256(f"graphveil/publication/1 {round} ".encode() + in_order).hexdigest()


def name_of(body: Tensor) -> str:
    """Return the name of a publication that is one message, hexadecimal."""
    return hashlib.sha256(b"graphveil/publication/1 " + _bytes(body)).hexdigest()


def _bytes(tensor: Tensor) -> bytes:
    return tensor.contiguous().numpy().tobytes()
