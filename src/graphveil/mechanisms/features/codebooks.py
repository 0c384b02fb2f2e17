"""Public random vectors that devices and server make from one public seed: nothing here hides anything.

A codebook is a matrix of independent standard normal numbers. It is expanded from the seed by AES-256 of a counter, a
generator that both sides can enter anywhere; who knows the seed (everybody) knows all codebooks.
The noise that protects comes from a `Randomness`, never from here.

The numbers are whole multiples of 2^-16, so that products with vectors of whole multiples of 2^-24 are exact in
any order of summation: every machine finds the same codewords closest.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from graphveil.mechanisms.base.values import FloatArray
from graphveil.runtime.late import special

UNIT: Final = 2.0**16
LAST_CODEBOOK: Final = 2**31 - 1
_CIPHER_BLOCK: Final = 16
_PER_BLOCK: Final = _CIPHER_BLOCK // 2  # numbers, each looked up with two bytes

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Codebooks:
    """The codebooks 0..2^31 - 1, each of `rows` (at most 2^15) vectors with `width` (at most 2^20) coordinates."""

    seed: int
    rows: int
    width: int

    def matrices(self, numbers: Numbers) -> FloatArray:
        """The codebooks of these numbers [n, rows, width], times `UNIT`."""
        # Vectors are counted through all codebooks, so that any of them can be made without those before.
        first = np.repeat(numbers.astype(np.uint64) * np.uint64(self.rows), self.rows).reshape(-1, self.rows)
        vectors = self._expand((first + np.arange(self.rows, dtype=np.uint64)).ravel())
        return vectors.reshape(len(numbers), self.rows, self.width)

    def vectors(self, numbers: Numbers, rows: Numbers) -> FloatArray:
        """One vector of each of these codebooks [n, width], times `UNIT`.

        Args:
            numbers: int64 [n], which codebooks.
            rows: int64 [n], which vector of each.
        """
        return self._expand(numbers.astype(np.uint64) * np.uint64(self.rows) + rows.astype(np.uint64))

    def _expand(self, places: npt.NDArray[np.uint64]) -> FloatArray:
        """The vectors at these places, counted through all codebooks."""
        blocks = -(-self.width // _PER_BLOCK)
        counters = np.zeros((len(places), blocks, 2), ">u8")
        counters[:, :, 1] = places[:, None] * np.uint64(blocks) + np.arange(blocks, dtype=np.uint64)
        # Encrypting distinct counters block by block is counter mode, entered at many places in one call.
        cipher = Cipher(algorithms.AES(self._key), modes.ECB()).encryptor()
        numbers = np.frombuffer(cipher.update(counters.view(np.uint8).data), "<u2").reshape(len(places), -1)
        vectors: FloatArray = _normal()[numbers[:, : self.width]]
        return vectors

    @property
    def _key(self) -> bytes:
        # The purpose stands in the key, so that a seed shared with reproducible noise gives other bits here.
        return hashlib.sha256(b"graphveil/public-codebooks/1:%d" % self.seed).digest()


@cache
def _normal() -> npt.NDArray[np.float64]:
    """2^16 equally likely numbers times `UNIT` that stand for the standard normal law.

    They are the means of its 2^16 quantiles, stretched to variance 1; their fourth moment is that of the normal law up
    to 2e-4.
    """
    edges = special.ndtri(np.arange(1, 2**16) / 2**16)
    density = np.concatenate([[0.0], np.exp(-(edges**2) / 2) / math.sqrt(2 * math.pi), [0.0]])
    # The mean of a normal variable between two quantiles is the difference of the densities there over its probability.
    means = -(2**16) * np.diff(density)
    numbers: FloatArray = np.rint(means / np.sqrt(np.mean(means**2)) * UNIT)
    return numbers
