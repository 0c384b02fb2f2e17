"""Frames: how a message crosses the wire, and everything that is checked before a byte of it is believed.

    header   magic, type, agreement (hash), session, sender, receiver, number, part of parts, kind, element type, shape
    body     at most CHUNK bytes of the array's little-endian words
    seal     SHA-256 of header and body

Fixed fields and raw numbers alone: nothing is evaluated, unpickled or allocated beyond the agreed limits.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.core.messages import KINDS

CHUNK: Final = 1 << 20
HELLO, DATA, ACK, CONTROL = range(1, 5)
_TYPES: Final = (HELLO, DATA, ACK, CONTROL)
_MAGIC: Final = b"GVF1"
_HEADER: Final = struct.Struct("<4sB32s16sBBQIIBBB4QI")
_SEAL: Final = 32
_NAMES: Final = tuple(KINDS)
_DTYPES: Final = (torch.uint8, torch.int64, torch.float32, torch.float64)
_WORDS: Final = ("<u1", "<i8", "<f4", "<f8")
# With CHUNK this is a tebibyte, far above the largest message of any agreement.
_MAX_PARTS: Final = 1 << 20
_MAX_SIZE: Final = 1 << 40
_MAX_CONTROL: Final = 4096
#: The most bytes of kinds that are always small.
_LARGEST_OF_KIND: Final = {"mask-keys": 1 << 16, "aligned": 8}


class WireError(InputError):
    """Bytes that are not a frame of this run."""


@dataclass(frozen=True)
class Frame:
    """One frame.

    Attributes:
        sender, receiver: positions in the agreement's list of parties.
        number: of the message, from 1.
        part, parts: which of its frames this is, from 0, and how many there are.
        kind, dtype: indices in the lists of kinds and of element types; kind is 255 in frames that are no message.
    """

    type: int
    agreement_hash: bytes
    session: bytes
    sender: int
    receiver: int
    number: int = 0
    part: int = 0
    parts: int = 1
    kind: int = 255
    dtype: int = 0
    shape: tuple[int, ...] = ()
    body: bytes = b""

    def to_bytes(self) -> bytes:
        """Return header, body and seal."""
        dims = (*self.shape, *[0] * (4 - len(self.shape)))
        run = self.type, self.agreement_hash, self.session, self.sender, self.receiver
        message = self.number, self.part, self.parts, self.kind, self.dtype
        header = _HEADER.pack(_MAGIC, *run, *message, len(self.shape), *dims, len(self.body))
        seal = hashlib.sha256(header)
        seal.update(self.body)
        return b"".join((header, self.body, seal.digest()))


def parse(data: bytes) -> Frame:
    """Return the frame in `data`; WireError if it is damaged, of another protocol, or a field out of range."""
    if not _HEADER.size + _SEAL <= len(data) <= _HEADER.size + CHUNK + _SEAL:
        raise _wire_error(f"{len(data)} bytes", f"{_HEADER.size + _SEAL} to {_HEADER.size + CHUNK + _SEAL}")
    magic, type_, agreement_hash, session, sender, receiver, number, part, parts, kind, dtype, rank, *rest = (
        _HEADER.unpack_from(data)
    )
    *dims, length = rest
    if magic != _MAGIC or type_ not in _TYPES:
        raise _wire_error("another protocol or version", "GVF1")
    # Lengths before the seal: what is hashed is then exactly header and body.
    if length != len(data) - _HEADER.size - _SEAL:
        raise _wire_error(f"a body of {len(data) - _HEADER.size - _SEAL} bytes where {length} are announced")
    # Against damage, not forgery: TLS with pinned certificates identifies the sender.
    if hashlib.sha256(memoryview(data)[:-_SEAL]).digest() != data[-_SEAL:]:
        raise _wire_error("the seal does not match: damaged on the way")
    if type_ == DATA:
        fits = kind < len(_NAMES) and dtype < len(_DTYPES) and rank <= 4 and 0 <= part < parts <= _MAX_PARTS
        fits = fits and number > 0 and _DTYPES[dtype] == KINDS[_NAMES[kind]].dtype
    else:
        fits = (part, parts, rank, kind, dtype) == (0, 1, 0, 255, 0) and length <= _MAX_CONTROL
    # Unused fields must be zero, so that a party cannot send in them what is not on the list.
    if not fits or any(dims[rank:]) or max(dims) > _MAX_SIZE:
        raise _wire_error("a field is outside its range")
    shape, body = tuple(dims[:rank]), data[_HEADER.size : -_SEAL]
    return Frame(type_, agreement_hash, session, sender, receiver, number, part, parts, kind, dtype, shape, body)


def frames_of(
    kind: str, body: Tensor, *, agreement_hash: bytes, session: bytes, sender: int, receiver: int, number: int
) -> Iterator[Frame]:
    """Yield the frames of a message, in order.

    Args:
        kind, body: the message.
        agreement_hash: 32 bytes.
        session: 16 bytes.
        sender, receiver: positions in the agreement.
        number: of the message in its session, from 1.
    """
    dtype, data = _DTYPES.index(body.dtype), _bytes_of(body)  # a chunk at a time is made into bytes
    parts = max(1, -(-len(data) // CHUNK))
    for part in range(parts):
        chunk = data[part * CHUNK : (part + 1) * CHUNK].tobytes()
        shape, index = tuple(body.shape), _NAMES.index(kind)
        yield Frame(DATA, agreement_hash, session, sender, receiver, number, part, parts, index, dtype, shape, chunk)


def digest_of(body: Tensor) -> str:
    """Return SHA-256 of a message's array, hexadecimal: the same at both ends of a wire."""
    return hashlib.sha256(_bytes_of(body).data).hexdigest()


