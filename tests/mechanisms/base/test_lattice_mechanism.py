"""What a mechanism on a grid, in a declared range or of flipped bits takes from what it is built on."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.errors import InputError
from graphveil.mechanisms import AnalyticGaussian, Laplace
from graphveil.mechanisms.base.domain import VectorDomain
from graphveil.mechanisms.base.in_range import InRange
from graphveil.mechanisms.base.lattice import Lattice, Levels
from graphveil.mechanisms.base.lattice_mechanism import LatticeMechanism
from graphveil.mechanisms.base.reports import LatticeReports, NamedTensors
from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.edges.bit_flips import BitFlips
from graphveil.privacy import Randomness, SeededRandomness
from tests.methods.made import Counted


class Coin:
    """Noise of -1, 0 or 1 step, a third each."""

    @property
    def variance(self) -> float:
        return 2 / 3

    def draw(self, count: int, randomness: Randomness) -> Levels:
        return (randomness.uint64(count) % 3).astype(np.int64) - 1

    def log_pmf(self, noise: Levels) -> FloatArray:
        return np.where(np.abs(noise) <= 1, -math.log(3), -np.inf)

    def log_tail(self, noise: Levels) -> FloatArray:
        return np.where(noise <= 1, -math.log(3), -np.inf)


@dataclass(frozen=True, kw_only=True)
class Thirds(LatticeMechanism):
    """Two grid steps of a declared range, and a coin's noise on them."""

    dimension: int
    low: float = 1.0
    high: float = 3.0
    reach: int = 1

    @property
    def lattice(self) -> Lattice:
        return Lattice(self.domain, Coin(), steps=2, reach=self.reach)


