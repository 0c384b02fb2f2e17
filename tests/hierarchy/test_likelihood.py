"""The likelihood of a tree, and by how much one edge can move it."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.errors import InputError
from graphveil.hierarchy import likelihood_sensitivity, log_likelihood, pair_tree, predictive_log_likelihood
from tests.hierarchy.trees import all_trees


@pytest.mark.parametrize(("members", "nats"), [(2, 0.0), (3, 1.386294), (4, 2.249341), (5, 2.703367), (6, 3.139489)])
def test_sensitivity_is_the_largest_change_of_all_trees_and_graphs(members: int, nats: float) -> None:
    assert likelihood_sensitivity(members) == pytest.approx(nats, abs=1e-6)
    # Only the node above a pair changes, so that all graphs and edges come down to its number of edges and pairs.
    sizes = {(int(total), e) for tree in all_trees(members) for total in pair_tree(tree).pairs for e in range(total)}
    change = [abs(log_likelihood([e + 1], [total]) - log_likelihood([e], [total])) for total, e in sizes]
    assert max(change) == pytest.approx(likelihood_sensitivity(members), rel=1e-12)


def test_sensitivity_grows_like_the_logarithm_and_needs_a_pair() -> None:
    values = [likelihood_sensitivity(members) for members in range(2, 60)]
    assert all(low <= high for low, high in pairwise(values))
    assert likelihood_sensitivity(10**6) == pytest.approx(math.log(10**12 / 4) + 1, rel=1e-9)
    for members in (1, 0, -3, 2.5, True):
        with pytest.raises(InputError, match="at least 2"):
            likelihood_sensitivity(members)  # type: ignore[arg-type]


def test_a_likelihood_of_all_of_halves_and_of_what_cannot_be() -> None:
    assert log_likelihood([0, 4, 0], [5, 4, 0]) == 0.0
    assert log_likelihood([2], [4]) == pytest.approx(4 * math.log(0.5))
    assert predictive_log_likelihood([1], [3], [0.0]) == -math.inf
    with pytest.raises(InputError, match="number of edges out of range"):
        log_likelihood([4], [3])


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.floats(0, 1)), min_size=1, max_size=8))
def test_no_densities_fit_better_than_the_shares(rows: list[tuple[int, int, float]]) -> None:
    edges, rest, density = (np.array(column) for column in zip(*rows, strict=True))
    pairs = edges + rest
    best = log_likelihood(edges, pairs)
    assert best <= 0
    assert predictive_log_likelihood(edges, pairs, density) <= best + 1e-9
    share = np.divide(edges, pairs, out=np.zeros(len(pairs)), where=pairs > 0)
    assert predictive_log_likelihood(edges, pairs, share) == pytest.approx(best, abs=1e-9)