def _bytes_of(body: Tensor) -> np.ndarray:
    """Return an array's little-endian words as bytes, uint8 [size], without a copy where there is none to make."""
    words = np.ascontiguousarray(body.detach().cpu().numpy())
    return words.astype(_WORDS[_DTYPES.index(body.dtype)], copy=False).reshape(-1).view(np.uint8)


class Assembly:
    """Joins the frames of one message, in order; holds no more than has arrived.

    Raises:
        WireError: the message is larger than `largest` bytes, or than its kind can be.
    """

    def __init__(self, first: Frame, *, largest: int) -> None:
        size = math.prod(first.shape) * np.dtype(_WORDS[first.dtype]).itemsize
        largest = min(largest, _LARGEST_OF_KIND.get(_NAMES[first.kind], largest))
        # Before anything is allocated: a header alone must not take memory.
        if size > largest:
            raise _wire_error(f"a message of {size} bytes", f"at most {largest}")
        # The number of parts follows from the shape: any other is either damage or an attempt to send more.
        if first.parts != max(1, -(-size // CHUNK)):
            raise _wire_error(f"{first.parts} parts for {size} bytes")
        self._first, self._size, self._body, self._parts_read = first, size, bytearray(), 0

    def add(self, frame: Frame) -> tuple[str, Tensor] | None:
        """Return kind and array when `frame` was the last part; WireError for what is not the next part."""
        first = self._first
        expected = first.number, first.parts, first.kind, first.dtype, first.shape
        same = (frame.number, frame.parts, frame.kind, frame.dtype, frame.shape) == expected
        if not same or frame.part != self._parts_read:
            raise _wire_error("parts of different messages, or out of order")
        if len(frame.body) != min(CHUNK, self._size - self._parts_read * CHUNK):
            raise _wire_error("more or fewer bytes than announced")
        self._body += frame.body
        self._parts_read += 1
        if self._parts_read < first.parts:
            return None
        # Over the very bytes that arrived: `bytearray` is writable, as torch wants it, and no second copy is made.
        words = np.frombuffer(self._body, dtype=_WORDS[first.dtype])
        own = words.astype(words.dtype.newbyteorder("="), copy=False)
        return _NAMES[first.kind], torch.from_numpy(own).reshape(first.shape)


def control_bytes(control: Mapping[str, Any]) -> bytes:
    """Return the body of a control frame: one flat JSON object."""
    return json.dumps(control).encode()


def parse_control(body: bytes) -> dict[str, Any]:
    """Return the control message in a frame's body; WireError for anything but flat JSON of texts and integers."""
    try:
        control = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _wire_error("a word that is not JSON") from error
    if not isinstance(control, dict):
        raise _wire_error("a word that is not a JSON object")
    for value in control.values():
        for entry in value if isinstance(value, list) else (value,):
            # No floats and nothing nested: rounds and names are all it carries, so no array can travel in it.
            if isinstance(entry, bool) or not isinstance(entry, str | int):
                raise _wire_error("a word with something else than texts and whole numbers")
    return control


def _wire_error(what: str, allowed: str | None = None) -> WireError:
    return WireError(what, where="wire", allowed=allowed)
