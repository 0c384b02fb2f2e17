"""Exact sums: against 64-bit integers, for degrees and weights of every size, in any order."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.aggregation import GridRows, ReceiverRows, exact_sum, quantise
from graphveil.errors import InputError

#: Rows of more than two lines of the cache, and a rest.
N, COLUMNS = 200, 37


def edges(seed: int = 0, hub: int = 0) -> Tensor:
    """Random directed edges; node `hub` receives from nearly everybody."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(0, N, (2, 1500), generator=generator)
    star = torch.stack([torch.arange(N), torch.full((N,), hub)])
    both = torch.unique(torch.cat([pairs, star], dim=1), dim=1)
    return both[:, both[0] != both[1]]


def rows_of(bits: int, seed: int = 1, narrow: bool = False) -> GridRows:
    x = torch.randn(N, COLUMNS, generator=torch.Generator().manual_seed(seed)).abs()
    return quantise(x, bits=bits, narrow=narrow)


def whole(rows: ReceiverRows, values: GridRows) -> np.ndarray:
    """The sums as int64, long rows put in their places."""
    sums = rows.sums(values)
    totals: np.ndarray = sums.values.numpy().astype(np.int64)
    assert not totals[sums.long.numpy()].any()
    totals[sums.long.numpy()] = sums.totals.numpy()
    return totals


def expected(rows: ReceiverRows, values: GridRows) -> np.ndarray:
    """The same with arrays of 64-bit integers."""
    matrix = rows.to_scipy().astype(np.int64)
    return matrix @ values.values.numpy().astype(np.int64)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bits", [1, 10, 13])
def test_rows_half_as_wide_have_the_same_sums(bits: int, weighted: bool) -> None:
    """Messages of int16 in a compiled loop; the hub's are cut into pieces where weights make them large."""
    index = edges()
    weights = torch.rand(index.shape[1], generator=torch.Generator().manual_seed(2)) if weighted else None
    rows, narrow = ReceiverRows.of(index, N, weights=weights, weight_bits=10), rows_of(bits, narrow=True)
    assert narrow.values.dtype == torch.int16
    sums, wide = rows.sums(narrow), rows.sums(rows_of(bits))
    assert all(torch.equal(left, right) for left, right in zip(sums, wide, strict=True))
    assert bool(len(sums.long)) == (weighted and bits > 1)
    assert torch.equal(rows.sums(narrow, slice(20, 30)).values, wide.values[20:30])


@pytest.mark.parametrize("narrow", [False, True])
def test_entries_are_counted_beyond_32_bits(narrow: bool) -> None:
    """Receiver 0 hears 2^31 times from node 3, which costs no memory and is not asked for; all others hear twice."""
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), 2**31 + 2 * torch.arange(N)])
    everybody = torch.tensor([3], dtype=torch.int32).expand(int(starts[-1]))
    sums = ReceiverRows(starts, everybody).sums(rows_of(10, narrow=narrow), slice(1, N)).values
    assert torch.equal(sums, 2 * rows_of(10).values[3].expand(N - 1, COLUMNS))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bits", [1, 10, 17])
def test_sums_are_exact(bits: int, weighted: bool) -> None:
    index = edges()
    weights = torch.rand(index.shape[1], generator=torch.Generator().manual_seed(2)) if weighted else None
    rows = ReceiverRows.of(index, N, weights=weights)
    assert np.array_equal(whole(rows, rows_of(bits)), expected(rows, rows_of(bits)))


def test_a_sum_beyond_float32_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row of 199 times 2^20 - 1 cannot be held by float32; without pieces it would come out wrong."""
    index = torch.stack([torch.arange(1, N), torch.zeros(N - 1, dtype=torch.int64)])
    rows, values = ReceiverRows.of(index, N), GridRows(torch.full((N, 1), 2.0**20 - 1), 1.0, 20)
    assert whole(rows, values)[0, 0] == 199 * (2**20 - 1)
    monkeypatch.setattr(exact_sum, "_EXACT", 1 << 40)
    assert whole(rows, values)[0, 0] != 199 * (2**20 - 1)


def test_weights_are_rounded_down_and_never_exceed_the_declared_one() -> None:
    index = torch.tensor([[0, 1, 2, 3, 4], [5, 5, 5, 5, 5]])
    weights = torch.tensor([0.505, 0.999, 7.0, -1.0, torch.nan])
    rows = ReceiverRows.of(index, 6, weights=weights, w_max=0.731, weight_bits=7)
    assert rows.largest == 93 and rows.w_max <= 0.731
    assert rows.to_scipy().toarray()[5].tolist() == [64.0, 93.0, 93.0, 0.0, 0.0, 0.0]


def test_what_does_not_fit_is_refused() -> None:
    index = edges()
    rows = ReceiverRows.of(index, N)
    with pytest.raises(InputError, match="one for each of 200 nodes"):
        rows.sums(quantise(torch.ones(3, 2)))
    weighted = ReceiverRows.of(index, N, weights=torch.ones(index.shape[1]), weight_bits=12)
    with pytest.raises(InputError, match="take fewer bits"):
        weighted.sums(rows_of(13))
    with pytest.raises(InputError, match="one for each of"):
        ReceiverRows.of(index, N, weights=torch.ones(3))
    for bad in ({"w_max": 0.0}, {"w_max": 1e-3}, {"w_max": 33.0}, {"weight_bits": 0}, {"weight_bits": 13}):
        with pytest.raises(InputError):
            ReceiverRows.of(index, N, weights=torch.ones(index.shape[1]), **bad)  # type: ignore[arg-type]
