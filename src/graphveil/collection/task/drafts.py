"""The draft of a task: a file that its organiser fills in, beside the data's declaration.

task.toml     texts, window, least number, prices: to be edited until it is signed
schema.json   classes, columns and ranges, of the declaration
ids.txt       the id of everybody who may take part, a line each, in JSON
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from graphveil.collection.task.declare import Prices, Words, task_facts
from graphveil.collection.task.subject import Subject, require_people
from graphveil.device.errors import DeviceError
from graphveil.device.task import body_bits, fields_of
from graphveil.device.telling import hidden_in
from graphveil.errors import InputError
from graphveil.files.reading import read_json, read_toml
from graphveil.files.writing import write_text
from graphveil.graphs.value.schema import schema_facts, schema_from
from graphveil.runtime.checks import require_choice, require_known, require_whole

TASK, SCHEMA, IDS = "task.toml", "schema.json", "ids.txt"
#: Texts and window, with the meaning of each.
WORDS: Mapping[str, str] = {
    "name": "what the collection is called",
    "organiser": "who asks",
    "purpose": "what for, in words that everybody understands",
    "contact": "where people can ask back",
    "opens": "first moment, UTC: 2027-01-31, or 2027-01-31T08:00",
    "closes": "last moment",
}
#: The fields that a task may have, with the unit of each price.
PRICES: Mapping[str, str] = {
    "features": "a person's whole list of features",
    "label": "a person's class",
    "links": "one possible link in a person's list",
    "degree": "one link in a person's number of links",
}
_KEYS = {*WORDS, "least", "public", "price"}
_REMEDY = "edit task.toml alone, and let `collect init` make the rest again"
_HEAD = """\
# What people are asked, by whom, what for, and at which price. Fill in what is empty; once it is signed nothing can be
# changed, because every device knows the task by its hash.
"""


@dataclass(frozen=True)
class Draft:
    """A task before it is signed; texts are empty and the least number of reports 0 where they are missing."""

    subject: Subject
    words: Words
    opens: str
    closes: str
    least: int
    prices: Prices

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of what is still to be filled in."""
        # An empty purpose could be signed, and nobody would know what their data is for.
        texts = {name: getattr(self.words, name) for name in ("name", "organiser", "purpose", "contact")}
        facts: dict[str, object] = {**texts, "opens": self.opens, "closes": self.closes, "least": self.least}
        empty = [name for name, value in facts.items() if not value]
        return (*empty, *(() if self.asks else ("price",)))

    @property
    def asks(self) -> bool:
        return any(getattr(self.prices, name) is not None for name in PRICES)

    def facts(self) -> dict[str, object]:
        """Return the facts of the task; InputError where something is missing or invalid."""
        if self.missing:
            raise InputError(f"{', '.join(self.missing)} missing", where=TASK, remedy="fill it in, then sign again")
        window = {"opens": self.opens, "closes": self.closes, "least": self.least}
        require_possible(window, len(self.subject.ids))
        return self._facts(moment_of("opens", self.opens), moment_of("closes", self.closes), self.least)

    def guarantee(self) -> list[str]:
        """Return the guarantee at these prices in sentences, if any; InputError for a price that no task can have."""
        # With any window and least number: neither changes the guarantee.
        guarantee: Any = self._facts(0, 1, 1)["guarantee"] if self.asks else []
        return list(guarantee)

    def report_bytes(self) -> int:
        """Return the bytes of one report at these prices, 0 without; InputError for a price that no task can have."""
        if not self.asks:
            return 0
        with refusals(TASK):
            return -(-body_bits(fields_of(self._facts(0, 1, 1), len(self.subject.ids))) // 8)

    def _facts(self, opens: int, closes: int, least: int) -> dict[str, object]:
        subject = self.subject
        window = {"opens": opens, "closes": closes, "least": least}
        texts_by_name = {**asdict(self.words), "classes": subject.schema.classes, "names": subject.names}
        for name, texts in {**texts_by_name, "ids": subject.ids}.items():
            hidden = hidden_in(texts if isinstance(texts, str) else "".join(texts))
            if hidden is not None:
                what = f"{name}: the character U+{ord(hidden):04X} is invisible, or changes the direction of text"
                raise InputError(what, where=TASK, remedy="leave it out; text from right to left needs none")
        with refusals(TASK):
            return task_facts(subject.schema, subject.names, subject.ids, self.prices, self.words, **window)


def write_draft(folder: Path, subject: Subject, typed: Mapping[str, object], prices: Prices) -> None:
    """Write a draft.

    Args:
        typed: those of texts, window and least number that are known.
        prices: those that are known.
    """
    # The least number has no default: how few reports are safe to publish is the organiser's decision.
    facts = {"name": subject.schema.name, "least": 0, **typed}
    lines = [f"{name} = {_toml(facts.get(name, ''))}  # {meaning}" for name, meaning in WORDS.items()]
    lines.append(f"least = {facts['least']}  # reports, below which nothing is exported")
    lines.append(f"public = {_toml(facts.get('public', []))}  # sentences: what everybody knows anyway")
    lines += ["", "[price]  # epsilon of one report; empty: not asked"]
    lines += [f"{name} = {_toml(getattr(prices, name) or '')}  # {meaning}" for name, meaning in PRICES.items()]
    lines.append(f"mode = {_toml(prices.mode)}  # who reports a link: lower (one of the two), both, directed")
    write_text(folder / TASK, _HEAD + "\n".join(lines) + "\n")
    declared = {"schema": schema_facts(subject.schema), "names": list(subject.names)}
    write_text(folder / SCHEMA, json.dumps(declared, ensure_ascii=False, indent=1) + "\n")
    write_text(folder / IDS, "".join(json.dumps(id, ensure_ascii=False) + "\n" for id in subject.ids))


def read_draft(folder: Path) -> Draft:
    """Return the draft of a folder; InputError where there is none, or one of its files is damaged."""
    try:
        facts = read_toml(folder / TASK, error=InputError)
        declared = read_json(folder / SCHEMA, error=InputError)
        ids = read_ids(folder)
    except FileNotFoundError as error:
        raise InputError(
            f"{folder} holds no draft of a task", remedy="`graphveil collect init DATA -o FOLDER` makes one"
        ) from error
    where = str(folder / TASK)
    # A misspelt "public" or "least" would be missing from what everybody agrees to.
    require_known(facts, sorted(_KEYS), where)
    price = facts.get("price", {})
    if not isinstance(price, dict):
        raise InputError("price is no table", where=where, allowed="[price]")
    require_known(price, sorted((*PRICES, "mode", "sampled")), where)
    texts = {name: _text(facts, name, where) for name in WORDS}
    words = Words(**{name: texts[name] for name in ("name", "organiser", "purpose", "contact")}, public=_public(facts))
    # Texts and not numbers: 0.1 is no binary fraction, and devices check the decimal that people read.
    prices = Prices(
        **{name: _text(price, name, where) or None for name in PRICES},
        mode=_text(price, "mode", where) or "lower",
        sampled=_whole(price, "sampled", where) or None,
    )
    require_choice(("lower", "both", "directed"), where, mode=prices.mode)
    # From files of their own: classes or columns edited by hand would differ from the declaration.
    try:
        subject = Subject(schema_from(declared["schema"]), tuple(declared["names"]), ids)
    except (KeyError, TypeError) as error:
        raise InputError(f"{SCHEMA} is not as it was written", where=str(folder), remedy=_REMEDY) from error
    return Draft(subject, words, texts["opens"], texts["closes"], _whole(facts, "least", where), prices)


def read_ids(folder: Path) -> tuple[str, ...]:
    # Split at "\n" only: an id may hold other characters that Python takes for the end of a line.
    lines = (folder / IDS).read_text(encoding="utf-8").split("\n")
    try:
        ids = tuple(json.loads(line) for line in lines if line)
    except ValueError as error:
        raise InputError(f"{IDS} is not as it was written", where=str(folder), remedy=_REMEDY) from error
    if not all(isinstance(id, str) for id in ids):
        raise InputError(f"{IDS} holds something that is not text", where=str(folder), remedy=_REMEDY)
    require_people(ids, str(folder / IDS))
    return ids


@contextmanager
def refusals(where: str) -> Iterator[None]:
    """Turn a device's refusal in the block into an InputError at `where`."""
    try:
        yield
    except DeviceError as error:
        raise InputError(error.detail, where=where) from error


def _toml(value: object) -> str:
    # JSON of texts and lists of texts is TOML too, but for the one character that TOML requires to be escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def moment_of(name: str, text: str) -> int:
    """Return a day or moment of a draft in seconds since 1970; InputError where the text is neither.

    Args:
        name: of the fact.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"{name} is {text!r}", where=TASK, allowed="2027-01-31, or 2027-01-31T08:00") from error
    # Without a zone it is UTC, here and on every device, which cannot know the organiser's zone.
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def require_possible(facts: Mapping[str, object], people: int) -> None:
    """Raise InputError for an invalid day, an end before the beginning, or a least number above that of people.

    Args:
        facts: those that are known.
        people: how many may take part.
    """
    opens, closes = (str(facts.get(name) or "") for name in ("opens", "closes"))
    seconds = {name: moment_of(name, day) for name, day in (("opens", opens), ("closes", closes)) if day}
    if len(seconds) == 2 and seconds["closes"] <= seconds["opens"]:
        raise InputError(f"closes is {closes!r}", where=TASK, allowed=f"after opens, {opens!r}")
    least: Any = facts.get("least", 0)
    if least > people:
        raise InputError(f"least is {least:,}", where=TASK, allowed=f"1 to {people:,}, the people")


def _text(facts: Mapping[str, object], name: str, where: str) -> str:
    value = facts.get(name, "")
    if isinstance(value, date):  # TOML has days of its own, which need no quotes
        value = value.isoformat()
    if not isinstance(value, str):
        raise InputError(f"{name} is {value!r}", where=where, allowed=f'a text in quotes: {name} = "..."')
    return value.strip()


def _whole(facts: Mapping[str, object], name: str, where: str) -> int:
    value: Any = facts.get(name, 0)
    require_whole(0, None, where, **{name: value})
    return int(value)


def _public(facts: Mapping[str, object]) -> tuple[str, ...]:
    value: Any = facts.get("public", [])
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(text, str) for text in value):
        raise InputError(f"public is {value!r}", where=TASK, allowed='a list such as ["who takes part"]')
    return tuple(value)
