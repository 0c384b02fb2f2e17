"""Tables of noisy counts: what they may hold, and that files give them back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from graphveil.errors import DataError, InputError
from graphveil.graphs.neighbour_counts import FILE, NeighbourCounts, read_counts, write_counts

GROUPS = torch.tensor([0, 2, 1, 1])
COUNTS = torch.tensor([[3, -1, 0], [1 << 40, 2, -(1 << 50)], [0, 0, 0], [7, 8, 9]])


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    write_counts(NeighbourCounts(GROUPS, COUNTS), tmp_path)
    found = read_counts(tmp_path)
    assert torch.equal(found.groups, GROUPS) and torch.equal(found.counts, COUNTS)


@pytest.mark.parametrize(
    ("groups", "counts", "said"),
    [
        (GROUPS[:3], COUNTS, "of 3 groups"),
        (GROUPS, COUNTS.double(), "of 4 groups"),
        (GROUPS, COUNTS[0], "of 4 groups"),
        (GROUPS + 1, COUNTS, "a group does not exist"),
        (GROUPS - 1, COUNTS, "a group does not exist"),
    ],
)
def test_tables_that_cannot_be_are_refused(groups: Tensor, counts: Tensor, said: str) -> None:
    with pytest.raises(InputError, match=said):
        NeighbourCounts(groups, counts)


def test_a_file_without_counts_is_refused(tmp_path: Path) -> None:
    import polars

    for content in (b"", b"PAR1garbagePAR1"):
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(DataError, match="holds no counts"):
            read_counts(tmp_path)
    # Of a few hundred bytes.
    polars.DataFrame({"group": polars.repeat(0, (1 << 27) + 1, dtype=polars.Boolean, eager=True)}).write_parquet(
        tmp_path / FILE
    )
    with pytest.raises(DataError, match="holds no counts") as refused:
        read_counts(tmp_path)
    assert "cells in a file of its size" in str(refused.value.__cause__)
    for columns in ({"group": [0, 1]}, {"group": [0, 5], "count_0": [1, 2]}, {"count_0": [1, 2], "other": [0, 0]}):
        polars.DataFrame(columns).write_parquet(tmp_path / FILE)
        with pytest.raises(DataError, match="holds no counts"):
            read_counts(tmp_path)
