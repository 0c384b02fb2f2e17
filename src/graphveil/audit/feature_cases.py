"""Audits of mechanisms that a single user's device runs: on feature vectors and labels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from graphveil.audit import sampled
from graphveil.audit.cases import Case
from graphveil.audit.exact import Table, row_table
from graphveil.mechanisms import (
    AnalyticGaussian,
    BinReports,
    CodewordReports,
    Duchi,
    FeatureRR,
    Hybrid,
    LabelReports,
    Laplace,
    LatticeReports,
    MultiBit,
    MultiBitReports,
    OneBit,
    OneBitReports,
    Piecewise,
    PrivUnit,
    RandomizedResponse,
    SampledReports,
    SubOptimal,
    ThreeOutputs,
    permanent_guarantee,
    permanent_reports,
)
from graphveil.privacy import Guarantee, PermanentRandomness, Randomness
from graphveil.privacy.permanent import SECRET_BYTES

_LOW, _HIGH = -1.0, 3.0
_CLASSES: Final = 7
_DELTA: Final = 1e-6
#: The public codebook that PrivUnit is enumerated in: which one does not matter.
_CODEBOOK: Final = 3


def feature_cases() -> tuple[Case, ...]:
    """Return the audits of all feature mechanisms, and of randomized response on labels."""
    sampling: Mapping[str, Callable[..., Any]] = {
        "duchi": Duchi,
        "piecewise": Piecewise,
        "sub-optimal": SubOptimal,
        "hybrid": Hybrid,
        "three-outputs": ThreeOutputs,
    }
    return (
        _vectors("multi-bit", MultiBit, 1.0, 3, _multi_bits),
        *(_vectors(name, kind, 1.0, 2, _sampled) for name, kind in sampling.items()),
        _vectors("one-bit", OneBit, 2.0, 3, _one_bits),
        _vectors("laplace", Laplace, 1.0, 1, _levels),
        _gaussian(),
        _vectors("privunit", partial(PrivUnit, codewords=16), 3.0, 3, _codewords, samples=40_000),
        _vectors("feature-rr", FeatureRR, 2.0, 2, _bins),
        _labels(),
    )


def permanent_cases() -> tuple[Case, ...]:
    """Return the audits of reports that devices derive from secrets, each of which is drawn anew."""
    named = {case.name: case for case in feature_cases()}
    return tuple(_permanent(named[name]) for name in ("multi-bit", "randomized-response"))


def _permanent(case: Case) -> Case:
    """The same mechanism, sampled by one device after another; there is nothing more to enumerate."""
    return replace(
        case,
        name=f"permanent-reports, {case.name}",
        large=lambda epsilon: _Devices(case.large(epsilon)),
        samples=5_000,
    )


@dataclass(frozen=True)
class _Devices:
    """A mechanism as many devices run it, each with a secret of its own."""

    mechanism: Any

    @property
    def guarantee(self) -> Guarantee:
        return permanent_guarantee(self.mechanism)

    def randomize(self, values: Tensor, *, randomness: Randomness) -> Any:
        secrets = (randomness.bytes(SECRET_BYTES) for _ in range(len(values)))
        devices = [PermanentRandomness(secret, "audit") for secret in secrets]
        return permanent_reports(self.mechanism, values, devices, field="audit")

    def log_likelihood(self, reports: Any, values: Tensor) -> Tensor:
        found: Tensor = self.mechanism.log_likelihood(reports, values)
        return found


def corners(dimension: int) -> Tensor:
    """Return all corners of [-1, 3]^d, the middle and a point inside, float64, one a row."""
    ends = list(itertools.product((_LOW, _HIGH), repeat=dimension))
    inside = tuple(_LOW + (_HIGH - _LOW) * (k + 1) / (2 * k + 5) for k in range(dimension))
    return torch.tensor([*ends, (1.0,) * dimension, inside], dtype=torch.float64)


def _vectors(
    name: str,
    kind: Callable[..., Any],
    epsilon: float,
    dimension: int,
    outputs: Callable[[Any], Any],
    *,
    samples: int = 100_000,
) -> Case:
    inputs = corners(dimension)

    def build(epsilon: float) -> Any:
        return kind(epsilon=epsilon, dimension=dimension, low=_LOW, high=_HIGH)

    def table(mechanism: Any) -> Table:
        return row_table(mechanism, inputs, outputs(mechanism))

    def draw(mechanism: Any) -> sampled.Draw:
        return sampled.ratio_scores(mechanism, inputs[2**dimension - 1], inputs[0])

    return Case(name=name, epsilon=epsilon, small=build, table=table, large=build, draw=draw, samples=samples)


def _gaussian() -> Case:
    ends = torch.tensor([[_LOW] * 4, [_HIGH] * 4], dtype=torch.float64)

    def build(epsilon: float, dimension: int) -> Any:
        return AnalyticGaussian(epsilon=epsilon, delta=_DELTA, dimension=dimension, low=_LOW, high=_HIGH)

    def draw(mechanism: Any) -> sampled.Draw:
        def scores(is_first: bool, count: int, randomness: Randomness) -> sampled.Scores:
            rows = ends[1 if is_first else 0][None].expand(count, 4)
            reports = mechanism.randomize(rows.contiguous(), randomness=randomness)
            found: sampled.Scores = mechanism.centred(reports).astype(np.float64).sum(axis=1)
            return found

        return scores

    return Case(
        name="analytic-gaussian",
        epsilon=1.0,
        small=lambda epsilon: build(epsilon, 1),
        table=lambda mechanism: row_table(mechanism, corners(1), _levels(mechanism)),
        large=lambda epsilon: build(epsilon, 4),
        draw=draw,
        normal=True,
    )


def _labels() -> Case:
    def build(epsilon: float) -> Any:
        return RandomizedResponse(epsilon=epsilon, classes=_CLASSES)

    classes = torch.arange(_CLASSES)
    return Case(
        name="randomized-response",
        epsilon=1.0,
        small=build,
        table=lambda mechanism: row_table(mechanism, classes, LabelReports(classes)),
        large=build,
        draw=lambda mechanism: sampled.ratio_scores(mechanism, classes[2], classes[5]),
    )


# ---- every report there is ----


def _multi_bits(mechanism: MultiBit) -> MultiBitReports:
    indices, bits = _subsets(mechanism.dimension, mechanism.coordinates, 2)
    return MultiBitReports(indices.int(), bits.to(torch.uint8))


def _sampled(mechanism: Any) -> SampledReports:
    indices, levels = _subsets(mechanism.dimension, mechanism.coordinates, mechanism.law.levels)
    return SampledReports(indices.int(), levels.to(torch.int16))


def _one_bits(mechanism: OneBit) -> OneBitReports:
    bits = np.array(list(itertools.product((0, 1), repeat=mechanism.dimension)), dtype=np.uint8)
    return OneBitReports(torch.from_numpy(np.packbits(bits, axis=1)))


def _levels(mechanism: Any) -> LatticeReports:
    lattice = mechanism._lattice
    levels = torch.arange(-lattice.reach, lattice.steps + lattice.reach + 1, dtype=torch.int32)
    return LatticeReports(levels[:, None])


def _codewords(mechanism: Any) -> CodewordReports:
    every = mechanism._law.codewords
    return CodewordReports(torch.arange(every).int(), torch.full((every,), _CODEBOOK))


def _bins(mechanism: FeatureRR) -> BinReports:
    every = itertools.product(range(mechanism.bins), repeat=mechanism.dimension)
    return BinReports(torch.tensor(list(every), dtype=torch.uint8))


def _subsets(dimension: int, size: int, levels: int) -> tuple[Tensor, Tensor]:
    """Every set of `size` coordinates with every level of each: two integer tensors [outputs, size]."""
    pairs = itertools.product(
        itertools.combinations(range(dimension), size), itertools.product(range(levels), repeat=size)
    )
    indices, chosen = zip(*pairs, strict=True)
    return torch.tensor(indices), torch.tensor(chosen)
