"""Sets of whole numbers against Python's own."""

from __future__ import annotations

import numpy as np
import pytest

from graphveil.runtime.sorted_arrays import contains, distinct


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("size", [0, 1, 2, 500])
def test_sets_are_those_of_python(kind: type, size: int) -> None:
    rng = np.random.default_rng(size)
    numbers, wanted = rng.integers(0, 300, (2, size)).astype(kind)
    before = numbers.copy()
    result = distinct(numbers)
    assert result.dtype == kind and result.tolist() == sorted(set(numbers.tolist()))
    for queries in (wanted, np.sort(wanted)):
        assert np.array_equal(contains(result, queries), np.isin(queries, numbers))
    # Who calls goes on with the numbers in their own order.
    assert np.array_equal(numbers, before)
    assert not contains(result[:0], wanted).any()
