"""A token:  random bytes | number of whom it enrols, 5 bytes, big-endian.

Where both ends of a link could report it, the number says which of them does. A collector that dealt numbers out as it
liked could make everybody the one who reports, and be told each link twice. The number comes with the token instead,
through the organiser's own channel, and a collector keeps no more of a token than its hash.
"""

from __future__ import annotations

from graphveil.device.errors import DeviceError

#: Bytes of the number: a task has 2^40 people at most.
NUMBER_BYTES = 5
#: Bytes of the random part at the least.
RANDOM_BYTES = 16
_WHOLE = "Copy it again, whole."


def numbered(random: bytes, number: int) -> bytes:
    """Return a token.

    Args:
        random: that nobody can guess. number: of the person.
    """
    return random + number.to_bytes(NUMBER_BYTES, "big")


def token_of(text: str) -> bytes:
    """Return a token as it was typed.

    Raises:
        DeviceError: `command`, where it is not hexadecimal.
    """
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise DeviceError("command", "the token is not made of 0 to 9 and a to f alone", _WHOLE) from error


def number_of(token: bytes) -> int:
    """Return the number of whom a token enrols.

    Args:
        token: as it was handed out.

    Raises:
        DeviceError: `command`, where it is too short for one.
    """
    if len(token) < RANDOM_BYTES + NUMBER_BYTES:
        detail = f"the token is too short: it has {2 * (RANDOM_BYTES + NUMBER_BYTES)} digits or more"
        raise DeviceError("command", detail, _WHOLE)
    return int.from_bytes(token[-NUMBER_BYTES:], "big")
