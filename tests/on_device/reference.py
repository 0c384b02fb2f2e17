"""The standard a second time, written from its pages: one bit after the other, whole numbers and texts of 0 and 1.

It shares no line with `graphveil.device` and none of its shortcuts (arrays, halves of products, blocks without
chaining), so a mistake in one of them shows.  It reads the facts of a task as they stand in JSON and trusts them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

PURPOSE = b"graphveil/standard/2/"
WORD = 2**64


def spelled(value: object) -> bytes:
    """Canonical JSON, by hand."""
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, int):
        return str(value).encode()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).encode()
    if isinstance(value, list):
        return b"[" + b",".join(map(spelled, value)) + b"]"
    assert isinstance(value, dict)
    return b"{" + b",".join(spelled(key) + b":" + spelled(value[key]) for key in sorted(value)) + b"}"


def task_hash(facts: Mapping[str, Any], key: bytes) -> bytes:
    return hashlib.sha256(PURPOSE + b"task\n" + key + spelled(facts)).digest()


def derived(secret: bytes, use: bytes, task: bytes, number: int) -> bytes:
    """HKDF of RFC 5869, its two steps; 32 bytes are one round of the second."""
    extracted = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(extracted, PURPOSE + use + task + struct.pack(">I", number) + b"\x01", "sha256")


def block(key: bytes, value: int, part: int) -> bytes:
    """The first block of the keystream of AES-256-CTR that starts at the counter value | part."""
    counter = modes.CTR(struct.pack(">QQ", value, part))
    return Cipher(algorithms.AES(key), counter).encryptor().update(bytes(16))


def word(key: bytes, value: int, part: int) -> int:
    return int.from_bytes(block(key, value, part)[:8], "big")


def assigned(task: bytes, nonce: bytes, person: int, dimension: int, size: int) -> list[int]:
    """The numbers without which a list of all is left: Floyd's method, over SHA-256 of a counter."""

    def draws() -> Iterator[int]:
        counter = 0
        while True:
            told = PURPOSE + b"assigned" + task + nonce + struct.pack(">QI", person, counter)
            yield from struct.unpack(">4Q", hashlib.sha256(told).digest())
            counter += 1

    if size == dimension:
        return list(range(dimension))
    chosen: list[int] = []
    for top, drawn in zip(range(dimension - size, dimension), draws(), strict=False):
        chosen.append(top if drawn % (top + 1) in chosen else drawn % (top + 1))
    return sorted(chosen)


