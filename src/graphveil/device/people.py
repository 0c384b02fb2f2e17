"""Who a person is in a task: the id that their number stands for, in the list whose hash the task holds.

Where links are asked, numbers say who of two people reports theirs. An organiser who dealt tokens wrongly, one number
to everybody, would be told each link twice. Nobody but the person can see that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from graphveil.device.degree import Degree
from graphveil.device.errors import DeviceError
from graphveil.device.links import Links
from graphveil.device.task import Task


def asks_about_links(task: Task) -> bool:
    """Return whether it matters who of two people reports their link."""
    return any(isinstance(one, Links | Degree) for one in task.fields)


def ids_hash(ids: Iterable[str]) -> str:
    """Return the hash by which a task knows who may take part, and in which order."""
    digest = hashlib.sha256()
    for one in ids:
        told = one.encode()
        # With its length: ids that are written one after the other could be cut elsewhere.
        digest.update(len(told).to_bytes(4, "big") + told)
    return digest.hexdigest()


def ids_of(task: Task, data: bytes) -> tuple[str, ...]:
    """Return the ids of a task's people, in the order of their numbers.

    Args:
        task: holds their hash. data: as the collector told them, a line of JSON each.

    Raises:
        DeviceError: `collector`, where they are not those of the task, or not each of its people once.
    """
    try:
        ids = tuple(json.loads(line) for line in data.split(b"\n") if line)
        is_right = all(isinstance(one, str) for one in ids) and ids_hash(ids) == task.ids
    except (ValueError, RecursionError):
        is_right = False
    # Twice: somebody with a number below yours and one above, whose link with you both of you would report.
    # Without the length a list could hold everybody twice, and as many names of nobody.
    if not is_right or len(ids) != task.people or len(set(ids)) != len(ids):
        said = "the collector's list of people is not that of the task, or names one twice"
        raise DeviceError("collector", said, "Do not answer; tell the organiser.")
    return ids
