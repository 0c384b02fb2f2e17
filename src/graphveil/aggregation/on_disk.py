"""P of a public graph whose edges do not fit in memory: made a part at a time, multiplied where it lies.

starts.npy     where the entries of each row begin [n + 1], int32, or int64 from 2^31 entries on
columns.npy    int32 [E]
values.npy     float32 [E]
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.aggregation.propagation import inverse
from graphveil.aggregation.shared import as_tensor
from graphveil.aggregation.sparse import Rows, SparseMatrix, starts_type
from graphveil.engine import Blocks, Mapped, create
from graphveil.errors import InputError
from graphveil.graphs.value.edges import require_ascending

_PART: Final = 1 << 20


def store_propagation(edges: npt.NDArray[np.int64] | Mapped, num_nodes: int, folder: Path) -> SparseMatrix:
    """Write P = D^{-1/2} A D^{-1/2} of an undirected graph into a folder and return it as it lies there, [n, n] with
    the values of `normalised`, to the last bit. Beside a part of the edges, one number a node takes memory. Raises
    InputError for edges in another order or in one direction, of nodes that do not exist, or a folder that is there.

    Args:
        edges: int64 [2, E], both directions of each, ascending, without loops: as `graphs.normalise_edges` puts them.
    """
    source, target = edges.open() if isinstance(edges, Mapped) else edges
    require_ascending(source, target, num_nodes, directed=False)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError as error:
        raise InputError("the folder is there already", where=str(folder), allowed="a new folder") from error
    starts = create(folder / "starts.npy", (num_nodes + 1,), starts_type(len(source)))
    columns = create(folder / "columns.npy", source.shape, np.int32)
    values = create(folder / "values.npy", source.shape, np.float32)
    for part in Blocks(num_nodes + 1, _PART):
        starts[part.rows] = np.searchsorted(source, np.arange(part.start, part.stop))
    factors = inverse(np.sqrt(np.diff(starts).astype(np.float32)))
    for part in Blocks(len(source), _PART):
        columns[part.rows] = target[part.rows]
        values[part.rows] = factors[source[part.rows]] * factors[target[part.rows]]
    return stored_propagation(folder)


def stored_propagation(folder: Path) -> SparseMatrix:
    """Return P as it lies in a folder of `store_propagation`; nothing of it is read before it is used. Raises
    InputError where the folder was not written by it.
    """
    starts, columns, values = (
        as_tensor(Mapped(folder / f"{name}.npy").open()) for name in ("starts", "columns", "values")
    )
    rows = Rows(starts, columns, values)
    return SparseMatrix(rows, rows, (len(starts) - 1,) * 2)
