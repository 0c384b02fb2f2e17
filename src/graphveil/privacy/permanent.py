"""Noise that a device need not store: derived from its secret and what is reported, so the same value answers the same.

    key = HKDF-SHA256(secret; task, field, value)        words = AES-256 in counter mode under that key

A report made anew is then the report of the first time, and averaging repeated reports finds nothing. Sources:
U. Erlingsson, V. Pihur, A. Korolova, "RAPPOR", CCS 2014, section 3 (permanent response); B. Ding, J. Kulkarni,
S. Yekhanin, "Collecting Telemetry Data Privately", NeurIPS 2017, section 4 (memoization); H. Krawczyk, P. Eronen,
RFC 5869 (HKDF).
"""

from __future__ import annotations

import builtins
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from graphveil.errors import InputError
from graphveil.privacy.randomness import UInt64Array, draw_words, open_stream

#: Bytes of a device's secret, at least.
SECRET_BYTES: Final = 32
_PURPOSE: Final = b"graphveil/permanent/1"


class PermanentRandomness:
    """One device's source of permanent noise for one task.

    Formal guarantees: `stream` gives what `SecureRandomness` gives, for each context independently, as far as
    HKDF-SHA256 and AES-256 cannot be told from chance without the secret. So each *different* value costs
    what one report costs, and k of them up to k times that; an equal one costs nothing more.

    Not hidden: that a report is the same as before or another one. Who sees all of them learns when a value changed
    (most likely), and when it went back, though not from what to what beyond the epsilons spent.

    Args:
        secret: at least 32 bytes of `os.urandom`, made on the device and kept for as long as it may report: a new
            secret is fresh noise, which has to be paid again. Never a seed.
        task: what is collected, by whom and for when; the same report is sent for the same task alone.

    Raises:
        InputError: a secret that is too short or no bytes, or an empty task.
    """

    def __init__(self, secret: builtins.bytes, task: str) -> None:
        # HKDF stretches any secret and adds no entropy: a short one can be searched, and then every report's noise
        # comes off.
        if not isinstance(secret, builtins.bytes) or len(secret) < SECRET_BYTES:
            raise InputError("the secret is too short, or not bytes", allowed=f"{SECRET_BYTES} bytes of os.urandom")
        if not isinstance(task, str) or not task.strip():
            raise InputError(f"task is {task!r}", allowed="a text that is not empty")
        self._secret = secret
        self._task = task

    def stream(self, *context: str | int | builtins.bytes) -> PermanentStream:
        """Return the stream of a context (field, value and so on), from its beginning."""
        # The value belongs into the context: under one key for all values of a field the same noise would meet two of
        # them, and their reports would show the difference.
        return PermanentStream(self._key("noise", context))

    def tag(self, *context: str | int | builtins.bytes) -> str:
        """Return a name for a context that tells nothing without the secret: 16 hexadecimal digits."""
        # Eight bytes tell contexts apart and say nothing of them: what HKDF gives looks random without the secret.
        return self._key("name", context)[:8].hex()

    def __repr__(self) -> str:
        return f"PermanentRandomness(task={self._task!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # A pickle would hold the secret itself, from which all noise of the device can be taken off, past reports
        # included.
        raise TypeError("PermanentRandomness cannot be copied or pickled: keep its secret in the device's key store")

    def _key(self, use: str, context: tuple[str | int | builtins.bytes, ...]) -> builtins.bytes:
        # `use` keeps noise and names apart: a name that is shown tells nothing about the key of the noise.
        info = b"".join(_told(part) for part in (use, self._task, *context))
        # No salt: it would have to be kept as long as the secret, and a lost one is fresh noise, which costs again.
        return HKDF(hashes.SHA256(), 32, salt=None, info=_PURPOSE + info).derive(self._secret)


class PermanentStream:
    """A `Randomness` that begins anew wherever the same context is asked for."""

    def __init__(self, key: builtins.bytes) -> None:
        self._stream = open_stream(key)

    @property
    def void(self) -> str | None:
        """None: nobody can remove this noise without the secret."""
        return None

    def uint64(self, count: int) -> UInt64Array:
        """The next `count` uniform 64-bit integers; raises InputError for a negative count."""
        return draw_words(self._stream, count)

    def bytes(self, count: int) -> builtins.bytes:
        """The next bytes of the stream, a multiple of 8 of which are used up."""
        return self.uint64(-(-count // 8)).tobytes()[:count]

    def __repr__(self) -> str:
        return "PermanentStream()"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("PermanentStream cannot be copied or pickled: ask for the stream of its context again")


def _told(part: str | int | builtins.bytes) -> builtins.bytes:
    """A part of a context with its kind and length before it, so that no two contexts read alike."""
    if isinstance(part, builtins.bytes):
        kind, body = b"b", part
    else:
        # The kind stands before it as well: the number 1 and the text "1" are different values.
        kind, body = (b"s", part.encode()) if isinstance(part, str) else (b"i", str(int(part)).encode())
    return kind + len(body).to_bytes(8, "little") + body
