"""Keys and streams derived from one secret, told apart by what they are for.

    key = HKDF-SHA256(secret; purpose, context)        words = AES-256 in counter mode under that key

Source: H. Krawczyk, P. Eronen, RFC 5869 (HKDF).
"""

from __future__ import annotations

import builtins

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from graphveil.privacy.source.randomness import UInt64Array, draw_words, open_stream

Part = str | int | builtins.bytes


class KeyedStream:
    """A `Randomness` that begins anew wherever the same key is given.

    Args:
        key: 32 bytes that nobody can guess, used for this stream alone.
        void: why noise from it protects nobody, or None.
    """

    def __init__(self, key: builtins.bytes, void: str | None = None) -> None:
        self._stream = open_stream(key)
        self._void = void

    @property
    def void(self) -> str | None:
        """None: nobody can remove this noise without the key; or why it is void."""
        return self._void

    def uint64(self, count: int) -> UInt64Array:
        """The next `count` uniform 64-bit integers; raises InputError for a negative count."""
        return draw_words(self._stream, count)

    def bytes(self, count: int) -> builtins.bytes:
        """The next bytes of the stream, a multiple of 8 of which are used up."""
        return self.uint64(-(-count // 8)).tobytes()[:count]

    def __repr__(self) -> str:
        return "KeyedStream()"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("KeyedStream cannot be copied or pickled: ask for the stream of its context again")


def derive(secret: builtins.bytes, purpose: builtins.bytes, *context: Part) -> builtins.bytes:
    """Return the 32-byte key of a context; keys of different contexts tell nothing of each other or of the secret.

    Args:
        secret: at least 32 bytes of entropy.
        purpose: what keeps this use of the secret apart from all others.
        context: texts, whole numbers and bytes.
    """
    info = b"".join(_encoded(part) for part in context)
    # No salt: it would have to be kept as long as the secret, and a lost one is fresh noise, which costs again.
    return HKDF(hashes.SHA256(), 32, salt=None, info=purpose + info).derive(secret)


def _encoded(part: Part) -> builtins.bytes:
    """A part of a context with its kind and length before it, so that no two contexts read alike."""
    if isinstance(part, builtins.bytes):
        kind, body = b"b", part
    else:
        # The kind stands before it as well: the number 1 and the text "1" are different values.
        kind, body = (b"s", part.encode()) if isinstance(part, str) else (b"i", str(int(part)).encode())
    return kind + len(body).to_bytes(8, "little") + body
