"""What follows from epsilon alone where every bit is flipped by a coin of its own."""

from __future__ import annotations

from graphveil.mechanisms.samplers.bits import WORD, BitLaw, bit_law


class BitFlips:
    """A mechanism that flips bits at `epsilon` each, which is a field of the class that uses this."""

    epsilon: float

    @property
    def threshold(self) -> int:
        """2^64 p, a whole number: a bit is flipped if a random word lies below."""
        return self._law.low

    @property
    def flip(self) -> float:
        """p: the probability that a bit is flipped."""
        return self.threshold / WORD

    @property
    def _gap(self) -> float:
        """1 - 2p."""
        return self._law.span / WORD

    @property
    def _law(self) -> BitLaw:
        """The law of one bit."""
        return bit_law(self.epsilon, 1)
