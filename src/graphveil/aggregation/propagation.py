"""K-hop propagation over a public topology.

    h <- P h,  K times, with  P = D^{-1/2} A D^{-1/2}   ("gcn")   or   P = D^{-1} A   ("mean")

No self-loops unless asked for: a node's own noisy value must not dominate its own average (KProp; Sajadmanesh and
Gatica-Perez, "Locally Private Graph Neural Networks", CCS 2021, arXiv 2006.05535, section 3.2).
Shapes: edge_index [2, E] (row 0 sends to row 1; undirected graphs list both directions), h [n, c].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from graphveil.aggregation.entries import Entries
from graphveil.aggregation.shared import Dense, as_tensor, overlap, require_room, rows_of
from graphveil.aggregation.sparse import Rows, SparseMatrix
from graphveil.engine import LOCAL, Blocks, Engine, Mapped, room_beside
from graphveil.errors import InputError
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


Normalisation = Literal["gcn", "mean"]


def adjacency(edge_index: Tensor | np.ndarray, num_nodes: int, *, weights: Tensor | None = None) -> sp.csr_matrix:
    """Return A [n, n] sparse with A[target, source] = 1, or the edge's weight; self-loops are left out. Raises
    InputError: when an edge names a node outside 0..n-1, for weights that are negative, not finite or not one per edge,
    and for an edge listed twice with weights.

    Args:
        weights: w [E] >= 0, one per edge; an edge of weight 0 is no edge.  Without them duplicates count once.
    """
    return _as_scipy(received(edge_index, num_nodes, weights=weights))


def received(edge_index: Tensor | np.ndarray, num_nodes: int, *, weights: Tensor | None = None) -> Entries:
    """Return A of `adjacency` as its entries, row by row: in row u those who send to u."""
    source, target, values = _pairs(edge_index, num_nodes, weights)
    return Entries.of(target, source, num_nodes, values)


@dataclass(frozen=True)
class Adjacency:
    """A [n, n] and its transpose, of which every P is made. Build one with :meth:`of`.

    Attributes:
        received: A, in row u those who send to u.
        sent: A^T, in row v those to whom v sends; the same object where A is symmetric.
    """

    received: Entries
    sent: Entries

    @staticmethod
    def of(
        edge_index: Tensor | np.ndarray,
        num_nodes: int,
        *,
        self_loops: bool = False,
        weights: Tensor | None = None,
    ) -> Adjacency:
        """Return A and its transpose; arguments as of `normalised`."""
        source, target, values = _pairs(edge_index, num_nodes, weights)
        if self_loops:
            # Before degrees are taken, so that rows still add up to what they should with the loop among their entries.
            nodes = np.arange(num_nodes)
            source, target = np.concatenate([source, nodes]), np.concatenate([target, nodes])
            values = None if values is None else np.concatenate([values, np.ones(num_nodes, np.float32)])
        received = Entries.of(target, source, num_nodes, values)
        sent = Entries.of(source, target, num_nodes, values)
        return Adjacency(received, received if received.equals(sent) else sent)

    @property
    def num_nodes(self) -> int:
        """n."""
        return len(self.received.starts) - 1

    @property
    def symmetric(self) -> bool:
        """Whether every edge has its mirror image, of the same weight."""
        return self.sent is self.received

    def normalised(self, normalisation: Normalisation = "gcn") -> SparseMatrix:
        """Return P [n, n], see `normalised`."""
        forward = _rows(*self._forward(normalisation))
        if self.symmetric and normalisation == "gcn":
            return SparseMatrix(forward, forward, (self.num_nodes,) * 2)
        rows, (to, by) = self.sent, self._factors(normalisation)
        values = _product(rows.at_columns(to), rows.weights, None if by is None else rows.at_rows(by))
        return SparseMatrix(forward, _rows(rows.starts, rows.columns, values), (self.num_nodes,) * 2)

    def to_scipy(self, normalisation: Normalisation = "gcn") -> sp.csr_matrix:
        """Return P [n, n] as SciPy holds it, without torch."""
        starts, columns, values = self._forward(normalisation)
        return sp.csr_matrix((values, columns, starts), shape=(self.num_nodes,) * 2)

    def _forward(self, normalisation: Normalisation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return where the rows of P start, its columns and its values."""
        rows, (to, by) = self.received, self._factors(normalisation)
        values = _product(rows.at_rows(to), rows.weights, None if by is None else rows.at_columns(by))
        if normalisation == "gcn":
            return rows.starts, rows.columns, values
        # Means are added up from the last sender to the first: in another order they have other last digits, and a
        # seeded training other results.
        return rows.starts, rows.backwards(rows.columns), values if rows.weights is None else rows.backwards(values)

    def _factors(self, normalisation: Normalisation) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the factors of what a node receives [n], and of what it sends [n]."""
        # Degrees are read as they are: this is for topologies that are declared public. Private edges have `perturbed`,
        # which sums.
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
        edge_index: int64 [2, E], row 0 sends to row 1; num_nodes: n; normalisation: "gcn" or "mean".
        self_loops: whether every node sends to itself, with weight 1.
        weights: [E] (see `adjacency`); degrees are then sums of weights.

    >>> import torch
    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> (normalised(path, 3, "mean") @ torch.tensor([[0.0], [2.0], [4.0]])).flatten().tolist()
    [2.0, 2.0, 2.0]
    """
    return Adjacency.of(edge_index, num_nodes, self_loops=self_loops, weights=weights).normalised(normalisation)


