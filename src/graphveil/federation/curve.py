"""Secret multiples of points on Curve25519, by several processes for many points; imports little, to start them fast.

Source: Langley, Hamburg, Turner, RFC 7748.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

POINT = 32
#: Points that are worth another process: half a second's work.
_SHARE = 16_000
_MOST_PROCESSES = 8


def hashed(texts: Sequence[str]) -> bytes:
    """Return a point for every text, 32 bytes each: its SHA-256 as a u-coordinate."""
    return b"".join(hashlib.sha256(b"graphveil/psi/1" + text.encode()).digest() for text in texts)


def multiplied(secret: bytes, points: bytes) -> bytes:
    """Return every point times the secret.

    Raises:
        ValueError: a point of small order, which no hash of a text is.
    """
    count = len(points) // POINT
    processes = min(_cores(), _MOST_PROCESSES, count // _SHARE)
    if processes < 2:
        return multiply(secret, points)
    step = POINT * -(-count // processes)
    parts = [points[start : start + step] for start in range(0, len(points), step)]
    context = multiprocessing.get_context("spawn")  # a fork would copy the streams' threads and locks
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        return b"".join(pool.map(multiply, repeat(secret), parts))


def multiply(secret: bytes, points: bytes) -> bytes:
    """`multiplied` in this process."""
    key = X25519PrivateKey.from_private_bytes(secret)
    rows = (points[start : start + POINT] for start in range(0, len(points), POINT))
    return b"".join(key.exchange(X25519PublicKey.from_public_bytes(row)) for row in rows)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
