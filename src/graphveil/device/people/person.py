"""A person of a task, by public facts, and the coordinates that they report: assigned by a public hash.

    words = SHA-256(purpose | task hash (32) | nonce (16) | person (8) | 0, 1, 2, ... (4)), four words each

So forgers cannot choose theirs. The nonce is drawn when enrolment has closed. The set does not depend on anybody's
data, so privacy is what it would be with a set that the device draws. Without replacement by R. Floyd's method (Bentley
and Floyd, CACM 30(9), 1987).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Person:
    """A person of a task.

    Args:
        task: its hash, 32 bytes.
        people: how many there are.
        number: the person's, 0 .. people - 1.
        nonce: 16 bytes, of the first opening after the person enrolled.
    """

    task: bytes
    people: int
    number: int
    nonce: bytes


_PURPOSE = b"graphveil/standard/2/assigned"


def assigned(task: bytes, nonce: bytes, person: int, dimension: int, size: int) -> list[int]:
    """Return `size` of the numbers 0 .. dimension - 1, ascending.

    Args:
        nonce: 16 bytes of the first opening after the person enrolled.
        dimension, size: d and m, 1 <= m <= d.
    """
    if size == dimension:
        return list(range(dimension))
    drawn = _words(task + nonce + person.to_bytes(8, "big"))
    chosen: set[int] = set()
    for top in range(dimension - size, dimension):
        pick = next(drawn) % (top + 1)
        chosen.add(top if pick in chosen else pick)
    return sorted(chosen)


def _words(data: bytes) -> Iterator[int]:
    counter = 0
    while True:
        digest = hashlib.sha256(_PURPOSE + data + counter.to_bytes(4, "big")).digest()
        yield from (int.from_bytes(digest[at : at + 8], "big") for at in range(0, 32, 8))
        counter += 1
