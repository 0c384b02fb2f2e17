"""A client as a program: a JSON object a line in, one a line out, in order.  docs/standard/conformance.md lists them.

Clients in other languages answer the same lines with the same lines, so that none needs the code of another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from graphveil.device.canonical import LIMIT, canonical, parse
from graphveil.device.errors import DeviceError
from graphveil.device.people.assigned import assigned
from graphveil.device.people.canonical_id import canonical_id
from graphveil.device.people.people import ids_of
from graphveil.device.reports.answer import NANO, answer, answers, cost
from graphveil.device.reports.exact import keeps
from graphveil.device.task import Opening, Task
from graphveil.device.wire import read, report

Facts = Mapping[str, object]

_DIGITS = re.compile(r"0|[1-9][0-9]{0,99}")
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?")
#: Columns that `assigned` is asked for, epochs, arrays and objects inside each other: more than any task needs.
_COLUMNS, _EPOCHS, _DEEPEST = 1 << 20, (1 << 32) - 1, 100

#: Numbers that JSON cannot spell.
_NUMBERS = {text: float(text) for text in ("NaN", "Infinity", "-Infinity")}


def answered(lines: Iterable[str | bytes]) -> Iterator[str]:
    """Answer every line; tasks that were verified are known by their hash from then on.

    Args:
        lines: JSON objects with `op` and what it takes; bytes are UTF-8.
    """
    client = Client()
    for line in lines:
        try:
            found = client.answer(_read_line(line))
        except DeviceError as error:
            found = {"error": error.code}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            found = {"error": "bad-line"}
        yield json.dumps(found, separators=(",", ":"))


class Client:
    """What each operation of the protocol gives."""

    def __init__(self) -> None:
        # Known by their hashes alone: what was not verified cannot be asked.
        self._tasks: dict[str, Task] = {}
        self._operations: dict[object, Callable[[Facts], dict[str, object]]] = {
            "canonical": lambda facts: {"data": canonical(facts["value"]).hex()},
            "parse": lambda facts: {"value": parse(_bytes(facts, "data"))},
            "keeps": _keeps,
            "form": lambda facts: {"form": canonical_id(_text(facts, "id"))},
            "ids": lambda facts: {"ids": list(ids_of(self._known(facts), _bytes(facts, "data")))},
            "task": self._task,
            "opening": self._opening,
            "assigned": _assigned,
            "answer": self._answer,
            "validate": self._validate,
            "report": _report,
            "read": _read,
        }

    def answer(self, facts: Facts) -> dict[str, object]:
        """Return what an operation gives.

        Args:
            facts: `op`, and what it takes.

        Raises:
            DeviceError: what the operation refuses.
            KeyError, TypeError, ValueError: it is none, or not all that it takes is there.
        """
        return self._operations[facts["op"]](facts)

    def _task(self, facts: Facts) -> dict[str, object]:
        expected = _bytes(facts, "expected") if "expected" in facts else None
        task = Task.of(_text(facts, "data").encode(), expected)
        self._tasks[task.hash.hex()] = task
        return {"hash": task.hash.hex(), "bits": task.bits, "nano": int(task.epsilon * NANO)}

    def _opening(self, facts: Facts) -> dict[str, object]:
        opening = Opening.of(_text(facts, "data").encode(), self._known(facts))
        return {"epoch": opening.epoch, "nonce": opening.nonce(_whole(facts, "joined")).hex()}

    def _answer(self, facts: Facts) -> dict[str, object]:
        task = self._known(facts)
        if "now" in facts:
            task.require_inside(_whole(facts, "now"))
        person = task.person(_whole(facts, "number"), _bytes(facts, "nonce"))
        made = answer(task, person, _values(facts["values"]), _bytes(facts, "secret", 32))
        nano = cost(task, made, _seen(facts, task))
        if "left" in facts and nano > _whole(facts, "left"):
            raise DeviceError("cap", f"{nano} billionths of epsilon, of {facts['left']}")
        names = {str(field): list(own) for field, own in made.names.items()}
        return {"body": made.body.hex(), "names": names, "nano": nano}

    def _validate(self, facts: Facts) -> dict[str, object]:
        task = self._known(facts)
        person = task.person(_whole(facts, "number"), _bytes(facts, "nonce"))
        found = answers(task, person, _bytes(facts, "body"))
        return {"answers": [None if bits is None else "".join(map(str, bits.tolist())) for bits in found]}

    def _known(self, facts: Facts) -> Task:
        if _text(facts, "task") not in self._tasks:
            raise DeviceError("wrong-hash", "no task that was verified on an earlier line")
        return self._tasks[_text(facts, "task")]


def _keeps(facts: Facts) -> dict[str, object]:
    likely, rare = (int(_spelled(facts, name, _DIGITS)) for name in ("likely", "rare"))
    return {"keeps": keeps(likely, rare, Fraction(_spelled(facts, "epsilon", _DECIMAL)))}


def _assigned(facts: Facts) -> dict[str, object]:
    number, dimension = _whole(facts, "number", 0), _whole(facts, "dimension", 1, _COLUMNS)
    size = _whole(facts, "size", 1, dimension)
    return {"columns": assigned(_bytes(facts, "task", 32), _bytes(facts, "nonce", 16), number, dimension, size)}


def _report(facts: Facts) -> dict[str, object]:
    task, secret, key = (_bytes(facts, name, 32) for name in ("task", "secret", "key"))
    made = report(task, _whole(facts, "epoch", 0, _EPOCHS), _bytes(facts, "body"), secret, key)
    return {"data": made.to_bytes().hex()}


def _read(facts: Facts) -> dict[str, object]:
    data, key, epoch, at = _bytes(facts, "data"), _bytes(facts, "key", 32), _whole(facts, "epoch", 0, _EPOCHS), 0
    found: list[dict[str, object]] = []
    # No bytes at all are no report: refused, and not answered by an empty list.
    while at < len(data) or not found:
        one, at = read(data, at)
        parts = {name: getattr(one, name).hex() for name in ("task", "id", "enrolment", "body")}
        found.append({**parts, "tag": one.is_by(key, epoch)})
    return {"reports": found}


def _seen(facts: Facts, task: Task) -> dict[int, set[str]]:
    told, places = facts.get("seen", {}), {str(place): place for place in range(len(task.fields))}
    if not isinstance(told, dict):
        raise TypeError("seen")
    return {places[field]: _names(names) for field, names in told.items()}


def _names(told: object) -> set[str]:
    if not isinstance(told, list) or not all(isinstance(one, str) for one in told):
        raise TypeError("seen")
    return set(told)


def _values(told: object) -> dict[str, object]:
    if not isinstance(told, dict):
        raise DeviceError("bad-value", "no values by kind of field")
    return {kind: [_number(one) for one in own] if isinstance(own, list) else own for kind, own in told.items()}


def _number(told: object) -> object:
    return _NUMBERS.get(told, told) if isinstance(told, str) else told


def _bytes(facts: Facts, name: str, size: int | None = None) -> bytes:
    found = bytes.fromhex(_text(facts, name))
    if size not in (None, len(found)):
        raise ValueError(name)
    return found


def _spelled(facts: Facts, name: str, form: re.Pattern[str]) -> str:
    if not form.fullmatch(_text(facts, name)):
        raise ValueError(name)
    return _text(facts, name)


def _text(facts: Facts, name: str) -> str:
    if not isinstance(facts[name], str):
        raise TypeError(name)
    return str(facts[name])


def _whole(facts: Facts, name: str, least: int = 1 - LIMIT, most: int = LIMIT - 1) -> int:
    value = facts[name]
    # True is an int in Python, and in no other language.
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise TypeError(name)
    return value


def _read_line(line: str | bytes) -> Any:
    text = line.decode() if isinstance(line, bytes) else line
    found = json.loads(text, parse_int=_value, parse_float=_value, parse_constant=_refuse)
    if _depth(found) > _DEEPEST:
        raise ValueError("more arrays and objects inside each other than every reader bears")
    return found


def _value(told: str) -> int | float:
    """What a number means, however it is spelled: elsewhere 1.0 and 1e0 cannot be told from 1."""
    # As many digits as no number of binary64 has before its point: Python reads no more than 4,300 of a whole one.
    if told.lstrip("-").isdigit() and len(told) < 400:
        return int(told)
    value = float(told)
    return int(value) if value.is_integer() and abs(value) < LIMIT else value


def _refuse(told: str) -> None:
    raise ValueError(f"{told} is no JSON")


def _depth(value: object) -> int:
    own = list(value.values()) if isinstance(value, dict) else value
    return 1 + max(map(_depth, own), default=0) if isinstance(own, list) else 0
