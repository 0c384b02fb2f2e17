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
from graphveil.device.reports.noise import NAME, NOISE, Bits, blocks, derive_key, pack_bits, unpack_bits
from graphveil.device.task import Field, Task

#: Epsilons are counted in billionths.
NANO = 1_000_000_000


@dataclass(frozen=True)
class Answer:
    """A body and the names of its parts.

    Args:
        body: what is sent.
        names: of every part with its value, by index of the field; without the secret they reveal nothing.
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
    unknown = set(values) - {_value_kind(field) for field in task.fields}
    if unknown:
        raise DeviceError("bad-value", f"the task does not ask for {', '.join(sorted(unknown))}")
    # All values before the first draw: a refused value leaves nothing half done.
    true_values = [_true_value(field, values, person) for field in task.fields]
    body, names = [], {}
    for index, (field, value) in enumerate(zip(task.fields, true_values, strict=True)):
        body.append(np.array([value is not None], np.uint8))
        if value is None:
            body.append(np.zeros(field.width, np.uint8))
            continue
        body.append(field.draw(value, derive_key(secret, NOISE, task.hash, index), person))
        # Under a key of its own: names are stored in the clear and must reveal nothing of the noise.
        rows = blocks(derive_key(secret, NAME, task.hash, index), *zip(*field.parts(value), strict=True))
        names[index] = tuple(row.tobytes()[:8].hex() for row in rows)
    return Answer(pack_bits(np.concatenate(body)), names)


def cost(task: Task, response: Answer, seen: Mapping[int, set[str]]) -> int:
    """Return what an answer costs, in billionths of epsilon, rounded up for each field.

    Args:
        seen: names of parts that were paid for, by index of the field.
    """
    total = 0
    for index, names in response.names.items():
        field, paid = task.fields[index], seen.get(index, set())
        new = [name for name in names if name not in paid]
        if new and (field.most_draws is None or len(paid) < field.most_draws):
            total += -(-int(field.epsilon * NANO) * len(new) // len(names))
    return total


def answers(task: Task, person: Person, body: bytes) -> list[Bits | None]:
    """Return the answer of each field as bits, None where it was not answered.

    Args:
        body: what was sent.

    Raises:
        DeviceError: `wrong-length`, `filling` or `impossible`: no conforming device sends such a body.
    """
    bits, at, field_answers = unpack_bits(body, task.bits), 0, []
    for field in task.fields:
        is_answered, field_bits = bits[at], bits[at + 1 : at + 1 + field.width]
        at += 1 + field.width
        if is_answered:
            field.require_possible(field_bits, person)
        elif field_bits.any():
            raise DeviceError("impossible", "an answer of a field that was not answered")
        field_answers.append(field_bits if is_answered else None)
    return field_answers


def _true_value(field: Field, values: Mapping[str, object], person: Person) -> Any:
    value = values.get(_value_kind(field))
    return None if value is None else field.true_value(value, person)


def _value_kind(field: Field) -> str:
    return "links" if field.kind == "degree" else field.kind
