"""Who a person is in a task: the id that their number stands for, in the list whose hash the task holds.

Where links are asked, numbers say who of two people reports theirs. An organiser who dealt tokens wrongly, one number
to everybody, would be told each link twice. Nobody but the person can see that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from graphveil.device.canonical import canonical
from graphveil.device.errors import DeviceError
from graphveil.device.people.canonical_id import require_distinct
from graphveil.device.reports.degree import Degree
from graphveil.device.reports.links import Links
from graphveil.device.task import Task


def asks_about_links(task: Task) -> bool:
    """Return whether it matters who of two people reports their link."""
    return any(isinstance(one, Links | Degree) for one in task.fields)


def ids_hash(ids: Iterable[str]) -> str:
    """Return the hash by which a task knows who may take part, and in which order: of an array in canonical JSON.

    Raises:
        DeviceError: `not-canonical`, an id that is not Unicode.
    """
    digest = hashlib.sha256(b"[")
    for place, one in enumerate(ids):
        digest.update((b"," if place else b"") + canonical(one))
    digest.update(b"]")
    return digest.hexdigest()


def ids_of(task: Task, data: bytes) -> tuple[str, ...]:
    """Return the ids of a task's people, in the order of their numbers.

    Args:
        task: holds their hash. data: as the collector told them, a line of JSON each.

    Raises:
        DeviceError: `bad-ids`, where they are not those of the task, not as many as its people, or two of them are one
        person's.
    """
    try:
        ids = json.loads(f"[{data.decode()[:-1]}]".replace("\n", ","))
        is_right = all(isinstance(one, str) for one in ids) and ids_hash(ids) == task.ids
    except (ValueError, RecursionError, DeviceError):
        ids, is_right = [], False
    # Without the length a list could hold everybody twice, and as many names of nobody.
    if not is_right or len(ids) != task.people:
        raise DeviceError("bad-ids", "the list is not that of the task")
    # Somebody with a number below yours and one above: both of you would report your link.
    require_distinct(ids)
    return tuple(ids)
