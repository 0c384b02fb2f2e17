"""Many bodies of one task at once, as bits.

A body that no device sends is refused and not stored: a flag of 0 with an answer, a class or degree beyond the last, a
link that its sender does not answer for, bits after the last field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from graphveil.device.reports.degree import Degree
from graphveil.device.reports.label import Label
from graphveil.device.reports.links import Links
from graphveil.device.task import Field, Task

BoolArray = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Bodies:
    """Bodies of equal length as bits, uint8 [n, 8 * bytes], 0 or 1, and the numbers of their senders, int64 [n]."""

    task: Task
    bits: npt.NDArray[np.uint8]
    numbers: Numbers

    @classmethod
    def of(cls, task: Task, bodies: list[bytes], numbers: Numbers) -> Bodies:
        """Return bodies of the right length as bits.

        Args:
            bodies: of ceil(task.bits / 8) bytes each.
            numbers: int64 [n], of the senders.
        """
        rows = np.frombuffer(b"".join(bodies), np.uint8).reshape(len(bodies), -(-task.bits // 8))
        return cls(task, np.unpackbits(rows, axis=1), numbers)

    def answered(self, place: int) -> BoolArray:
        """Return who answered the field at a place of the task, [n]."""
        return self.bits[:, self._start(place)].astype(np.bool_)

    def answers(self, place: int) -> npt.NDArray[np.uint8]:
        """Return everybody's bits of the field at a place of the task, uint8 [n, width]."""
        first = self._start(place) + 1
        return self.bits[:, first : first + self.task.fields[place].width]

    def values(self, place: int) -> Numbers:
        """Return everybody's answer of the field at a place, of at most 62 bits, as a number, int64 [n]."""
        bits = self.answers(place)
        worth: Numbers = bits @ (1 << np.arange(bits.shape[1] - 1, -1, -1, dtype=np.int64))
        return worth

    def without(self, places: Sequence[int]) -> Bodies:
        """Return the bodies as if nobody had answered the fields at some places of the task."""
        if not places:
            return self
        bits = self.bits.copy()
        for place in places:
            bits[:, self._start(place) : self._start(place + 1)] = 0
        return replace(self, bits=bits)

    def possible(self) -> BoolArray:
        """Return which bodies a device can have sent, [n]."""
        # All bodies at once: one by one, they would cost more than everything else.
        possible: BoolArray = np.logical_not(self.bits[:, self.task.bits :].any(axis=1))
        for place, field in enumerate(self.task.fields):
            answered, bits = self.answered(place), self.answers(place)
            possible = possible & np.where(answered, self._within(place, field), np.logical_not(bits.any(axis=1)))
        return possible

    def _within(self, place: int, field: Field) -> BoolArray:
        if isinstance(field, Label):
            return self.values(place) < len(field.classes)
        if isinstance(field, Degree):
            return self.values(place) <= field.highest - field.lowest
        if isinstance(field, Links):
            # A list may not name its sender nor, in mode "lower", anybody before them.
            bits = self.answers(place).astype(np.bool_)
            amiss = bits[np.arange(len(bits)), self.numbers]
            if field.mode == "lower":
                amiss = amiss | (bits & (np.arange(field.people) < self.numbers[:, None])).any(axis=1)
            return np.asarray(~amiss, np.bool_)
        return np.ones(len(self.bits), np.bool_)

    def _start(self, place: int) -> int:
        return sum(1 + field.width for field in self.task.fields[:place])
