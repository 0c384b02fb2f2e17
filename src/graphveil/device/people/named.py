"""People whom a person's own file names by id: they become the numbers that a list of links is made of."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping

from graphveil.device.errors import DeviceError
from graphveil.device.people.canonical_id import canonical_id
from graphveil.device.people.people import ids_of
from graphveil.device.task import Task


def numbered(values: Mapping[str, object], task: Task, told: Callable[[], bytes]) -> Mapping[str, object]:
    """Return values in which links are numbers; a text is somebody's id in any spelling, a number stays one.

    Args:
        values: by kind. task: holds the hash of all ids. told: fetches them all, so that nobody hears which are meant;
        called only where a name is given.

    Raises:
        DeviceError: `bad-value`, a name of nobody; `bad-ids`, ids that are not the task's.
    """
    links = values.get("links")
    if not isinstance(links, list) or not any(isinstance(one, str) for one in links):
        return values
    numbers = {canonical_id(one): number for number, one in enumerate(ids_of(task, told()))}
    return {**values, "links": [_number_of(one, numbers) if isinstance(one, str) else one for one in links]}


def _number_of(id: str, numbers: Mapping[str, int]) -> int:
    try:
        return numbers[canonical_id(id)]
    except (KeyError, DeviceError) as error:
        remedy = "Write the name as the organiser has it, or the person's number."
        said = f"links names {shlex.quote(id)}, and nobody of that name takes part"
        raise DeviceError("bad-value", said, remedy) from error
