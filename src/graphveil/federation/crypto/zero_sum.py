"""Masks that add up to zero over all holders, from keys that the holders agree on without the server.

    once a session   X25519 public key  holder -> every other holder        k_ij = HKDF-SHA256(secret of i and j; both)
    mask of i        m_i(label) = sum_{j after i} AES(k_ij, label) - sum_{j before i} AES(k_ij, label)  mod 2^64

sum_i m_i = 0, since one of the two holders adds the mask of k_ij and the other subtracts it; and any I - 1 of the m_i
are uniform to whoever has none of the keys.  So of shares x_i + m_i(label) such a reader learns sum_i x_i and nothing
else, whatever it knows of the x_i: the server, which dealt masks that are part of them, reads the sum alone.  Keys are
drawn anew in every session, and a label is used once, so no mask is used twice.
Source: Bonawitz et al., CCS 2017, section 4.0.1, with nobody dropping out; RFC 7748 (X25519), RFC 5869 (HKDF).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from torch import Tensor

from graphveil.errors import DataError
from graphveil.federation.crypto.masks import KEY_BYTES, MaskKey, as_message
from graphveil.federation.effects import Program, Receive, Roster, Send
from graphveil.privacy import Randomness

_PURPOSE = b"graphveil/zero-sum/1"


@dataclass(frozen=True)
class ZeroSum:
    """One holder's masks.

    Attributes:
        roster: all holders, in whose order masks are added or taken away.
        keys: by the name of each other holder, the key shared with it.
    """

    roster: Roster
    keys: Mapping[str, MaskKey] = field(repr=False)
    _used: set[str] = field(default_factory=set, repr=False)

    def mask(self, label: str, shape: tuple[int, ...]) -> Tensor:
        """Return this holder's mask.

        Args:
            label: names the one message that is masked.
            shape: of the message.

        Returns:
            int64 ring elements of this shape; those of all holders add up to 0 modulo 2^64.

        Raises:
            RuntimeError: the label was used before.
        """
        # A mask used twice gives the difference of two messages in the clear: a fault here stops the program.
        if label in self._used:
            raise RuntimeError(f"the mask of {label!r} was used before")
        self._used.add(label)
        mask = torch.zeros(shape, dtype=torch.int64)
        place = self.roster.holders.index(self.roster.me)
        for number, name in enumerate(self.roster.holders):
            if name != self.roster.me:
                drawn = self.keys[name].expand(label, shape)
                # By place in the agreement, which both see alike: each pair's numbers enter once with each sign.
                mask = mask + drawn if number > place else mask - drawn
        return mask


def agree_on_masks(roster: Roster, *, randomness: Randomness) -> Program[ZeroSum]:
    """Exchange public keys with every other holder, on the streams between holders; return this holder's masks.

    Args:
        roster: all holders.
        randomness: of this holder's secret X25519 key.

    Raises:
        DataError: a key that is no point of the curve's large group (RFC 7748, section 6.1: the shared secret is 0).
    """
    # Drawn anew in every session: a session that is run again never masks another sum with an old mask.
    secret = X25519PrivateKey.from_private_bytes(randomness.bytes(KEY_BYTES))
    own = secret.public_key().public_bytes_raw()
    for name in roster.other_holders:
        yield Send(name, "holder-key", as_message(own))
    keys = {}
    for name in roster.other_holders:
        theirs = (yield Receive(name, "holder-key", (KEY_BYTES,))).numpy().tobytes()
        try:
            shared = secret.exchange(X25519PublicKey.from_public_bytes(theirs))
        # OpenSSL refuses points of small order: with one of them the "secret" would be 0, and known to everybody.
        except ValueError as error:
            raise DataError("sent an invalid key", where=name) from error
        keys[name] = _pairwise(shared, {roster.me: own, name: theirs}, roster.holders)
    return ZeroSum(roster, keys)


def _pairwise(shared: bytes, publics: Mapping[str, bytes], names: Sequence[str]) -> MaskKey:
    """Return the key of two holders, bound to their names and public keys in the agreement's order."""
    # Names and public keys are part of the derivation: swapping a public key in transit gives two different keys.
    info = _PURPOSE
    for name in names:
        if name in publics:
            written = name.encode()
            info += len(written).to_bytes(4, "big") + written + publics[name]
    return MaskKey(HKDF(SHA256(), KEY_BYTES, salt=None, info=info).derive(shared))
