"""Chains that agree have a split R-hat near 1; chains that stand apart or drift do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphveil.errors import InputError
from graphveil.hierarchy import split_rhat


def test_chains_of_one_law_agree_and_one_apart_or_adrift_is_seen() -> None:
    draws = np.random.default_rng(0).normal(size=(4, 1000))
    assert split_rhat(draws) == pytest.approx(1.0, abs=0.01)
    assert split_rhat(draws[:1] + np.linspace(0, 2, 1000)) > 1.1
    draws[0] += 1.0
    assert split_rhat(draws) > 1.05


def test_small_numbers_by_hand() -> None:
    """Halves (0, 2), (1, 3): within 2, between 2 * 0.5 = 1; sqrt(1/2 + 1/2/2)."""
    assert split_rhat([[0.0, 2.0, 1.0, 3.0]]) == pytest.approx(math.sqrt(0.75))


def test_constant_traces_say_nothing_or_everything() -> None:
    assert math.isnan(split_rhat(np.zeros((3, 10))))
    assert split_rhat(np.repeat([[0.0], [1.0]], 10, axis=1)) == math.inf


@pytest.mark.parametrize("traces", [np.zeros(8), np.zeros((2, 3)), np.zeros((0, 8)), np.full((2, 8), np.nan)])
def test_what_is_no_trace_is_refused(traces: np.ndarray) -> None:
    with pytest.raises(InputError, match="traces of shape"):
        split_rhat(traces)
