"""A token:  random bytes | number of the person that it enrols, 5 bytes, big-endian.

Where both ends of a link could report it, the numbers decide which of them does. A collector that chose numbers freely
could make both ends report, and learn each link twice. So the number comes with the token, through the organiser's own
channel, and a collector keeps only the hash of a token.
"""

from __future__ import annotations

from graphveil.device.errors import DeviceError

#: Bytes of the number: a task has 2^40 people at most.
NUMBER_BYTES = 5
#: The least bytes of the random part.
RANDOM_BYTES = 16
_WHOLE = "Copy it again, whole."


def numbered(random: bytes, number: int) -> bytes:
    """Return the token of random bytes for the person of a number."""
    return random + number.to_bytes(NUMBER_BYTES, "big")


def token_of(text: str) -> bytes:
    """Return the token of a typed text.

    Raises:
        DeviceError: `command`, where it is not hexadecimal.
    """
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise DeviceError("command", "the token is not made of 0 to 9 and a to f alone", _WHOLE) from error


def number_of(token: bytes) -> int:
    """Return the number of the person that a token enrols.

    Raises:
        DeviceError: `command`, where the token is too short.
    """
    if len(token) < RANDOM_BYTES + NUMBER_BYTES:
        detail = f"the token is too short: it has {2 * (RANDOM_BYTES + NUMBER_BYTES)} digits or more"
        raise DeviceError("command", detail, _WHOLE)
    return int.from_bytes(token[-NUMBER_BYTES:], "big")
