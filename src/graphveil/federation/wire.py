"""Frames: how a message crosses the wire, and everything that is checked before a byte of it is believed.

    header   magic, type, agreement (hash), session, sender, receiver, number, part of parts, kind, element type, shape
    body     at most CHUNK bytes of the array's little-endian words
    seal     SHA-256 of header and body

Fixed fields and raw numbers alone: nothing is evaluated, unpickled or allocated beyond the agreed limits.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.messages import KINDS

CHUNK: Final = 1 << 20
HELLO, DATA, ACK, CONTROL = range(1, 5)
_TYPES: Final = (HELLO, DATA, ACK, CONTROL)
_MAGIC: Final = b"GVF1"
_HEADER: Final = struct.Struct("<4sB32s16sBBQIIBBB4QI")
_SEAL: Final = 32
_NAMES: Final = tuple(KINDS)
_DTYPES: Final = (torch.uint8, torch.int64, torch.float32, torch.float64)
_WORDS: Final = ("<u1", "<i8", "<f4", "<f8")
_MOST_PARTS: Final = 1 << 20


class WireError(InputError):
    """Bytes that are no frame of this run."""


@dataclass(frozen=True)
class Frame:
    """One frame; `kind` is a place in the list of kinds, 255 for what is no message."""

    type: int
    agreement: bytes
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
        header = _HEADER.pack(
            _MAGIC,
            self.type,
            self.agreement,
            self.session,
            self.sender,
            self.receiver,
            self.number,
            self.part,
            self.parts,
            self.kind,
            self.dtype,
            len(self.shape),
            *dims,
            len(self.body),
        )
        return header + self.body + hashlib.sha256(header + self.body).digest()


def parse(data: bytes) -> Frame:
    """Return the frame in `data`.

    Raises:
        WireError: too short, too long, of another protocol, damaged, or with a field outside its range.
    """
    if not _HEADER.size + _SEAL <= len(data) <= _HEADER.size + CHUNK + _SEAL:
        raise _bad(f"{len(data)} bytes", f"{_HEADER.size + _SEAL} to {_HEADER.size + CHUNK + _SEAL}")
    magic, type_, agreement, session, sender, receiver, number, part, parts, kind, dtype, rank, *rest = (
        _HEADER.unpack_from(data)
    )
    *dims, length = rest
    if magic != _MAGIC or type_ not in _TYPES:
        raise _bad("another protocol or version", "GVF1")
    if length != len(data) - _HEADER.size - _SEAL:
        raise _bad(f"a body of {len(data) - _HEADER.size - _SEAL} bytes where {length} are announced")
    if hashlib.sha256(data[:-_SEAL]).digest() != data[-_SEAL:]:
        raise _bad("the seal does not fit: damaged on the way")
    if type_ == DATA:
        if kind >= len(_NAMES) or dtype >= len(_DTYPES) or rank > 4 or not 0 <= part < parts <= _MOST_PARTS:
            raise _bad("a field is outside its range")
    elif (part, parts, rank) != (0, 1, 0):
        raise _bad("a field is outside its range")
    shape = tuple(dims[:rank])
    return Frame(
        type_,
        agreement,
        session,
        sender,
        receiver,
        number,
        part,
        parts,
        kind,
        dtype,
        shape,
        data[_HEADER.size : -_SEAL],
    )


def frames_of(
    kind: str, body: Tensor, *, agreement: bytes, session: bytes, sender: int, receiver: int, number: int
) -> Iterator[Frame]:
    """Yield the frames of a message, in order."""
    dtype = _DTYPES.index(body.dtype)
    words = np.ascontiguousarray(body.detach().cpu().numpy()).astype(_WORDS[dtype], copy=False)
    data = words.tobytes()
    parts = max(1, -(-len(data) // CHUNK))
    for part in range(parts):
        chunk = data[part * CHUNK : (part + 1) * CHUNK]
        shape, place = tuple(body.shape), _NAMES.index(kind)
        yield Frame(DATA, agreement, session, sender, receiver, number, part, parts, place, dtype, shape, chunk)


class Assembly:
    """Puts the frames of one message together, in order, and nothing else."""

    def __init__(self, first: Frame, *, largest: int) -> None:
        size = math.prod(first.shape) * np.dtype(_WORDS[first.dtype]).itemsize
        if size > largest:
            raise _bad(f"a message of {size} bytes", f"at most {largest}")
        if first.parts != max(1, -(-size // CHUNK)):
            raise _bad(f"{first.parts} parts for {size} bytes")
        self._first, self._size, self._got, self._have = first, size, bytearray(), 0

    def add(self, frame: Frame) -> tuple[str, Tensor] | None:
        """Return kind and array when `frame` was the last part.

        Raises:
            WireError: a frame of another message, out of order, or more bytes than announced.
        """
        first = self._first
        same = (frame.number, frame.parts, frame.kind, frame.dtype, frame.shape) == (
            first.number,
            first.parts,
            first.kind,
            first.dtype,
            first.shape,
        )
        if not same or frame.part != self._have:
            raise _bad("parts of different messages, or out of order")
        self._got += frame.body
        self._have += 1
        if len(self._got) > self._size:
            raise _bad("more bytes than announced")
        if self._have < first.parts:
            return None
        if len(self._got) != self._size:
            raise _bad("fewer bytes than announced")
        words = np.frombuffer(bytes(self._got), dtype=_WORDS[first.dtype]).copy()
        if words.dtype.byteorder == ">":
            words = words.astype(words.dtype.newbyteorder("="))
        return _NAMES[first.kind], torch.from_numpy(words).view(first.shape)


def _bad(what: str, allowed: str | None = None) -> WireError:
    return WireError(what, where="wire", allowed=allowed)
