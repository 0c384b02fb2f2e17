"""A device's answer: a body with a flag and an answer for each field, and the names of its paid parts.

An unanswered field is a flag of 0 and zeros, so all bodies of a task have the same length.  It is not hidden that
somebody leaves a field out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.device.errors import DeviceError
from graphveil.device.people.person import Person
from graphveil.device.reports.noise import NAME, NOISE, Bits, blocks, derived, packed, unpacked
from graphveil.device.task import Field, Task

#: Epsilons are counted in billionths.
NANO = 1_000_000_000


@dataclass(frozen=True)
class Answer:
    """A body and the names of its parts.

    Args:
        body: what is sent.
        names: of every part with its value, by field; without the secret they reveal nothing.
    """

    body: bytes
    names: Mapping[int, tuple[str, ...]]


def answer(task: Task, person: Person, values: Mapping[str, object], secret: bytes) -> Answer:
    """Return what a device sends of a person's values; the one place that reads them.

    Args:
        values: by kind of field ("features", "label", "links"; "degree" reads the links too); fields without a value
            are not answered.
        secret: the device's, 32 bytes.

    Raises:
        DeviceError: `bad-value`, for any value that is not as declared; nothing is drawn then.
    """
    unknown = set(values) - {_read_of(field) for field in task.fields}
    if unknown:
        raise DeviceError("bad-value", f"the task does not ask for {', '.join(sorted(unknown))}")
    # All values before the first draw: a refused value leaves nothing half done.
    opened = [_opened(field, values, person) for field in task.fields]
    body, names = [], {}
    for place, (field, value) in enumerate(zip(task.fields, opened, strict=True)):
        body.append(np.array([value is not None], np.uint8))
        if value is None:
            body.append(np.zeros(field.width, np.uint8))
            continue
        body.append(field.draw(value, derived(secret, NOISE, task.hash, place), person))
        # Under a key of its own: names are stored in the clear and must reveal nothing of the noise.
        rows = blocks(derived(secret, NAME, task.hash, place), *zip(*field.parts(value), strict=True))
        names[place] = tuple(row.tobytes()[:8].hex() for row in rows)
    return Answer(packed(np.concatenate(body)), names)


def cost(task: Task, response: Answer, seen: Mapping[int, set[str]]) -> int:
    """Return what an answer costs, in billionths of epsilon, rounded up for each field.

    Args:
        seen: names that were paid for, by field.
    """
    total = 0
    for place, names in response.names.items():
        field, old = task.fields[place], seen.get(place, set())
        new = [name for name in names if name not in old]
        if new and (field.most is None or len(old) < field.most):
            total += -(-int(field.epsilon * NANO) * len(new) // len(names))
    return total


def answers(task: Task, person: Person, body: bytes) -> list[Bits | None]:
    """Return the answer of each field as bits, None where it was not answered.

    Args:
        body: what was sent.

    Raises:
        DeviceError: `wrong-length`, `filling` or `impossible`: no conforming device sends such a body.
    """
    bits, at, field_answers = unpacked(body, task.bits), 0, []
    for field in task.fields:
        is_answered, own = bits[at], bits[at + 1 : at + 1 + field.width]
        at += 1 + field.width
        if is_answered:
            field.require_possible(own, person)
        elif own.any():
            raise DeviceError("impossible", "an answer of a field that was not answered")
        field_answers.append(own if is_answered else None)
    return field_answers


def _opened(field: Field, values: Mapping[str, object], person: Person) -> Any:
    value = values.get(_read_of(field))
    return None if value is None else field.opened(value, person)


def _read_of(field: Field) -> str:
    return "links" if field.kind == "degree" else field.kind
