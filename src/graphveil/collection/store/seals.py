"""The hash of an epoch is made of a seal of each report, which only whoever has the report can check.

    salt = SHA-256("graphveil/salt/1" | secret (32) | number (8)), its first 16 bytes
    seal = SHA-256("graphveil/seal/1" | salt | first epoch (8) | body), its first 16 bytes
    leaf = number (8) | for each field whether it is answered (1) | seal (16)
    hash = SHA-256("graphveil/epoch/1" | task hash (32) | epoch (8) | nonce (16) | leaves by number)

An export holds all leaves, but salts only of the reports whose bodies it holds: otherwise a short body could be guessed
from its seal. The secret is drawn when an epoch is closed, and deleted with the bodies when they are scrubbed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import accumulate

from graphveil.device.task import Task

#: Bytes of a salt, and of a seal.
SHORT = 16


def salt_of(secret: bytes, number: int) -> bytes:
    """Return the salt of a person's report, 16 bytes.

    Args:
        secret: of the epoch, 32 bytes. number: the person's.
    """
    return hashlib.sha256(b"graphveil/salt/1" + secret + number.to_bytes(8, "big")).digest()[:SHORT]


def seal_of(salt: bytes, joined: int, body: bytes) -> bytes:
    """Return the seal of a report, 16 bytes.

    Args:
        salt: 16 bytes. joined: the first epoch of who sent it, by which it is read. body: of the report.
    """
    return hashlib.sha256(b"graphveil/seal/1" + salt + joined.to_bytes(8, "big") + body).digest()[:SHORT]


def leaf_of(number: int, flags: bytes, seal: bytes) -> bytes:
    """Return the leaf of a report in the hash of its epoch.

    Args:
        number: who sent it. flags: see `flags_of`. seal: see `seal_of`.
    """
    return number.to_bytes(8, "big") + flags + seal


def leaf_size(task: Task) -> int:
    """Return the bytes of a leaf."""
    return 8 + len(task.fields) + SHORT


def flag_places(task: Task) -> tuple[int, ...]:
    """Return the bit of a body at which each field says whether it is answered."""
    return tuple(accumulate((1 + field.width for field in task.fields[:-1]), initial=0))


def flags_of(body: bytes, places: tuple[int, ...]) -> bytes:
    """Return for each field whether a body answers it, a byte each.

    Args:
        body: of a report. places: see `flag_places`.
    """
    return bytes(body[at >> 3] >> (7 - at % 8) & 1 for at in places)


def epoch_hash(task: Task, epoch: int, nonce: bytes, leaves: Iterable[bytes]) -> bytes:
    """Return the hash of a closed epoch.

    Args:
        nonce: 16 bytes. leaves: one or many after the other, by number.
    """
    digest = hashlib.sha256(b"graphveil/epoch/1" + task.hash + epoch.to_bytes(8, "big") + nonce)
    for part in leaves:
        digest.update(part)
    return digest.digest()
