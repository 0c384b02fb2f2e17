"""The person for whom a device answers, as the person at the terminal states or confirms."""

from __future__ import annotations

import shlex
import sys

from graphveil.device import telling
from graphveil.device.errors import DeviceError
from graphveil.device.people.canonical_id import canonical_id
from graphveil.device.people.people import asks_about_links, ids_of
from graphveil.device.remote import Remote
from graphveil.device.task import Task

_STOP = "If you are somebody else, stop and tell the organiser."


def whom(remote: Remote, task: Task, number: int, claimed_id: str | None, agreed_id: str | None) -> str | None:
    """Return the id of the person whom a device answers for, None where no field of the task depends on it.

    Args:
        remote: tells all ids. task: holds their hash. number: of the person. claimed_id: who they say they are; None:
            they are asked at a terminal. agreed_id: the id that they agreed to before.

    Raises:
        DeviceError: `command`, without a terminal, or with an id that is not needed; `enrolment`, another person;
            `bad-ids`, ids that are not the task's.
    """
    if not asks_about_links(task):
        if claimed_id is not None:
            raise DeviceError("command", "--as is for tasks that ask for links, and this one does not", "Leave it out.")
        return None
    id = ids_of(task, remote.ids())[number] if agreed_id is None else agreed_id
    person = telling.person_name(number, id)
    if claimed_id is not None and not _is_same(claimed_id, id):
        raise DeviceError("enrolment", f"you would answer as {person}, and --as says {shlex.quote(claimed_id)}", _STOP)
    if claimed_id is None and agreed_id is None:
        _require_agreed(person, id)
    return id


def _is_same(claimed_id: str, id: str) -> bool:
    try:
        return canonical_id(claimed_id) == canonical_id(id)
    except DeviceError:
        return False


def _require_agreed(person: str, id: str) -> None:
    if not sys.stdin.isatty():
        remedy = f"If you are they, add --as {shlex.quote(id)}. {_STOP}"
        raise DeviceError("command", f"you would answer as {person}", remedy)
    why = "two people could tell of the same link, which protects it less"
    sys.stderr.write(f"You answer as {person}. If this is not you, stop: {why}.\nIs it you? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise DeviceError("enrolment", f"you are not {person}", _STOP)
