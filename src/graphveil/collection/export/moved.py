"""Bounds on how far forged reports of any content can move a server's results, to be printed beside them.

    of n reports k are replaced, k = share n rounded up:

    share of a class       k / (n (p - q))                                    its estimate is (f - q) / (p - q)
    mean of a feature      2 s K / n,  s = d / m (high - low) / 2 g           each report of it is worth s or -s
    averaged features      (high - low) g k / n on average                    of everybody, or of anybody's neighbours
    a person's links       k / (1 - 2 p)                                      one bit a report, worth 1 / (1 - 2 p)
    labels that train      v: margin_v <= 2 (P^K 1_F)_v                       targets argmax P^K Y' of LPGNN

g = 1 / (1 - 2 T / 2^64). K is how many forgers report one of the d coordinates: these are assigned, so K is a quantile
that a binomial count exceeds for any coordinate once in 10^6. If forgers chose, K would be k, and the bound far larger.
The last bound is for forgers at random places F, who send any labels: a report that moves from one class to another
moves their difference by twice its weight. One more placing exceeds the largest share of `PLACINGS` placings with
probability 1 / (`PLACINGS` + 1), since each is the largest equally often. The accuracy of a trained network has no such
bound: it is measured (benchmarks/README.md, "Forged reports").
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy import stats

from graphveil.collection.export import law
from graphveil.collection.export.suspects import ALARM
from graphveil.device.reports.features import Features
from graphveil.device.reports.label import Label
from graphveil.device.reports.links import Links
from graphveil.device.task import Task
from graphveil.errors import InputError

Masks = npt.NDArray[np.bool_] | npt.NDArray[np.float64]
#: The share of forged reports for which bounds are printed, and the number of random placings.
PRINTED, PLACINGS = 0.05, 100
#: The page with the measured effects on published graphs.
MEASURED = "docs/how-to/forged-reports.md"
#: Placings that are computed together: more would take memory and save no time.
_TOGETHER = 10


@dataclass(frozen=True)
class Bound:
    """How far one result can be moved at most, in its unit."""

    what: str
    most: float
    unit: str

    @property
    def sentence(self) -> str:
        """The bound in words, rounded up."""
        digits = 10 ** (2 - math.floor(math.log10(self.most))) if self.most > 0 else 1
        return f"{self.what} by at most {math.ceil(self.most * digits) / digits:g} {self.unit}".rstrip()


def bounds(task: Task, reports: int, share: float = PRINTED) -> tuple[Bound, ...]:
    """Return how far a share of forged reports can move the results of a collection; InputError for no share.

    Args:
        reports: n, how many came.
        share: of them, in 0 to 1.
    """
    if not 0 <= share <= 1 or reports < 1:
        raise InputError(f"{share} of {reports} reports", where="forged reports", allowed="a share of 0 to 1, of some")
    forged = math.ceil(share * reports)
    movements: list[Bound] = []
    for field in task.fields:
        if isinstance(field, Label):
            movements.append(Bound("the share of a class", of_class(field, reports, forged), ""))
        elif isinstance(field, Features):
            movements.append(Bound("averaged features", on_average(field, reports, forged), "on average"))
            movements.append(Bound("the mean of any one feature", of_mean(field, reports, forged), ""))
        elif isinstance(field, Links):
            movements.append(Bound("a person's number of links", forged / (1 - 2 * law.flip_chance(field)), ""))
    return tuple(movements)


def of_class(field: Label, reports: int, forged: int) -> float:
    """Return the bound of a class's estimated share.

    Args:
        reports: n.
        forged: k.
    """
    other, true = law.class_chances(field)
    return forged / reports / (true - other)


def worth(field: Features) -> float:
    """Return s, by which one report of a coordinate raises or lowers its sum over people."""
    least, largest = law.bit_chances(field)
    return len(field.names) / field.sampled * (field.high - field.low) / 2 / (largest - least)


def on_average(field: Features, reports: int, forged: int) -> float:
    """Return the bound of an averaged feature, on average over assigned coordinates and forgers.

    Args:
        reports: n.
        forged: k.
    """
    return 2 * worth(field) * field.sampled / len(field.names) * forged / reports


def of_mean(field: Features, reports: int, forged: int, *, chosen: bool = False) -> float:
    """Return the bound of the largest movement of any coordinate's mean over everybody.

    Args:
        reports: n.
        forged: k.
        chosen: whether forgers chose their coordinates, which they cannot.
    """
    width = len(field.names)
    forgers = forged if chosen else float(stats.binom.isf(ALARM / width, forged, field.sampled / width))
    return 2 * worth(field) * forgers / reports


def may_change(
    spread: sp.csr_matrix, labels: npt.NDArray[np.int64], classes: int, hops: int, forgers: Masks
) -> npt.NDArray[np.bool_]:
    """Return whose target argmax (P^K Y')_v forged labels could change, for each placing [n, r].

    Args:
        spread: P [n, n], no entry below 0.
        labels: [n] as reported, -1 for none.
        hops: K.
        forgers: masks [n, r], a column for each placing, or the part of a report that each forges.
    """
    votes = np.zeros((len(labels), classes))
    votes[labels >= 0, labels[labels >= 0]] = 1.0
    weight = forgers * (labels >= 0)[:, None].astype(np.float64)
    for _ in range(hops):
        votes, weight = spread @ votes, spread @ weight
    ends = np.sort(votes, axis=1)
    changed: npt.NDArray[np.bool_] = (ends[:, -1] - ends[:, -2])[:, None] <= 2 * weight
    return changed


def of_targets(
    spread: sp.csr_matrix, labels: npt.NDArray[np.int64], classes: int, hops: int, share: float = PRINTED
) -> Bound:
    """Return the bound of the share of training targets that forgers at random places can change.

    Args:
        spread, labels, classes, hops: as `may_change`.
        share: of the reports of labels.
    """
    sent = np.flatnonzero(labels >= 0)
    # Seeded by public numbers only: the placings do not depend on the reports.
    draws, largest = np.random.default_rng([len(labels), 0xF4]), 0.0
    for _ in range(PLACINGS // _TOGETHER):
        forgers = np.zeros((len(labels), _TOGETHER), np.bool_)
        for placing in range(_TOGETHER):
            forgers[draws.choice(sent, math.ceil(share * len(sent)), replace=False), placing] = True
        largest = max(largest, float(may_change(spread, labels, classes, hops, forgers)[sent].mean(axis=0).max()))
    return Bound("labels that a network is trained on", 100 * largest, "percent (forgers at random places)")


def sentence_of(movements: tuple[Bound, ...]) -> str:
    """Return bounds as a sentence, with the page for what has no bound."""
    listed = "; ".join(bound.sentence for bound in movements)
    return f"{PRINTED:.0%} forged reports move {listed}; accuracy has no bound, and was measured: {MEASURED}"
