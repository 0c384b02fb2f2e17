"""A report on the wire: one encoding, big-endian; and the token that enrols a person.

    version 2 | task hash 32 | report id 16 | enrolment id 16 | length 4 | body | tag 32
    random bytes | number of the person that the token enrols, 5 bytes

The tag is HMAC-SHA256 over all before it and the epoch (4), with the enrolment's key, which the device makes and sends
to the collector with the token. So a delayed report cannot count in a later epoch. The report id is derived from the
secret, the task and the epoch, so a report that is made again is the same report.

Where both ends of a link could report it, the numbers decide which of them does. A collector that chose numbers freely
could make both ends report, and learn each link twice. So the number comes with the token, through the organiser's own
channel, and a collector keeps only the hash of a token.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from graphveil.device.errors import DeviceError
from graphveil.device.reports.noise import REPORT, byte_count, derive_key

#: Bytes of the number: a task has 2^40 people at most.
NUMBER_BYTES = 5
#: The least bytes of the random part.
RANDOM_BYTES = 16
_WHOLE = "Copy it again, whole."


def numbered(random: bytes, number: int) -> bytes:
    """Return the token of random bytes for the person of a number."""
    return random + number.to_bytes(NUMBER_BYTES, "big")


def token_of(text: str) -> bytes:
    """Return the token of a typed text; DeviceError `command`, where it is not hexadecimal."""
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise DeviceError("command", "the token is not made of 0 to 9 and a to f alone", _WHOLE) from error


def number_of(token: bytes) -> int:
    """Return the number of the person that a token enrols; DeviceError `command`, for a token too short."""
    if len(token) < RANDOM_BYTES + NUMBER_BYTES:
        detail = f"the token is too short: it has {2 * (RANDOM_BYTES + NUMBER_BYTES)} digits or more"
        raise DeviceError("command", detail, _WHOLE)
    return int.from_bytes(token[-NUMBER_BYTES:], "big")


VERSION = 2
HEAD, TAG = 1 + 32 + 16 + 16 + 4, 32
_ENROLMENT = b"graphveil/standard/2/enrolment"


@dataclass(frozen=True)
class Report:
    """A report.

    Args:
        task: the hash, 32 bytes.
        id: 16 bytes.
        enrolment: 16 bytes.
        body: of a length that the task fixes.
        tag: 32 bytes.
    """

    task: bytes
    id: bytes
    enrolment: bytes
    body: bytes
    tag: bytes

    def to_bytes(self) -> bytes:
        """Return the one encoding."""
        return _untagged(self.task, self.id, self.enrolment, self.body) + self.tag

    def is_by(self, key: bytes, epoch: int) -> bool:
        """Return whether the tag was made with an enrolment's key, for an epoch."""
        expected = _tag(_untagged(self.task, self.id, self.enrolment, self.body), epoch, key)
        # In constant time: otherwise the duration would let a tag be guessed byte by byte.
        return hmac.compare_digest(self.tag, expected)

    def epoch_by(self, key: bytes, epochs: Iterable[int]) -> int | None:
        """Return the first of some epochs for which the tag was made with an enrolment's key, None for none of them."""
        # The body is hashed once: a wrong tag must not cost the hash of a body for every epoch.
        untagged = hmac.new(key, _untagged(self.task, self.id, self.enrolment, self.body), "sha256")
        for epoch in epochs:
            tag = untagged.copy()
            tag.update(_uint32(epoch))
            if hmac.compare_digest(self.tag, tag.digest()):
                return epoch
        return None


def report(task: bytes, epoch: int, body: bytes, secret: bytes, key: bytes) -> Report:
    """Return the report of a body.

    Args:
        epoch: of the opening.
        key: the enrolment's, 32 bytes.
    """
    id, enrolment = derive_key(secret, REPORT, task, epoch)[:16], enrolment_id(task, key)
    tag = _tag(_untagged(task, id, enrolment, body), epoch, key)
    return Report(task, id, enrolment, body, tag)


def enrolment_id(task: bytes, key: bytes) -> bytes:
    """Return the name of an enrolment: 16 bytes of SHA-256(purpose | task | key)."""
    return hashlib.sha256(_ENROLMENT + task + key).digest()[:16]


def read(data: bytes, at: int = 0) -> tuple[Report, int]:
    """Return the report that begins at a place, and where the next one would; DeviceError for `truncated` or
    `bad-version`."""
    if len(data) < at + HEAD + TAG:
        raise DeviceError("truncated", byte_count(len(data) - at))
    if data[at] != VERSION:
        raise DeviceError("bad-version", f"version {data[at]}, of {VERSION}")
    end = at + HEAD + int.from_bytes(data[at + HEAD - 4 : at + HEAD], "big")
    if len(data) < end + TAG:
        raise DeviceError("truncated", byte_count(len(data) - at))
    head = data[at + 1 : at + 33], data[at + 33 : at + 49], data[at + 49 : at + 65]
    return Report(*head, data[at + HEAD : end], data[end : end + TAG]), end + TAG


def _untagged(task: bytes, id: bytes, enrolment: bytes, body: bytes) -> bytes:
    return bytes([VERSION]) + task + id + enrolment + _uint32(len(body)) + body


def _tag(untagged: bytes, epoch: int, key: bytes) -> bytes:
    return hmac.digest(key, untagged + _uint32(epoch), "sha256")


def _uint32(number: int) -> bytes:
    return number.to_bytes(4, "big")
