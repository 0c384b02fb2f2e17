"""Normal noise wider than any table: its law, its lattice, and what it adds up to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from graphveil.errors import InputError
from graphveil.mechanisms.samplers.fine_normal import WIDEST, FineNormal
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import SeededRandomness


@pytest.mark.parametrize("sigma", [2000.0, 163_841.0, 4.5e6, 1.9e9])
def test_the_law_is_the_normal_on_a_lattice_that_holds_whole_steps(sigma: float) -> None:
    """Right law at six deviations in a million; 1% more or less noise is told apart."""
    law = FineNormal(sigma)
    draws = law.draw(60_000, SeededRandomness(5))
    assert law.unit <= 1.0 and 2**30 <= sigma / law.unit < 2**31
    assert np.array_equal(draws, np.round(draws / law.unit) * law.unit)
    assert stats.kstest(draws / sigma, "norm").pvalue > 1e-6
    far = [stats.chi2.sf(np.sum((draws / other) ** 2), draws.size) for other in (1.02 * sigma, sigma, 0.98 * sigma)]
    assert far[0] > 1 - 1e-6 and 1e-6 < far[1] < 1 - 1e-6 and far[2] < 1e-6
    # Places within a cell are as likely as each other, but for the slope of the density.
    places = law.units(20_000, SeededRandomness(6)) % (1 << 20)
    assert stats.kstest(places / (1 << 20), "uniform").pvalue > 1e-6


def test_sums_are_exact_and_float32_is_rounded_afterwards() -> None:
    law, start = FineNormal(300_000.0), np.arange(1000, dtype=np.float64)
    exact, short = start.copy(), start.astype(np.float32)
    law.add_to(exact, SeededRandomness(7))
    law.add_to(short, SeededRandomness(7))
    assert np.array_equal(exact - start, law.draw(1000, SeededRandomness(7)))
    assert np.array_equal(short, exact.astype(np.float32))


def test_it_is_charged_as_its_table() -> None:
    epsilon, delta = FineNormal(1e6).price(200.0, 1e-6, 1000, shift=20.0)
    assert (epsilon, delta) == (pytest.approx(200.0 + 2e-9, abs=1e-12), pytest.approx(1e-6, rel=1e-6))
    assert RoundedNormal(100.0, 1200).price(200.0, 1e-6, 1000)[1] > 1.0, "a table that ends at 12 cannot be had at 200"


@pytest.mark.parametrize("sigma", [1000.0, WIDEST])
def test_what_it_is_not_for_is_refused(sigma: float) -> None:
    with pytest.raises(InputError, match="noise of"):
        FineNormal(sigma)
