"""A source of randomness that spells out chosen words, so that a test decides every draw."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


class Scripted:
    """Hands out the given 64-bit words, then fails; `bytes` are taken from `tail`.

    Args:
        words: in the order in which they are asked for.
        tail: bytes for whoever asks for more than words.
    """

    void = "the words were written down"

    def __init__(self, words: Iterable[int], tail: bytes = b"") -> None:
        self.left, self.tail = list(words), tail

    def uint64(self, count: int) -> npt.NDArray[np.uint64]:
        words, self.left = self.left[:count], self.left[count:]
        assert len(words) == count, "more words were asked for than the script has"
        return np.array(words, dtype=np.uint64)

    def bytes(self, count: int) -> bytes:
        content, self.tail = self.tail[:count], self.tail[count:]
        assert len(content) == count, "more bytes were asked for than the script has"
        return content
