"""The noise of a training's steps: one secret for all of them, a key a step, drawn where the sums lie.

    secret  = 32 bytes of the source of randomness        noise of step t = `RoundedNormal` by the t-th key

No draw hangs on a sum, so a device draws the noise of several steps in one go, with the bits that the CPU draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import TYPE_CHECKING, Final

from graphveil.mechanisms.samplers.fine_normal import FineNormal
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.mechanisms.samplers.rounded_tensor import NormalTensors
from graphveil.privacy import BlockKey, BlockNoise, Randomness
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

#: Draws at once on a device: few waits for it, and 150 MB of the cipher's bytes.
_AT_ONCE: Final = 1 << 22


class StepNoise:
    """Noise for one sum after the other.

    Formal guarantees: as `BlockNoise`. No two sums get the same noise, also where a process is forked between them:
    the child is refused.

    Args:
        law: of every entry.
    """

    def __init__(self, law: RoundedNormal | FineNormal) -> None:
        self._law = law
        self._source: Randomness | None = None
        self._keys: Iterator[BlockKey] = iter(())
        self._tables: NormalTensors | None = None
        self._ahead: list[Tensor] = []

    def add_to(self, totals: Tensor, randomness: Randomness, *, steps: int) -> None:
        """Add the next noise to every entry, in place.

        Args:
            totals: [P] whole numbers, float32 where they fit its 24 bits, else float64; contiguous.
            randomness: where the secret comes from; another source than before gives another secret.
            steps: how many sums of this shape are still to come, this one included.
        """
        if randomness is not self._source:
            secret = BlockNoise(randomness)
            self._source, self._keys, self._ahead = randomness, (secret.key("step", step) for step in count()), []
        if totals.is_cpu:
            self._law.add_to(totals.numpy(), next(self._keys).stream())
            return
        if isinstance(self._law, FineNormal):
            noise = self._law.draw(totals.numel(), next(self._keys).stream())
            # Added in float64, where it is exact: rounding the noise first would be no post-processing of the sum.
            totals.copy_(totals.double() + torch.from_numpy(noise).view_as(totals).to(totals.device))
            return
        if not self._ahead:
            self._ahead = self._drawn(self._law, totals, min(steps, _AT_ONCE // max(1, totals.numel())))
        totals += self._ahead.pop()

    def _drawn(self, law: RoundedNormal, totals: Tensor, steps: int) -> list[Tensor]:
        """The noise of some steps, the last one first, on the device of the sums."""
        self._tables = self._tables or NormalTensors.of(law, totals.device)
        keys = list(islice(self._keys, max(1, steps)))
        return list(self._tables.draw(totals.numel(), keys).flip(0).unbind())
