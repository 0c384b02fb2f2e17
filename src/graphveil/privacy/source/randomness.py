"""Where privacy noise comes from: the words of ChaCha20, keyed by the operating system or by a seed.

    bytes 64 b .. 64 b + 63 of a stream = ChaCha20(key; counter b, nonce)        counter and nonce of 64 bits

The cipher adds, rotates and XORs 32-bit numbers: without table look-ups its time reveals nothing of a key, and it is
fast on every device. No counter is used twice under the same key and nonce.

Threshold comparisons on 64-bit integers from this stream decide every random bit of the mechanisms. Float
generators are not used: they can be predicted, and their rounding shows through (Mironov, "On significance of
the least significant bits for differential privacy", CCS 2012).

Source: Y. Nir, A. Langley, RFC 8439 (2018), section 2.3; D. J. Bernstein, "ChaCha, a variant of Salsa20", SASC 2008,
for the counter of 64 bits.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import threading
import weakref
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms

from graphveil.errors import InputError

UInt64Array = npt.NDArray[np.uint64]

# One buffer of zeros for all draws: 1 MiB stays in the cache, and a buffer as long as the draw would double its memory.
_CHUNK: Final = 1 << 20
_ZEROS: Final = bytes(_CHUNK)


class Randomness(Protocol):
    """A source of independent uniform bits. `void` says why noise from it protects nobody, or is None."""

    @property
    def void(self) -> str | None:
        """Why a guarantee made with this source is void; None where it holds."""

    def uint64(self, count: int) -> UInt64Array:
        """`count` uniform 64-bit integers."""

    def bytes(self, count: int) -> builtins.bytes:
        """`count` uniform bytes."""


def require_randomness(randomness: object) -> None:
    """Refuse with InputError what is no source of noise: a number, a class, a generator of NumPy or torch."""
    if isinstance(randomness, type) or not (hasattr(randomness, "uint64") and hasattr(randomness, "bytes")):
        raise InputError(
            f"randomness is {randomness!r}",
            allowed="a source of graphveil.privacy: SecureRandomness(), or SeededRandomness(seed), which voids the "
            "guarantee",
        )


class Stream:
    """The words of one key in order."""

    _stream: CipherContext

    def uint64(self, count: int) -> UInt64Array:
        """`count` uniform 64-bit integers; InputError for a negative count."""
        return draw_words(self._stream, count)

    def bytes(self, count: int) -> builtins.bytes:
        """`count` uniform bytes."""
        # Whole words are used up even for fewer bytes: no bit of the stream is given to two callers.
        return self.uint64(-(-count // 8)).tobytes()[:count]


class SecureRandomness(Stream):
    """The source of every release: a fresh key from the operating system, never shown, saved or shared.
    A forked child gets a new key before its first number (forking copies a generator with its state, and two processes
    with the same noise protect nobody). Several threads may draw from one instance.

    >>> from graphveil.privacy import SecureRandomness
    >>> source = SecureRandomness()
    >>> source.void, source.uint64(3).shape
    (None, (3,))
    """

    def __init__(self) -> None:
        self._rekey()
        _LIVE_SOURCES.add(self)

    @property
    def void(self) -> str | None:
        """None: noise from this source protects."""
        return None

    def uint64(self, count: int) -> UInt64Array:
        """`count` uniform 64-bit integers; InputError for a negative count."""
        # Both are needed: the fork hook misses forks by foreign code, and the process number may be a reused one.
        if os.getpid() != self._process:
            self._rekey()
        with self._lock:
            return super().uint64(count)

    def __repr__(self) -> str:
        return "SecureRandomness()"

    def __reduce__(self) -> tuple[object, ...]:
        # A copy would draw the same noise: the difference of two results with it is exact.
        raise TypeError("SecureRandomness cannot be copied or pickled: make a new one where it is needed")

    def _rekey(self) -> None:
        # A new lock too: a child forked while another thread held the old one would wait for ever.
        self._lock = threading.Lock()
        self._process = os.getpid()
        # Counters start at zero, which is safe because a key is never used twice.
        self._stream = open_stream(os.urandom(32))


class SeededRandomness(Stream):
    """The same stream for the same seed, any integer: for tests and benchmarks. Who knows it can remove the noise.

    >>> from graphveil.privacy import SeededRandomness
    >>> bool((SeededRandomness(7).uint64(3) == SeededRandomness(7).uint64(3)).all())
    True
    >>> SeededRandomness(7).void is None
    False
    """

    def __init__(self, seed: int) -> None:
        # None must not mean "no seed": the caller would publish noise that it believes is fresh.
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise InputError(f"seed is {seed!r}", allowed="an integer")
        self._seed = int(seed)
        # Hashed with a label of its own: close seeds give unrelated keys, and no other use of a seed gives this key.
        self._stream = open_stream(hashlib.sha256(b"graphveil/seeded-randomness/1:%d" % self._seed).digest())

    @property
    def void(self) -> str | None:
        """Why every guarantee made with this source is void."""
        return f"noise was reproducible (seed {self._seed})"

    def __repr__(self) -> str:
        return f"SeededRandomness({self._seed})"


def open_stream(key: bytes, nonce: int = 0, *, block: int = 0) -> CipherContext:
    """The words of a key.

    Args:
        key: 32 bytes.
        nonce: which of the key's streams, below 2^64.
        block: the number of the 64-byte block to begin with.
    """
    # No counter is used twice under one key and nonce, so no two draws of a stream share a block of the cipher.
    counter_and_nonce = block.to_bytes(8, "little") + nonce.to_bytes(8, "little")
    return Cipher(algorithms.ChaCha20(key, counter_and_nonce), mode=None).encryptor()


def draw_words(stream: CipherContext, count: int) -> UInt64Array:
    """Draw uniform 64-bit words [count], by encrypting zeros straight into the array that is returned.

    Args:
        stream: a keyed stream cipher, which advances by 8 bytes a word.
        count: how many words.

    Raises:
        InputError: the count is below 0.
    """
    # With a negative count the slices would leave bytes that the cipher has not written.
    if count < 0:
        raise InputError(f"{count} random numbers asked for", allowed="a count of at least 0")
    # Not zeroed first: the cipher writes every byte of it.
    buffer = np.empty(8 * count, dtype=np.uint8)
    view = buffer.data
    for start in range(0, 8 * count, _CHUNK):
        size = min(_CHUNK, 8 * count - start)
        stream.update_into(memoryview(_ZEROS)[:size], view[start:])
    # Little-endian whatever the machine, so that a seed gives the same stream everywhere.
    return buffer.view("<u8").astype(np.uint64, copy=False)


def _rekey_after_fork() -> None:
    # A copy of the set: garbage collection may drop a source from it during the loop.
    for source in list(_LIVE_SOURCES):
        source._rekey()


# All sources, to re-key them in a forked child; weak references, which keep no source and no key alive.
_LIVE_SOURCES: Final[weakref.WeakSet[SecureRandomness]] = weakref.WeakSet()
# Before any code of the child runs, which may draw at once; the parent keeps its stream.
os.register_at_fork(after_in_child=_rekey_after_fork)
