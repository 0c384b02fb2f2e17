"""What every mechanism of a user's device must satisfy; the catalogue says which there are, a new one needs no more.

What can be enumerated is exact. Statistical checks use a fixed seed and a false-alarm rate of 1e-6, and each has a twin
that must fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from graphveil.audit import exact
from graphveil.errors import InputError
from graphveil.mechanisms import MechanismInfo, catalogue
from graphveil.mechanisms.catalogue import mechanism_named
from graphveil.privacy import Randomness, SecureRandomness, SeededRandomness
from tests.mechanisms.made import RANGE, Untouched, bad_labels, bad_vectors, vectors

FALSE_ALARM = 1e-6
DRAWS = 30_000
#: Rounding of float64 logarithms; the integers themselves leave nothing over.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Case:
    """One mechanism under test.

    Args:
        info: its entry of the catalogue.
        epsilon: the epsilon to test at.
        size: dimensions of a vector in [-1, 3]^d, or classes of a label; small enough to enumerate every report.
        options: what else it is built with.
        wrap: what is done to the mechanism before it is tested.
    """

    info: MechanismInfo
    epsilon: float
    size: int
    options: Mapping[str, Any] = field(default_factory=dict)
    wrap: Callable[[Any], Any] = lambda mechanism: mechanism

    def __str__(self) -> str:
        more = [f"{name}={value}" for name, value in self.options.items() if isinstance(value, int)]
        return "-".join([self.info.name, str(self.size), *more])

    @property
    def labels(self) -> bool:
        return self.info.kind == "labels"

    def build(self, epsilon: float) -> Any:
        shape = {"classes": self.size} if self.labels else {"dimension": self.size, "low": RANGE[0], "high": RANGE[1]}
        return self.wrap(self.info.mechanism(epsilon=epsilon, **shape, **self.options))

    @property
    def inputs(self) -> Tensor:
        """Every label, or corners of the domain, its middle and a point inside, one a row."""
        return torch.arange(self.size) if self.labels else vectors(self.size)

    @property
    def truth(self) -> Tensor:
        """What `estimate` should be on average for each input."""
        return torch.eye(self.size) if self.labels else self.inputs

    @property
    def bad(self) -> Mapping[str, Tensor]:
        """Inputs that must be refused, by the place the refusal must name."""
        return bad_labels(self.size) if self.labels else bad_vectors(self.size)

    def forged(self) -> Any:
        """Reports of a larger mechanism, some of which no device of this one can send."""
        more = {"codewords": 64} if self.info.name == "privunit" else {}
        shares = {"shares": None} if "shares" in self.options else {}
        larger = replace(self, size=self.size + 8, options={**self.options, **more, **shares})
        inputs = torch.arange(larger.size) if self.labels else torch.full((64, larger.size), 0.5)
        return larger.build(self.epsilon).randomize(inputs, randomness=SeededRandomness(1))


def audited(info: MechanismInfo) -> Case:
    """A mechanism of the size that its audits enumerate."""
    assert info.audit is not None
    return Case(info, info.audit.epsilon, info.audit.dimension, info.audit.options)


AUDITED = {info.name: audited(info) for info in catalogue() if info.audit is not None}
#: Other sizes in which something differs: all coordinates sent or several, two classes, shares, caps of other sizes.
OTHERS: tuple[tuple[str, float, int, dict[str, Any]], ...] = (
    ("multi-bit", 5.0, 4, {"sampled": 2}),
    ("multi-bit", 0.3, 2, {"sampled": 2}),
    ("duchi", 1.0, 4, {"sampled": 4}),
    ("duchi", 2.0, 4, {"sampled": 2}),
    ("three-outputs", 3.0, 3, {"sampled": 2}),
    ("piecewise", 0.4, 1, {}),
    ("hybrid", 2.0, 4, {"sampled": 1}),
    ("feature-rr", 2.0, 2, {"bins": 4, "shares": (3.0, 1.0)}),
    ("privunit", 1.0, 1, {"codewords": 4}),
    ("randomized-response", 0.5, 2, {}),
    ("subset-selection", 0.7, 9, {}),
    ("unary-encoding", 0.5, 2, {}),
)
CASES = (
    *AUDITED.values(),
    *(Case(mechanism_named(name), epsilon, size, options) for name, epsilon, size, options in OTHERS),
)


def log_likelihoods(case: Case, mechanism: Any) -> np.ndarray[Any, Any]:
    """log Pr[report | input] as a matrix [inputs, reports]."""
    return exact.row_table(mechanism, case.inputs, mechanism.every_report())


def check_privacy(case: Case) -> None:
    """All reports have probability 1 together; the worst ratio is epsilon; a copy with half the noise is found out."""
    mechanism = case.build(case.epsilon)
    table = log_likelihoods(case, mechanism)
    assert np.allclose(np.exp(table).sum(1), 1.0, atol=1e-9)
    if mechanism.guarantee.delta == 0.0:
        claimed = mechanism.guarantee.epsilon
        assert 0.99 * claimed <= exact.worst_ratio(table) <= claimed * (1 + ROUNDING)
        assert exact.worst_ratio(log_likelihoods(case, case.build(2 * case.epsilon))) > claimed * (1 + ROUNDING)


def check_sampler_follows_likelihood(case: Case, draws: int = DRAWS, factor: float = 1.5) -> None:
    """Counts of sampled reports fit `log_likelihood` (chi-square), and do not fit that of `factor` epsilon."""
    if case.info.name == "privunit":
        return  # It gives every user another codebook, so it has a test of its own.
    mechanism, wrong = case.build(case.epsilon), case.build(factor * case.epsilon)
    table = log_likelihoods(case, mechanism)
    for place in {0, len(case.inputs) - 3, len(case.inputs) - 1}:
        counts = _counts(mechanism, repeat(case.inputs[place], draws), seed=place)
        assert fits(counts, table[place]) > FALSE_ALARM
        if place == 0 and len(wrong.every_report()) == len(counts):
            assert fits(counts, log_likelihoods(case, wrong)[0]) < FALSE_ALARM


def check_estimates(case: Case) -> None:
    """Exactly, over all reports: the mean estimate of each input is the input, its spread the closed-form variance."""
    if case.info.name == "privunit":
        return  # Its estimates are unbiased on average over codebooks: it has a test of its own.
    mechanism = case.build(case.epsilon)
    worth = mechanism.estimate(mechanism.every_report()).double().numpy()
    for row, truth, chances in zip(case.inputs, case.truth, np.exp(log_likelihoods(case, mechanism)), strict=True):
        mean = chances @ worth
        # Estimates are 32-bit numbers.
        assert mean == pytest.approx(truth.numpy(), abs=1e-6 * np.abs(worth).max())
        stated = mechanism.variance(row[None])[0].double().numpy()
        assert chances @ (worth - mean) ** 2 == pytest.approx(stated, rel=1e-4)


def check_bad_values(case: Case) -> None:
    """What is no value of the declared domain is refused before any is encoded, and the place is named."""
    mechanism = case.build(case.epsilon)
    for place, values in case.bad.items():
        with pytest.raises(InputError, match=place):
            mechanism.randomize(values, randomness=Untouched())
        with pytest.raises(InputError):
            mechanism.log_likelihood(mechanism.every_report(), values)


def check_epsilon(case: Case) -> None:
    """Epsilon must be a finite number above 0; a very large one does not overflow."""
    for epsilon in (0.0, math.nan, math.inf, 1e-300, "1", True):
        with pytest.raises(InputError, match="epsilon"):
            case.build(epsilon)  # type: ignore[arg-type]
    for epsilon in (50.0, 1e6, 1e300):
        mechanism = case.build(epsilon)
        reports = mechanism.randomize(case.inputs, randomness=SecureRandomness())
        assert bool(torch.isfinite(mechanism.estimate(reports)).all())
        assert bool(torch.isfinite(mechanism.log_likelihood(reports, case.inputs)).all())


def check_randomness(case: Case) -> None:
    """One seed gives one set of reports, two seeds give two; the secure source repeats none whatever else is seeded."""
    mechanism, values = case.build(case.epsilon), repeat(case.inputs[0], 500)

    def reports(randomness: Randomness) -> dict[str, Tensor]:
        torch.manual_seed(0)
        sent: dict[str, Tensor] = mechanism.randomize(values, randomness=randomness).to_tensors()
        return sent

    assert _same(reports(SeededRandomness(1)), reports(SeededRandomness(1)))
    assert not _same(reports(SeededRandomness(1)), reports(SeededRandomness(2)))
    assert not _same(reports(SecureRandomness()), reports(SecureRandomness()))


def check_reports(case: Case) -> None:
    """Reports survive being stored; what does not fit the mechanism is refused."""
    mechanism, kind = case.build(case.epsilon), case.info.report_type
    reports = mechanism.randomize(repeat(case.inputs[0], 64), randomness=SeededRandomness(1))
    assert type(reports) is kind and len(reports) == 64
    assert _same(kind.from_tensors(reports.to_tensors()).to_tensors(), reports.to_tensors())
    assert len(mechanism.randomize(case.inputs[:0], randomness=SeededRandomness(1))) == 0
    with pytest.raises(InputError):
        mechanism.estimate(case.forged())
    with pytest.raises(InputError, match="as many"):
        mechanism.log_likelihood(reports, case.inputs[:1])


def check_guarantee(case: Case) -> None:
    """The guarantee states what was asked for, in words a reader understands, and is not void."""
    guarantee, unit = case.build(case.epsilon).guarantee, case.info.unit
    delta = case.options.get("delta", 0.0)
    assert (guarantee.unit.text, guarantee.epsilon, guarantee.delta) == (unit, case.epsilon, delta)
    assert (guarantee.relation, guarantee.model, guarantee.void) == ("replace", "local", None)
    opening = f"Against the server and everybody it shares with, each report hides {unit}: replacing it changes "
    assert guarantee.sentence().startswith(f"This protects {unit}, not a person: ")
    assert opening in guarantee.sentence()


CHECKS = (
    check_privacy,
    check_sampler_follows_likelihood,
    check_estimates,
    check_bad_values,
    check_epsilon,
    check_randomness,
    check_reports,
    check_guarantee,
)


def repeat(row: Tensor, times: int) -> Tensor:
    """`row` (a vector or one label) `times` times."""
    return row[None].expand(times, *row.shape).contiguous()


def _counts(mechanism: Any, values: Tensor, seed: int) -> np.ndarray[Any, Any]:
    """How often each possible report was sent."""

    def keys(reports: Any) -> list[bytes]:
        parts = [tensor.reshape(len(reports), -1).long() for tensor in reports.to_tensors().values()]
        return [line.tobytes() for line in torch.cat(parts, 1).numpy()]

    place = {key: index for index, key in enumerate(keys(mechanism.every_report()))}
    reports = mechanism.randomize(values, randomness=SeededRandomness(seed))
    return np.bincount([place[key] for key in keys(reports)], minlength=len(place))


def fits(counts: np.ndarray[Any, Any], log_likelihood: np.ndarray[Any, Any]) -> float:
    """The p-value of a chi-square test, with the least likely outputs merged until 10 are expected of each group."""
    expected = np.exp(log_likelihood) * counts.sum()
    order = np.argsort(expected, kind="stable")
    counts, expected = counts[order], expected[order]
    group = np.minimum(np.floor(np.cumsum(expected) / 10), np.floor(expected.sum() / 10) - 1).astype(int)
    seen, hoped = np.bincount(group, counts), np.bincount(group, expected)
    seen, hoped = seen[hoped > 0], hoped[hoped > 0]
    return float(stats.chisquare(seen, hoped * seen.sum() / hoped.sum()).pvalue)


def _same(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
