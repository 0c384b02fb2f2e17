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

from graphveil.errors import InputError
from graphveil.privacy.source.derived import KeyedStream, derive

#: Bytes of a device's secret, at least.
SECRET_BYTES: Final = 32
_PURPOSE: Final = b"graphveil/permanent/1"


class PermanentRandomness:
    """One device's source of permanent noise for one task.

    Formal guarantees: `stream` gives what `SecureRandomness` gives, for each context independently, as far as
    HKDF-SHA256 and AES-256 cannot be told from chance without the secret. So each *different* value costs
    what one report costs, and k of them up to k times that; an equal one costs nothing more.

    Not hidden: whether a report is the same as before. Who sees all of them learns when a value changed
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

    def stream(self, *context: str | int | builtins.bytes) -> KeyedStream:
        """Return the stream of a context (field, value and so on), from its beginning."""
        # The value belongs in the context: under one key for all values of a field the same noise would meet two of
        # them, and their reports would show the difference.
        return KeyedStream(self._key("noise", context))

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
        return derive(self._secret, _PURPOSE, use, self._task, *context)
