"""What users send: tensors of the right kind alone, and parameters that no mechanism can have, refused by name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms import LabelReports, LatticeReports, MultiBitReports, OneBitReports
from graphveil.mechanisms.base._validate import integer_array, require_delta, require_dense_size, require_epsilon
from graphveil.mechanisms.base.mechanism import VectorDomain
from graphveil.mechanisms.base.reports import require_inside, require_pairs

RIGHT: dict[type[Any], dict[str, Tensor]] = {
    MultiBitReports: {"indices": torch.zeros(3, 2, dtype=torch.int32), "bits": torch.ones(3, 2, dtype=torch.uint8)},
    OneBitReports: {"packed": torch.zeros(3, 1, dtype=torch.uint8)},
    LatticeReports: {"levels": torch.zeros(3, 4, dtype=torch.int32)},
    LabelReports: {"labels": torch.zeros(3, dtype=torch.int64)},
}


@pytest.mark.parametrize("kind", RIGHT, ids=lambda kind: kind.__name__)
def test_no_other_kind_of_tensor_is_a_report(kind: type[Any]) -> None:
    """Each tensor in turn is of another type, of another shape, no tensor, missing, or one too many."""
    for name, tensor in RIGHT[kind].items():
        for wrong in (tensor.double(), tensor[..., None], tensor.numpy(), None):
            given = "is " + ("torch" if torch.is_tensor(wrong) else type(wrong).__name__)
            with pytest.raises(InputError, match=rf"reports: {name} {given}.*; allowed: a {tensor.dtype} tensor with"):
                kind.from_tensors({**RIGHT[kind], name: wrong})
    fewer = dict(list(RIGHT[kind].items())[1:])
    for tensors in (fewer, {**RIGHT[kind], "noise": torch.zeros(1)}):
        with pytest.raises(InputError, match=rf"reports: tensors .*; allowed: {', '.join(RIGHT[kind])}$"):
            kind.from_tensors(tensors)


@pytest.mark.parametrize("level", [-3, 4])
def test_a_number_that_no_device_sends_is_forged(level: int) -> None:
    require_inside(torch.tensor([-2, 0, 3]), -2, 3, "a level")
    require_inside(torch.zeros(0, dtype=torch.int64), -2, 3, "a level")
    with pytest.raises(InputError, match="a report holds a level that no device can send; allowed: -2 to 3"):
        require_inside(torch.tensor([0, level]), -2, 3, "a level")


def test_what_is_checked_is_named_as_users_know_it() -> None:
    require_pairs(0, 0)
    with pytest.raises(InputError, match="3 reports for 2 rows of values; allowed: as many of both"):
        require_pairs(3, 2)
    with pytest.raises(InputError, match="1,080,000,000 dense numbers; allowed: at most 1,073"):
        require_dense_size(10**7, 108, "estimates")


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, True, "1", None, 1e-13])
def test_an_epsilon_that_carries_nothing_is_refused(epsilon: Any) -> None:
    require_epsilon(1e-12)
    with pytest.raises(InputError, match="epsilon"):
        require_epsilon(epsilon)
    require_epsilon(1e-9, per=1000)
    with pytest.raises(InputError, match="epsilon 1e-09 is too small to carry information; allowed: at least 1e-08"):
        require_epsilon(1e-9, per=10_000)


@pytest.mark.parametrize("delta", [0.0, 1e-21, 1.0, math.nan, True, None])
def test_a_delta_below_what_the_tails_cost_is_refused(delta: Any) -> None:
    require_delta(1e-20, delta=1e-20)
    with pytest.raises(InputError, match=r"delta is .*; allowed: a number in \[1e-20, 1\)"):
        require_delta(1e-20, delta=delta)


def test_a_domain_is_a_whole_number_of_finite_ranges_in_order_and_has_both_ends() -> None:
    for low, high in ((1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (-1e308, 1e308), (0.0, math.inf)):
        with pytest.raises(InputError, match="the declared range is"):
            VectorDomain(3, low, high)
    for dimension in (0, -1, 2.0, True, 2**31):
        with pytest.raises(InputError, match="dimension is"):
            VectorDomain(dimension, 0.0, 1.0)  # type: ignore[arg-type]
    domain = VectorDomain(2, -1e308 / 2, 1e308 / 4)
    below, up = domain.split(np.array([domain.low, domain.high]), 7)
    assert below.tolist() == [0, 7] and up.tolist() == [0, 0]
    assert domain.low < domain.midpoint < domain.high


@settings(max_examples=40, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(0, 1), st.integers(1, 5000))
def test_a_value_lies_between_its_two_grid_points(low: float, width: float, share: float, steps: int) -> None:
    """Rounded at random it stays unbiased: below + chance of rounding up is the value itself, in steps."""
    domain = VectorDomain(1, low, low + width)
    value = np.array([min(max(low + share * width, low), low + width)])
    below, up = domain.split(value, steps)
    assert 0 <= below[0] <= steps and (below[0] < steps or up[0] == 0)
    mean = (float(below[0]) + float(up[0]) / 2.0**64) / steps
    assert mean == pytest.approx(float(domain.fractions(value)[0]), abs=1e-12)


def test_integers_are_taken_in_the_shape_that_was_asked_for() -> None:
    allowed = "whole numbers"
    assert integer_array(torch.tensor([1, 2]), "labels are", allowed).tolist() == [1, 2]
    assert integer_array([[1], [2]], "edges are", allowed, rows=2).shape == (2, 1)
    for values, how in (([0.5], {}), ([[1]], {}), ([1, 2], {"count": 3}), ([[1]], {"rows": 2}), ([True], {})):
        with pytest.raises(InputError, match=r"there: labels are \w+ with shape .*; allowed: whole numbers"):
            integer_array(values, "labels are", allowed, where="there", **how)
