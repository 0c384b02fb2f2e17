"""K-hop propagation over a public topology.

    h <- P h,  K times, with  P = D^{-1/2} A D^{-1/2}   ("gcn")   or   P = D^{-1} A   ("mean")

No self-loops unless asked for: a node's own noisy value must not dominate its own average (KProp; Sajadmanesh and
Gatica-Perez, "Locally Private Graph Neural Networks", CCS 2021, arXiv 2006.05535, section 3.2).
Shapes: edge_index [2, E] (row 0 sends to row 1; undirected graphs list both directions), h [n, c].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy.sparse as sp

from graphveil.aggregation.sparse import SparseMatrix, from_scipy
from graphveil.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


Normalisation = Literal["gcn", "mean"]


def adjacency(edge_index: Tensor | np.ndarray, num_nodes: int, *, weights: Tensor | None = None) -> sp.csr_matrix:
    """Return A [n, n] sparse with A[target, source] = 1, or the edge's weight; self-loops are left out.

    Args:
        weights: w [E] >= 0, one per edge; an edge of weight 0 is no edge.  Without them duplicates count once.

    Raises:
        InputError: when an edge names a node outside 0..n-1, for weights that are negative, not finite or not one per
            edge, and for an edge listed twice with weights.
    """
    source, target = edge_index if isinstance(edge_index, np.ndarray) else edge_index.cpu().numpy()
    # Checked here, where the refusal can say what is wrong: the library that builds the matrix speaks of axes.
    if source.size and (min(source.min(), target.min()) < 0 or max(source.max(), target.max()) >= num_nodes):
        raise InputError("an edge names a node that does not exist", allowed=f"node numbers 0..{num_nodes - 1}")
    keep = source != target
    values = np.ones(source.size, dtype=np.float32) if weights is None else _checked(weights, source.size)
    matrix = sp.csr_matrix((values[keep], (target[keep], source[keep])), shape=(num_nodes, num_nodes))
    if weights is None:
        # Duplicates were added up to more than 1: with them one edge could weigh any amount, and no sensitivity would
        # hold.
        matrix.data[:] = 1.0
    # Which of two weights holds is not ours to guess, and their sum may exceed the declared largest weight.
    elif matrix.nnz < keep.sum():
        raise InputError("a weighted edge is listed twice", remedy="give each edge once")
    matrix.eliminate_zeros()
    return matrix


def normalised(
    edge_index: Tensor,
    num_nodes: int,
    normalisation: Normalisation = "gcn",
    *,
    self_loops: bool = False,
    weights: Tensor | None = None,
) -> SparseMatrix:
    """Return P for the formula above; rows and columns of isolated nodes are zero.

    For a directed graph "gcn" divides by the roots of the in-degree of the receiver and the out-degree of the sender.

    Args:
        edge_index: int64 [2, E], row 0 sends to row 1.
        num_nodes: n.
        normalisation: "gcn" or "mean".
        self_loops: whether every node sends to itself, with weight 1.
        weights: [E] (see `adjacency`); degrees are then sums of weights.

    Returns:
        [n, n].

    Example:
        >>> import torch
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> (normalised(path, 3, "mean") @ torch.tensor([[0.0], [2.0], [4.0]])).flatten().tolist()
        [2.0, 2.0, 2.0]
    """
    a = adjacency(edge_index, num_nodes, weights=weights)
    if self_loops:
        # Before degrees are taken, so that rows still add up to what they should with the loop among their entries.
        a = a + sp.identity(num_nodes, dtype=np.float32, format="csr")
    return from_scipy(scaled(a, normalisation), symmetric=normalisation == "gcn" and is_symmetric(a))


def scaled(a: sp.csr_matrix, normalisation: Normalisation = "gcn") -> sp.csr_matrix:
    """Return P [n, n] for the formula above, as SciPy holds it: what `normalised` makes a `SparseMatrix` of.

    Args:
        a: A [n, n] of `adjacency`.
        normalisation: "gcn" or "mean".
    """
    # Degrees are read as they are: this is for topologies that are declared public. Private edges have `perturbed`,
    # which sums.
    received = np.asarray(a.sum(axis=1)).ravel()
    if normalisation == "mean":
        return sp.diags_array(_inverse(received)) @ a
    sent = np.asarray(a.sum(axis=0)).ravel()
    return sp.diags_array(_inverse(np.sqrt(received))) @ a @ sp.diags_array(_inverse(np.sqrt(sent)))


def propagate(p: SparseMatrix, h: Tensor, hops: int) -> Tensor:
    """Return P^hops h.

    Args:
        p: [n, n].
        h: [n, c].
        hops: K, from 0.

    Returns:
        [n, c].

    Example:
        >>> import torch
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> propagate(normalised(path, 3, "mean"), torch.tensor([[0.0], [2.0], [4.0]]), 2).flatten().tolist()
        [2.0, 2.0, 2.0]
    """
    return p.power(h, hops)


def _checked(weights: Tensor, edges: int) -> np.ndarray:
    values: np.ndarray = weights.detach().cpu().numpy().astype(np.float32)
    if values.shape != (edges,):
        raise InputError(f"edge weights of shape {tuple(weights.shape)}", allowed=f"one for each of {edges} edges")
    if values.size and not 0 <= values.min() <= values.max() < np.inf:
        raise InputError("an edge weight is negative or not finite", allowed="numbers of 0 or more")
    return values


def _inverse(values: np.ndarray) -> np.ndarray:
    # Isolated nodes get 0 and not infinity: they keep nothing of their own and receive nothing.
    inverse: np.ndarray = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
    return inverse


def is_symmetric(a: sp.csr_matrix) -> bool:
    """Return whether every edge of A [n, n] has its mirror image."""
    return bool((a != a.T).nnz == 0)
