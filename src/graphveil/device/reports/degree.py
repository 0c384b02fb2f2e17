"""How many links a person's list holds, with two-sided geometric noise.

    number   sum of 2^i [draw i < t_i] over the digits, and 2^digits for each draw after them that is below the
             overflow, up to the first that is not; each draw is two blocks, 256 bits
    answer   degree + first number - second number, at least `lowest` and at most `highest`
    epsilon  see `exact.digits_keep`

Source: A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", STOC 2009; of
lists: S. Hidano, T. Murakami, "Degree-Preserving Randomized Response", 2022, https://arxiv.org/abs/2202.10209.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from graphveil.device.errors import DeviceError
from graphveil.device.people.person import Person
from graphveil.device.reading import number, texts, whole
from graphveil.device.reports.exact import DIGIT, digits_keep
from graphveil.device.reports.links import list_bits, mode_of
from graphveil.device.reports.noise import Bits, blocks, number_bits, number_of

_LARGEST = 1 << 31


@dataclass(frozen=True)
class Degree:
    """How many people a person is linked to.

    Args:
        mode: for whom a list answers.
        epsilon: for one link more or less.
        digits: t_i of 2^256.
        overflow: of 2^256.
        lowest, highest: the ends of the answers, which are the same for everybody.
    """

    mode: str
    epsilon: Fraction
    digits: tuple[int, ...]
    overflow: int
    lowest: int
    highest: int

    kind = "degree"
    most_draws: int | None = None

    @classmethod
    def of(cls, facts: Mapping[str, object], people: int) -> Degree:
        mode, epsilon = mode_of(facts, people), number(facts, "epsilon")
        digits = texts(facts, "digits")
        if len(digits) > 60:
            raise DeviceError("bad-task", "more than 60 digits")
        digit_of = {str(index): digit for index, digit in enumerate(digits)}
        thresholds = tuple(whole(digit_of, name, 1, DIGIT) for name in digit_of)
        overflow = whole(facts, "overflow", 1, DIGIT)
        # An end that some degrees cannot reach would tell them.
        lowest, highest = whole(facts, "lowest", -_LARGEST, 0), whole(facts, "highest", people - 1, _LARGEST)
        return cls(mode, epsilon, thresholds, overflow, lowest, highest)

    def require_epsilon(self) -> None:
        """Refuse digits that lose more than the stated epsilon."""
        if not digits_keep(self.digits, self.overflow, self.epsilon):
            raise DeviceError("epsilon", "the digits of the degree lose more than its epsilon")

    @property
    def width(self) -> int:
        return (self.highest - self.lowest).bit_length()

    def true_value(self, value: object, person: Person) -> int:
        """Return the degree.

        Args:
            value: the list, as `links` takes it.
        """
        return int(list_bits(value, self.mode, person).sum())

    def parts(self, true_value: int) -> list[tuple[int, int]]:
        return [(true_value, 0)]

    def draw(self, true_value: int, key: bytes, person: Person) -> Bits:
        """Return the answer.

        Args:
            key: of the field's noise.
        """
        draws = _draws(key, true_value)
        level = true_value + self._number(draws) - self._number(draws)
        return number_bits(min(max(level, self.lowest), self.highest) - self.lowest, self.width)

    def require_possible(self, bits: Bits, person: Person) -> None:
        """Refuse a number above the highest answer."""
        if number_of(bits) > self.highest - self.lowest:
            raise DeviceError("impossible", "no degree of the task")

    def _number(self, draws: Iterator[int]) -> int:
        total = sum((next(draws) < digit) << index for index, digit in enumerate(self.digits))
        while next(draws) < self.overflow:
            total += 1 << len(self.digits)
        return total


def _draws(key: bytes, degree: int) -> Iterator[int]:
    """Yield numbers of 256 bits, one after the other."""
    at = 0
    while True:
        yield int.from_bytes(blocks(key, [degree] * 2, [at, at + 1]).tobytes(), "big")
        at += 2
