"""Rounded normal noise of many blocks at once in tensor arithmetic: the integers of `rounded_normal`, word for word.

Row k of the draws is what `RoundedNormal.draw` takes from the stream of key k: every draw has a place of its own there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from graphveil.mechanisms.samplers.bits import AFTER, ENTRY_BITS
from graphveil.mechanisms.samplers.rounded_normal import KEY_BYTES, RoundedNormal
from graphveil.privacy import BlockKey
from graphveil.privacy.source.aes_words import KeyStreams
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

_LOWEST: Final = -(1 << 63)


@dataclass(frozen=True)
class NormalTensors:
    """The tables of a `RoundedNormal` on a device.

    Attributes:
        noise: whose. strips: of its table, int32.
        ends: of its table, int64, each 2^63 lower: in that order signed numbers compare as unsigned ones do.
    """

    noise: RoundedNormal
    strips: Tensor
    ends: Tensor

    @staticmethod
    def of(noise: RoundedNormal, device: torch.device | str) -> NormalTensors:
        """Return them, copied to the device.

        Args:
            noise: the law.
        """
        ends = torch.tensor(noise.table.ends.view("int64")) ^ _LOWEST
        return NormalTensors(noise, torch.tensor(noise.table.strips).int().to(device), ends.to(device))

    def draw(self, count: int, keys: Sequence[BlockKey]) -> Tensor:
        """Return row by row what `RoundedNormal.draw` gives from `key.stream()`, int32 [keys, count].

        Args:
            keys: of the rows.
        """
        table, device = self.noise.table, self.strips.device
        words = KeyStreams.of(keys, device).numbers(KEY_BYTES // 4, count)
        # A shift of signed numbers repeats the sign, which is cut off.
        entries = (words >> AFTER) & ((1 << ENTRY_BITS) - 1)
        inside = (words >> (AFTER - table.width)) & ((1 << table.width) - 1)
        draws = (self.strips.index_select(0, entries.flatten()).view_as(words) << table.width) | inside
        undecided = entries >= table.decided
        key, place = torch.nonzero(undecided, as_tuple=True)
        fewer = undecided.sum(dim=1)
        number = torch.arange(len(key), device=device) - (fewer.cumsum(0) - fewer)[key]
        rests = KeyStreams.of([BlockKey(key.stream().bytes(KEY_BYTES)) for key in keys], device)
        draws[key, place], tied = self.search(words[key, place], rests.upper_halves(key, number))
        ties = torch.zeros(len(keys), dtype=torch.int32, device=device).index_add_(0, key, tied.int())
        for row, number_of_ties in enumerate(ties.tolist()):
            # Once in 2^42 draws at most: such a row is drawn by the one sampler that compares all 512 bits.
            if number_of_ties:
                draws[row] = torch.from_numpy(self.noise.draw(count, keys[row].stream())).int().to(device)
        return draws

    def search(self, upper: Tensor, lower: Tensor) -> tuple[Tensor, Tensor]:
        """Return the draws of numbers that no strip decides, int32 [m], and where further bits decide, bool [m].

        Args:
            upper, lower: halves of the numbers' first 64 bits, int32 [m].
        """
        numbers = (upper.long() << 32 | lower.long() & 0xFFFFFFFF) ^ _LOWEST
        below = torch.searchsorted(self.ends, numbers)
        tied = self.ends[below.clamp_max(len(self.ends) - 1)] == numbers
        return (below - self.noise.limit).int(), tied
