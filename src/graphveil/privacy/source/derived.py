"""Noise derived from one secret: keyed streams, a device's permanent noise, and the noise of blocks of rows.

    key                = HKDF-SHA256(secret; purpose, context)        words = ChaCha20 under that key
    permanent noise    context: task, field, value                    the device's own secret
    noise of blocks    context: hop; block b has bytes 32 b ..        32 bytes drawn for one publication alone
                       of its words for a key

Permanent noise need not be stored: an equal value gives the same report again, and averaging repeated reports reveals
nothing. Noise by blocks has the same bits whoever works on which block, and when: one sequential stream
would tie each draw to all before it, and with that the result to the order of the work.

Sources: H. Krawczyk, P. Eronen, RFC 5869 (HKDF); U. Erlingsson, V. Pihur, A. Korolova, "RAPPOR", CCS 2014, section 3
(permanent response); B. Ding, J. Kulkarni, S. Yekhanin, "Collecting Telemetry Data Privately", NeurIPS 2017, section 4
(memoization).
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from graphveil.errors import InputError
from graphveil.privacy.source.randomness import Randomness, Stream, open_stream

Part = str | int | builtins.bytes


class KeyedStream(Stream):
    """A `Randomness` that gives the same numbers whenever it is opened with the same key.

    Args:
        key: 32 bytes that nobody can guess, used for this stream alone.
        void: why noise from it protects nobody, or None.
    """

    def __init__(self, key: builtins.bytes, void: str | None = None) -> None:
        self._stream = open_stream(key)
        self._void = void

    @property
    def void(self) -> str | None:
        """Why noise from this stream protects nobody; None: nobody can remove it without the key."""
        return self._void

    def __repr__(self) -> str:
        return "KeyedStream()"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("KeyedStream cannot be copied or pickled: ask for the stream of its context again")


def derive(secret: builtins.bytes, purpose: builtins.bytes, *context: Part) -> builtins.bytes:
    """Return the 32-byte key of a context; keys of different contexts reveal nothing of each other or of the secret.

    Args:
        secret: at least 32 bytes of entropy.
        purpose: a label that separates this use of the secret from all other uses.
        context: texts, whole numbers and bytes.
    """
    info = b"".join(_encoded(part) for part in context)
    # No salt: it would have to be stored as long as the secret; without it noise would be fresh, and cost again.
    return HKDF(hashes.SHA256(), 32, salt=None, info=purpose + info).derive(secret)


def _encoded(part: Part) -> builtins.bytes:
    """A part of a context after its kind and length, so that different contexts have different encodings."""
    if isinstance(part, builtins.bytes):
        kind, body = b"b", part
    else:
        # The kind comes first: the number 1 and the text "1" are different values.
        kind, body = (b"s", part.encode()) if isinstance(part, str) else (b"i", str(int(part)).encode())
    return kind + len(body).to_bytes(8, "little") + body


#: Bytes of a device's secret, at least.
SECRET_BYTES: Final = 32
_PERMANENT: Final = b"graphveil/permanent/1"


class PermanentRandomness:
    """One device's source of permanent noise for one task.

    Formal guarantees: `stream` gives what `SecureRandomness` gives, for each context independently, as far as
    HKDF-SHA256 and ChaCha20 cannot be told from chance without the secret. So each *different* value costs what one
    report costs, k different values up to k times that, and an equal value nothing more.

    Not hidden: whether a report is the same as before. Who sees all of them learns when a value changed (most likely),
    and when it went back, though not from what to what beyond the epsilons spent.

    Args:
        secret: at least 32 bytes of `os.urandom`, made on the device and kept for as long as it may report: a new
            secret is fresh noise, which has to be paid again. Never a seed.
        task: what is collected, by whom and for when; the same report is sent for the same task alone.

    Raises:
        InputError: a secret that is too short or no bytes, or an empty task.
    """

    def __init__(self, secret: builtins.bytes, task: str) -> None:
        # HKDF adds no entropy: a short secret can be searched, and then every report's noise comes off.
        if not isinstance(secret, builtins.bytes) or len(secret) < SECRET_BYTES:
            raise InputError("the secret is too short, or not bytes", allowed=f"{SECRET_BYTES} bytes of os.urandom")
        if not isinstance(task, str) or not task.strip():
            raise InputError(f"task is {task!r}", allowed="a text that is not empty")
        self._secret = secret
        self._task = task

    def stream(self, *context: str | int | builtins.bytes) -> KeyedStream:
        """Return the stream of a context (field, value and so on), from its beginning."""
        # The value belongs in the context: otherwise two values would get the same noise, which shows their difference.
        return KeyedStream(self._key("noise", context))

    def tag(self, *context: str | int | builtins.bytes) -> str:
        """Return a name for a context that tells nothing without the secret: 16 hexadecimal digits."""
        # Eight bytes distinguish contexts and reveal nothing: HKDF output looks random without the secret.
        return self._key("name", context)[:8].hex()

    def __repr__(self) -> str:
        return f"PermanentRandomness(task={self._task!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # A pickle would hold the secret, with which all noise of the device can be removed, from past reports too.
        raise TypeError("PermanentRandomness cannot be copied or pickled: keep its secret in the device's key store")

    def _key(self, use: str, context: tuple[str | int | builtins.bytes, ...]) -> builtins.bytes:
        # `use` separates noise from names: a published name reveals nothing about the key of the noise.
        return derive(self._secret, _PERMANENT, use, self._task, *context)


_BLOCKS: Final = b"graphveil/block-noise/1"


@dataclass(frozen=True)
class BlockKey:
    """What a worker needs for the noise of one block alone; whoever has `key` can remove that noise. `void` says why it
    protects nobody, or is None.
    """

    key: builtins.bytes = field(repr=False)
    void: str | None = None

    def stream(self) -> KeyedStream:
        """Return the block's noise, from the first word."""
        return KeyedStream(self.key, self.void)


