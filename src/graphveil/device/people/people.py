"""People of a task: the ids that their numbers stand for, in the list whose hash the task holds.

Where links are asked, numbers decide which of two people reports their link. An organiser who deals tokens wrongly,
such as one number to everybody, would learn each link twice. Only the person can notice that.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Mapping

from graphveil.device.canonical import canonical
from graphveil.device.errors import DeviceError
from graphveil.device.people.canonical_id import canonical_id, require_distinct
from graphveil.device.reports.degree import Degree
from graphveil.device.reports.links import Links
from graphveil.device.task import Task


def asks_about_links(task: Task) -> bool:
    """Return whether it matters which of two people reports their link."""
    return any(isinstance(field, Links | Degree) for field in task.fields)


def ids_hash(ids: Iterable[str]) -> str:
    """Return the hash of a task's ordered ids, an array in canonical JSON; DeviceError `not-canonical`, where an
    id is not Unicode."""
    digest = hashlib.sha256(b"[")
    for index, id in enumerate(ids):
        digest.update((b"," if index else b"") + canonical(id))
    digest.update(b"]")
    return digest.hexdigest()


def ids_of(task: Task, data: bytes) -> tuple[str, ...]:
    """Return the ids of a task's people, in the order of their numbers.

    Args:
        task: holds their hash.
        data: from the collector, a line of JSON each.

    Raises:
        DeviceError: `bad-ids`, where they are not those of the task, not as many as its people, or two of them are one
            person's.
    """
    try:
        ids = json.loads(f"[{data.decode()[:-1]}]".replace("\n", ","))
        is_listed = all(isinstance(id, str) for id in ids) and ids_hash(ids) == task.ids
    except (ValueError, RecursionError, DeviceError):
        ids, is_listed = [], False
    # Without the length, the list could be padded with further ids.
    if not is_listed or len(ids) != task.people:
        raise DeviceError("bad-ids", "the list is not that of the task")
    # A person could have one number below yours and one above: both of you would report your link.
    require_distinct(ids)
    return tuple(ids)


def with_numbers(values: Mapping[str, object], task: Task, fetch_ids: Callable[[], bytes]) -> Mapping[str, object]:
    """Return a person's values with numbers as links; a text is an id in any spelling, a number stays.

    Args:
        values: by kind.
        task: holds the hash of all ids.
        fetch_ids: fetches all of them, so that nobody hears which ones a person means; called only where a link is a
            text.

    Raises:
        DeviceError: `bad-value`, an id that nobody has; `bad-ids`, ids that are not the task's.
    """
    links = values.get("links")
    if not isinstance(links, list) or not any(isinstance(link, str) for link in links):
        return values
    numbers = {canonical_id(id): number for number, id in enumerate(ids_of(task, fetch_ids()))}
    return {**values, "links": [_number_of(link, numbers) if isinstance(link, str) else link for link in links]}


def _number_of(id: str, numbers: Mapping[str, int]) -> int:
    try:
        return numbers[canonical_id(id)]
    except (KeyError, DeviceError) as error:
        remedy = "Write the name as the organiser has it, or the person's number."
        detail = f"links names {shlex.quote(id)}, and nobody of that name takes part"
        raise DeviceError("bad-value", detail, remedy) from error
