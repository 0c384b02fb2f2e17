"""A client as a program: a JSON object a line in, one a line out, in order.  docs/standard/conformance.md lists them.

Clients in other languages answer the same lines with the same lines, so that none needs the code of another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction

from graphveil.device.answer import NANO, answer, answers, cost
from graphveil.device.assigned import assigned
from graphveil.device.canonical import canonical, parse
from graphveil.device.errors import DeviceError
from graphveil.device.exact import keeps
from graphveil.device.task import Opening, Task
from graphveil.device.wire import read, report

Facts = Mapping[str, object]

#: Numbers that JSON cannot spell.
_NUMBERS = {text: float(text) for text in ("NaN", "Infinity", "-Infinity")}


def answered(lines: Iterable[str]) -> Iterator[str]:
    """Answer every line; tasks that were verified are known by their hash from then on.

    Args:
        lines: JSON objects with `op` and what it takes.
    """
    client = Client()
    for line in lines:
        try:
            found = client.answer(json.loads(line))
        except DeviceError as error:
            found = {"error": error.code}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
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
        made = answer(task, person, _values(facts["values"]), _bytes(facts, "secret"))
        nano = cost(task, made, _seen(facts))
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
        if facts["task"] not in self._tasks:
            raise DeviceError("wrong-hash", "no task that was verified on an earlier line")
        return self._tasks[_text(facts, "task")]


def _keeps(facts: Facts) -> dict[str, object]:
    likely, rare = int(_text(facts, "likely")), int(_text(facts, "rare"))
    return {"keeps": keeps(likely, rare, Fraction(_text(facts, "epsilon")))}


def _assigned(facts: Facts) -> dict[str, object]:
    number, dimension, size = (_whole(facts, name) for name in ("number", "dimension", "size"))
    return {"columns": assigned(_bytes(facts, "task"), _bytes(facts, "nonce"), number, dimension, size)}


def _report(facts: Facts) -> dict[str, object]:
    task, body, secret, key = (_bytes(facts, name) for name in ("task", "body", "secret", "key"))
    return {"data": report(task, _whole(facts, "epoch"), body, secret, key).to_bytes().hex()}


def _read(facts: Facts) -> dict[str, object]:
    data, key, epoch, at = _bytes(facts, "data"), _bytes(facts, "key"), _whole(facts, "epoch"), 0
    found: list[dict[str, object]] = []
    # No bytes at all are no report: refused, and not answered by an empty list.
    while at < len(data) or not found:
        one, at = read(data, at)
        parts = {name: getattr(one, name).hex() for name in ("task", "id", "enrolment", "body")}
        found.append({**parts, "tag": one.is_by(key, epoch)})
    return {"reports": found}


def _seen(facts: Facts) -> dict[int, set[str]]:
    told = facts.get("seen", {})
    if not isinstance(told, dict):
        raise TypeError("seen")
    return {int(field): set(names) for field, names in told.items()}


def _values(told: object) -> dict[str, object]:
    if not isinstance(told, dict):
        raise DeviceError("bad-value", "no values by kind of field")
    return {kind: [_number(one) for one in own] if isinstance(own, list) else own for kind, own in told.items()}


def _number(told: object) -> object:
    return _NUMBERS.get(told, told) if isinstance(told, str) else told


def _bytes(facts: Facts, name: str) -> bytes:
    return bytes.fromhex(_text(facts, name))


def _text(facts: Facts, name: str) -> str:
    if not isinstance(facts[name], str):
        raise TypeError(name)
    return str(facts[name])


def _whole(facts: Facts, name: str) -> int:
    value = facts[name]
    # True is an int in Python, and in no other language.
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(name)
    return value
