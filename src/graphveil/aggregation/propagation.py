"""K-hop propagation over a public topology.

    h <- P h,  K times, with  P = D^{-1/2} A D^{-1/2}   ("gcn")   or   P = D^{-1} A   ("mean")

No self-loops unless asked for: a node's own noisy value must not dominate its own average (KProp; Sajadmanesh and
Gatica-Perez, "Locally Private Graph Neural Networks", CCS 2021, arXiv 2006.05535, section 3.2).
Entries are built from a list of pairs by one sort, without torch or SciPy: a pair is one number, its row in the upper
half; a list that is sorted already is not sorted again.
Shapes: edge_index [2, E] (row 0 sends to row 1; undirected graphs list both directions), h [n, c].
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.aggregation.shared import Dense, as_tensor, overlap, require_room, rows_of
from graphveil.aggregation.sparse import Rows, SparseMatrix, starts_type
from graphveil.engine import LOCAL, Blocks, Engine, Mapped, create, room_beside
from graphveil.errors import InputError
from graphveil.graphs.value.edges import require_ascending, require_nodes
from graphveil.runtime.late import sparse as sp
from graphveil.runtime.late import torch
from graphveil.runtime.sorted_arrays import HALF, packed

if TYPE_CHECKING:
    from torch import Tensor

Normalisation = Literal["gcn", "mean"]


def adjacency(edge_index: Tensor | np.ndarray, num_nodes: int, *, weights: Tensor | None = None) -> sp.csr_matrix:
    """Return A [n, n] sparse with A[target, source] = 1, or the edge's weight; self-loops are left out. Raises
    InputError where an edge names a node outside 0..n-1, weights are negative, not finite or not one per edge, or a
    weighted edge is listed twice.

    Args:
        weights: w [E] >= 0, one per edge; an edge of weight 0 is no edge.  Without them duplicates count once.
    """
    return _as_scipy(receiver_entries(edge_index, num_nodes, weights=weights))


def receiver_entries(edge_index: Tensor | np.ndarray, num_nodes: int, *, weights: Tensor | None = None) -> Entries:
    """Return A of `adjacency` as entries row by row: row u holds those who send to u."""
    source, target, values = _read_edges(edge_index, num_nodes, weights)
    return Entries.of(target, source, num_nodes, values)


@dataclass(frozen=True)
class Adjacency:
    """A [n, n] and its transpose, of which every P is made. Build one with :meth:`of`."""

    received: Entries  # A, in row u those who send to u
    sent: Entries  # A^T, in row v those to whom v sends; the same object where A is symmetric

    @staticmethod
    def of(
        edge_index: Tensor | np.ndarray, num_nodes: int, *, self_loops: bool = False, weights: Tensor | None = None
    ) -> Adjacency:
        """Return A and its transpose; arguments as of `normalised`."""
        source, target, values = _read_edges(edge_index, num_nodes, weights)
        if self_loops:
            # Before degrees are computed, so that they include the loop.
            nodes = np.arange(num_nodes)
            source, target = np.concatenate([source, nodes]), np.concatenate([target, nodes])
            values = None if values is None else np.concatenate([values, np.ones(num_nodes, np.float32)])
        received = Entries.of(target, source, num_nodes, values)
        sent = Entries.of(source, target, num_nodes, values)
        return Adjacency(received, received if received.equals(sent) else sent)

    @property
    def num_nodes(self) -> int:
        return len(self.received.starts) - 1

    @property
    def symmetric(self) -> bool:
        """Whether every edge has its mirror image, of the same weight."""
        return self.sent is self.received

    def normalised(self, normalisation: Normalisation = "gcn") -> SparseMatrix:
        forward = _rows(*self._forward(normalisation))
        if self.symmetric and normalisation == "gcn":
            return SparseMatrix(forward, forward, (self.num_nodes,) * 2)
        rows, (receiver_factor, sender_factor) = self.sent, self._factors(normalisation)
        values = _product(
            rows.at_columns(receiver_factor),
            rows.weights,
            None if sender_factor is None else rows.at_rows(sender_factor),
        )
        return SparseMatrix(forward, _rows(rows.starts, rows.columns, values), (self.num_nodes,) * 2)

    def to_scipy(self, normalisation: Normalisation = "gcn") -> sp.csr_matrix:
        """Return P [n, n] as SciPy holds it, without torch."""
        starts, columns, values = self._forward(normalisation)
        return sp.csr_matrix((values, columns, starts), shape=(self.num_nodes,) * 2)

    def _forward(self, normalisation: Normalisation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return where the rows of P start, its columns and its values."""
        rows, (receiver_factor, sender_factor) = self.received, self._factors(normalisation)
        values = _product(
            rows.at_rows(receiver_factor),
            rows.weights,
            None if sender_factor is None else rows.at_columns(sender_factor),
        )
        if normalisation == "gcn":
            return rows.starts, rows.columns, values
        # From the last sender to the first: another order changes last digits, and so the results of a seeded training.
        return rows.starts, rows.backwards(rows.columns), values if rows.weights is None else rows.backwards(values)

    def _factors(self, normalisation: Normalisation) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the factors of what a node receives [n], and of what it sends [n]."""
        # Degrees are read without noise: this is for public topologies; for private edges see `perturbed`.
        if self.received.weights is None:
            received, sent = (entries.counts.astype(np.float32) for entries in (self.received, self.sent))
        else:
            a = _as_scipy(self.received)
            received, sent = (np.asarray(a.sum(axis=axis)).ravel() for axis in (1, 0))
        if normalisation == "mean":
            return inverse(received), None
        return inverse(np.sqrt(received)), inverse(np.sqrt(sent))


def normalised(
    edge_index: Tensor,
    num_nodes: int,
    normalisation: Normalisation = "gcn",
    *,
    self_loops: bool = False,
    weights: Tensor | None = None,
) -> SparseMatrix:
    """Return P for the formula above [n, n]; rows and columns of isolated nodes are zero. For a directed graph "gcn"
    divides by the roots of the in-degree of the receiver and the out-degree of the sender.

    Args:
        edge_index: int64 [2, E], row 0 sends to row 1.
        self_loops: whether every node sends to itself, with weight 1.
        weights: [E] (see `adjacency`); degrees are then sums of weights.

    >>> import torch
    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> (normalised(path, 3, "mean") @ torch.tensor([[0.0], [2.0], [4.0]])).flatten().tolist()
    [2.0, 2.0, 2.0]
    """
    return Adjacency.of(edge_index, num_nodes, self_loops=self_loops, weights=weights).normalised(normalisation)


def propagate(p: SparseMatrix, h: Dense, hops: int, *, engine: Engine = LOCAL, out: np.ndarray | None = None) -> Tensor:
    """Return P^hops h [n, c]. Raises InputError for shapes or types that do not fit, or an `out` that is h itself.

    Args:
        h: [n, c]; on disk, or with `out`, float32.
        out: float32 [n, c] that the result is written into, without a gradient. On disk, as h and the arrays of P may
            be, only blocks take memory; intermediate hops are stored beside it.
    """
    if out is None:
        return p.on(engine).power(rows_of(h), hops)
    start = rows_of(h).detach().cpu()
    if start.dtype != torch.float32 or start.shape[:1] != p.shape[1:] or p.shape[0] != p.shape[1]:
        raise InputError(f"rows are {start.dtype} {tuple(start.shape)}", allowed=f"float32, {p.shape[1]} rows")
    require_room(out, *start.shape)
    if overlap(out, h):
        raise InputError("out is what is propagated", allowed="an array of its own")
    return as_tensor(_propagated(p.forward.on(engine), h if isinstance(h, Mapped) else start.numpy(), hops, out))


def _propagated(rows: Rows, h: npt.NDArray[np.float32] | Mapped, hops: int, out: np.ndarray) -> np.ndarray:
    spare = room_beside(out, out.shape, out.dtype) if hops > 1 else out
    for hop in range(hops, 0, -1):
        # The array alternates so that the last hop writes into `out`.
        h = rows.into(h, out if hop % 2 else spare)
    if not hops:
        for block in Blocks.of(*out.shape):
            out[block.rows] = rows_of(h)[block.rows]
    return out


def _read_edges(
    edge_index: Tensor | np.ndarray, num_nodes: int, weights: Tensor | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    source, target = edge_index if isinstance(edge_index, np.ndarray) else edge_index.cpu().numpy()
    # Checked here, where the refusal can say what is wrong: as packed pairs wrong ids would be other nodes.
    require_nodes(source, target, num_nodes)
    values = None if weights is None else _checked_weights(weights, source.size)
    keep = source != target
    if keep.all():
        return source, target, values
    return source[keep], target[keep], None if values is None else values[keep]


def _as_scipy(entries: Entries) -> sp.csr_matrix:
    values = np.ones(len(entries.columns), np.float32) if entries.weights is None else entries.weights
    return sp.csr_matrix((values, entries.columns, entries.starts), shape=(len(entries.starts) - 1,) * 2)


def _rows(starts: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Rows:
    return Rows(torch.from_numpy(starts), torch.from_numpy(columns), torch.from_numpy(values))


def _product(first: np.ndarray, second: np.ndarray | None, third: np.ndarray | None) -> np.ndarray:
    """Return the product of those factors that are not None, from the left, in the memory of the first."""
    for factor in (second, third):
        if factor is not None:
            first *= factor
    return first


def _checked_weights(weights: Tensor, edges: int) -> np.ndarray:
    values: np.ndarray = weights.detach().cpu().numpy().astype(np.float32)
    if values.shape != (edges,):
        raise InputError(f"edge weights of shape {tuple(weights.shape)}", allowed=f"one for each of {edges} edges")
    if values.size and not 0 <= values.min() <= values.max() < np.inf:
        raise InputError("an edge weight is negative or not finite", allowed="numbers of 0 or more")
    return values


def inverse(values: np.ndarray) -> np.ndarray:
    """Return 1 / values [n], and 0 where they are 0."""
    # Isolated nodes get 0 instead of infinity: they receive nothing.
    quotients: np.ndarray = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
    return quotients


Starts: TypeAlias = "npt.NDArray[np.int32] | npt.NDArray[np.int64]"

# Columns have 32 bits, which halves the memory that a product reads and so its time.
_MOST_ROWS: Final = 1 << 31
# So many numbers stay in a core's cache while they are processed; new memory would cost more than the work.
_CACHED_NUMBERS: Final = 1 << 16


@dataclass(frozen=True)
class Entries:
    """Row i has entries in `columns[starts[i]:starts[i + 1]]`, which ascend. Build them with :meth:`of`."""

    starts: Starts  # int32 [n + 1]; int64 from 2^31 entries on
    columns: npt.NDArray[np.int32]  # int32 [E]
    weights: npt.NDArray[np.float32] | None = None  # float32 [E]; None where all are 1

    @staticmethod
    def of(
        rows: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int64],
        size: int,
        weights: npt.NDArray[np.float32] | None = None,
    ) -> Entries:
        """Return the entries of a square matrix; entries of weight 0 are left out, and duplicates without weights count
        once. Raises InputError where a pair is listed twice with weights, or 2^31 rows or more.

        Args:
            rows, columns: [E] in 0..size-1, in any order.
            size: n.
            weights: [E].
        """
        if size >= _MOST_ROWS:
            raise InputError(f"a sparse matrix of {size} rows", allowed="below 2^31")
        if weights is not None:
            return _weighted(rows, columns, size, weights)
        if _ascend(rows, columns):
            return Entries(_starts(rows, np.arange(size + 1)), columns.astype(np.int32))
        keys = packed(rows, columns)
        keys.sort()
        rises = keys[1:] > keys[:-1]
        if not rises.all():
            # Added up, duplicates could have any weight, and no sensitivity would hold.
            keys = keys[np.concatenate([[True], rises])]
        return _of_keys(keys, size)

    @property
    def counts(self) -> Starts:
        return np.diff(self.starts)

    def equals(self, other: Entries) -> bool:
        if not (np.array_equal(self.starts, other.starts) and np.array_equal(self.columns, other.columns)):
            return False
        return self.weights is None or other.weights is None or np.array_equal(self.weights, other.weights)

    def backwards(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values of the entries [E] with each row in reverse order."""
        reversed_rows = np.empty_like(values)
        for block in Blocks(len(self.starts) - 1, _CACHED_NUMBERS >> 3):
            starts = self.starts[block.start : block.stop + 1]
            part = slice(starts[0], starts[-1])
            ends = starts.astype(np.int64) - starts[0]
            positions = np.repeat(ends[:-1] + ends[1:] - 1, np.diff(ends))
            positions -= np.arange(len(positions))
            reversed_rows[part] = values[part][positions]
        return reversed_rows

    def at_columns(self, table: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the value of a table [n] at each entry's column [E]."""
        values = np.empty(len(self.columns), table.dtype)
        for part in Blocks(len(values), _CACHED_NUMBERS):
            values[part.rows] = table[self.columns[part.rows]]
        return values

    def at_rows(self, table: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the value of a table [n] at each entry's row [E]."""
        return np.repeat(table, self.counts)


def _weighted(
    rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], size: int, weights: npt.NDArray[np.float32]
) -> Entries:
    keys = packed(rows, columns)
    order = np.argsort(keys)
    keys, weights = keys[order], weights[order]
    # Which of two weights is right cannot be guessed, and their sum may exceed the declared largest weight.
    if (keys[1:] == keys[:-1]).any():
        raise InputError("a weighted edge is listed twice", remedy="give each edge once")
    keys, weights = keys[weights != 0], weights[weights != 0]
    return _of_keys(keys, size, weights)


def _of_keys(keys: npt.NDArray[np.uint64], size: int, weights: npt.NDArray[np.float32] | None = None) -> Entries:
    # Of the type of the keys: other integers would be compared with them as floats.
    beginnings = np.arange(size + 1, dtype=np.uint64) << HALF
    # A conversion to 32 bits takes the lower half of a key, its column.
    return Entries(_starts(keys, beginnings), keys.astype(np.int32), weights)


def _starts(ascending: npt.NDArray[Any], beginnings: npt.NDArray[Any]) -> Starts:
    """Return where rows begin among rows, or keys, given the least of each, and where the last one ends."""
    starts = np.searchsorted(ascending, beginnings)
    return starts.astype(np.int32) if len(ascending) < _MOST_ROWS else starts


def _ascend(rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> bool:
    """Return whether each pair comes after the one before it."""
    for part in Blocks(len(rows), _CACHED_NUMBERS):
        # Including the last pair of the previous part.
        overlapping = slice(max(part.start - 1, 0), part.stop)
        keys = packed(rows[overlapping], columns[overlapping])
        if (keys[1:] <= keys[:-1]).any():
            return False
    return True


#: How many entries are written to disk at a time.
_ON_DISK: Final = 1 << 20


def store_propagation(edges: npt.NDArray[np.int64] | Mapped, num_nodes: int, folder: Path) -> SparseMatrix:
    """Write P = D^{-1/2} A D^{-1/2} of an undirected graph into a folder and return it from there, [n, n], with the
    values of `normalised` to the last bit. Takes memory for a part of the edges and one number a node. Raises
    InputError for edges in another order or in one direction, of nodes that do not exist, or a folder that exists.

        starts.npy     where the entries of each row begin [n + 1], int32, or int64 from 2^31 entries on
        columns.npy    int32 [E]
        values.npy     float32 [E]

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
    for part in Blocks(num_nodes + 1, _ON_DISK):
        starts[part.rows] = np.searchsorted(source, np.arange(part.start, part.stop))
    factors = inverse(np.sqrt(np.diff(starts).astype(np.float32)))
    for part in Blocks(len(source), _ON_DISK):
        columns[part.rows] = target[part.rows]
        values[part.rows] = factors[source[part.rows]] * factors[target[part.rows]]
    return stored_propagation(folder)


def stored_propagation(folder: Path) -> SparseMatrix:
    """Return P from a folder of `store_propagation`; it is read only as it is used. Raises InputError where the folder
    was not written by that function.
    """
    starts, columns, values = (
        as_tensor(Mapped(folder / f"{name}.npy").open()) for name in ("starts", "columns", "values")
    )
    rows = Rows(starts, columns, values)
    return SparseMatrix(rows, rows, (len(starts) - 1,) * 2)
