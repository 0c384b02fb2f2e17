"""A task: its fields, people, organiser and prices, one immutable value, identified by the hash of its canonical bytes.

    {"key": KEY, "signature": SIGNATURE, "task": TASK}             canonical JSON
    signature by Ed25519 over purpose | KEY | canonical(TASK)      hash = SHA-256 of the same bytes

The hash covers the key, so no other organiser's task has the same hash. An opening says that enrolment has closed; it
is signed with the same key and holds the nonce by which coordinates are assigned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from graphveil.device.canonical import canonical, parse
from graphveil.device.errors import DeviceError
from graphveil.device.people.person import Person
from graphveil.device.reading import text, texts, whole
from graphveil.device.reports.degree import Degree
from graphveil.device.reports.features import Features
from graphveil.device.reports.label import Label
from graphveil.device.reports.links import Links

TASK, OPENING = b"graphveil/standard/2/task\n", b"graphveil/standard/2/opening\n"
VERSION = 2
Field: TypeAlias = Features | Label | Links | Degree
_KINDS = ("features", "label", "links", "degree")
_FACTS = {
    "version", "name", "organiser", "purpose", "contact", "opens", "closes", "least", "people", "ids", "fields",
    "guarantee", "public", "nonce",
}  # fmt: skip
_LARGEST = 1 << 40


@dataclass(frozen=True)
class Task:
    """A task whose facts were checked.

    Args:
        hash: 32 bytes.
        key: the organiser's, 32 bytes.
        name, organiser, purpose, contact: texts.
        opens, closes: seconds since 1970.
        least: reports, below which nothing is exported.
        people: how many may take part.
        ids: SHA-256 of the list of their ids, hexadecimal.
        fields: what is asked.
        guarantee, public: in sentences.
        data: the signed bytes.
    """

    hash: bytes
    key: bytes
    name: str
    organiser: str
    purpose: str
    contact: str
    opens: int
    closes: int
    least: int
    people: int
    ids: str
    fields: tuple[Field, ...]
    guarantee: tuple[str, ...]
    public: tuple[str, ...]
    data: bytes = field(repr=False)

    @classmethod
    def of(cls, data: bytes, expected: bytes | None = None) -> Task:
        """Return the task of signed bytes.

        Args:
            data: canonical JSON.
            expected: the hash that a person got through another channel.

        Raises:
            DeviceError: `not-canonical`, `bad-version`, `bad-signature`, `wrong-hash`, `bad-task`, or `epsilon` where
                the thresholds lose more than the stated epsilons.
        """
        facts, key = signed(data, "task", TASK)
        digest = hashlib.sha256(to_sign(TASK, key, facts)).digest()
        if expected is not None and digest != expected:
            raise DeviceError("wrong-hash", f"its hash is {digest.hex()}, and it is signed by {short_key(key)}")
        if set(facts) != _FACTS:
            raise DeviceError("bad-task", "other facts than those of the standard")
        people = whole(facts, "people", 1, _LARGEST)
        words = {name: text(facts, name) for name in ("name", "organiser", "purpose", "contact", "ids")}
        text(facts, "nonce")
        opens = whole(facts, "opens", 0, _LARGEST)
        task = cls(
            hash=digest, key=key, **words, opens=opens, closes=whole(facts, "closes", opens + 1, _LARGEST),
            least=whole(facts, "least", 1, people), people=people, fields=fields_of(facts, people),
            guarantee=texts(facts, "guarantee"), public=texts(facts, "public"), data=data,
        )  # fmt: skip
        # No threshold is trusted: the signer of a task may be mistaken, or lie about its epsilon.
        for task_field in task.fields:
            task_field.require_epsilon()
        return task

    @property
    def bits(self) -> int:
        """Bits of a body: a flag and an answer for each field."""
        return body_bits(self.fields)

    @property
    def body_bytes(self) -> int:
        """The bytes of a report's body, whole ones."""
        return -(-self.bits // 8)

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of one report that answers every field."""
        return sum((field.epsilon for field in self.fields), Fraction(0))

    def require_inside(self, now: float) -> None:
        """Refuse a moment, in seconds since 1970, outside the window to which people agreed with the task; DeviceError
        for `not-open` or `closed`."""
        if now < self.opens:
            raise DeviceError("not-open", f"answers are taken from {moment(self.opens)} on, and it is {moment(now)}")
        if now >= self.closes:
            raise DeviceError("closed", f"answers were taken until {moment(self.closes)}, and it is {moment(now)}")

    def person(self, number: int, nonce: bytes) -> Person:
        """Return a person of the task.

        Args:
            nonce: of the first opening after they enrolled.
        """
        if not 0 <= number < self.people or len(nonce) != 16:
            raise DeviceError("bad-task", f"no person from 0 to {self.people - 1}, or no nonce of 16 bytes")
        return Person(self.hash, self.people, number, nonce)


def moment(seconds: float) -> str:
    """Return seconds since 1970 as date and time, to the minute; years out of range as seconds."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.0f} seconds after 1970"


@dataclass(frozen=True)
class Opening:
    """The opening of an epoch of a task.

    Args:
        epoch: from 1.
        nonces: 16 bytes for each epoch so far, each for the people who enrolled since the epoch before.
    """

    epoch: int
    nonces: tuple[bytes, ...]

    @classmethod
    def of(cls, data: bytes, task: Task) -> Opening:
        """Return the opening of signed bytes.

        Args:
            data: canonical JSON.

        Raises:
            DeviceError: `not-canonical`, `bad-signature`, `bad-opening` or `wrong-hash`.
        """
        facts, key = signed(data, "opening", OPENING)
        # Otherwise the collector could draw a nonce of its own for one person, and get other coordinates.
        if key != task.key:
            raise DeviceError("bad-signature", "the opening is signed by somebody else than the task")
        if facts.get("task") != task.hash.hex():
            raise DeviceError("wrong-hash", "the opening of another task")
        if set(facts) != {"task", "nonces"}:
            raise DeviceError("bad-opening", "other facts than those of the standard")
        try:
            nonces = tuple(bytes.fromhex(nonce) for nonce in texts(facts, "nonces"))
        except ValueError as error:
            raise DeviceError("bad-opening", "a nonce that is not hexadecimal") from error
        if not nonces or any(len(nonce) != 16 for nonce in nonces) or len(set(nonces)) != len(nonces):
            raise DeviceError("bad-opening", "no nonces of 16 bytes, or one twice")
        return cls(len(nonces), nonces)

    def nonce(self, joined: int) -> bytes:
        """Return the nonce of the people who joined at an epoch, 1 up to this one."""
        if not 1 <= joined <= self.epoch:
            raise DeviceError("bad-opening", f"epoch {joined} has not opened")
        return self.nonces[joined - 1]


def to_sign(purpose: bytes, key: bytes, value: Mapping[str, object]) -> bytes:
    """Return the bytes that are signed.

    Args:
        purpose: `TASK` or `OPENING`.
        key: the signer's, 32 bytes.
    """
    return purpose + key + canonical(dict(value))


def short_key(key: bytes) -> str:
    """Return an organiser's key as people compare it: its first 8 bytes, in four groups."""
    return key[:8].hex(" ", 2)


def signed(data: bytes, name: str, purpose: bytes) -> tuple[Mapping[str, object], bytes]:
    """Return the signed value, and the key that signed it.

    Args:
        data: canonical JSON of key, signature and the value.
        purpose: see `to_sign`.
    """
    outer = parse(data)
    if not isinstance(outer, dict) or set(outer) != {"key", "signature", name} or not isinstance(outer[name], dict):
        raise DeviceError("bad-task", f"no signed {name}")
    # Before the signature: another version signs other bytes, and would be reported as a forgery.
    version = outer[name].get("version", VERSION)
    if version != VERSION:
        raise DeviceError("bad-version", f"the {name} is of version {version}, and this program knows {VERSION}")
    try:
        key, signature = bytes.fromhex(outer["key"]), bytes.fromhex(outer["signature"])
        Ed25519PublicKey.from_public_bytes(key).verify(signature, to_sign(purpose, key, outer[name]))
    except (InvalidSignature, ValueError, TypeError) as error:
        raise DeviceError("bad-signature", f"the {name} is not signed by its key") from error
    return MappingProxyType(outer[name]), key


def body_bits(fields: Iterable[Field]) -> int:
    """Return the bits of a body: a flag and an answer for each field."""
    return sum(1 + field.width for field in fields)


def fields_of(facts: Mapping[str, object], people: int) -> tuple[Field, ...]:
    """Return the fields of a task; DeviceError `bad-task`, for no fields of the standard.

    Args:
        people: how many may take part.
    """
    entries = facts["fields"]
    if not isinstance(entries, list) or not entries:
        raise DeviceError("bad-task", "no fields")
    fields = tuple(_field(field, people) for field in entries)
    kinds = [field.kind for field in fields]
    if len(set(kinds)) != len(kinds):
        raise DeviceError("bad-task", "two fields of one kind")
    return fields


def _field(facts: object, people: int) -> Field:
    if not isinstance(facts, dict) or facts.get("kind") not in _KINDS:
        raise DeviceError("bad-task", f"a field that is none of {', '.join(_KINDS)}")
    kind = facts["kind"]
    if set(facts) != FACTS[kind]:
        raise DeviceError("bad-task", f"other facts of {kind} than those of the standard")
    if kind == "features":
        return Features.of(facts)
    if kind == "label":
        return Label.of(facts)
    return Links.of(facts, people) if kind == "links" else Degree.of(facts, people)


#: The facts of a field of each kind.
FACTS: Mapping[str, set[str]] = MappingProxyType(
    {
        "features": {"kind", "names", "low", "high", "epsilon", "sampled", "threshold"},
        "label": {"kind", "classes", "epsilon", "share"},
        "links": {"kind", "mode", "epsilon", "threshold"},
        "degree": {"kind", "mode", "epsilon", "digits", "overflow", "lowest", "highest"},
    }
)
