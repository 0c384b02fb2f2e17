"""What is needed to audit one mechanism, a small one to enumerate and a large one to sample; and those of single users.

Every mechanism of the catalogue on feature vectors and labels is audited as its entry says: a new one needs nothing
here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np
import torch
from torch import Tensor

from graphveil.audit import exact, sampled
from graphveil.audit.exact import Table, row_table
from graphveil.audit.verdict import Audit, timed
from graphveil.mechanisms import CategoryMechanism, MechanismInfo, catalogue, permanent_guarantee, permanent_reports
from graphveil.mechanisms.base.mechanism import FeatureMechanism, Reports
from graphveil.mechanisms.catalogue import AuditSize
from graphveil.mechanisms.permanent import Reporter
from graphveil.privacy import Guarantee, PermanentRandomness, Randomness
from graphveil.privacy.source.derived import SECRET_BYTES


@dataclass(frozen=True, kw_only=True)
class Case:
    """One mechanism under audit.

    Attributes:
        name: of the mechanism, as the catalogue has it, and of the case. epsilon: what it is built with.
        small, large: build the mechanism whose outputs are enumerated, and the one that is sampled, for an epsilon.
        table: log Pr[output | input] of a small one. draw: scores of samples of a large one, see `sampled.Draw`.
        samples: of each of two neighbours. neighbours: which inputs of the table are neighbours; None: any two.
        independent, complete: see `exact.audit_table`. normal: noise is normal, so that samples bound mu.
    """

    name: str
    epsilon: float
    small: Callable[[float], Any]
    table: Callable[[Any], exact.Table]
    large: Callable[[float], Any]
    draw: Callable[[Any], sampled.Draw]
    samples: int = 100_000
    neighbours: Callable[[Any], Sequence[exact.Pair]] | None = None
    independent: bool = False
    complete: bool = True
    normal: bool = False


@timed
def audit_exactly(case: Case, *, actual: float | None = None) -> Audit:
    """Enumerate a mechanism's outputs.

    Args:
        actual: the epsilon that is built while that of the case is claimed; None: the same. For tests of audits.
    """
    # The claim of the right mechanism, the table of the one that was built: tests of audits build a weaker one.
    claimed = case.small(case.epsilon).guarantee
    mechanism = case.small(case.epsilon if actual is None else actual)
    return exact.audit_table(
        case.name,
        claimed,
        case.table(mechanism),
        neighbours=None if case.neighbours is None else case.neighbours(mechanism),
        independent=case.independent,
        complete=case.complete,
    )


@timed
def audit_samples(
    case: Case, *, actual: float | None = None, false_alarm: float = sampled.FALSE_ALARM, seed: int = 0
) -> Audit:
    """Sample a mechanism; see `audit_exactly`."""
    claimed = case.large(case.epsilon).guarantee
    draw = case.draw(case.large(case.epsilon if actual is None else actual))
    options: dict[str, Any] = {"samples": case.samples, "false_alarm": false_alarm, "seed": seed}
    if case.normal:
        return sampled.audit_mu(case.name, claimed.epsilon, claimed.delta, draw, **options)
    return sampled.audit_events(case.name, claimed, draw, **options)


R = TypeVar("R", bound=Reports)
_LOW, _HIGH = -1.0, 3.0
#: The labels whose reports are compared.
_LABELS: Final = (2, 5)


def feature_cases() -> tuple[Case, ...]:
    return tuple(_case(info, info.audit) for info in catalogue() if info.audit is not None)


def permanent_cases() -> tuple[Case, ...]:
    """Return the audits of reports that devices derive from secrets, sampled by one device after another."""

    def permanent(case: Case) -> Case:
        name = f"permanent-reports, {case.name}"
        return replace(case, name=name, large=lambda epsilon: _Devices(case.large(epsilon)), samples=5_000)

    names = ("multi-bit", "randomized-response")
    return tuple(permanent(case) for case in feature_cases() if case.name in names)


@dataclass(frozen=True)
class _Devices:
    mechanism: Reporter

    @property
    def guarantee(self) -> Guarantee:
        return permanent_guarantee(self.mechanism)

    def randomize(self, values: Tensor, *, randomness: Randomness) -> Any:
        # A secret for each report: with one for all, one draw would stand for thousands of equal values.
        secrets = (randomness.bytes(SECRET_BYTES) for _ in range(len(values)))
        devices = [PermanentRandomness(secret, "audit") for secret in secrets]
        return permanent_reports(self.mechanism, values, devices, field="audit")

    def log_likelihood(self, reports: Any, values: Tensor) -> Tensor:
        return self.mechanism.log_likelihood(reports, values)


def corners(dimension: int) -> Tensor:
    """Return all corners of [-1, 3]^d, the middle and a point inside, float64, one a row."""
    ends = list(itertools.product((_LOW, _HIGH), repeat=dimension))
    # Fractions that lie on no grid of powers of two, so that rounding to a grid is enumerated too.
    inside = tuple(_LOW + (_HIGH - _LOW) * (k + 1) / (2 * k + 5) for k in range(dimension))
    return torch.tensor([*ends, (1.0,) * dimension, inside], dtype=torch.float64)


def _case(info: MechanismInfo, size: AuditSize) -> Case:
    """The audit of one mechanism: all reports of a small one, drawn reports of one that may be larger."""
    large = size.drawn_dimension or size.dimension

    def build(epsilon: float, dimension: int) -> Any:
        if info.kind == "labels":
            return info.mechanism(epsilon=epsilon, classes=dimension, **size.options)
        return info.mechanism(epsilon=epsilon, dimension=dimension, low=_LOW, high=_HIGH, **size.options)

    def table(mechanism: Reporter) -> Table:
        return row_table(mechanism, _inputs(info, size.dimension), mechanism.every_report())

    def draw(mechanism: Reporter) -> sampled.Draw:
        # Two inputs that reports tell apart as well as any two: labels, or the highest and the lowest corner.
        farthest = _LABELS if info.kind == "labels" else (2**large - 1, 0)
        first, second = _inputs(info, large)[list(farthest)]
        if "normal" in info.tags and not isinstance(mechanism, CategoryMechanism):
            return _sums(mechanism, first, second)
        return sampled.ratio_scores(mechanism, first, second)

    return Case(
        name=info.name,
        epsilon=size.epsilon,
        small=lambda epsilon: build(epsilon, size.dimension),
        table=table,
        large=lambda epsilon: build(epsilon, large),
        draw=draw,
        samples=size.samples,
        normal="normal" in info.tags,
    )


def _inputs(info: MechanismInfo, dimension: int) -> Tensor:
    return torch.arange(dimension) if info.kind == "labels" else corners(dimension)


def _sums(mechanism: FeatureMechanism[Any], first: Tensor, second: Tensor) -> sampled.Draw:
    """Sums of a vector's noisy coordinates: with normal noise they tell as much as all coordinates do."""

    def scores(is_first: bool, count: int, randomness: Randomness) -> sampled.Scores:
        rows = (first if is_first else second)[None].expand(count, len(first))
        reports = mechanism.randomize(rows.contiguous(), randomness=randomness)
        totals: sampled.Scores = mechanism.centred(reports).astype(np.float64).sum(axis=1)
        return totals

    return scores
