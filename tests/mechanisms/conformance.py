"""What every mechanism must satisfy; each mechanism's test module calls these with its own case.

A case says how to build the mechanism for an epsilon, which inputs to try and which reports there are. Statistical
checks use a fixed seed and a false-alarm rate of 1e-6 each, and every one has a twin that must fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from graphveil.audit import exact
from graphveil.errors import InputError
from graphveil.privacy import Guarantee, Randomness, SecureRandomness, SeededRandomness

FALSE_ALARM = 1e-6
DRAWS = 200_000


class Reports(Protocol):
    def __len__(self) -> int: ...

    def to_tensors(self) -> dict[str, Tensor]: ...


class Mechanism(Protocol):
    @property
    def guarantee(self) -> Guarantee: ...

    def randomize(self, values: Any, *, randomness: Randomness) -> Any: ...

    def estimate(self, reports: Any) -> Tensor: ...

    def log_likelihood(self, reports: Any, values: Any) -> Tensor: ...

    def variance(self, values: Any) -> Tensor: ...


@dataclass(frozen=True)
class Case:
    """One mechanism under test.

    Args:
        build: the mechanism for an epsilon.
        epsilon: the epsilon to test at.
        inputs: corners of the domain and some inside, one a row.
        outputs: every report there is, as tensors by name.
        truth: what `estimate` should be on average for each input.
        bytes_per_user: the most one report may take.
        bad: inputs that must be refused, by the place the refusal must name.
        forged: reports that no device can send.
    """

    build: Callable[[float], Mechanism]
    epsilon: float
    inputs: Tensor
    outputs: Callable[[Mechanism], Mapping[str, Tensor]]
    reports: type[Any]
    truth: Tensor
    bytes_per_user: int
    bad: Mapping[str, Tensor]
    forged: Any

    def all_outputs(self, mechanism: Mechanism) -> Any:
        return self.reports.from_tensors(self.outputs(mechanism))


def log_likelihoods(case: Case, mechanism: Mechanism) -> Tensor:
    """log Pr[output | input] as a matrix [inputs, outputs]."""
    outputs = case.all_outputs(mechanism)
    rows = [mechanism.log_likelihood(outputs, repeat(row, len(outputs))) for row in case.inputs]
    return torch.stack(rows)


def worst_ratio(likelihoods: Tensor) -> float:
    """The largest |log Pr[output | x] - log Pr[output | x']| over all outputs and pairs of inputs."""
    return exact.worst_ratio(likelihoods.numpy())


def check_pure_privacy(case: Case) -> None:
    """The worst ratio is at most epsilon and nearly reaches it; a copy with half the noise is found out."""
    claimed = case.build(case.epsilon).guarantee.epsilon
    ratio = worst_ratio(log_likelihoods(case, case.build(case.epsilon)))
    assert 0.99 * claimed <= ratio <= claimed * (1 + 1e-9)
    assert worst_ratio(log_likelihoods(case, case.build(2 * case.epsilon))) > claimed * (1 + 1e-9)


def check_sums_to_one(case: Case) -> None:
    """For each input the probabilities of all reports add up to one."""
    total = log_likelihoods(case, case.build(case.epsilon)).logsumexp(1)
    assert torch.allclose(total, torch.zeros_like(total), atol=1e-9)


def check_sampler_follows_likelihood(case: Case) -> None:
    """Counts of sampled reports fit `log_likelihood` (chi-square), and do not fit that of another epsilon."""
    mechanism = case.build(case.epsilon)
    for place, row in enumerate(case.inputs):
        counts = _counts(case, mechanism, row, seed=place)
        assert fits(counts, log_likelihoods(case, mechanism)[place]) > FALSE_ALARM
    wrong = case.build(1.5 * case.epsilon)
    if len(case.all_outputs(wrong)) == len(case.all_outputs(mechanism)):
        counts = _counts(case, mechanism, case.inputs[0], seed=0)
        assert fits(counts, log_likelihoods(case, wrong)[0]) < FALSE_ALARM


def check_unbiased(case: Case) -> None:
    """The mean estimate of each input is the input, within the closed-form variance; a 20% scale error is found."""
    mechanism = case.build(case.epsilon)
    wrong_found = False
    for place, (row, truth) in enumerate(zip(case.inputs, case.truth, strict=True)):
        estimates = _estimates(mechanism, row, seed=100 + place)
        variance = mechanism.variance(row[None])[0]
        middle = case.truth.mean()
        assert not _mean_is_off(estimates, truth, variance, truth.numel() * len(case.inputs))
        wrong = (estimates - middle) * 1.2 + middle
        wrong_found |= _mean_is_off(wrong, truth, variance, truth.numel() * len(case.inputs))
    assert wrong_found


def check_variance(case: Case) -> None:
    """The sample variance of the estimates fits the closed form, and not one that is 10% off."""
    mechanism = case.build(case.epsilon)
    for place, row in enumerate(case.inputs):
        estimates = _estimates(mechanism, row, seed=200 + place)
        ratio = estimates.var(0) / mechanism.variance(row[None])[0]
        # Kurtosis decides how far a sample variance strays; 4.9 deviations are exceeded at rate 1e-6.
        centred = estimates - estimates.mean(0)
        kurtosis = centred.pow(4).mean(0) / centred.pow(2).mean(0) ** 2
        tolerance = 6 * torch.sqrt((kurtosis - 1).clamp(min=1e-4) / DRAWS)
        assert bool((torch.abs(ratio - 1) <= tolerance).all())
        assert bool((torch.abs(ratio / 0.9 - 1) > tolerance).any())


def check_bad_values(case: Case) -> None:
    """What is no value of the declared domain is refused before encoding, and the place is named."""
    mechanism = case.build(case.epsilon)
    for place, values in case.bad.items():
        with pytest.raises(InputError, match=place):
            mechanism.randomize(values, randomness=SecureRandomness())
        with pytest.raises(InputError):
            mechanism.log_likelihood(case.all_outputs(mechanism), values)


def check_bad_parameters(case: Case) -> None:
    """Epsilon must be a finite number above 0; a very large one does not overflow."""
    for epsilon in (0.0, -1.0, math.nan, math.inf, 1e-300, "1", None, True):
        with pytest.raises(InputError, match="epsilon"):
            case.build(epsilon)  # type: ignore[arg-type]
    for epsilon in (50.0, 1e3, 1e6, 1e300):
        mechanism = case.build(epsilon)
        reports = mechanism.randomize(case.inputs, randomness=SecureRandomness())
        assert bool(torch.isfinite(mechanism.estimate(reports)).all())
        assert bool(torch.isfinite(mechanism.log_likelihood(reports, case.inputs)).all())


def check_randomness(case: Case) -> None:
    """One seed gives one set of reports, two seeds give two; the secure source never repeats."""
    mechanism, values = case.build(case.epsilon), repeat(case.inputs[0], 500)

    def reports(randomness: Randomness) -> dict[str, Tensor]:
        sent: Reports = mechanism.randomize(values, randomness=randomness)
        return sent.to_tensors()

    assert _same(reports(SeededRandomness(1)), reports(SeededRandomness(1)))
    assert not _same(reports(SeededRandomness(1)), reports(SeededRandomness(2)))
    torch.manual_seed(0)
    first = reports(SecureRandomness())
    torch.manual_seed(0)
    assert not _same(first, reports(SecureRandomness()))


def check_reports(case: Case) -> None:
    """Reports are compact, survive being stored, and foreign tensors are refused."""
    mechanism = case.build(case.epsilon)
    reports = mechanism.randomize(repeat(case.inputs[0], 64), randomness=SeededRandomness(1))
    tensors = reports.to_tensors()
    assert len(reports) == 64
    assert sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()) <= 64 * case.bytes_per_user
    assert _same(case.reports.from_tensors(tensors).to_tensors(), tensors)
    assert len(mechanism.randomize(case.inputs[:0], randomness=SeededRandomness(1))) == 0
    name = next(iter(tensors))
    nothing: dict[str, Tensor] = {}
    for foreign in (nothing, tensors | {"more": tensors[name]}, tensors | {name: tensors[name].float()}):
        with pytest.raises(InputError, match="reports"):
            case.reports.from_tensors(foreign)
    with pytest.raises(InputError):
        mechanism.estimate(case.forged)
    with pytest.raises(InputError, match="as many"):
        mechanism.log_likelihood(reports, case.inputs[:1])


