"""Noisy counts of everybody's private neighbours by public group: what a release may publish in the place of edges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from graphveil.errors import DataError, InputError
from graphveil.files.writing import whole_file
from graphveil.graphs.tables.tables import read_table
from graphveil.graphs.value.release import NeighbourCounts
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    import polars

FILE: Final = "counts.parquet"
_GROUP, _COUNT = "group", "count_"


def write_counts(counts: NeighbourCounts, inside: Path) -> None:
    """Write a table of counts into a release's folder, in the order of its nodes."""
    import polars

    columns = {f"{_COUNT}{place}": column.numpy() for place, column in enumerate(counts.counts.T)}
    frame = polars.DataFrame({_GROUP: counts.groups.numpy(), **columns})
    with whole_file(inside / FILE) as file:
        frame.write_parquet(file)


def read_counts(folder: Path) -> NeighbourCounts:
    """Read what `write_counts` wrote; DataError for anything else."""
    import polars

    try:
        frame = cast("polars.DataFrame", read_table(folder / FILE).frame)
        places = [f"{_COUNT}{place}" for place in range(frame.width - 1)]
        table = np.array(frame.select(places).to_numpy(), order="C")
        return NeighbourCounts(torch.from_numpy(frame[_GROUP].to_numpy().copy()), torch.from_numpy(table))
    except (OSError, ValueError, TypeError, InputError, polars.exceptions.PolarsError) as error:
        raise DataError("holds no counts of neighbours", where=str(folder / FILE)) from error
