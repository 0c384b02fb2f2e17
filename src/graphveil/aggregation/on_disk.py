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
from graphveil.ascending import packed
from graphveil.engine import Blocks, Mapped, create
from graphveil.errors import InputError

_PART: Final = 1 << 20
# Of splitmix64: both are odd, so that no word is lost.
_MIX: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def store_propagation(edges: npt.NDArray[np.int64] | Mapped, num_nodes: int, folder: Path) -> SparseMatrix:
    """Write P = D^{-1/2} A D^{-1/2} of an undirected graph into a folder and return it as it lies there.

    Beside a part of the edges, one number a node takes memory. The values are those of `normalised`, to the last bit.

    Args:
        edges: int64 [2, E], both directions of each, ascending, without loops: as `graphs.normalise_edges` puts them.
        num_nodes: n.
        folder: a new one.

    Returns:
        [n, n], see `stored_propagation`.

    Raises:
        InputError: edges in another order or in one direction, of nodes that do not exist, or a folder that is there.
    """
    source, target = edges.open() if isinstance(edges, Mapped) else edges
    _check(source, target, num_nodes)
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
    """Return P as it lies in a folder; nothing of it is read before it is used.

    Args:
        folder: that `store_propagation` wrote.

    Raises:
        InputError: it did not.
    """
    starts, columns, values = (
        as_tensor(Mapped(folder / f"{name}.npy").open()) for name in ("starts", "columns", "values")
    )
    rows = Rows(starts, columns, values)
    return SparseMatrix(rows, rows, (len(starts) - 1,) * 2)


def _check(source: npt.NDArray[np.int64], target: npt.NDArray[np.int64], num_nodes: int) -> None:
    mirrored = 0
    for part in Blocks(len(source), _PART):
        # With the last edge of the part before.
        here = slice(max(part.start - 1, 0), part.stop)
        ends, others = source[here], target[here]
        if min(ends.min(), others.min()) < 0 or max(ends.max(), others.max()) >= num_nodes:
            raise InputError("an edge names a node that does not exist", allowed=f"node numbers 0..{num_nodes - 1}")
        words = packed(ends, others)
        if (words[1:] <= words[:-1]).any() or (ends == others).any():
            raise InputError("edges are in another order", allowed="ascending, without loops and twins")
        new = slice(part.start - here.start, None)
        mirrored += _mixed(words[new]) - _mixed(packed(others[new], ends[new]))
    # Sums of hashes: a search for the mirror image of each edge would read the file at random.
    if mirrored % 2**64:
        raise InputError("an edge stands in one direction only", allowed="both directions of each edge")


def _mixed(words: npt.NDArray[np.uint64]) -> int:
    """Return the sum of hashes of words, modulo 2^64, which does not depend on their order."""
    for shift, factor in zip((30, 27), _MIX, strict=True):
        words = (words ^ (words >> np.uint64(shift))) * factor
    return int((words ^ (words >> np.uint64(31))).sum(dtype=np.uint64))
