"""Exported collections in memory, whose devices answered for real, and reports that no device would send."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from graphveil.collection.bodies import Bodies
from graphveil.collection.export import Collected
from graphveil.collection.frozen import Last
from graphveil.collection.seals import SHORT
from graphveil.device import Task, answer
from tests.on_device.signing import task_of

NONCE = bytes(range(16))
Values = Callable[[int], Mapping[str, object]]


def drawn(people: int, values: Values, *fields: dict[str, Any], seed: int = 0) -> Collected:
    """What was collected of people who all answered.

    Args:
        people: how many. values: of each. fields: of the task. seed: of their secrets.
    """
    task = task_of(*fields, people=people, least=1)
    kinds, bodies = {"links" if one.kind == "degree" else one.kind for one in task.fields}, []
    for number in range(people):
        told = {kind: value for kind, value in values(number).items() if kind in kinds}
        secret = b"drawn" + seed.to_bytes(13, "big") + number.to_bytes(14, "big")
        bodies.append(answer(task, task.person(number, NONCE), told, secret).body)
    return received(task, bodies)


def received(task: Task, bodies: list[bytes]) -> Collected:
    numbers = np.arange(len(bodies))
    times = np.ones((len(bodies), len(task.fields)), np.int32)
    ids = tuple(f"person {number}" for number in range(task.people))
    made, once = Bodies.of(task, bodies, numbers), np.ones(len(bodies), np.int64)
    last = Last(numbers, once, once, np.zeros((len(bodies), SHORT), np.uint8), np.packbits(made.bits, axis=1))
    return Collected(task, ids, last, made, (NONCE,), times, {})


def forged(collected: Collected, who: np.ndarray, place: int, bits: np.ndarray) -> Collected:
    """A collection in which some send other bits for a field.

    Args:
        collected: of honest people. who: numbers of the forgers. place: of the field. bits: [forgers, width].
    """
    made = collected.bodies.bits.copy()
    start = 1 + sum(1 + field.width for field in collected.task.fields[:place])
    made[who, start : start + bits.shape[1]] = bits
    changed = replace(collected.bodies, bits=made)
    # What a device cannot send is refused before it is stored: every forgery here would be stored.
    assert changed.possible().all()
    return replace(collected, bodies=changed)


def under(collected: Collected, *fields: dict[str, Any]) -> Collected:
    """The same bits under a task that states another law."""
    task = task_of(*fields, people=collected.task.people, least=1)
    return replace(collected, task=task, bodies=replace(collected.bodies, task=task))
