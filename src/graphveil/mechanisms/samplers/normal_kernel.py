"""Rounded normal noise in two kernels: words drawn, looked up and added to sums on the GPU where these lie.

    first       a tile of draws: its words, the draws that they decide added, the others put on a short list
    second      the lists: further words, a search for each draw, added

The integers are those of `RoundedNormal`, word for word, since every draw has a place of its own in the streams of its
key. Nothing waits for the GPU but one reading at the end: of the draws that 64 bits leave open, once in 2^42 each, and
those beyond the end of a list, which are fetched from the sampler in numpy.
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
from graphveil.mechanisms.samplers.bits import AFTER, ENTRY_BITS, FURTHER, TILE
from graphveil.mechanisms.samplers.rounded_normal import KEY_BYTES, RoundedNormal
from graphveil.privacy import BlockKey
from graphveil.privacy.source.chacha_kernel import EXACT, chacha, cipher_numbers, keys_on, refuse_recording

#: Room for draws that 64 bits leave open; more of them in one call come never.
_OPEN = tl.constexpr(256)
#: Bits behind an entry, in a first word and in all 64; the tile and its further words, as kernels take constants.
_AFTER = tl.constexpr(AFTER)
_BEHIND = tl.constexpr(64 - ENTRY_BITS)
_TILE = tl.constexpr(TILE)
_FURTHER = tl.constexpr(FURTHER)
#: Tiles of a program that searches: so many further words are as many as a tile has draws.
_SEARCHED: Final = TILE // FURTHER


@triton.jit
def _add_decided(
    totals, keys, strips, decided, width, scale, size, entries, parts, tiles, lists, counts, opened,
    TILES: tl.constexpr,
):  # fmt: skip
    """Draws that their first 32 bits decide, added; the places in their tile of the others, and their words, listed."""
    tile = tl.program_id(0) * TILES + tl.arange(0, TILES)
    block = tl.reshape(tile[:, None] * (_TILE // 16) + tl.arange(0, _TILE // 16)[None, :], [TILES * _TILE // 16])
    per_key = tiles * (_TILE // 16)
    key = tl.minimum(block // per_key, parts - 1)
    words = chacha(keys, key, (block % per_key).to(tl.int64), 0, TILES * _TILE // 16)
    words = tl.reshape(words, [TILES, _TILE])
    number = tl.arange(0, _TILE)[None, :]
    draw = (tile % tiles)[:, None] * _TILE + number
    place = (tile // tiles).to(tl.int64)[:, None] * size + draw
    there = (draw < size) & (place < entries)
    entry = (words >> _AFTER).to(tl.int32)
    cell = tl.load(strips + entry).to(tl.int32) << width
    cell |= ((words >> (_AFTER - width)) & ((1 << width) - 1)).to(tl.int32)
    own = there & (entry < decided)
    before = tl.load(totals + place, mask=own, other=0.0)
    tl.store(totals + place, (before + cell.to(tl.float32)) * scale, mask=own)
    left = there & (entry >= decided)
    ordinal = tl.cumsum(left.to(tl.int32), axis=1) - 1
    listed = left & (ordinal < _FURTHER)
    at = tile[:, None] * _FURTHER + ordinal
    tl.store(lists + 2 * at, draw, mask=listed)
    tl.store(lists + 2 * at + 1, words.to(tl.int32, bitcast=True), mask=listed)
    tl.store(counts + tile, tl.sum(listed.to(tl.int32), axis=1))
    beyond = left & (ordinal >= _FURTHER)
    # Asked once for all: hardly ever is anything written.
    if tl.max(tl.reshape(beyond, [TILES * _TILE]).to(tl.int32), axis=0) > 0:
        _note_open(opened, place, beyond)


@triton.jit
def _note_open(opened, place, left):
    """Write down places of draws that are left: `opened` counts them, and then holds the first of them."""
    number = tl.atomic_add(opened + tl.zeros_like(place), tl.zeros_like(place) + 1, mask=left)
    tl.store(opened + 1 + number, place, mask=left & (number < _OPEN))


@triton.jit
def _add_searched(
    totals, keys, ends, starts, first, limit, width, rounds, scale, size, parts, tiles, lists, counts, opened,
    TILES: tl.constexpr,
):  # fmt: skip
    """Draws of the lists, added: cells by a search among the ends of what they are owed."""
    block = tl.program_id(0) * (TILES * _FURTHER // 16) + tl.arange(0, TILES * _FURTHER // 16)
    per_key = tiles * (_FURTHER // 16)
    key = tl.minimum(block // per_key, parts - 1)
    further = chacha(keys, key, (block % per_key).to(tl.int64), 1, TILES * _FURTHER // 16)
    at = tl.program_id(0) * (TILES * _FURTHER) + tl.arange(0, TILES * _FURTHER)
    tile = at // _FURTHER
    there = at % _FURTHER < tl.load(counts + tile)
    draw = tl.load(lists + 2 * at, mask=there, other=0)
    word = tl.load(lists + 2 * at + 1, mask=there, other=-1).to(tl.uint32, bitcast=True)
    number = (word.to(tl.uint64) << 32) | further.to(tl.uint64)
    start = (number >> (_BEHIND - width)).to(tl.int64) - first
    low = tl.load(starts + start, mask=there, other=0)
    high = tl.load(starts + start + 1, mask=there, other=0)
    for _ in range(rounds):
        middle = (low + high) >> 1
        inside = low < high
        end = tl.load(ends + middle, mask=there & inside, other=0).to(tl.uint64, bitcast=True)
        low, high = tl.where(inside & (end < number), middle + 1, low), tl.where(inside & (end >= number), middle, high)
    inside = there & (low < 2 * limit)
    tied = inside & (tl.load(ends + low, mask=inside, other=0).to(tl.uint64, bitcast=True) == number)
    place = (tile // tiles).to(tl.int64) * size + draw
    own = there & (tied == 0)
    before = tl.load(totals + place, mask=own, other=0.0)
    tl.store(totals + place, (before + (low - limit).to(tl.float32)) * scale, mask=own)
    _note_open(opened, place, tied)


@torch.library.custom_op("graphveil::add_rounded_normal", mutates_args={"totals"})
def add_rounded_normal(
    totals: Tensor, keys: Tensor, strips: Tensor, ends: Tensor, starts: Tensor, law: list[int], size: int, scale: float
) -> Tensor:
    """Add a draw to every entry and scale it; return how many draws are left open and, behind it, their places.

    Args:
        totals: float32 [entries], whole numbers below 2^24; the first `size` have the first key.
        keys: of the calls' streams, int32 [n, 8]; n size is at least `entries`.
        strips, ends, starts: of `Strips`.
        law: decided, width, limit, and how often a search halves what it searches at most.
        size, scale: entries a key; a power of two.
    """
    decided, width, limit, rounds = law
    several = 1 if totals.is_cuda else _SEARCHED
    entries, device = totals.numel(), totals.device
    tiles = -(-min(size, entries) // TILE)
    every = -(-len(keys) * tiles // _SEARCHED) * _SEARCHED
    lists = torch.empty(every, FURTHER, 2, dtype=torch.int32, device=device)
    counts = torch.zeros(every, dtype=torch.int32, device=device)
    opened = torch.zeros(1 + _OPEN.value, dtype=torch.int64, device=device)
    # Programs behind the last tile find nothing to do: their entries lie behind the last.
    _add_decided[(every // several,)](
        totals, keys, strips, decided, width, scale, size, entries, len(keys), tiles, lists, counts, opened,
        TILES=several, num_warps=2, **EXACT,
    )  # fmt: skip
    first = (1 << (ENTRY_BITS + width)) - starts.numel() + 1
    _add_searched[(every // _SEARCHED,)](
        totals, keys, ends, starts, first, limit, width, rounds, scale, size, len(keys), tiles, lists, counts, opened,
        TILES=_SEARCHED, num_warps=4, **EXACT,
    )  # fmt: skip
    # What freed memory holds is seen by whoever is given it: words and places of draws would tell noise.
    lists.zero_()
    return opened


@dataclass(frozen=True)
class NormalKernel:
    """A `RoundedNormal` with its tables on a device.

    Attributes:
        noise: whose.
        strips, ends, starts: of its table.
    """

    noise: RoundedNormal
    strips: Tensor = field(repr=False)
    ends: Tensor = field(repr=False)
    starts: Tensor = field(repr=False)
    law: tuple[int, int, int, int]

    @staticmethod
    def of(noise: RoundedNormal, device: torch.device | str) -> NormalKernel:
        """Return it, with tables copied to the device."""
        table = noise.table
        strips, ends, starts = (
            torch.tensor(array).to(device) for array in (table.strips, table.ends.view(np.int64), table.starts)
        )
        rounds = int(np.diff(table.starts).max()).bit_length()
        return NormalKernel(noise, strips, ends, starts, (table.decided, table.width, noise.limit, rounds))

    def add_to(self, totals: Tensor, keys: Sequence[BlockKey], *, size: int, scale: float = 1.0) -> None:
        """Add to part after part of `totals` what `RoundedNormal.draw` gives from a key's stream, then scale, in place.

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
        flat, own = totals.view(-1), keys_on(keys, totals.device)
        streams = cipher_numbers(own, 0, 0, KEY_BYTES // 4)
        opened = add_rounded_normal(flat, streams, self.strips, self.ends, self.starts, list(self.law), size, scale)
        own.zero_()
        streams.zero_()
        count, *places = opened.tolist()
        # Never with a sound table; a sum without its noise must not go on in any case.
        if count > len(places):
            raise NoiseError(f"{count} draws are left open on the GPU", allowed=f"{len(places)}", remedy="use the CPU")
        for place in sorted(places[:count]):
            part, draw = divmod(place, size)
            drawn = self.noise.draw(size, keys[part].stream())
            flat[place] = (flat[place] + float(drawn[draw])) * scale
