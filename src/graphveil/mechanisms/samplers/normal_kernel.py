"""Rounded normal noise in two kernels: words are drawn, looked up and added to sums on the GPU where the sums lie.

    first       a tile of draws: its words, the draws that they decide added, the others put on a short list
    second      the lists: further words, a search for each draw, added

The integers are those of `RoundedNormal`, word for word, since every draw has its own words in the streams of its key.
Only one read at the end waits for the GPU: of the draws that 64 bits leave open (each with probability 2^-42) and those
beyond the end of a list, which the sampler in numpy then draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from graphveil.errors import NoiseError
from graphveil.mechanisms.samplers.bits import ENTRY_BITS, FURTHER_WORDS, REST_BITS, TILE
from graphveil.mechanisms.samplers.rounded_normal import KEY_BYTES, RoundedNormal
from graphveil.privacy import BlockKey
from graphveil.privacy.source.chacha_kernel import EXACT, chacha, cipher_numbers, keys_on, refuse_recording

#: Room for draws that 64 bits leave open; there are never more of them in one call.
_MOST_OPEN = tl.constexpr(256)
#: Bits after an entry, in a first word and in all 64; the tile and its further words, as constants of kernels.
_REST_BITS = tl.constexpr(REST_BITS)
_REST_BITS_OF_64 = tl.constexpr(64 - ENTRY_BITS)
_TILE = tl.constexpr(TILE)
_FURTHER_WORDS = tl.constexpr(FURTHER_WORDS)
#: Tiles of a program that searches: their further words are as many as the draws of a tile.
_TILES_SEARCHED: Final = TILE // FURTHER_WORDS


@triton.jit
def _add_decided(
    totals, keys, strips, decided, width, scale, size, entries, parts, tiles, lists, counts, open_draws,
    TILES: tl.constexpr,
):  # fmt: skip
    """Add the draws that their first 32 bits decide; list the index and the word of every other draw of a tile."""
    tile = tl.program_id(0) * TILES + tl.arange(0, TILES)
    block = tl.reshape(tile[:, None] * (_TILE // 16) + tl.arange(0, _TILE // 16)[None, :], [TILES * _TILE // 16])
    per_key = tiles * (_TILE // 16)
    key = tl.minimum(block // per_key, parts - 1)
    words = chacha(keys, key, (block % per_key).to(tl.int64), 0, TILES * _TILE // 16)
    words = tl.reshape(words, [TILES, _TILE])
    number = tl.arange(0, _TILE)[None, :]
    draw = (tile % tiles)[:, None] * _TILE + number
    place = (tile // tiles).to(tl.int64)[:, None] * size + draw
    valid = (draw < size) & (place < entries)
    entry = (words >> _REST_BITS).to(tl.int32)
    cell = tl.load(strips + entry).to(tl.int32) << width
    cell |= ((words >> (_REST_BITS - width)) & ((1 << width) - 1)).to(tl.int32)
    decided_here = valid & (entry < decided)
    before = tl.load(totals + place, mask=decided_here, other=0.0)
    tl.store(totals + place, (before + cell.to(tl.float32)) * scale, mask=decided_here)
    left = valid & (entry >= decided)
    ordinal = tl.cumsum(left.to(tl.int32), axis=1) - 1
    listed = left & (ordinal < _FURTHER_WORDS)
    at = tile[:, None] * _FURTHER_WORDS + ordinal
    tl.store(lists + 2 * at, draw, mask=listed)
    tl.store(lists + 2 * at + 1, words.to(tl.int32, bitcast=True), mask=listed)
    tl.store(counts + tile, tl.sum(listed.to(tl.int32), axis=1))
    beyond = left & (ordinal >= _FURTHER_WORDS)
    # Tested for the whole tile first: there is hardly ever anything to write.
    if tl.max(tl.reshape(beyond, [TILES * _TILE]).to(tl.int32), axis=0) > 0:
        _note_open(open_draws, place, beyond)


@triton.jit
def _note_open(open_draws, place, left):
    """Record draws that are left open: `open_draws` starts with their number, and their places follow."""
    number = tl.atomic_add(open_draws + tl.zeros_like(place), tl.zeros_like(place) + 1, mask=left)
    tl.store(open_draws + 1 + number, place, mask=left & (number < _MOST_OPEN))


@triton.jit
def _add_searched(
    totals, keys, ends, starts, first, limit, width, rounds, scale, size, parts, tiles, lists, counts, open_draws,
    TILES: tl.constexpr,
):  # fmt: skip
    """Add the draws of the lists: their cells by a search among the ends of the remainders."""
    block = tl.program_id(0) * (TILES * _FURTHER_WORDS // 16) + tl.arange(0, TILES * _FURTHER_WORDS // 16)
    per_key = tiles * (_FURTHER_WORDS // 16)
    key = tl.minimum(block // per_key, parts - 1)
    further = chacha(keys, key, (block % per_key).to(tl.int64), 1, TILES * _FURTHER_WORDS // 16)
    at = tl.program_id(0) * (TILES * _FURTHER_WORDS) + tl.arange(0, TILES * _FURTHER_WORDS)
    tile = at // _FURTHER_WORDS
    valid = at % _FURTHER_WORDS < tl.load(counts + tile)
    draw = tl.load(lists + 2 * at, mask=valid, other=0)
    word = tl.load(lists + 2 * at + 1, mask=valid, other=-1).to(tl.uint32, bitcast=True)
    number = (word.to(tl.uint64) << 32) | further.to(tl.uint64)
    start = (number >> (_REST_BITS_OF_64 - width)).to(tl.int64) - first
    low = tl.load(starts + start, mask=valid, other=0)
    high = tl.load(starts + start + 1, mask=valid, other=0)
    for _ in range(rounds):
        middle = (low + high) >> 1
        inside = low < high
        end = tl.load(ends + middle, mask=valid & inside, other=0).to(tl.uint64, bitcast=True)
        low, high = tl.where(inside & (end < number), middle + 1, low), tl.where(inside & (end >= number), middle, high)
    inside = valid & (low < 2 * limit)
    tied = inside & (tl.load(ends + low, mask=inside, other=0).to(tl.uint64, bitcast=True) == number)
    place = (tile // tiles).to(tl.int64) * size + draw
    settled = valid & (tied == 0)
    before = tl.load(totals + place, mask=settled, other=0.0)
    tl.store(totals + place, (before + (low - limit).to(tl.float32)) * scale, mask=settled)
    _note_open(open_draws, place, tied)


@torch.library.custom_op("graphveil::add_rounded_normal", mutates_args={"totals"})
def add_rounded_normal(
    totals: Tensor, keys: Tensor, strips: Tensor, ends: Tensor, starts: Tensor, law: list[int], size: int, scale: float
) -> Tensor:
    """Add a draw to every entry and scale it; return the number of draws left open, followed by their places.

    Args:
        totals: float32 [entries], whole numbers below 2^24; the first `size` have the first key.
        keys: of the calls' streams, int32 [n, 8]; n size is at least `entries`.
        strips, ends, starts: of `Strips`.
        law: decided, width, limit, and how often a search halves what it searches at most.
        size, scale: entries a key; a power of two.
    """
    decided, width, limit, rounds = law
    tiles_per_program = 1 if totals.is_cuda else _TILES_SEARCHED
    entries, device = totals.numel(), totals.device
    tiles = -(-min(size, entries) // TILE)
    padded_tiles = -(-len(keys) * tiles // _TILES_SEARCHED) * _TILES_SEARCHED
    lists = torch.empty(padded_tiles, FURTHER_WORDS, 2, dtype=torch.int32, device=device)
    counts = torch.zeros(padded_tiles, dtype=torch.int32, device=device)
    open_draws = torch.zeros(1 + _MOST_OPEN.value, dtype=torch.int64, device=device)
    # Programs after the last tile do nothing: their entries lie beyond the end.
    _add_decided[(padded_tiles // tiles_per_program,)](
        totals, keys, strips, decided, width, scale, size, entries, len(keys), tiles, lists, counts, open_draws,
        TILES=tiles_per_program, num_warps=2, **EXACT,
    )  # fmt: skip
    first = (1 << (ENTRY_BITS + width)) - starts.numel() + 1
    _add_searched[(padded_tiles // _TILES_SEARCHED,)](
        totals, keys, ends, starts, first, limit, width, rounds, scale, size, len(keys), tiles, lists, counts,
        open_draws, TILES=_TILES_SEARCHED, num_warps=4, **EXACT,
    )  # fmt: skip
    # Freed memory is handed to the next program as it is: words and places of draws would reveal noise.
    lists.zero_()
    return open_draws


@dataclass(frozen=True)
class NormalKernel:
    """A `RoundedNormal` with its tables on a device.

    Attributes:
        noise: the law.
        strips, ends, starts: its table.
        law: as of `add_rounded_normal`.
    """

    noise: RoundedNormal
    strips: Tensor = field(repr=False)
    ends: Tensor = field(repr=False)
    starts: Tensor = field(repr=False)
    law: tuple[int, int, int, int]

    @staticmethod
    def of(noise: RoundedNormal, device: torch.device | str) -> NormalKernel:
        """Return the kernel of a law, with its tables copied to the device."""
        table = noise.table
        strips, ends, starts = (
            torch.tensor(array).to(device) for array in (table.strips, table.ends.view(np.int64), table.starts)
        )
        rounds = int(np.diff(table.starts).max()).bit_length()
        return NormalKernel(noise, strips, ends, starts, (table.decided, table.width, noise.limit, rounds))

    def add_to(self, totals: Tensor, keys: Sequence[BlockKey], *, size: int, scale: float = 1.0) -> None:
        """Add to each part of `totals` what `RoundedNormal.draw` gives from the stream of its key, and scale, in place.

        Args:
            totals: float32, contiguous, on the device: whole numbers below 2^24.
            keys: one for each part, in order.
            size: entries of a part; the last may have fewer.
            scale: a power of two, so that scaling rounds nothing.

        Raises:
            InputError: while work is recorded to be run again: every run would add the same noise.
            NoiseError: more draws are left open than there is room for, and would be missing.
        """
        refuse_recording(totals.device)
        flat, keys_on_device = totals.view(-1), keys_on(keys, totals.device)
        streams = cipher_numbers(keys_on_device, 0, 0, KEY_BYTES // 4)
        open_draws = add_rounded_normal(flat, streams, self.strips, self.ends, self.starts, list(self.law), size, scale)
        keys_on_device.zero_()
        streams.zero_()
        count, *places = open_draws.tolist()
        # Never with a correct table; but a sum without its noise must not be used in any case.
        if count > len(places):
            raise NoiseError(f"{count} draws are left open on the GPU", allowed=f"{len(places)}", remedy="use the CPU")
        for place in sorted(places[:count]):
            part, draw = divmod(place, size)
            drawn = self.noise.draw(size, keys[part].stream())
            flat[place] = (flat[place] + float(drawn[draw])) * scale
