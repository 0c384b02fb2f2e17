"""Masks that parties expand from short keys instead of sending them: AES-256 in counter mode.

    mask of two      AES-CTR(k'),  k' = SHA-256("graphveil/mask/1" | key | label)
    once a session   X25519 public key  holder -> every other holder        k_ij = HKDF-SHA256(secret of i and j; both)
    mask of i        m_i(label) = sum_{j after i} AES(k_ij, label) - sum_{j before i} AES(k_ij, label)  mod 2^64

A label names one use (a product, a step) and is never used twice under one key; a resumed run is dealt new keys, so no
mask outlives the process that drew it.  sum_i m_i = 0, as one of two holders adds the mask of k_ij and the other
subtracts it; and any I - 1 of the m_i are uniform to whoever has none of the keys, on which the holders agree without
the server.  So of shares x_i + m_i it learns sum_i x_i and nothing else, whatever it dealt or knows of the x_i.
Source: NIST SP 800-38A (counter mode); Bonawitz et al., CCS 2017, section 4.0.1, with nobody dropping out; RFC 7748
(X25519), RFC 5869 (HKDF).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from torch import Tensor

from graphveil.errors import DataError, InputError
from graphveil.federation.effects import Program, Receive, Roster, Send
from graphveil.privacy import Randomness

KEY_BYTES = 32
_CHUNK = 1 << 20


@dataclass(frozen=True)
class MaskKey:
    """A secret key; `expand` gives the mask of a label."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != KEY_BYTES:
            raise InputError(f"a mask key of {len(self.secret)} bytes", allowed=f"{KEY_BYTES} bytes")

    @staticmethod
    def fresh(randomness: Randomness) -> MaskKey:
        return MaskKey(randomness.bytes(KEY_BYTES))

    def expand(self, label: str, shape: tuple[int, ...]) -> Tensor:
        """Return uniform ring elements, int64 of this shape, the same for the same key and label everywhere.

        Args:
            label: names one use; under one key it stands for one message alone.
        """
        # A cipher key of its own for every label: the counter begins at 0 each time, and no two labels share a stream.
        key = hashlib.sha256(b"graphveil/mask/1" + self.secret + label.encode()).digest()
        stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        # Encrypting zeros gives the bare key stream, in chunks: a mask of gigabytes needs no second copy.
        size = 8 * int(np.prod(shape, dtype=np.int64))
        room = np.empty(size + 16, dtype=np.uint8)
        zeros, view = memoryview(bytes(min(_CHUNK, max(size, 1)))), room.data
        for start in range(0, size, _CHUNK):
            stream.update_into(zeros[: min(_CHUNK, size - start)], view[start:])
        words = room[:size].view("<i8")
        # Both ends must expand the same numbers: words are little-endian whatever the machine.
        if sys.byteorder == "big":
            words = words.astype(np.int64)
        return torch.from_numpy(words).reshape(shape)


def as_message(data: bytes) -> Tensor:
    """Return bytes as the body of a message, uint8 [size]."""
    return torch.from_numpy(np.frombuffer(data, dtype=np.uint8).copy())


def pack_keys(keys: Sequence[MaskKey]) -> Tensor:
    """Return keys as the bytes of a message, uint8 [keys, 32]."""
    rows = np.frombuffer(b"".join(key.secret for key in keys), dtype=np.uint8)
    return torch.from_numpy(rows.reshape(-1, KEY_BYTES).copy())


def unpack_keys(message: Tensor) -> list[MaskKey]:
    return [MaskKey(row.numpy().tobytes()) for row in message]


_PURPOSE = b"graphveil/zero-sum/1"


@dataclass(frozen=True)
class ZeroSum:
    """One holder's masks that add up to zero with those of all others.

    Attributes:
        keys: name of another holder -> the key that both share.
    """

    roster: Roster
    keys: Mapping[str, MaskKey] = field(repr=False)
    _used: set[str] = field(default_factory=set, repr=False)

    def mask(self, label: str, shape: tuple[int, ...]) -> Tensor:
        """Return this holder's mask, int64 ring elements; those of all holders add up to 0 modulo 2^64.

        Args:
            label: names the one message that is masked.

        Raises:
            RuntimeError: the label was used before.
        """
        # A mask used twice gives the difference of two messages in the clear: a fault here stops the program.
        if label in self._used:
            raise RuntimeError(f"the mask of {label!r} was used before")
        self._used.add(label)
        mask = torch.zeros(shape, dtype=torch.int64)
        position = self.roster.holders.index(self.roster.me)
        for number, name in enumerate(self.roster.holders):
            if name != self.roster.me:
                expanded = self.keys[name].expand(label, shape)
                # By the agreement's order, the same at both: what a pair expands enters once with each sign.
                mask = mask + expanded if number > position else mask - expanded
        return mask


def agree_on_masks(roster: Roster, *, randomness: Randomness) -> Program[ZeroSum]:
    """Exchange public keys with every other holder, without the server; return this holder's masks.

    Args:
        randomness: of this holder's secret X25519 key.

    Raises:
        DataError: for a key that is no point of the curve's large group (RFC 7748, section 6.1: the shared secret
            is 0).
    """
    # Drawn anew in every session: a round that runs again never masks another sum with an old mask.
    secret = X25519PrivateKey.from_private_bytes(randomness.bytes(KEY_BYTES))
    own = secret.public_key().public_bytes_raw()
    for name in roster.other_holders:
        yield Send(name, "holder-key", as_message(own))
    keys = {}
    for name in roster.other_holders:
        public = (yield Receive(name, "holder-key", (KEY_BYTES,))).numpy().tobytes()
        try:
            shared = secret.exchange(X25519PublicKey.from_public_bytes(public))
        # OpenSSL refuses points of small order: with one of them the "secret" would be 0, and known to everybody.
        except ValueError as error:
            raise DataError("sent an invalid key", where=name) from error
        keys[name] = _pair_key(shared, {roster.me: own, name: public}, roster.holders)
    return ZeroSum(roster, keys)


def _pair_key(shared: bytes, publics: Mapping[str, bytes], names: Sequence[str]) -> MaskKey:
    """Return the key of two holders, bound to their names and public keys in the agreement's order.

    Args:
        shared: their X25519 secret.
        publics: name -> public key, of both.
        names: of all holders, in order.
    """
    # Names and public keys are part of the derivation: swapping a public key in transit gives two different keys.
    info = _PURPOSE
    for name in names:
        if name in publics:
            encoded = name.encode()
            info += len(encoded).to_bytes(4, "big") + encoded + publics[name]
    return MaskKey(HKDF(SHA256(), KEY_BYTES, salt=None, info=info).derive(shared))
