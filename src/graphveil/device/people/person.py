"""Where one person stands in a task: all of it is public."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Person:
    """A person of a task.

    Args:
        task: its hash, 32 bytes. people: how many there are. number: the person's, 0 .. people - 1.
        nonce: 16 bytes, of the opening at which the person had enrolled.
    """

    task: bytes
    people: int
    number: int
    nonce: bytes
