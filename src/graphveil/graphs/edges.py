"""Edge lists: brought to one documented form, in linear time, with every change counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphveil.errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from torch import Tensor


def normalise_edges(
    source: np.ndarray, target: np.ndarray, nodes: int, *, directed: bool
) -> tuple[Tensor, tuple[str, ...]]:
    """Bring an edge list to the form that every graph has, as a tensor.

    Args:
        source: [E] node numbers in 0..nodes-1.
        target: [E] node numbers in 0..nodes-1.
        nodes: n.
        directed: keep the direction of every edge.

    Returns:
        edge_index int64 [2, E'] as `merge_edges` makes it, and one note for each change.

    Raises:
        DataError: an edge names a node that does not exist.

    Example:
        >>> import numpy as np
        >>> from graphveil.graphs import normalise_edges
        >>> edge_index, notes = normalise_edges(np.array([0, 1, 1]), np.array([1, 0, 1]), 2, directed=False)
        >>> edge_index.tolist()
        [[0, 1], [1, 0]]
        >>> notes[0]
        'removed 1 self-loops'
    """
    import torch

    edge_index, notes = merge_edges(source, target, nodes, directed=directed)
    return torch.from_numpy(edge_index), notes


def merge_edges(
    source: np.ndarray, target: np.ndarray, nodes: int, *, directed: bool
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Remove self-loops, merge duplicates and, for an undirected graph, store both directions.

    Args:
        source: [E] node numbers in 0..nodes-1.
        target: [E] node numbers in 0..nodes-1.
        nodes: n.
        directed: keep the direction of every edge.

    Returns:
        edge_index int64 [2, E'], sorted by source and then target, and one note for each change.

    Raises:
        DataError: an edge names a node that does not exist.
    """
    from scipy.sparse import coo_matrix

    _require_ends(source, target, nodes)
    listed, loops = len(source), source == target
    removed = int(np.count_nonzero(loops))
    if removed:
        source, target = source[~loops], target[~loops]
    # Half the memory for the largest step of loading, wherever node numbers fit.
    kind = np.int32 if nodes < 2**31 else np.int64
    pairs = (source.astype(kind, copy=False), target.astype(kind, copy=False))
    matrix = coo_matrix((np.ones(len(source), dtype=bool), pairs), shape=(nodes, nodes)).tocsr()
    matrix.sum_duplicates()
    distinct = matrix.nnz
    if not directed:
        matrix = matrix + matrix.T.tocsr()
    matrix.sort_indices()
    stored = matrix.nnz if directed else matrix.nnz // 2
    notes = _notes(removed, listed - removed - distinct, 0 if directed else distinct - stored, stored, directed)
    return _edge_index(matrix), notes


def _require_ends(source: np.ndarray, target: np.ndarray, nodes: int) -> None:
    """Refuse node numbers that a conversion to fewer bits would turn into others."""
    if source.shape != target.shape or source.ndim != 1:
        raise DataError(
            f"edges have ends of shapes {source.shape} and {target.shape}", allowed="two lists, equally long"
        )
    for ends in (source, target):
        if ends.size and not (ends.dtype.kind in "iu" and 0 <= int(ends.min()) <= int(ends.max()) < nodes):
            raise DataError(
                "an edge names a node that does not exist", where="edges", allowed=f"whole numbers, 0 to {nodes - 1}"
            )


def _edge_index(matrix: csr_matrix) -> np.ndarray:
    edge_index = np.empty((2, matrix.nnz), dtype=np.int64)
    edge_index[0] = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    edge_index[1] = matrix.indices
    return edge_index


def _notes(loops: int, duplicates: int, mirrored: int, stored: int, directed: bool) -> tuple[str, ...]:
    notes = []
    if loops:
        notes.append(f"removed {loops:,} self-loops")
    if duplicates:
        notes.append(f"merged {duplicates:,} duplicate edges")
    if mirrored:
        notes.append(f"merged {mirrored:,} edges that were listed in both directions")
    if directed:
        notes.append(f"kept {stored:,} directed edges")
    else:
        notes.append(f"made undirected: {stored:,} edges, each stored in both directions")
    return tuple(notes)


def edge_keys(source: np.ndarray, target: np.ndarray, nodes: int, *, directed: bool) -> np.ndarray:
    """Return one number for each edge, whichever way it is listed where edges have no direction.

    Args:
        source: [E] node numbers in 0..nodes-1.
        target: [E] node numbers in 0..nodes-1.
        nodes: n.
        directed: whether (a, b) and (b, a) are two edges.

    Returns:
        int64 [E].
    """
    source, target = source.astype(np.int64), target.astype(np.int64)
    if not directed:
        source, target = np.minimum(source, target), np.maximum(source, target)
    keys: np.ndarray = source * nodes + target
    return keys


def is_normalised(edge_index: np.ndarray, nodes: int, *, directed: bool) -> bool:
    """Return whether edges are in the form that `merge_edges` gives them.

    Args:
        edge_index: int64 [2, E], node numbers in 0..nodes-1.
        nodes: n.
        directed: whether an edge stands in one direction only.
    """
    from scipy.sparse import csr_matrix

    source, target = edge_index
    if bool((source == target).any()):
        return False
    step = np.diff(source)
    if bool((step < 0).any()) or bool((np.diff(target)[step == 0] <= 0).any()):
        return False
    if directed:
        return True
    indptr = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=nodes))])
    matrix = csr_matrix((np.ones(len(target), dtype=bool), target, indptr), shape=(nodes, nodes))
    mirror = matrix.T.tocsr()
    mirror.sort_indices()
    return np.array_equal(mirror.indptr, matrix.indptr) and np.array_equal(mirror.indices, matrix.indices)