@dataclass(frozen=True)
class Device:
    """One person's device.

    Args:
        facts: of the task. number: the person's. nonce: of the opening. secret: 32 bytes. key: the organiser's.
    """

    facts: Mapping[str, Any]
    number: int
    nonce: bytes
    secret: bytes
    key: bytes

    @property
    def hash(self) -> bytes:
        return task_hash(self.facts, self.key)

    def body(self, values: Mapping[str, Any]) -> tuple[bytes, dict[int, list[str]]]:
        """The body, and the names of what it costs."""
        bits, names = "", {}
        for place, field in enumerate(self.facts["fields"]):
            kind = field["kind"]
            value = values.get("links" if kind == "degree" else kind)
            if value is None:
                bits += "0" * (1 + self.width(field))
                continue
            key = derived(self.secret, b"noise", self.hash, place)
            own, parts = getattr(self, kind)(field, value, key)
            assert len(own) == self.width(field)
            bits += "1" + own
            naming = derived(self.secret, b"name", self.hash, place)
            names[place] = [block(naming, *part)[:8].hex() for part in parts]
        bits += "0" * (-len(bits) % 8)
        return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)), names

    def width(self, field: Mapping[str, Any]) -> int:
        """Bits of an answer."""
        if field["kind"] == "features":
            return int(field["sampled"])
        if field["kind"] == "label":
            return (len(field["classes"]) - 1).bit_length()
        if field["kind"] == "links":
            return int(self.facts["people"])
        return int(field["highest"] - field["lowest"]).bit_length()

    def features(self, field: Mapping[str, Any], value: Any, key: bytes) -> tuple[str, list[tuple[int, int]]]:
        low, high, threshold = float(field["low"]), float(field["high"]), int(field["threshold"])
        names = field["names"]
        if isinstance(value, Mapping):
            value = [value[name] for name in names]
        columns = assigned(self.hash, self.nonce, self.number, len(names), field["sampled"])
        # A quotient of binary64; what follows is exact.
        steps = [round(Fraction((float(value[column]) - low) / (high - low)) * 2**32) for column in columns]
        parts = list(zip(steps, columns, strict=True))
        ones = [threshold + (WORD - 2 * threshold) * step // 2**32 for step in steps]
        told = [str(int(word(key, *part) < one)) for part, one in zip(parts, ones, strict=True)]
        return "".join(told), parts

    def label(self, field: Mapping[str, Any], value: Any, key: bytes) -> tuple[str, list[tuple[int, int]]]:
        true, share = field["classes"].index(value), int(field["share"])
        others = [place for place in range(len(field["classes"])) if place != true]
        drawn = word(key, true, 0) // share
        sent = others[drawn] if drawn < len(others) else true
        return f"{sent:0{self.width(field)}b}" if self.width(field) else "", [(true, 0)]

    def links(self, field: Mapping[str, Any], value: Any, key: bytes) -> tuple[str, list[tuple[int, int]]]:
        mine = [self.answers_for(field, other) for other in range(self.facts["people"])]
        true = [int(other in value and mine[other]) for other in range(len(mine))]
        flips = [int(word(key, bit, other) < int(field["threshold"])) for other, bit in enumerate(true)]
        sent = "".join(str(bit ^ flip if own else 0) for bit, flip, own in zip(true, flips, mine, strict=True))
        filled = "".join(map(str, true)) + "0" * (-len(true) % 8)
        digest = hashlib.sha256(int(filled, 2).to_bytes(len(filled) // 8, "big")).digest()
        return sent, [(int.from_bytes(digest[:8], "big"), 0)]

    def degree(self, field: Mapping[str, Any], value: Any, key: bytes) -> tuple[str, list[tuple[int, int]]]:
        true = sum(self.answers_for(field, other) for other in value)
        drawn = (
            int.from_bytes(block(key, true, 2 * place) + block(key, true, 2 * place + 1), "big")
            for place in range(1 << 30)
        )
        first, second = self.geometric(field, drawn), self.geometric(field, drawn)
        sent = max(field["lowest"], min(field["highest"], true + first - second))
        return f"{sent - field['lowest']:0{self.width(field)}b}", [(true, 0)]

    def answers_for(self, field: Mapping[str, Any], other: int) -> bool:
        return other != self.number and (field["mode"] != "lower" or other > self.number)

    @staticmethod
    def geometric(field: Mapping[str, Any], drawn: Iterator[int]) -> int:
        total = 0
        for place, digit in enumerate(field["digits"]):
            total += 2**place if next(drawn) < int(digit) else 0
        while next(drawn) < int(field["overflow"]):
            total += 2 ** len(field["digits"])
        return total


def wire(task: bytes, secret: bytes, epoch: int, body: bytes, key: bytes) -> bytes:
    """The report of a body."""
    id = derived(secret, b"report", task, epoch)[:16]
    enrolment = hashlib.sha256(PURPOSE + b"enrolment" + task + key).digest()[:16]
    told = b"\x02" + task + id + enrolment + struct.pack(">I", len(body)) + body
    return told + hmac.digest(key, told + struct.pack(">I", epoch), "sha256")


def is_by(report: Mapping[str, Any], key: bytes, epoch: int, data: bytes) -> bool:
    """Whether a key made the tag of a report of an epoch that stands somewhere in these bytes."""
    parts = [bytes.fromhex(report[name]) for name in ("task", "id", "enrolment", "body")]
    told = b"\x02" + b"".join(parts[:3]) + struct.pack(">I", len(parts[3])) + parts[3]
    return told + hmac.digest(key, told + struct.pack(">I", epoch), "sha256") in data
