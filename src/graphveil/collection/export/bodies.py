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
            bodies: of `task.body_bytes` each.
            numbers: int64 [n], of the senders.
        """
        rows = np.frombuffer(b"".join(bodies), np.uint8).reshape(len(bodies), task.body_bytes)
        return cls(task, np.unpackbits(rows, axis=1), numbers)

    def answered(self, index: int) -> BoolArray:
        """Return who answered a field of the task, by its index, [n]."""
        return self.bits[:, self._start(index)].astype(np.bool_)

    def answers(self, index: int) -> npt.NDArray[np.uint8]:
        """Return everybody's bits of a field, by its index, uint8 [n, width]."""
        first = self._start(index) + 1
        return self.bits[:, first : first + self.task.fields[index].width]

    def values(self, index: int) -> Numbers:
        """Return everybody's answer of a field of at most 62 bits, by its index, as a number, int64 [n]."""
        bits = self.answers(index)
        numbers: Numbers = bits @ (1 << np.arange(bits.shape[1] - 1, -1, -1, dtype=np.int64))
        return numbers

    def without(self, indices: Sequence[int]) -> Bodies:
        """Return the bodies as if nobody had answered the fields of some indices."""
        if not indices:
            return self
        bits = self.bits.copy()
        for index in indices:
            bits[:, self._start(index) : self._start(index + 1)] = 0
        return replace(self, bits=bits)

    def possible(self) -> BoolArray:
        """Return which bodies a device can have sent, [n]."""
        # All bodies at once: one by one, they would cost more than everything else.
        possible: BoolArray = np.logical_not(self.bits[:, self.task.bits :].any(axis=1))
        for index, field in enumerate(self.task.fields):
            answered, bits = self.answered(index), self.answers(index)
            possible = possible & np.where(answered, self._within(index, field), np.logical_not(bits.any(axis=1)))
        return possible

    def _within(self, index: int, field: Field) -> BoolArray:
        if isinstance(field, Label):
            return self.values(index) < len(field.classes)
        if isinstance(field, Degree):
            return self.values(index) <= field.highest - field.lowest
        if isinstance(field, Links):
            # A list may not name its sender nor, in mode "lower", anybody before them.
            bits = self.answers(index).astype(np.bool_)
            is_wrong = bits[np.arange(len(bits)), self.numbers]
            if field.mode == "lower":
                is_wrong = is_wrong | (bits & (np.arange(field.people) < self.numbers[:, None])).any(axis=1)
            return np.asarray(~is_wrong, np.bool_)
        return np.ones(len(self.bits), np.bool_)

    def _start(self, index: int) -> int:
        return sum(1 + field.width for field in self.task.fields[:index])
