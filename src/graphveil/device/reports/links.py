"""A list of neighbours: a bit for each person, flipped by T of 2^64 words.

    answer   bit xor (word < T), for everybody for whom this person answers; 0 for all others
    epsilon  ln((2^64 - T) / T) for one bit; a relationship stands in both lists in mode "both"

Modes: in "lower" of every two people the one with the lower number answers; in "both" each does; in "directed"
everybody answers for the links that start at them.  Source: S. L. Warner, "Randomized Response", JASA 60, 1965.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from graphveil.device.errors import DeviceError
from graphveil.device.people.person import Person
from graphveil.device.reading import chosen, number, whole
from graphveil.device.reports.exact import WORD, keeps
from graphveil.device.reports.noise import Bits, words

MODES = ("lower", "both", "directed")
#: People of a task that asks for links or a degree, so that every device has room for a list and its noise.
MOST_PEOPLE = 1 << 20


@dataclass(frozen=True)
class Links:
    """Who a person is linked to.

    Args:
        people: how many there are.
        mode: one of `MODES`.
        epsilon: of one bit.
        threshold: T, of 2^64.
    """

    people: int
    mode: str
    epsilon: Fraction
    threshold: int

    kind = "links"
    #: Each bit has two values, so a list costs twice its epsilon at most, however often it changes.
    most_draws: int | None = 2

    @classmethod
    def of(cls, facts: Mapping[str, object], people: int) -> Links:
        mode, epsilon = mode_of(facts, people), number(facts, "epsilon")
        return cls(people, mode, epsilon, whole(facts, "threshold", 1, WORD // 2))

    def require_epsilon(self) -> None:
        """Refuse a threshold that loses more than the stated epsilon."""
        if not keeps(WORD - self.threshold, self.threshold, self.epsilon):
            raise DeviceError("epsilon", "the threshold of the links loses more than their epsilon")

    @property
    def width(self) -> int:
        """Bits of an answer, those for whom this person does not answer included."""
        return self.people

    def true_value(self, value: object, person: Person) -> Bits:
        """Return the true list, uint8 [people], 0 for everybody for whom this person does not answer.

        Args:
            value: numbers of people, in any order.
        """
        return list_bits(value, self.mode, person)

    def parts(self, true_value: Bits) -> list[tuple[int, int]]:
        """Return the paid parts: the whole list, identified by the first 8 bytes of its SHA-256."""
        digest = hashlib.sha256(np.packbits(true_value).tobytes()).digest()
        return [(int.from_bytes(digest[:8], "big"), 0)]

    def draw(self, true_value: Bits, key: bytes, person: Person) -> Bits:
        """Return the answers, uint8 [people].

        Args:
            true_value: the true list.
            key: of the field's noise.
        """
        # A bit's own value chooses its word: a new friend redraws one bit and no other.
        flips = words(key, true_value, np.arange(self.people)) < np.uint64(self.threshold)
        return (true_value ^ flips) * answers_for(self.people, self.mode, person)

    def require_possible(self, bits: Bits, person: Person) -> None:
        """Refuse a list that names somebody for whom this person does not answer."""
        if (bits & ~answers_for(self.people, self.mode, person) & 1).any():
            raise DeviceError("impossible", "a link that this person does not answer for")


def mode_of(facts: Mapping[str, object], people: int) -> str:
    """Return the mode of a task's field.

    Args:
        people: how many there are.

    Raises:
        DeviceError: `bad-task`, no mode, or more people than a list has room for.
    """
    if people > MOST_PEOPLE:
        detail = f"links of {people:,} people; a task that asks for links or a degree has {MOST_PEOPLE:,} at most"
        raise DeviceError("bad-task", detail)
    return chosen(facts, "mode", MODES)


def answers_for(people: int, mode: str, person: Person) -> Bits:
    """Return 1 for everybody for whom a person answers, uint8 [people].

    Args:
        mode: one of `MODES`.
    """
    mask = np.ones(people, np.uint8)
    mask[: person.number + 1 if mode == "lower" else 0] = 0
    mask[person.number] = 0
    return mask


def list_bits(value: object, mode: str, person: Person) -> Bits:
    """Return a list as bits, uint8 [people], 0 for everybody for whom the person does not answer.

    Args:
        value: numbers of people, in any order.
        mode: one of `MODES`.

    Raises:
        DeviceError: `bad-value`, for a number that is no other person, or is named twice.
    """
    if not isinstance(value, list | tuple | np.ndarray):
        raise DeviceError("bad-value", "links is no list of people")
    bits = np.zeros(person.people, np.uint8)
    # Everybody who is named is checked, also where this person does not answer: a wrong list is wrong in every mode.
    for neighbour in value:
        is_number = isinstance(neighbour, int | np.integer) and not isinstance(neighbour, bool)
        if not is_number or not 0 <= neighbour < person.people:
            raise DeviceError("bad-value", f"links names somebody by no number from 0 to {person.people - 1}")
        if neighbour == person.number or bits[neighbour]:
            raise DeviceError("bad-value", "links names yourself, or somebody twice")
        bits[neighbour] = 1
    return bits * answers_for(person.people, mode, person)
