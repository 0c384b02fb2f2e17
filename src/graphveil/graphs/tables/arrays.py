"""Arrays and tables of a Python caller, converted to one form.

Features, labels, edges and masks are NumPy, SciPy or torch arrays or lists; tables are polars or pandas frames,
mappings of columns, or the paths of files. Ambiguous input (numbers that are no labels, several splits at once, NaN) is
refused with one message."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from graphveil.errors import DataError, InputError
from graphveil.graphs.declared.column_declaration import ALL, fill_value_for, filling_notes
from graphveil.graphs.declared.declaration import Declaration
from graphveil.graphs.declared.typed_columns import clipping_notes
from graphveil.graphs.tables.tables import Table, check_columns, first_names, read_table
from graphveil.graphs.value.features import check_range, clip_features, compact_dense, compact_rows, to_rows
from graphveil.graphs.value.parts import MASKS, Features, Mask, SparseRows
from graphveil.runtime.late import polars, quiet, sparse
from graphveil.runtime.words import count_of

_NUMBERS = "biuf"
_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


def array_of(value: object, where: str) -> np.ndarray:
    """Return a tensor, array or list as a NumPy array; tensors on an accelerator are copied.

    Args:
        where: its name in messages.

    Raises:
        DataError: it is sparse, or a list of lists of different lengths.
    """
    tensor: Any = value
    # Never made dense: an adjacency matrix of n nodes would take n * n numbers.
    if sparse.issparse(value) or "sparse" in str(getattr(tensor, "layout", "")):
        raise DataError("is sparse", where=where, allowed="a dense array, tensor or list")
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
        # NumPy has no bfloat16; float32 holds each of its numbers exactly.
        tensor = tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor
        array: np.ndarray = tensor.numpy()
        return array
    try:
        return np.asarray(value)
    except ValueError as error:
        allowed = "an array, tensor or list, all rows equally long"
        raise DataError("is no array", where=where, allowed=allowed) from error


def rows_of(value: object) -> sparse.csr_matrix | None:
    """Return a SciPy or torch sparse matrix as a new SciPy CSR matrix; None for anything else."""
    if sparse.issparse(value):
        return sparse.csr_matrix(value, copy=True)
    tensor: Any = value
    if hasattr(tensor, "layout") and "sparse" in str(tensor.layout):
        with quiet():
            return sparse.csr_matrix(to_rows(tensor.detach().cpu().to_sparse_csr()), copy=True)
    return None


def is_binary(x: object) -> bool:
    """Return whether features have the type bool; the type is public, and allows nothing but 0 and 1."""
    return str(getattr(x, "dtype", "")) in ("bool", "torch.bool")


def read_features(x: object, declared: Declaration) -> tuple[Features, tuple[str, ...]]:
    """Return features [n, d] as float32 in the declared range, and notes on changes; DataError for anything else.

    Args:
        x: a matrix of numbers or booleans, dense or sparse.
        declared: the range, and whether values outside it are clipped.
    """
    rows = None if x is None else rows_of(x)
    matrix: Any = rows if rows is not None else array_of(x, "x")
    if matrix.ndim != 2 or matrix.dtype.kind not in _NUMBERS:
        actual = f"shape {matrix.shape}" if matrix.ndim != 2 else f"type {matrix.dtype}"
        raise DataError(f"has {actual}", where="x", allowed="a matrix of numbers [n, d], dense or sparse")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused
        matrix = matrix.astype(np.float32)
    stored = matrix.data if rows is not None else matrix
    filled = _fill(stored, declared)
    clipped = 0
    if declared.out_of_range == "clip":
        # Before clipping, which would move infinity into the range, though it is no measurement.
        view = matrix if rows is None else SparseRows(stored, matrix.indices, matrix.indptr, matrix.shape)
        check_range(view, -_LARGEST_FLOAT32, _LARGEST_FLOAT32, "x")
        _, clipped = clip_features(stored, declared.low, declared.high, "x")
    features = compact_rows(matrix) if rows is not None else compact_dense(matrix)
    check_range(features, declared.low, declared.high, "x", tuple(getattr(x, "columns", ())))
    return features, (*filled, *clipping_notes(clipped))


def _fill(stored: np.ndarray, declared: Declaration) -> tuple[str, ...]:
    """Replace every NaN by the value declared for missing ones, in place; return a note on it."""
    if not declared.missing:
        return ()
    fill_value = fill_value_for(ALL, declared.missing)
    if fill_value is None:
        raise InputError("missing names columns, and x has none", where="x", allowed="one number for all features")
    absent = np.isnan(stored)
    stored[absent] = float(fill_value)
    return filling_notes([("the features", int(absent.sum()), fill_value)])


def read_labels(y: object, nodes: int, classes: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return labels as int64 [n] (-1: unknown) or float32 [n, c], and a note on unknown ones; else DataError.

    Args:
        y: whole numbers [n] or [n, 1] (-1: unknown), class names [n] (None or "": unknown), or zeros and ones [n, c].
        classes: the c declared names.
    """
    if y is None:
        return np.full(nodes, -1), ("no labels: every label unknown",)
    array = array_of(y, "y")
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind in "biuOU":
        array = array[:, 0]
    if array.ndim == 2 and array.dtype.kind in _NUMBERS:
        return array.astype(np.float32), ()
    if array.ndim == 1 and array.dtype.kind in "OUT":
        names = array.tolist()
        label_of = {name: label for label, name in enumerate(classes)}
        array = np.full(len(names), -1)
        for node, name in enumerate(names):
            if name is None or name == "" or name != name:
                continue
            if str(name) not in label_of:
                message = f"label of node {node} is {str(name)!r}, not a declared class"
                raise DataError(message, where="y", allowed=first_names(classes))
            array[node] = label_of[str(name)]
    if array.ndim != 1 or array.dtype.kind not in "biu":
        actual = f"shape {array.shape}" if array.ndim not in (1, 2) else f"type {array.dtype}"
        allowed = "whole numbers [n] with -1 for unknown, class names [n], or zeros and ones [n, classes]"
        raise DataError(f"has {actual}", where="y", allowed=allowed)
    if array.dtype.kind == "u":  # what int64 cannot hold must not become a negative number
        array = np.minimum(array, 2**62)
    labels = array.astype(np.int64)
    unknown = int((labels == -1).sum())
    return labels, (f"{count_of(unknown, 'label')} unknown",) if unknown else ()


