"""A vector of declared numbers: some coordinates are reported as a private bit each (multi-bit; 1-bit where all are).

    step     rint((v - low) / (high - low) * 2^32), half to even          in binary64; 0 .. 2^32
    answer   1 if word < T + (2^64 - 2 T) step / 2^32, rounded down, else 0
    epsilon  m ln((2^64 - T) / T)

Source: S. Sajadmanesh, D. Gatica-Perez, "Locally Private Graph Neural Networks", CCS 2021, Algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from graphveil.device.errors import DeviceError
from graphveil.device.people.person import Person, assigned
from graphveil.device.reading import named, number, real, whole
from graphveil.device.reports.exact import WORD, keeps
from graphveil.device.reports.noise import Bits, Words, words

STEPS = 1 << 32


@dataclass(frozen=True)
class Features:
    """d numbers of [low, high], of which m are reported.

    Args:
        names: of the d columns.
        low, high: the declared range.
        epsilon: of the whole vector, for one value of it.
        sampled: m.
        threshold: T, of 2^64, with which the low end answers 1.
    """

    names: tuple[str, ...]
    low: float
    high: float
    epsilon: Fraction
    sampled: int
    threshold: int

    kind = "features"
    most_draws: int | None = None

    @classmethod
    def of(cls, facts: Mapping[str, object]) -> Features:
        """Return the field of a task's facts; see `reading` for what is refused."""
        names = named(facts, "names")
        low, high = real(facts, "low"), real(facts, "high")
        sampled = whole(facts, "sampled", 1, len(names))
        return cls(names, low, high, number(facts, "epsilon"), sampled, whole(facts, "threshold", 1, WORD // 2))

    def require_epsilon(self) -> None:
        """Refuse thresholds that lose more than the stated epsilon, or an empty or infinite range."""
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise DeviceError("bad-task", "a range that is none")
        if not keeps(WORD - self.threshold, self.threshold, self.epsilon / self.sampled):
            raise DeviceError("epsilon", "the thresholds of the features lose more than their epsilon")

    @property
    def width(self) -> int:
        return self.sampled

    def true_value(self, value: object, person: Person) -> list[tuple[int, int]]:
        """Return (step, coordinate) of each assigned coordinate.

        Args:
            value: d numbers in order, or a mapping of all d names to them.

        Raises:
            DeviceError: `bad-value`; all d numbers are checked, whichever are assigned.
        """
        steps = [self._step(entry, name) for name, entry in zip(self.names, self._in_order(value), strict=True)]
        return [(steps[column], column) for column in self.coordinates(person)]

    def coordinates(self, person: Person) -> list[int]:
        """Return the coordinates that are assigned to a person, ascending."""
        return assigned(person.task, person.nonce, person.number, len(self.names), self.sampled)

    def parts(self, true_value: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the paid parts, each at a share of epsilon: every coordinate with its value."""
        return list(true_value)

    def draw(self, true_value: Sequence[tuple[int, int]], key: bytes, person: Person) -> Bits:
        """Return the answers, uint8 [m].

        Args:
            true_value: see `true_value`.
            key: of the field's noise.
        """
        steps, columns = (np.array(part, np.uint64) for part in zip(*true_value, strict=True))
        answers: Bits = (words(key, steps, columns) < self.thresholds(steps)).astype(np.uint8)
        return answers

    def thresholds(self, steps: Words) -> Words:
        """Return T + (2^64 - 2 T) step / 2^32, rounded down, uint64, for steps of any shape."""
        upper, lower = divmod(WORD - 2 * self.threshold, STEPS)
        # In two halves, each product below 2^64; at step 2^32 the sum is 2^64 - T.
        low = np.uint64(lower) * steps >> np.uint64(32)
        return np.uint64(self.threshold) + np.uint64(upper) * steps + low

    def require_possible(self, bits: Bits, person: Person) -> None:
        """Refuse nothing: every row of bits is an answer."""

    def _in_order(self, value: object) -> Sequence[object]:
        if isinstance(value, Mapping):
            if set(value) != set(self.names):
                raise DeviceError("bad-value", f"features has other names than the {len(self.names)} declared ones")
            return [value[name] for name in self.names]
        if not isinstance(value, list | tuple | np.ndarray) or len(value) != len(self.names):
            raise DeviceError("bad-value", f"features is no list of {len(self.names)} numbers")
        return list(value)

    def _step(self, value: object, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise DeviceError("bad-value", f"{name} is not a number")
        try:
            as_float = float(value)
        except OverflowError:
            # A whole number beyond the largest binary64 number.
            as_float = math.inf if value > 0 else -math.inf
        if not self.low <= as_float <= self.high:  # NaN as well
            raise DeviceError("bad-value", f"{name} is {as_float}, not from {self.low} to {self.high}")
        # `round` of a float is half to even, and exact below 2^53; -0.0 is 0.
        return round(min(max((as_float - self.low) / (self.high - self.low), 0.0), 1.0) * STEPS)