def values(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_figures_are_those_of_the_grid() -> None:
    thirds = Thirds(dimension=3)
    assert (thirds.step, thirds.midpoint, thirds.report_bytes) == (1.0, 2.0, 12.0)
    assert thirds.worst_variance == pytest.approx(2 / 3 + 1 / 4)
    assert thirds.domain == VectorDomain(3, 1.0, 3.0)


def test_the_worst_variance_is_that_of_a_value_halfway_between_two_grid_points() -> None:
    thirds = Thirds(dimension=1)
    every = thirds.variance(torch.linspace(1, 3, 201, dtype=torch.float64)[:, None])
    assert float(every.max()) == pytest.approx(thirds.worst_variance)
    assert float(thirds.variance(values([1.5]))) == pytest.approx(thirds.worst_variance)
    assert float(thirds.variance(values([2.0]))) == pytest.approx(2 / 3)


@pytest.mark.parametrize("row", [[1.0], [1.25], [2.0], [2.9], [3.0]])
def test_the_law_of_a_report_is_exact(row: list[float]) -> None:
    """All five reports together have probability 1; their mean is the value and their spread the variance."""
    thirds = Thirds(dimension=1)
    every = thirds.every_report()
    assert every.levels.flatten().tolist() == [-1, 0, 1, 2, 3]
    chance = thirds.log_likelihood(every, values(*[row] * 5)).exp()
    estimate = thirds.estimate(every).flatten().double()
    mean = (chance * estimate).sum()
    assert float(chance.sum()) == pytest.approx(1.0, abs=1e-12)
    assert float(mean) == pytest.approx(row[0], abs=1e-6)
    assert float((chance * (estimate - mean) ** 2).sum()) == pytest.approx(
        float(thirds.variance(values(row))), abs=1e-6
    )


def test_coordinates_are_independent_given_the_vector() -> None:
    two, one = Thirds(dimension=2), Thirds(dimension=1)
    every = two.every_report()
    assert len(every) == 25
    together = two.log_likelihood(every, values(*[[1.25, 2.5]] * 25))
    apart = one.log_likelihood(LatticeReports(every.levels[:, :1]), values(*[[1.25]] * 25)) + one.log_likelihood(
        LatticeReports(every.levels[:, 1:]), values(*[[2.5]] * 25)
    )
    assert torch.allclose(together, apart)


def test_centred_estimates_leave_out_the_middle_of_the_range() -> None:
    thirds = Thirds(dimension=2)
    reports = LatticeReports(torch.tensor([[0, 2], [1, 3]], dtype=torch.int32))
    assert thirds.centred(reports).tolist() == [[-1.0, 1.0], [0.0, 2.0]]
    assert thirds.estimate(reports).tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_a_value_out_of_range_draws_nothing() -> None:
    for bad in (0.999, 3.001, math.nan, math.inf):
        counted = Counted()
        with pytest.raises(InputError, match="row 1, column 0"):
            Thirds(dimension=1).randomize(values([2.0], [bad]), randomness=counted)
        assert counted.asked == []


@pytest.mark.parametrize("levels", [[[-2]], [[4]], [[0, 0]], [[]]])
def test_reports_that_no_device_sends_are_refused_by_every_reader(levels: list[list[int]]) -> None:
    thirds, reports = Thirds(dimension=1), LatticeReports(torch.tensor(levels, dtype=torch.int32))
    for reader in (thirds.centred, thirds.estimate, lambda sent: thirds.log_likelihood(sent, values([2.0]))):
        with pytest.raises(InputError):
            reader(reports)


def test_more_reports_than_an_audit_can_list_are_refused() -> None:
    with pytest.raises(InputError):
        Thirds(dimension=9).every_report()  # 5^9, about two million
    assert len(Thirds(dimension=3).every_report()) == 125


def test_a_mechanism_without_a_grid_is_none() -> None:
    with pytest.raises(TypeError, match="abstract"):
        LatticeMechanism()  # type: ignore[abstract]


GRIDS: dict[str, Any] = {
    "laplace": lambda d: Laplace(epsilon=1.0, dimension=d, low=-2.0, high=6.0),
    "gaussian": lambda d: AnalyticGaussian(epsilon=1.0, delta=1e-5, dimension=d, low=-2.0, high=6.0),
}


@pytest.mark.parametrize("name", GRIDS)
def test_the_grid_of_a_published_mechanism_is_public(name: str) -> None:
    """Built twice it is the same, it holds both ends of the range, and reports take four bytes a coordinate."""
    mechanism, again = GRIDS[name](3), GRIDS[name](3)
    assert mechanism.lattice == again.lattice and mechanism.midpoint == 2.0 and mechanism.report_bytes == 12
    assert mechanism.step * mechanism.lattice.steps == pytest.approx(8.0)
    sent = mechanism.randomize(torch.full((50, 3), 1.7), randomness=SeededRandomness(1))
    steps = (mechanism.estimate(sent).double() + 2.0) / mechanism.step
    assert torch.allclose(steps, steps.round(), atol=1e-3)


@pytest.mark.parametrize("name", GRIDS)
def test_more_coordinates_for_one_price_need_more_noise(name: str) -> None:
    worst = [GRIDS[name](d).worst_variance for d in (1, 2, 8)]
    assert worst[0] < worst[1] < worst[2]


@dataclass(frozen=True)
class Ranged(InRange):
    dimension: int
    low: float
    high: float


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_the_middle_lies_in_the_range_whatever_its_ends(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    if low < high and math.isfinite(high - low):
        assert low <= Ranged(2, low, high).midpoint <= high


def test_the_middle_of_a_range_of_largest_numbers_does_not_overflow() -> None:
    assert Ranged(1, 1.6e308, 1.7e308).midpoint == pytest.approx(1.65e308)


@pytest.mark.parametrize(("dimension", "low", "high"), [(0, 0.0, 1.0), (1, 1.0, 1.0), (1, math.nan, 1.0)])
def test_what_is_no_range_is_refused_when_it_is_asked_for(dimension: int, low: float, high: float) -> None:
    with pytest.raises(InputError):
        _ = Ranged(dimension, low, high).midpoint


@dataclass(frozen=True)
class Flips(BitFlips):
    epsilon: float


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 8.0, 30.0])
def test_a_flipped_bit_never_says_more_than_epsilon(epsilon: float) -> None:
    """Of t in 2^64 words that flip: (2^64 - t) / t is at most e^epsilon, and hardly less."""
    flips = Flips(epsilon)
    assert flips.flip == flips.threshold / 2**64 and 0 < flips.threshold < 2**63
    assert math.log((2**64 - flips.threshold) / flips.threshold) <= epsilon
    if epsilon <= 8:
        assert flips.flip == pytest.approx(1 / (math.exp(epsilon) + 1), rel=1e-9)


def test_more_epsilon_flips_fewer_bits() -> None:
    every = [Flips(epsilon).threshold for epsilon in (0.1, 1.0, 2.0, 4.0, 8.0)]
    assert all(more > less for more, less in itertools.pairwise(every))


@dataclass(frozen=True, eq=False)
class Two(NamedTensors):
    first: torch.Tensor
    second: torch.Tensor


def test_reports_of_tensors_are_counted_by_the_first_and_keep_their_names() -> None:
    two = Two(torch.zeros(3, 2), torch.ones(5))
    assert len(two) == 3 and list(two.to_tensors()) == ["first", "second"]
    again = Two.from_tensors(two.to_tensors())
    assert again.first is two.first and again.second is two.second


@pytest.mark.parametrize(
    "names", [("first",), ("first", "second", "x"), ("first", "labels"), ()], ids=["less", "more", "other", "none"]
)
def test_a_tensor_more_or_less_is_no_report(names: tuple[str, ...]) -> None:
    """One more could be the raw value, sent along by mistake."""
    with pytest.raises(InputError, match="allowed: first, second"):
        Two.from_tensors({name: torch.zeros(1) for name in names})
