"""One of c classes: the true one is sent with the rest of the words, each other one with `w` of them.

    answer   word // w, the classes other than the true one in order; the true one from (c - 1) w on
    epsilon  ln((2^64 - (c - 1) w) / w)

Source: P. Kairouz, K. Bonawitz, D. Ramage, "Discrete Distribution Estimation under Local Privacy", ICML 2016.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from graphveil.device.errors import DeviceError
from graphveil.device.people.person import Person
from graphveil.device.reading import named, number, whole
from graphveil.device.reports.exact import WORD, keeps
from graphveil.device.reports.noise import Bits, number_bits, number_of, words


@dataclass(frozen=True)
class Label:
    """One of some classes.

    Args:
        classes: their names.
        epsilon: for one value.
        share: w, of 2^64.
    """

    classes: tuple[str, ...]
    epsilon: Fraction
    share: int

    kind = "label"
    most_draws: int | None = None

    @classmethod
    def of(cls, facts: Mapping[str, object]) -> Label:
        classes = named(facts, "classes")
        if len(classes) < 2:
            raise DeviceError("bad-task", "a single class")
        return cls(classes, number(facts, "epsilon"), whole(facts, "share", 1, WORD // len(classes)))

    def require_epsilon(self) -> None:
        """Refuse a share that loses more than the stated epsilon."""
        if not keeps(WORD - (len(self.classes) - 1) * self.share, self.share, self.epsilon):
            raise DeviceError("epsilon", "the share of the label loses more than its epsilon")

    @property
    def width(self) -> int:
        return (len(self.classes) - 1).bit_length()

    def true_value(self, value: object, person: Person) -> int:
        """Return the number of a class.

        Args:
            value: its name.
        """
        if value not in self.classes:
            raise DeviceError("bad-value", f"label is none of {', '.join(self.classes[:20])}")
        return self.classes.index(value)

    def parts(self, true_value: int) -> list[tuple[int, int]]:
        return [(true_value, 0)]

    def draw(self, true_value: int, key: bytes, person: Person) -> Bits:
        """Return the answer.

        Args:
            true_value: the true class.
            key: of the field's noise.
        """
        last = len(self.classes) - 1
        other = min(int(words(key, [true_value], [0])[0]) // self.share, last)
        return number_bits(true_value if other == last else other + (other >= true_value), self.width)

    def require_possible(self, bits: Bits, person: Person) -> None:
        """Refuse bits that name no class."""
        if number_of(bits) >= len(self.classes):
            raise DeviceError("impossible", "no class of the task")
