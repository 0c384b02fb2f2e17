"""A line between two parties: how fast it carries bytes, and how long each of them is under way.

seconds = 8 bytes / rate + trips * delay        trips: messages that wait for each other, one way each
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from graphveil.errors import InputError

_TEXT = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([kmg])bit/(\d{1,9}(?:\.\d{1,9})?)(m?s)", re.IGNORECASE)
_BITS = {"k": 1e3, "m": 1e6, "g": 1e9}
_ALLOWED = "RATE/DELAY of one direction, such as 100Mbit/50ms: kbit, Mbit or Gbit a second, and ms or s"


@dataclass(frozen=True)
class Line:
    """A line with the same rate and delay in both directions, neither of which slows the other.

    Attributes:
        rate: bits per second.
        delay: seconds from one end to the other.
    """

    rate: float
    delay: float

    @classmethod
    def parse(cls, text: str) -> Line:
        """Return the line that a text such as "100Mbit/50ms" names; InputError for another text, or a rate of 0."""
        match = _TEXT.fullmatch(text.strip())
        if match is None or not float(match[1]):
            raise InputError(f"line {text!r}", allowed=_ALLOWED)
        rate, prefix, delay, unit = match.groups()
        return cls(float(rate) * _BITS[prefix.lower()], float(delay) / (1 if unit.lower() == "s" else 1000))

    def seconds(self, size: float, trips: int = 0) -> float:
        """Return how long so many bytes in one direction take.

        Args:
            size: bytes.
            trips: how often one message waits for another, one way each.
        """
        return 8 * size / self.rate + trips * self.delay
