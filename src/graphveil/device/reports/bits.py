"""Numbers of a fixed width, one after the other, the highest bit first; the last byte is filled with zeros."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from graphveil.device.errors import DeviceError

Bits = npt.NDArray[np.uint8]


def number_bits(number: int, width: int) -> Bits:
    """Return a number as bits, uint8 [width].

    Args:
        number: 0 .. 2^width - 1. width: how many bits.
    """
    return np.array([number >> place & 1 for place in range(width - 1, -1, -1)], np.uint8)


def packed(bits: Bits) -> bytes:
    """Return bits [n] as ceil(n / 8) bytes."""
    return np.packbits(np.asarray(bits, np.uint8)).tobytes()


def unpacked(body: bytes, count: int) -> Bits:
    """Return the first `count` bits of a body, uint8.

    Args:
        body: ceil(count / 8) bytes. count: how many bits.

    Raises:
        DeviceError: `wrong-length`, or `filling` where what fills the last byte is not zero.
    """
    if len(body) != -(-count // 8):
        raise DeviceError("wrong-length", f"{sized(len(body))}, of {-(-count // 8)}")
    bits = np.unpackbits(np.frombuffer(body, np.uint8))
    if bits[count:].any():
        raise DeviceError("filling", "bits after the last field")
    return bits[:count]


def number_of(bits: Bits) -> int:
    """Return the number whose bits these are, the highest first."""
    return int("".join(map(str, bits.tolist())) or "0", 2)


def sized(count: int) -> str:
    """Return so many bytes in words."""
    return "1 byte" if count == 1 else f"{count:,} bytes"
