"""What a guarantee says of several units at once: never less than the exact price of Gaussian noise."""

from __future__ import annotations

import math

import pytest

from graphveil.errors import InputError
from graphveil.privacy import Guarantee, gaussian_delta, several
from graphveil.privacy.statement.observer import ALL_BUT_CURATOR
from graphveil.privacy.statement.unit import UNDIRECTED_EDGE


def guarantee_of(epsilon: float, delta: float = 0.0) -> Guarantee:
    fields = {"unit": UNDIRECTED_EDGE, "relation": "add/remove", "model": "central", "against": ALL_BUT_CURATOR}
    return Guarantee(**fields, epsilon=epsilon, delta=delta, assumes=())


@pytest.mark.parametrize(
    ("count", "sigma", "epsilon"), [(2, 2.0, 1.0), (3, 5.0, 0.3), (5, 20.0, 0.05), (3, 20.0, 0.3), (2, 5.0, 0.05)]
)
def test_k_units_cost_gaussian_noise_at_most_what_is_said(count: int, sigma: float, epsilon: float) -> None:
    """Exact: the noise of k units is that of one with a k times smaller sigma."""
    group = several(guarantee_of(epsilon, gaussian_delta(sigma, epsilon)), count)
    true = gaussian_delta(sigma, count * epsilon, count)
    assert group.epsilon in (pytest.approx(count * epsilon), math.inf)
    assert group.epsilon == math.inf or true <= group.delta * (1 + 1e-9)


def test_delta_is_not_merely_multiplied() -> None:
    """The wrong twin: k delta promises more than the noise keeps."""
    sigma, epsilon, count = 2.0, 1.0, 3
    wrong = count * gaussian_delta(sigma, epsilon)
    assert wrong < gaussian_delta(sigma, count * epsilon, count)


def test_pure_epsilon_multiplies_and_one_stays_as_it_is() -> None:
    assert several(guarantee_of(2.0), 1) == guarantee_of(2.0)
    group = several(guarantee_of(2.0), 10)
    assert (group.epsilon, group.delta, group.unit.text) == (20.0, 0.0, "10 at once of: one undirected edge")


def test_where_nothing_is_left_nothing_is_promised() -> None:
    assert several(guarantee_of(2.0, 1e-5), 10).epsilon == math.inf
    assert several(guarantee_of(2.0, 1e-5), 100_000).delta == 0.0
    with pytest.raises(InputError, match="at least 1"):
        several(guarantee_of(2.0), 0)
