"""Permanent noise: words derived from a device's secret, the task, the field, the part, its value; and a body's bits.

    key   = HKDF-SHA256(secret, no salt, info = purpose | task hash (32) | number (4))
    block = AES-256(key, value (8) | part (8))                    big-endian; the keystream of AES-CTR from that counter
    word  = the first 8 bytes of a block, big-endian
    body  = numbers of a fixed width, one after the other, the highest bit first; the last byte is filled with zeros

An equal value always gets the same answer, and two values of a part share no noise. Source of HKDF: RFC 5869.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from graphveil.device.errors import DeviceError

Bits = npt.NDArray[np.uint8]


def number_bits(number: int, width: int) -> Bits:
    """Return a number as bits, uint8 [width].

    Args:
        number: 0 .. 2^width - 1.
        width: how many bits.
    """
    return np.array([number >> place & 1 for place in range(width - 1, -1, -1)], np.uint8)


def pack_bits(bits: Bits) -> bytes:
    """Return bits [n] as ceil(n / 8) bytes."""
    return np.packbits(np.asarray(bits, np.uint8)).tobytes()


def unpack_bits(body: bytes, count: int) -> Bits:
    """Return the first `count` bits of a body, uint8.

    Args:
        body: ceil(count / 8) bytes.
        count: how many bits.

    Raises:
        DeviceError: `wrong-length`, or `filling` where what fills the last byte is not zero.
    """
    if len(body) != -(-count // 8):
        raise DeviceError("wrong-length", f"{byte_count(len(body))}, of {-(-count // 8)}")
    bits = np.unpackbits(np.frombuffer(body, np.uint8))
    if bits[count:].any():
        raise DeviceError("filling", "bits after the last field")
    return bits[:count]


def number_of(bits: Bits) -> int:
    """Return the number whose bits these are, the highest first."""
    return int("".join(map(str, bits.tolist())) or "0", 2)


def byte_count(count: int) -> str:
    """Return so many bytes in words."""
    return "1 byte" if count == 1 else f"{count:,} bytes"


SECRET_BYTES = 32
NOISE, NAME, REPORT = (b"graphveil/standard/2/" + use for use in (b"noise", b"name", b"report"))

Words = npt.NDArray[np.uint64]
Numbers = Sequence[int] | npt.NDArray[np.integer]


def derive_key(secret: bytes, purpose: bytes, task: bytes, number: int) -> bytes:
    """Return a 32-byte key that reveals nothing of the secret or of other keys.

    Args:
        secret: 32 bytes of the operating system's randomness.
        purpose: `NOISE`, `NAME` or `REPORT`.
        number: of the field, or of the epoch.
    """
    info = purpose + task + number.to_bytes(4, "big")
    return HKDF(hashes.SHA256(), 32, salt=None, info=info).derive(secret)


def blocks(key: bytes, values: Numbers, parts: Numbers) -> npt.NDArray[np.uint8]:
    """Return a block for each pair of a value and a part, uint8 [n, 16].

    Args:
        values, parts: whole numbers [n] below 2^64.
    """
    # Written in place: numpy's own joins would change the bytes to the processor's order.
    counters = np.empty((len(values), 2), ">u8")
    counters[:, 0], counters[:, 1] = values, parts
    # A counter for each word, without chaining: no word depends on which others are drawn with it.
    drawn = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(counters.tobytes())
    return np.frombuffer(drawn, np.uint8).reshape(-1, 16)


def words(key: bytes, values: Numbers, parts: Numbers) -> Words:
    """Return a uniform word for each pair of a value and a part, uint64 [n].

    Args:
        values, parts: whole numbers [n] below 2^64.
    """
    return np.ascontiguousarray(blocks(key, values, parts)[:, :8]).view(">u8")[:, 0].astype(np.uint64)