def propagate(
    p: SparseMatrix,
    h: Dense,
    hops: int,
    *,
    engine: Engine = LOCAL,
    out: np.ndarray | None = None,
) -> Tensor:
    """Return P^hops h [n, c]. Raises InputError: shapes or types that do not fit, or an `out` that is h itself.

    Args:
        p: [n, n].
        h: [n, c]; on disk, or with `out`, float32.
        hops: K, from 0.
        engine: where blocks of receivers are worked on; no bit of the result depends on it.
        out: float32 [n, c] that the result is written into, without a slope. On disk, as h and the arrays of P may be,
            no more than blocks take memory; what stands between two hops is kept beside it.

    >>> import torch
    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> propagate(normalised(path, 3, "mean"), torch.tensor([[0.0], [2.0], [4.0]]), 2).flatten().tolist()
    [2.0, 2.0, 2.0]
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
        # So that the last hop writes into the right one.
        h = rows.into(h, out if hop % 2 else spare)
    if not hops:
        for block in Blocks.of(*out.shape):
            out[block.rows] = rows_of(h)[block.rows]
    return out


def _pairs(
    edge_index: Tensor | np.ndarray, num_nodes: int, weights: Tensor | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return senders, receivers and weights of the edges that are no loops."""
    source, target = edge_index if isinstance(edge_index, np.ndarray) else edge_index.cpu().numpy()
    # Checked here, where the refusal can say what is wrong: keys of pairs would hold other nodes.
    if source.size and (min(source.min(), target.min()) < 0 or max(source.max(), target.max()) >= num_nodes):
        raise InputError("an edge names a node that does not exist", allowed=f"node numbers 0..{num_nodes - 1}")
    values = None if weights is None else _checked(weights, source.size)
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
    """Return what is there of the factors, multiplied from the left, in place of the first."""
    for factor in (second, third):
        if factor is not None:
            first *= factor
    return first


def _checked(weights: Tensor, edges: int) -> np.ndarray:
    values: np.ndarray = weights.detach().cpu().numpy().astype(np.float32)
    if values.shape != (edges,):
        raise InputError(f"edge weights of shape {tuple(weights.shape)}", allowed=f"one for each of {edges} edges")
    if values.size and not 0 <= values.min() <= values.max() < np.inf:
        raise InputError("an edge weight is negative or not finite", allowed="numbers of 0 or more")
    return values


def inverse(values: np.ndarray) -> np.ndarray:
    """Return 1 / values [n], and 0 where they are 0."""
    # Isolated nodes get 0 and not infinity: they keep nothing of their own and receive nothing.
    quotients: np.ndarray = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
    return quotients