def check_guarantee(case: Case, unit: str, delta: float = 0.0) -> None:
    """The guarantee states what was asked for, in words a reader understands, and is not void."""
    guarantee = case.build(case.epsilon).guarantee
    assert (guarantee.unit.text, guarantee.epsilon, guarantee.delta) == (unit, case.epsilon, delta)
    assert (guarantee.relation, guarantee.model, guarantee.void) == ("replace", "local", None)
    opening = f"Against the server and everybody it shares with, each report hides {unit}: replacing it changes "
    assert guarantee.sentence().startswith(f"This protects {unit}, not a person: ")
    assert opening in guarantee.sentence()


def repeat(row: Tensor, times: int) -> Tensor:
    """`row` (a vector or one label) `times` times."""
    return row[None].expand(times, *row.shape).contiguous()


def _estimates(mechanism: Mechanism, row: Tensor, seed: int) -> Tensor:
    values = repeat(row, DRAWS)
    return mechanism.estimate(mechanism.randomize(values, randomness=SeededRandomness(seed))).double()


def _mean_is_off(estimates: Tensor, truth: Tensor, variance: Tensor, tests: int) -> bool:
    z = (estimates.mean(0) - truth).abs() / torch.sqrt(variance / len(estimates)).clamp(min=1e-12)
    return bool((z > stats.norm.isf(FALSE_ALARM / tests / 2)).any())


def _counts(case: Case, mechanism: Mechanism, row: Tensor, seed: int) -> np.ndarray[Any, Any]:
    """How often each possible report was sent."""

    def keys(reports: Any) -> list[bytes]:
        parts = [tensor.reshape(len(reports), -1).long() for tensor in reports.to_tensors().values()]
        return [line.tobytes() for line in torch.cat(parts, 1).numpy()]

    place = {key: index for index, key in enumerate(keys(case.all_outputs(mechanism)))}
    reports = mechanism.randomize(repeat(row, 50_000), randomness=SeededRandomness(seed))
    return np.bincount([place[key] for key in keys(reports)], minlength=len(place))


def fits(counts: np.ndarray[Any, Any], log_likelihood: Tensor) -> float:
    """The p-value of a chi-square test, with outputs merged in order until 10 are expected of each group."""
    expected = torch.exp(log_likelihood).numpy() * counts.sum()
    group = np.minimum(np.floor(np.cumsum(expected) / 10), np.floor(expected.sum() / 10) - 1).astype(int)
    seen, hoped = np.bincount(group, counts), np.bincount(group, expected)
    seen, hoped = seen[hoped > 0], hoped[hoped > 0]
    return float(stats.chisquare(seen, hoped * seen.sum() / hoped.sum()).pvalue)


def _same(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


CHECKS = (
    check_sums_to_one,
    check_sampler_follows_likelihood,
    check_unbiased,
    check_variance,
    check_bad_values,
    check_bad_parameters,
    check_randomness,
    check_reports,
)
PURE_CHECKS = (check_pure_privacy, *CHECKS)
