"""A client as a program: a JSON object a line in, one a line out, in order.  docs/standard/conformance.md lists them.

Clients in other languages answer the same lines with the same lines, so that none needs the code of another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction

from graphveil.device.canonical import LIMIT, canonical, parse
from graphveil.device.errors import DeviceError
from graphveil.device.people.canonical_id import canonical_id
from graphveil.device.people.people import ids_of
from graphveil.device.people.person import assigned
from graphveil.device.reports.answer import NANO, answer, answers, cost
from graphveil.device.reports.exact import keeps
from graphveil.device.task import Opening, Task
from graphveil.device.wire import read, report

Facts = Mapping[str, object]

_DIGITS = re.compile(r"0|[1-9][0-9]{0,99}")
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?")
#: Limits of columns for `assigned`, of epochs, and of nested arrays and objects: more than any task needs.
_COLUMNS, _EPOCHS, _DEEPEST = 1 << 20, (1 << 32) - 1, 100

#: Numbers that JSON cannot spell.
_NUMBERS = {text: float(text) for text in ("NaN", "Infinity", "-Infinity")}


def answer_lines(lines: Iterable[str | bytes]) -> Iterator[str]:
    """Answer every line, an object of `op` and arguments (bytes are UTF-8); a verified task is named by its hash."""
    client = Client()
    for line in lines:
        try:
            text = line.decode() if isinstance(line, bytes) else line
            value = json.loads(text, parse_int=_value, parse_float=_value, parse_constant=_refuse)
            if _depth(value) > _DEEPEST:
                raise ValueError("more nested arrays and objects than every reader accepts")
            reply = client.answer(value)
        except DeviceError as error:
            reply = {"error": error.code}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            reply = {"error": "bad-line"}
        yield json.dumps(reply, separators=(",", ":"))


class Client:
    """The operations of the protocol."""

    def __init__(self) -> None:
        # By hash: a task that was not verified cannot be named.
        self._tasks: dict[str, Task] = {}
        self._operations: dict[object, Callable[[Facts], dict[str, object]]] = {
            "canonical": lambda facts: {"data": canonical(facts["value"]).hex()},
            "parse": lambda facts: {"value": parse(_bytes(facts, "data"))},
            "keeps": _keeps,
            "form": lambda facts: {"form": canonical_id(_text(facts, "id"))},
            "ids": lambda facts: {"ids": list(ids_of(self._task_of(facts), _bytes(facts, "data")))},
            "task": self._task,
            "opening": self._opening,
            "assigned": _assigned,
            "answer": self._answer,
            "validate": self._validate,
            "report": _report,
            "read": _read,
        }

    def answer(self, facts: Facts) -> dict[str, object]:
        """Return the result of an operation, of `op` and its arguments.

        Raises:
            DeviceError: a refusal of the operation.
            KeyError, TypeError or ValueError: there is no such operation, or an argument is missing or invalid.
        """
        return self._operations[facts["op"]](facts)

    def _task(self, facts: Facts) -> dict[str, object]:
        expected = _bytes(facts, "expected") if "expected" in facts else None
        task = Task.of(_text(facts, "data").encode(), expected)
        self._tasks[task.hash.hex()] = task
        return {"hash": task.hash.hex(), "bits": task.bits, "nano": int(task.epsilon * NANO)}

    def _opening(self, facts: Facts) -> dict[str, object]:
        opening = Opening.of(_text(facts, "data").encode(), self._task_of(facts))
        return {"epoch": opening.epoch, "nonce": opening.nonce(_whole(facts, "joined")).hex()}

    def _answer(self, facts: Facts) -> dict[str, object]:
        task = self._task_of(facts)
        if "now" in facts:
            task.require_inside(_whole(facts, "now"))
        person = task.person(_whole(facts, "number"), _bytes(facts, "nonce"))
        response = answer(task, person, _values(facts["values"]), _bytes(facts, "secret", 32))
        seen, index_of = facts.get("seen", {}), {str(index): index for index in range(len(task.fields))}
        if not isinstance(seen, dict):
            raise TypeError("seen")
        nano = cost(task, response, {index_of[field]: _names(names) for field, names in seen.items()})
        if "left" in facts and nano > _whole(facts, "left"):
            raise DeviceError("cap", f"{nano} billionths of epsilon, of {facts['left']}")
        names = {str(index): list(part_names) for index, part_names in response.names.items()}
        return {"body": response.body.hex(), "names": names, "nano": nano}

    def _validate(self, facts: Facts) -> dict[str, object]:
        task = self._task_of(facts)
        person = task.person(_whole(facts, "number"), _bytes(facts, "nonce"))
        field_answers = answers(task, person, _bytes(facts, "body"))
        return {"answers": [None if bits is None else "".join(map(str, bits.tolist())) for bits in field_answers]}

    def _task_of(self, facts: Facts) -> Task:
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
    encoded = report(task, _whole(facts, "epoch", 0, _EPOCHS), _bytes(facts, "body"), secret, key)
    return {"data": encoded.to_bytes().hex()}


def _read(facts: Facts) -> dict[str, object]:
    data, key, epoch, at = _bytes(facts, "data"), _bytes(facts, "key", 32), _whole(facts, "epoch", 0, _EPOCHS), 0
    reports: list[dict[str, object]] = []
    # Empty bytes are refused, not answered by an empty list.
    while at < len(data) or not reports:
        parsed, at = read(data, at)
        parts = {name: getattr(parsed, name).hex() for name in ("task", "id", "enrolment", "body")}
        reports.append({**parts, "tag": parsed.is_by(key, epoch)})
    return {"reports": reports}


def _names(names: object) -> set[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError("seen")
    return set(names)


def _values(values: object) -> dict[str, object]:
    if not isinstance(values, dict):
        raise DeviceError("bad-value", "no values by kind of field")
    return {
        kind: [_number(item) for item in value] if isinstance(value, list) else value for kind, value in values.items()
    }


def _number(value: object) -> object:
    return _NUMBERS.get(value, value) if isinstance(value, str) else value


def _bytes(facts: Facts, name: str, size: int | None = None) -> bytes:
    data = bytes.fromhex(_text(facts, name))
    if size not in (None, len(data)):
        raise ValueError(name)
    return data


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


def _value(text: str) -> int | float:
    """Return a number's value whatever its spelling: other languages cannot distinguish 1.0 and 1e0 from 1."""
    # No binary64 number has 400 digits before its point, and Python reads at most 4,300 of a whole number.
    if text.lstrip("-").isdigit() and len(text) < 400:
        return int(text)
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < LIMIT else value


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def _depth(value: object) -> int:
    items = list(value.values()) if isinstance(value, dict) else value
    return 1 + max(map(_depth, items), default=0) if isinstance(items, list) else 0
