"""Subset selection: a random set of classes that holds the true class more often than by chance.

Source: M. Ye, A. Barg, "Optimal Schemes for Discrete Distribution Estimation under Locally Differential Privacy", IEEE
Transactions on Information Theory 2018, equations 5 to 8: all sets of d classes are sent, those with the true one e^eps
times as often as those without it. With d near c / (e^eps + 1) no other mechanism has less variance asymptotically;
with d = 1 it is randomized response.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.category import MOST_CLASSES, CategoryMechanism, OneHotLaw
from graphveil.mechanisms.base.reports import SubsetReports, require_inside
from graphveil.mechanisms.base.values import FloatArray, blocks
from graphveil.mechanisms.samplers.bits import PRECISION, WORD, round_up
from graphveil.mechanisms.samplers.subsets import draw_subsets, every_subset, log_subsets
from graphveil.privacy import Randomness
from graphveil.runtime.checks import require_whole
from graphveil.runtime.late import torch


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(CategoryMechanism[SubsetReports]):
    """Sends `size` of the classes; sets with the true one are e^eps times as likely as sets without it.

    Formal guarantees: epsilon-local privacy under replacement, exactly: the true class is left out for a number of the
    2^64 outcomes that is rounded up, after epsilon was lowered by more than the remainders of uniform draws can add.

    Args:
        classes: the number of classes c that were declared, 2 to 4096.
        size: how many are sent, 1 to c - 1; None: the number with the least variance.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = SubsetSelection(epsilon=1.0, classes=12)
    >>> mechanism.randomize(torch.tensor([3, 3]), randomness=SeededRandomness(8)).members
    tensor([[ 3,  5, 10],
            [ 3,  4, 11]], dtype=torch.int32)
    """

    epsilon: float
    classes: int
    size: int | None = None

    def __post_init__(self) -> None:
        require_whole(2, MOST_CLASSES, classes=self.classes)
        _validate.require_epsilon(self.epsilon)
        if self.size is not None:
            require_whole(1, self.classes - 1, size=self.size)
        self.law.refuse_no_information(self.epsilon)

    @property
    def sent(self) -> int:
        """d: how many classes a report names."""
        return self.size or best_size(self.epsilon, self.classes)

    @property
    def law(self) -> OneHotLaw:
        return _law(self.epsilon, self.classes, self.sent)

    @property
    def left_out(self) -> int:
        """For how many of the 2^64 outcomes the true class is left out."""
        return _left_out(self.epsilon, self.classes, self.sent)

    @property
    def report_bytes(self) -> float:
        return self.sent * (self.classes - 1).bit_length() / 8

    def _encode(self, true: npt.NDArray[np.int64], randomness: Randomness) -> SubsetReports:
        _validate.require_dense_size(len(true), self.sent, "reports")
        members = np.empty((len(true), self.sent), np.int32)
        for start, stop in blocks(len(true), self.classes):
            column = true[start:stop, None]
            n, sent = len(column), self.sent
            # All words are drawn for everybody: how much randomness is used reveals nothing.
            words = randomness.uint64(2 * n).reshape(2, n)
            drawn = draw_subsets(n, self.classes - 1, sent, randomness)
            # Of the c - 1 other classes: the numbers of classes above the true one are shifted by 1.
            chosen = drawn + (drawn >= column)
            includes_true = words[0] >= np.uint64(self.left_out)
            # The true class replaces a random one of the d: the rest is a uniform set of d - 1 other classes.
            replaced = (words[1] % np.uint64(sent)).astype(np.int64)
            rows = np.flatnonzero(includes_true)
            chosen[rows, replaced[rows]] = column[rows, 0]
            chosen.sort(axis=1)
            members[start:stop] = chosen
        return SubsetReports(torch.from_numpy(members))

    def evidence(self, reports: SubsetReports) -> FloatArray:
        remaining, sent = self.classes - 1, self.sent
        with_class = math.log(self.law.keep) - log_subsets(remaining, sent - 1)
        # From the integer: at a large epsilon `keep` is 1 in floating point, and the set without it still possible.
        without_class = math.log(self.left_out / WORD) - log_subsets(remaining, sent)
        log_probabilities: FloatArray = np.where(self.named(reports), with_class, without_class)
        return log_probabilities

    def every_report(self) -> SubsetReports:
        chosen, _ = every_subset(self.classes, self.sent, 1)
        return SubsetReports(torch.from_numpy(chosen.astype(np.int32)))

    def named(self, reports: SubsetReports) -> npt.NDArray[np.bool_]:
        members = reports.members
        if members.shape[1] != self.sent:
            raise InputError(f"reports hold {members.shape[1]} classes", allowed=f"{self.sent}")
        require_inside(members, 0, self.classes - 1, "a class")
        # No device names a class twice, which would then count twice.
        require_inside(members.diff(dim=1), 1, self.classes, "classes in an order")
        _validate.require_dense_size(len(members), self.classes, "the classes")
        named = np.zeros((len(members), self.classes), np.bool_)
        np.put_along_axis(named, members.numpy().astype(np.int64), True, axis=1)
        return named


@lru_cache(maxsize=256)
def best_size(epsilon: float, classes: int) -> int:
    """The number of classes to send with the least variance."""
    # The continuous optimum is c / (e^eps + 1) (Ye and Barg, section V); variance has one minimum, so it is next to it.
    middle = int(classes / (math.exp(min(epsilon, 50.0)) + 1))
    near = range(max(1, middle), min(classes - 1, middle + 1) + 1)
    return min(near, key=lambda size: _law(epsilon, classes, size).total_variance)


def _law(epsilon: float, classes: int, sent: int) -> OneHotLaw:
    out = _left_out(epsilon, classes, sent) / WORD
    keep = (WORD - _left_out(epsilon, classes, sent)) / WORD
    return OneHotLaw(classes, keep, (keep * (sent - 1) + out * sent) / (classes - 1))


@lru_cache(maxsize=256)
def _left_out(epsilon: float, classes: int, sent: int) -> int:
    """For how many of the 2^64 outcomes the true class is left out, rounded up."""
    with localcontext(PRECISION):
        # Remainders of 64 bits and equal keys change a set's chance by a factor below 1 + c (c + 1) / 2^64, up or down.
        slack = 2 * Decimal(classes) * (classes + 1) / WORD
        odds = max(Decimal(min(epsilon, 50.0)) - slack, Decimal(0)).exp() * sent
        return round_up(WORD * (classes - sent) / (odds + classes - sent))
