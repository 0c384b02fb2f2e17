"""Generalized randomized response for class labels.

Source: P. Kairouz, K. Bonawitz, D. Ramage, "Discrete Distribution Estimation under Local Privacy", ICML 2016,
https://arxiv.org/abs/1602.07387; for the labels of a graph: S. Sajadmanesh, D. Gatica-Perez, "Locally Private
Graph Neural Networks", CCS 2021, https://arxiv.org/abs/2006.05535.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.category import CategoryMechanism, Labels, OneHotLaw, open_labels
from graphveil.mechanisms.base.reports import LabelReports, require_inside, require_pairs
from graphveil.mechanisms.base.values import BLOCK, FloatArray, blocks
from graphveil.mechanisms.samplers.bits import PRECISION, WORD, round_up
from graphveil.privacy import Randomness
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.checks import require_whole
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(CategoryMechanism[LabelReports]):
    """Sends the true class with probability `keep`, every other class with probability `flip`.

    Formal guarantees: epsilon-local privacy under replacement, exactly: each other class owns w = ceil(2^64 / (e^eps +
    classes - 1)) of the 2^64 outcomes and the true one the rest, at most e^eps w.

    Args:
        classes: the number of classes that were declared, at least 2.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = RandomizedResponse(epsilon=2.0, classes=3)
    >>> round(mechanism.keep, 3), round(mechanism.flip, 3)
    (0.787, 0.107)
    >>> reports = mechanism.randomize(torch.tensor([0, 1, 2, 2, 1]), randomness=SeededRandomness(8))
    >>> reports.labels
    tensor([0, 1, 2, 2, 1])
    >>> mechanism.estimate(reports)[0]
    tensor([ 1.3130, -0.1565, -0.1565])
    """

    epsilon: float
    classes: int

    def __post_init__(self) -> None:
        require_whole(2, _validate.LARGEST_COUNT, classes=self.classes)
        _validate.require_epsilon(self.epsilon)
        # This is keep - flip, which estimates divide by: below 2^-44 the rounding to whole outcomes would show in it.
        if WORD - self.classes * self.share < WORD >> 44:
            raise InputError(f"epsilon {rounded_up(self.epsilon)} is too small for {self.classes} classes")

    @property
    def keep(self) -> float:
        """p: the probability that the true class is sent."""
        return (WORD - (self.classes - 1) * self.share) / WORD

    @property
    def flip(self) -> float:
        """q: the probability of each of the other classes."""
        return self.share / WORD

    @property
    def law(self) -> OneHotLaw:
        return OneHotLaw(self.classes, self.keep, self.flip)

    def transition(self) -> Tensor:
        """Pr[sent = column | true = row], float64 [c, c]."""
        square = (self.classes, self.classes)
        return torch.full(square, self.flip, dtype=torch.float64).fill_diagonal_(self.keep)

    def _encode(self, true: npt.NDArray[np.int64], randomness: Randomness) -> LabelReports:
        reported = np.empty_like(true)
        width = np.uint64(self.share)
        for start, stop in blocks(len(true), 1, BLOCK):
            # The first (c-1) w outcomes belong to the other classes in order, the rest to the true one.
            drawn = np.minimum(randomness.uint64(stop - start) // width, np.uint64(self.classes - 1))
            other, own = drawn.astype(np.int64), true[start:stop]
            reported[start:stop] = np.where(other < self.classes - 1, other + (other >= own), own)
        return LabelReports(torch.from_numpy(reported))

    def named(self, reports: LabelReports) -> npt.NDArray[np.bool_]:
        require_inside(reports.labels, 0, self.classes - 1, "a class")
        named: npt.NDArray[np.bool_] = reports.labels.numpy()[:, None] == np.arange(self.classes)
        return named

    def evidence(self, reports: LabelReports) -> FloatArray:
        log_probabilities: FloatArray = np.where(self.named(reports), math.log(self.keep), math.log(self.flip))
        return log_probabilities

    def log_likelihood(self, reports: LabelReports, values: Labels) -> Tensor:
        # A report is a number, so [n] is enough where the table of every class would be [n, c].
        require_inside(reports.labels, 0, self.classes - 1, "a class")
        true = torch.from_numpy(open_labels(values, self.classes))
        require_pairs(len(reports), len(true))
        chances = torch.tensor([self.flip, self.keep], dtype=torch.float64)
        return chances.log()[(reports.labels == true).long()]

    @property
    def report_bytes(self) -> float:
        return (self.classes - 1).bit_length() / 8

    def every_report(self) -> LabelReports:
        return LabelReports(torch.arange(self.classes))

    @property
    def share(self) -> int:
        """How many of the 2^64 outcomes belong to each class other than the true one."""
        return _class_width(self.epsilon, self.classes)


@lru_cache(maxsize=64)
def _class_width(epsilon: float, classes: int) -> int:
    """How many of the 2^64 outcomes belong to each class other than the true one, rounded up."""
    with localcontext(PRECISION):
        # Beyond e^50 the width is 1, whatever the number of classes.
        return round_up(WORD / (Decimal(min(epsilon, 50.0)).exp() + classes - 1))
