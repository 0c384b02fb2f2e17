"""Noisy counts of everybody's private neighbours by public group: what a release may publish in the place of edges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from graphveil.errors import DataError, InputError
from graphveil.files.writing import whole_file
from graphveil.graphs.tables.tables import read_table
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    import polars
    from torch import Tensor

FILE: Final = "counts.parquet"
_GROUP, _COUNT = "group", "count_"


@dataclass(frozen=True, eq=False)
class NeighbourCounts:
    """How many private neighbours of each group everybody has, as published.

    Attributes:
        groups: int64 [n], everybody's group in 0..c-1; public.
        counts: int64 [n, c], with noise; some are negative.

    Raises:
        InputError: a group that does not exist, or another number of rows.
    """

    groups: Tensor
    counts: Tensor

    def __post_init__(self) -> None:
        whole = self.groups.dtype == self.counts.dtype == torch.int64
        if not whole or self.counts.dim() != 2 or len(self.groups) != len(self.counts):
            raise InputError(
                f"counts {tuple(self.counts.shape)} of {len(self.groups)} groups", where="neighbour counts"
            )
        if not bool(((self.groups >= 0) & (self.groups < self.counts.shape[1])).all()):
            raise InputError("a group does not exist", where="neighbour counts")


def write_counts(counts: NeighbourCounts, inside: Path) -> None:
    """Write a table of counts into a release's folder, in the order of its nodes."""
    import polars

    columns = {f"{_COUNT}{place}": column.numpy() for place, column in enumerate(counts.counts.T)}
    frame = polars.DataFrame({_GROUP: counts.groups.numpy(), **columns})
    with whole_file(inside / FILE) as file:
        frame.write_parquet(file)


def read_counts(folder: Path) -> NeighbourCounts:
    """Read what `write_counts` wrote.

    Raises:
        DataError: for anything else.
    """
    import polars

    try:
        frame = cast("polars.DataFrame", read_table(folder / FILE).frame)
        places = [f"{_COUNT}{place}" for place in range(frame.width - 1)]
        table = np.array(frame.select(places).to_numpy(), order="C")
        return NeighbourCounts(torch.from_numpy(frame[_GROUP].to_numpy().copy()), torch.from_numpy(table))
    except (OSError, ValueError, TypeError, InputError, polars.exceptions.PolarsError) as error:
        raise DataError("holds no counts of neighbours", where=str(folder / FILE)) from error
