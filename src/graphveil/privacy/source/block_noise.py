"""The noise of one publication, block of rows by block of rows: the same bits whoever works on which block, and when.

    secret  = 32 bytes of the source of randomness, drawn for this publication alone
    key     = HKDF-SHA256(secret; hop, block)        noise of the block = the words of AES-256-CTR, from the first

One sequential stream would tie each draw to all before it, and with that the result to the order of the work.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from graphveil.errors import InputError
from graphveil.privacy.source.derived import KeyedStream, derive
from graphveil.privacy.source.permanent import SECRET_BYTES
from graphveil.privacy.source.randomness import Randomness

_PURPOSE: Final = b"graphveil/block-noise/1"


@dataclass(frozen=True)
class BlockKey:
    """What a worker needs for the noise of one block, and of no other.

    Attributes:
        key: the block's own key; whoever has it can take the block's noise off.
        void: why the noise protects nobody, or None.
    """

    key: builtins.bytes = field(repr=False)
    void: str | None = None

    def stream(self) -> KeyedStream:
        """Return the block's noise, from the first word."""
        return KeyedStream(self.key, self.void)


class BlockNoise:
    """The keys of one publication's blocks.

    Formal guarantees: streams of different blocks are independent and as good as those of `randomness`, as far as
    HKDF-SHA256 and AES-256 cannot be told from chance without the secret. The secret is made here, is never shown,
    saved or handed to a worker, and ends with this object: a publication that was broken off cannot be taken up again
    under other noise for the price of one, nor under the same.

    Args:
        randomness: where the secret comes from; a seeded source makes the noise reproducible, and void.

    Example:
        >>> from graphveil.privacy import BlockNoise, SecureRandomness
        >>> noise = BlockNoise(SecureRandomness())
        >>> noise.key("hop", 1, 0).stream().uint64(3).shape
        (3,)
    """

    def __init__(self, randomness: Randomness) -> None:
        self._secret = randomness.bytes(SECRET_BYTES)
        self._void = randomness.void
        self._process = os.getpid()
        self._given: set[tuple[str | int, ...]] = set()

    def key(self, *context: str | int) -> BlockKey:
        """Return the key of a block, once.

        Args:
            context: what the block is of (hop, table) and its number.

        Raises:
            InputError: it was given out before, here or maybe in the process that this one was forked from: two outputs
                under the same noise would tell their exact difference.
        """
        if context in self._given or os.getpid() != self._process:
            raise InputError(f"noise of block {context} is asked for twice", allowed="one output for each block")
        self._given.add(context)
        return BlockKey(derive(self._secret, _PURPOSE, *context), self._void)

    def keys(self, blocks: int, *context: str | int) -> Iterator[BlockKey]:
        """Yield the key of each of so many blocks, in order.

        Args:
            context: what they are of, where a publication has several tables.

        Raises:
            InputError: as :meth:`key`.
        """
        return (self.key(*context, number) for number in range(blocks))

    def __repr__(self) -> str:
        return "BlockNoise()"

    def __reduce__(self) -> tuple[object, ...]:
        # Workers are given keys of blocks: whoever reads one of them cannot take off more than that block's noise.
        raise TypeError("BlockNoise cannot be copied or pickled: hand out the keys of its blocks")
