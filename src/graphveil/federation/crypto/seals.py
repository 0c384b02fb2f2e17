"""Seals of what is published, so that no round is published again with other data under the same noise.

    seal of i      SHA-256(salt_i, share of P, share of W)      holder i -> every other holder, before each publication
    publication    SHA-256(round, all seals in the holders' order)

What is opened depends on the shares of all holders.  So all of them name the publication together: the noise is a
function of that name, it is counted under it, and noted on disk before anything leaves.  A round that runs again from
the same checkpoints has the same name, and the same sum is published; with anybody's older or other state it has
another name and is refused.  The salt stays in the holder's checkpoints: a seal cannot be compared with guesses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from graphveil.federation.core.messages import Receive, Send
from graphveil.federation.crypto.masks import as_message
from graphveil.federation.crypto.products import Talk
from graphveil.privacy import Randomness

_BYTES = 32


@dataclass(frozen=True)
class Sealer:
    """Seals one holder's shares.

    Attributes:
        salt: secret, kept in the checkpoints. fixed: digest of the salt and of what is the same in all rounds.
    """

    salt: bytes = field(repr=False)
    fixed: bytes = field(repr=False)

    @staticmethod
    def of(fixed: Tensor, *, randomness: Randomness | None = None, salt: Tensor | None = None) -> Sealer:
        """Return a sealer of shares that never change, with a new salt or that of a checkpoint."""
        secret = randomness.bytes(_BYTES) if randomness is not None else _bytes(salt)
        return Sealer(secret, hashlib.sha256(secret + _bytes(fixed)).digest())

    def state(self) -> dict[str, Tensor]:
        """Return the salt."""
        return {"seal/salt": as_message(self.salt)}

    def seal(self, share: Tensor) -> bytes:
        """Return the seal of all that a publication depends on at this holder."""
        return hashlib.sha256(b"graphveil/seal/1" + self.fixed + _bytes(share)).digest()


def name_publication(me: str, names: Sequence[str], round: int, seal: bytes) -> Talk:
    """Exchange seals and return the publication's name, hexadecimal, the same at all holders."""
    seals = {me: seal}
    for name in names:
        if name != me:
            yield Send(name, "seal", as_message(seal))
    for name in names:
        if name != me:
            seals[name] = _bytes((yield Receive(name, "seal", (_BYTES,))))
    return hashlib.sha256(f"graphveil/publication/1 {round} ".encode() + b"".join(seals[n] for n in names)).hexdigest()


def name_of(body: Tensor) -> str:
    """Return the name of a publication that is one message, hexadecimal."""
    return hashlib.sha256(b"graphveil/publication/1 " + _bytes(body)).hexdigest()


def _bytes(tensor: Tensor | None) -> bytes:
    return b"" if tensor is None else tensor.contiguous().numpy().tobytes()