class BlockNoise:
    """The keys of one publication's blocks.

    Formal guarantees: streams of different blocks are independent and as good as those of `randomness`, as far as
    HKDF-SHA256 and ChaCha20 cannot be told from chance without the secret. The secret is made here, is never shown,
    saved or handed to a worker, and ends with this object: an interrupted publication cannot be resumed, neither under
    the same noise nor, at the price of one, under fresh noise.

    Args:
        randomness: where the secret comes from; a seeded source makes the noise reproducible, and void.

    >>> from graphveil.privacy import BlockNoise, SecureRandomness
    >>> noise = BlockNoise(SecureRandomness())
    >>> noise.key("hop", 1, 0).stream().uint64(3).shape
    (3,)
    """

    def __init__(self, randomness: Randomness) -> None:
        self._secret = randomness.bytes(SECRET_BYTES)
        self._void = randomness.void
        self._process = os.getpid()
        self._issued: set[tuple[str | int, ...]] = set()

    def key(self, *context: str | int) -> BlockKey:
        """Return the key of the block of this context (hop, table, number), once. Raises InputError where it was issued
        before, here or perhaps in the process that this one was forked from: two outputs under the same noise reveal
        their exact difference.
        """
        self._refuse_repeated(context, context in self._issued)
        self._issued.add(context)
        return BlockKey(derive(self._secret, _BLOCKS, *context), self._void)

    def keys(self, blocks: int, *context: str | int) -> Iterator[BlockKey]:
        """Yield the keys of so many blocks in order: the words of the key of their context, 32 bytes a block.

        Args:
            blocks: how many.
            context: which blocks, where a publication has several tables.

        Raises:
            InputError: as :meth:`key`.
        """
        # A stream in place of one HKDF a block, which would take longer than the noise of a block on a GPU.
        stream = self.key(*context).stream()
        for _ in range(blocks):
            self._refuse_repeated(context)
            yield BlockKey(stream.bytes(SECRET_BYTES), self._void)

    def _refuse_repeated(self, context: tuple[str | int, ...], issued: bool = False) -> None:
        if issued or os.getpid() != self._process:
            raise InputError(f"noise of block {context} is asked for twice", allowed="one output for each block")

    def __repr__(self) -> str:
        return "BlockNoise()"

    def __reduce__(self) -> tuple[object, ...]:
        # Workers get keys of blocks: whoever reads a key can remove the noise of that block and no other.
        raise TypeError("BlockNoise cannot be copied or pickled: hand out the keys of its blocks")