def read_ends(edge_index: object) -> np.ndarray:
    """Return edges as whole numbers [2, E]; DataError for another shape or type."""
    ends = array_of(edge_index, "edge_index")
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
        mask = array_of(masks[name], name)
        if mask.ndim == 2:
            remedy = f"choose one: data.{name} = data.{name}[:, 0]"
            raise DataError(f"{name} holds {mask.shape[1]} splits", where="masks", remedy=remedy)
        split[name] = mask
    return split


class PandasFrame(Protocol):
    """The part of a pandas frame that is used here, so that pandas need not be installed."""

    @property
    def columns(self) -> Any: ...

    def __getitem__(self, name: Any, /) -> Any: ...


Frame = Mapping[str, object] | PandasFrame | str | os.PathLike[str]
"""A polars or pandas frame, a mapping of column names to values, or the path of a csv or parquet file."""

_FRAMES = "a polars or pandas frame, a dict of columns, or the path of a csv or parquet file"


def as_table(frame: Frame | polars.DataFrame, title: str) -> Table:
    """Return a frame as a table whose messages call it `title`.

    Args:
        frame: see `Frame`; columns keep their kinds.
        title: its name in messages; a file is called by its path.

    Raises:
        DataError: the file cannot be read, or a column holds nested or other unsupported values.
        InputError: it is no frame.
    """
    if isinstance(frame, str | os.PathLike):
        path = Path(frame)
        if not path.exists():
            raise DataError(f"no file {str(path)!r}", where=title, allowed=_FRAMES)
        return read_table(path)
    # Collected once: a lazy frame could give other rows each time it is read.
    if isinstance(frame, polars.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, polars.DataFrame):
        return columns_table(_columns(frame, title), title)
    check_columns(frame.schema, title)
    return Table(title, frame)


def columns_table(columns: Mapping[str, object], title: str, row_names: Sequence[str] | None = None) -> Table:
    """Return columns of values as a table; DataError where they differ in length or hold unsupported values.

    Args:
        columns: the values of each, by name.
        title: the name of the table in messages.
        row_names: the names of its rows in messages; default: their numbers.
    """
    series = {name: _column(title, name, values) for name, values in columns.items()}
    if len({len(values) for values in series.values()}) > 1:
        raise DataError("has columns of different lengths", where=title)
    frame = polars.DataFrame(series)
    check_columns(frame.schema, title)
    return Table(title, frame, row_names=row_names)


def _columns(frame: object, title: str) -> dict[str, object]:
    """The columns of a mapping or pandas frame, each name once."""
    if isinstance(frame, Mapping):
        return {str(name): values for name, values in frame.items()}
    if not (hasattr(frame, "columns") and hasattr(frame, "iloc")):
        raise InputError(f"is a {type(frame).__name__}", where=title, allowed=_FRAMES)
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):  # a dict of them would lose one
        raise DataError(f"has two columns {next(name for name in names if names.count(name) > 1)!r}", where=title)
    return {name: frame.iloc[:, index] for index, name in enumerate(names)}


def _column(title: str, name: str, values: object) -> polars.Series:
    """One column as a polars series; the missing marks of pandas and NumPy (None, NaN, NA) become null."""
    if isinstance(values, polars.Series):
        return values.alias(name)
    if isinstance(values, list | tuple):  # NumPy would turn a missing number among texts into a text
        return _objects(title, name, list(values))
    # pandas' own missing marks and kinds go through NumPy, which needs no further package.
    array: np.ndarray = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if array.ndim != 1:
        raise DataError(f"column {name!r} has shape {array.shape}", where=title, allowed="one value a row")
    if array.dtype.kind in "biu":
        return polars.Series(name, array)
    if array.dtype.kind == "f":
        return polars.Series(name, array.astype(np.float64)).fill_nan(None)
    if array.dtype.kind not in "OUT":
        raise DataError(f"column {name!r} holds {array.dtype}", where=title, allowed="text, numbers, true or false")
    return _objects(title, name, array.tolist())


def _objects(title: str, name: str, values: list[Any]) -> polars.Series:
    """A column of Python values: of one kind, or else all as text."""
    plain = [None if _is_missing(v) else v.item() if isinstance(v, np.generic) else v for v in values]
    kinds = {type(value) for value in plain if value is not None}
    if kinds <= {int, float} or kinds == {bool}:
        try:
            return polars.Series(name, plain, dtype=polars.Float64 if float in kinds else None)
        except (OverflowError, TypeError, polars.exceptions.PolarsError) as error:
            raise DataError(f"column {name!r} holds numbers that are too large", where=title) from error
    unsupported = kinds - {str, int, bool}
    if unsupported:
        kind = sorted(kind.__name__ for kind in unsupported)[0]
        raise DataError(f"column {name!r} holds a {kind}", where=title, allowed="text, numbers, true or false")
    return polars.Series(name, [None if value is None else str(value) for value in plain], dtype=polars.String)


def _is_missing(value: Any) -> bool:
    nan = isinstance(value, float) and value != value
    return value is None or nan or type(value).__name__ in ("NAType", "NaTType")
