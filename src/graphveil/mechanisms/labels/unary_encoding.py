"""Optimized unary encoding: one noisy bit for every class.

Source: T. Wang, J. Blocki, N. Li, S. Jha, "Locally Differentially Private Protocols for Frequency Estimation", USENIX
Security 2017, section 4.3: the bit of the true class is 1 with probability p = 1/2, every other one with probability
q = 1 / (e^eps + 1). Two classes differ in two bits, and the worst report tells them apart by p (1 - q) / (q (1 - p)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.category import MOST_CLASSES, CategoryMechanism, OneHotLaw
from graphveil.mechanisms.base.reports import OneBitReports
from graphveil.mechanisms.base.values import FloatArray, blocks
from graphveil.mechanisms.samplers.bits import WORD, bit_law
from graphveil.mechanisms.samplers.subsets import every_subset
from graphveil.privacy import Randomness
from graphveil.runtime.checks import require_whole
from graphveil.runtime.late import torch


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(CategoryMechanism[OneBitReports]):
    """Sends a bit for every class: a coin toss for the true one, rarely 1 for the others.

    Formal guarantees: epsilon-local privacy under replacement, exactly: another class's bit is 1 for w = ceil(2^64 /
    (e^eps + 1)) of the 2^64 outcomes, the true one's for half of them, and (2^64 - w) / w <= e^eps.

    Args:
        classes: the number of classes that were declared, 2 to 4096.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = UnaryEncoding(epsilon=2.0, classes=12)
    >>> reports = mechanism.randomize(torch.tensor([3]), randomness=SeededRandomness(8))
    >>> tuple(reports.packed.shape), round(mechanism.law.flip, 3)
    ((1, 2), 0.119)
    """

    epsilon: float
    classes: int

    def __post_init__(self) -> None:
        require_whole(2, MOST_CLASSES, classes=self.classes)
        _validate.require_epsilon(self.epsilon)
        self.law.refuse_no_information(self.epsilon)

    @property
    def law(self) -> OneHotLaw:
        return OneHotLaw(self.classes, 0.5, self._width / WORD)

    @property
    def report_bytes(self) -> float:
        return self.classes / 8

    def _encode(self, true: npt.NDArray[np.int64], randomness: Randomness) -> OneBitReports:
        packed = np.empty((len(true), self._bytes), np.uint8)
        for start, stop in blocks(len(true), self.classes):
            # A word for every bit, whatever the class: how much randomness is used reveals nothing.
            words = randomness.uint64((stop - start) * self.classes).reshape(stop - start, self.classes)
            is_true = true[start:stop, None] == np.arange(self.classes)
            thresholds = np.where(is_true, np.uint64(WORD // 2), np.uint64(self._width))
            packed[start:stop] = np.packbits(words < thresholds, axis=1)
        return OneBitReports(torch.from_numpy(packed))

    def evidence(self, reports: OneBitReports) -> FloatArray:
        bits, q = self.named(reports), self.law.flip
        # The bit of the true class is a coin toss, so it adds log 1/2; every other bit adds the logarithm of its law.
        log_bits: FloatArray = np.where(bits, math.log(q), math.log1p(-q))
        log_probabilities: FloatArray = log_bits.sum(axis=1, keepdims=True) - log_bits + math.log(0.5)
        return log_probabilities

    def every_report(self) -> OneBitReports:
        _, bits = every_subset(self.classes, self.classes, 2)
        return OneBitReports(torch.from_numpy(np.packbits(bits.astype(np.uint8), axis=1)))

    def named(self, reports: OneBitReports) -> npt.NDArray[np.bool_]:
        packed = reports.packed.numpy()
        if packed.shape[1] != self._bytes:
            raise InputError(f"reports hold {packed.shape[1]} bytes", allowed=f"{self._bytes}")
        _validate.require_dense_size(len(packed), self.classes, "the bits")
        return np.unpackbits(packed, axis=1, count=self.classes).astype(np.bool_)

    @property
    def _bytes(self) -> int:
        return -(-self.classes // 8)

    @property
    def _width(self) -> int:
        return bit_law(self.epsilon, 1).low
