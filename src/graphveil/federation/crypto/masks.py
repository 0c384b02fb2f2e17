"""Masks that two parties expand from a short key instead of sending them: AES-256 in counter mode.

    mask = AES-CTR(k'),  k' = SHA-256("graphveil/mask/1" | key | label)

A label names one use (a product, a step) and is never used twice under one key; a resumed run is dealt new keys, so no
mask outlives the process that drew it.  Source: NIST SP 800-38A (counter mode).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from torch import Tensor

from graphveil.errors import InputError
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
        """Return a new key."""
        return MaskKey(randomness.bytes(KEY_BYTES))

    def expand(self, label: str, shape: tuple[int, ...]) -> Tensor:
        """Return uniform ring elements, int64 of this shape, the same for the same key and label everywhere.

        Args:
            label: names one use; under one key it stands for one message alone.
            shape: of the mask.
        """
        # A cipher key of its own for every label: the counter begins at 0 each time, and no two labels share a stream.
        key = hashlib.sha256(b"graphveil/mask/1" + self.secret + label.encode()).digest()
        stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        # Encrypting zeros gives the bare key stream, a chunk at a time: a mask of gigabytes needs no second copy of
        # its size.
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


def packed(keys: Sequence[MaskKey]) -> Tensor:
    """Return keys as the bytes of a message, uint8 [keys, 32]."""
    rows = np.frombuffer(b"".join(key.secret for key in keys), dtype=np.uint8)
    return torch.from_numpy(rows.reshape(-1, KEY_BYTES).copy())


def unpacked(message: Tensor) -> list[MaskKey]:
    """Return the keys of a message."""
    return [MaskKey(row.numpy().tobytes()) for row in message]
