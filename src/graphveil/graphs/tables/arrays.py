"""Features, labels, edges and masks from a caller (NumPy, SciPy, torch, lists), converted to one form.

Every kind of array is taken; what would have to be guessed (numbers that are no labels, several splits at once, NaN) is
refused with one message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.errors import DataError, InputError
from graphveil.graphs.declared.missing import ALL, filled_notes, stand_for
from graphveil.graphs.value.features import check_range, clip_features, compact_dense, compact_rows, to_rows
from graphveil.graphs.value.parts import MASKS, Features, Mask, SparseRows
from graphveil.graphs.value.quiet import quiet

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from graphveil.graphs.declared.declaration import Declaration

_NUMBERS = "biuf"
_FINITE = float(np.finfo(np.float32).max)


def array_of(value: object) -> np.ndarray:
    """Return a tensor, array or list as a NumPy array; tensors on an accelerator are copied."""
    tensor: Any = value
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
        # NumPy has no bfloat16; float32 holds each of its numbers exactly.
        tensor = tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor
        array: np.ndarray = tensor.numpy()
        return array
    return np.asarray(value)


def rows_of(value: object) -> csr_matrix | None:
    """Return a SciPy or torch sparse matrix as a new SciPy CSR matrix; None for anything else."""
    from scipy.sparse import csr_matrix, issparse

    if issparse(value):
        return csr_matrix(value, copy=True)
    tensor: Any = value
    if hasattr(tensor, "layout") and "sparse" in str(tensor.layout):
        with quiet():
            return csr_matrix(to_rows(tensor.detach().cpu().to_sparse_csr()), copy=True)
    return None


def is_binary(x: object) -> bool:
    """Return whether features have the type bool, which is public: nothing but 0 and 1 is possible."""
    return str(getattr(x, "dtype", "")) in ("bool", "torch.bool")


def read_features(x: object, declared: Declaration) -> tuple[Features, tuple[str, ...]]:
    """Return features [n, d] as float32 inside the declared range, and what was changed.

    Args:
        x: a matrix of numbers or truths, dense or sparse.
        declared: range, and whether values outside it are clipped.

    Raises:
        DataError: it is no matrix of numbers, or holds NaN, infinity or, unless clipped, values outside the range.
    """
    rows = None if x is None else rows_of(x)
    matrix: Any = rows if rows is not None else array_of(x)
    if matrix.ndim != 2 or matrix.dtype.kind not in _NUMBERS:
        actual = f"shape {matrix.shape}" if matrix.ndim != 2 else f"type {matrix.dtype}"
        raise DataError(f"has {actual}", where="x", allowed="a matrix of numbers [n, d], dense or sparse")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused
        matrix = matrix.astype(np.float32)
    stored = matrix.data if rows is not None else matrix
    filled = _fill(stored, declared)
    clipped = 0
    if declared.out_of_range == "clip":
        # Before clipping: infinity would be clipped into the range, though it is no measurement at all.
        check_range(_view(matrix), -_FINITE, _FINITE, "x")
        _, clipped = clip_features(stored, declared.low, declared.high, "x")
    features = compact_rows(matrix) if rows is not None else compact_dense(matrix)
    check_range(features, declared.low, declared.high, "x")
    return features, (*filled, *((f"clipped {clipped:,} feature values to the declared range",) if clipped else ()))


def _fill(stored: np.ndarray, declared: Declaration) -> tuple[str, ...]:
    """Replace every NaN by the declared value for missing ones, and return a note of it."""
    if not declared.missing:
        return ()
    stand = stand_for(ALL, declared.missing)
    if stand is None:
        raise InputError("missing names columns, and x has none", where="x", allowed="one number for all features")
    absent = np.isnan(stored)
    stored[absent] = float(stand)
    return filled_notes([("the features", int(absent.sum()), stand)])


def _view(matrix: Any) -> Features:
    if isinstance(matrix, np.ndarray):
        return matrix
    return SparseRows(matrix.data, matrix.indices, matrix.indptr, matrix.shape)


def read_labels(y: object, nodes: int, classes: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return labels as int64 [n] (-1: unknown) or, with several a node, float32 [n, c], and what is unknown.

    Args:
        y: whole numbers [n] or [n, 1] (-1: unknown), class names [n] (None or "": unknown), or zeros and ones [n, c].
        nodes: n; classes: the c declared names.

    Raises:
        DataError: another shape or type, or a name that is not a declared class.
    """
    if y is None:
        return np.full(nodes, -1), ("no labels: every label unknown",)
    array = array_of(y)
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind in "biuOU":
        array = array[:, 0]
    if array.ndim == 2 and array.dtype.kind in _NUMBERS:
        return array.astype(np.float32), ()
    if array.ndim == 1 and array.dtype.kind in "OUT":
        array = _codes(array.tolist(), classes)
    if array.ndim != 1 or array.dtype.kind not in "biu":
        actual = f"shape {array.shape}" if array.ndim not in (1, 2) else f"type {array.dtype}"
        allowed = "whole numbers [n] with -1 for unknown, class names [n], or zeros and ones [n, classes]"
        raise DataError(f"has {actual}", where="y", allowed=allowed)
    if array.dtype.kind == "u":  # what int64 cannot hold must not become a negative number
        array = np.minimum(array, 2**62)
    labels = array.astype(np.int64)
    unknown = int((labels == -1).sum())
    return labels, (f"{unknown:,} labels unknown",) if unknown else ()


def _codes(names: list[object], classes: Sequence[str]) -> np.ndarray:
    places = {name: place for place, name in enumerate(classes)}
    codes = np.full(len(names), -1)
    for node, name in enumerate(names):
        if name is None or name == "" or name != name:
            continue
        if str(name) not in places:
            allowed = ", ".join(classes[:8]) + (", ..." if len(classes) > 8 else "")
            raise DataError(f"label of node {node} is {str(name)!r}, not a declared class", where="y", allowed=allowed)
        codes[node] = places[str(name)]
    return codes


def read_ends(edge_index: object) -> np.ndarray:
    """Return edges as whole numbers [2, E]; DataError for another shape or type."""
    ends = array_of(edge_index)
    if ends.size == 0 and ends.ndim == 2 and ends.shape[0] == 2:
        return ends.astype(np.int64)
    if ends.ndim != 2 or ends.shape[0] != 2 or ends.dtype.kind not in "iu":
        remedy = "hand over its transpose, edge_index.T" if ends.ndim == 2 and ends.shape[1] == 2 else None
        actual = f"has shape {ends.shape} and type {ends.dtype}"
        raise DataError(actual, where="edge_index", allowed="whole numbers [2, E]", remedy=remedy)
    return ends


def read_masks(masks: Mapping[str, object]) -> dict[Mask, np.ndarray]:
    """Return the parts of a split, each bool [n]; DataError for an unknown name, or several splits."""
    split: dict[Mask, np.ndarray] = {}
    for key in masks:
        if key not in MASKS:
            raise DataError(f"unknown mask {key!r}", where="masks", allowed=", ".join(MASKS))
    for name in MASKS:
        if masks.get(name) is None:
            continue
        mask = array_of(masks[name])
        if mask.ndim == 2:
            remedy = f"choose one: data.{name} = data.{name}[:, 0]"
            raise DataError(f"{name} holds {mask.shape[1]} splits", where="masks", remedy=remedy)
        split[name] = mask
    return split
