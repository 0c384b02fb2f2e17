"""A person of a task, by public facts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Person:
    """A person of a task.

    Args:
        task: its hash, 32 bytes. people: how many there are. number: the person's, 0 .. people - 1.
        nonce: 16 bytes, of the first opening after the person enrolled.
    """

    task: bytes
    people: int
    number: int
    nonce: bytes
