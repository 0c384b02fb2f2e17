"""AES-256 in counter mode in tensor arithmetic: the words of many keys at once, on whatever device the tensors lie.

    bytes 16 i .. 16 i + 15 of a key's stream = E(key; i),        i as 16 bytes, the highest first

They are those of `KeyedStream`, bit for bit, so noise does not depend on where it is made.  The generators of tensor
libraries are no substitute: their past output predicts what follows.

Source: NIST FIPS 197 (2001), section 5; NIST SP 800-38A (2001), section 6.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

    from graphveil.privacy.source.derived import BlockKey

_ROUNDS: Final = 14
#: Bytes of a block, and 32-bit numbers in it.
_BYTES: Final = 16
_NUMBERS: Final = 4
#: Byte 4 c + r stands in column c and row r of the state; row r moves by r columns.
_SHIFTED: Final = [(place + 4 * (place % 4)) % _BYTES for place in range(_BYTES)]


@dataclass(frozen=True)
class KeyStreams:
    """The streams of several keys, to be read at any place.

    Formal guarantees: as `BlockKey.stream`. Table look-ups take a time that may depend on what is looked up: whoever
    runs programs on the same device beside this one is trusted not to measure it.

    Attributes:
        round_keys: uint8 [15, 16, keys]. substitutes: what each byte is replaced by in a round, uint8 [256].

    >>> import torch
    >>> from graphveil.privacy import BlockNoise, SecureRandomness
    >>> keys = list(BlockNoise(SecureRandomness()).keys(2))
    >>> numbers = KeyStreams.of(keys, "cpu").numbers(0, 6)
    >>> bool((numbers[1] == torch.from_numpy(keys[1].stream().uint64(3).view("int32"))).all())
    True
    """

    round_keys: Tensor = field(repr=False)
    substitutes: Tensor = field(repr=False)

    @staticmethod
    def of(keys: Sequence[BlockKey], device: torch.device | str) -> KeyStreams:
        """Return the streams of keys, whose words are made on `device`: it is handed the keys."""
        expanded = torch.from_numpy(_expanded([key.key for key in keys]))
        return KeyStreams(expanded.to(device), torch.from_numpy(_substitutes()).to(device))

    def numbers(self, first: int, count: int) -> Tensor:
        """Return `count` consecutive 32-bit numbers of every stream, two a word, int32 [keys, count].

        Args:
            first, count: which number they begin with, a multiple of 4, as a block of the cipher holds; how many.
        """
        places = torch.arange(first // _NUMBERS, -(-(first + count) // _NUMBERS), device=self.round_keys.device)
        return self._blocks(self.round_keys[:, :, :, None], places[None]).flatten(1)[:, :count]

    def upper_halves(self, key: Tensor, word: Tensor) -> Tensor:
        """Return the upper 32 bits of single words, int32 [m].

        Args:
            key: whose stream, int64 [m].
            word: which word of it, int64 [m].
        """
        numbers = self._blocks(self.round_keys[:, :, key], word >> 1)
        return numbers.gather(1, (2 * (word & 1) + 1)[:, None]).squeeze(1)

    def _blocks(self, round_keys: Tensor, places: Tensor) -> Tensor:
        """The 32-bit numbers of the blocks at `places` [...], int32 [..., 4]."""
        state = encrypt(round_keys, self.substitutes, _counters(places))
        # Words are little-endian, as `draw_words` has them, on every machine that has a device for tensors.
        return state.movedim(0, -1).clone(memory_format=torch.contiguous_format).view(torch.int32)


def encrypt(round_keys: Tensor, substitutes: Tensor, state: Tensor) -> Tensor:
    """Return blocks encrypted, uint8 in the shape of `state`.

    Args:
        round_keys: uint8 [15, 16, ...], which broadcasts with `state`.
        substitutes: uint8 [256].
        state: uint8 [16, ...], the bytes of a block along the first axis.
    """
    state = state ^ round_keys[0]
    for key in round_keys[1:_ROUNDS]:
        state = _mixed(_shifted(state, substitutes)) ^ key
    return _shifted(state, substitutes) ^ round_keys[_ROUNDS]


def _counters(places: Tensor) -> Tensor:
    """Numbers of blocks [...] as the cipher reads them, uint8 [16, ...]."""
    low = [(places >> shift & 0xFF).to(torch.uint8) for shift in range(56, -8, -8)]
    return torch.stack([*(torch.zeros_like(low[0]) for _ in range(8)), *low])


def _shifted(state: Tensor, substitutes: Tensor) -> Tensor:
    replaced = substitutes.index_select(0, state.flatten().int()).view_as(state)
    # Not by a list of indices, which would be sent to the device each time.
    return torch.stack([replaced[place] for place in _SHIFTED])


def _mixed(state: Tensor) -> Tensor:
    """Every column c as 2 c_r + 3 c_{r+1} + c_{r+2} + c_{r+3} in GF(2^8), rows counted modulo 4."""
    columns = state.view(4, 4, *state.shape[1:])
    neighbours = columns ^ columns.roll(-1, dims=1)
    doubled = (neighbours << 1) ^ (neighbours >> 7) * 0x1B
    whole = neighbours[:, 0:1] ^ neighbours[:, 2:3]
    return (doubled ^ columns ^ whole).flatten(0, 1)


@lru_cache(maxsize=1)
def _substitutes() -> npt.NDArray[np.uint8]:
    """The substitution of bytes: the inverse in GF(2^8), then an affine map (FIPS 197, section 5.1.1)."""
    powers = np.array(list(_powers()))
    inverse = np.zeros(256, np.int64)
    # 3^i times 3^(255 - i) is 1; 0 has no inverse and stays 0.
    inverse[powers[:-1]] = powers[:0:-1]
    turned = np.array([inverse * 0x101 >> shift for shift in (8, 7, 6, 5, 4)])
    table: npt.NDArray[np.uint8] = (np.bitwise_xor.reduce(turned) ^ 0x63).astype(np.uint8)
    return table


def _powers() -> Iterator[int]:
    """3^0, ..., 3^255 in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1: every number but 0, and the first again."""
    power = 1
    for _ in range(256):
        yield power
        power ^= power << 1
        power ^= 0x11B * (power >> 8)


def _expanded(keys: Sequence[bytes]) -> npt.NDArray[np.uint8]:
    """The round keys of 32-byte keys, uint8 [15, 16, keys] (FIPS 197, section 5.2)."""
    table, constant = _substitutes(), 1
    words = list(np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 8, 4).swapaxes(0, 1))
    for number in range(8, 4 * (_ROUNDS + 1)):
        last = words[-1]
        if number % 8 == 0:
            last = table[np.roll(last, -1, axis=1)]
            last[:, 0] ^= constant
            constant *= 2
        elif number % 8 == 4:
            last = table[last]
        words.append(words[-8] ^ last)
    return np.stack(words).reshape(_ROUNDS + 1, 4, len(keys), 4).swapaxes(2, 3).reshape(_ROUNDS + 1, _BYTES, len(keys))
