"""A graph stored as arrays that are memory-mapped when it is loaded: parts that nobody reads take no memory.

stored.json    the schema, and kind and shape of each array
x.npy          float32 [n, d]; of sparse features values.npy and columns.npy [m], starts.npy [n + 1]
edges.npy      int64 [2, E], as `merge_edges` makes it
y.npy          int64 [n] or float32 [n, c]
ids.npy        int64 [n] where all ids are whole numbers, else texts
train_mask.npy, val_mask.npy, test_mask.npy, public_edges.npy, private_nodes.npy   where there are any

The files hold raw data, and only their owner may read them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from graphveil.engine import Mapped
from graphveil.errors import DataError, InputError
from graphveil.files.reading import read_json
from graphveil.files.serial import to_json
from graphveil.files.writing import write_text
from graphveil.graphs.tables.write import new_graph_folder
from graphveil.graphs.value.checks import (
    check_features,
    check_labels,
    check_masks,
    check_private_nodes,
    check_public_edges,
    names_of,
)
from graphveil.graphs.value.edges import require_ascending
from graphveil.graphs.value.parts import MASKS, GraphParts, SparseRows
from graphveil.graphs.value.schema import schema_facts, schema_from
from graphveil.runtime.sorted_arrays import distinct

FILE: Final = "stored.json"
FORMAT: Final = 1
_SPARSE: Final = ("values", "columns", "starts")


def store_parts(parts: GraphParts, path: str | os.PathLike[str]) -> Path:
    """Write a graph as a folder of arrays, which `load_graph` and all commands map instead of reading; return its path.

    The folder is there whole or not at all. Loading checks its arrays as it checks tables, a part at a time.

    Args:
        parts: the graph, as `load_parts` gives it; path: of the folder.

    Raises:
        InputError: the folder is already there, or the graph is a release: that is handed on with its hashes.
        WriteError: the disk refuses.
    """
    if parts.release is not None:
        raise InputError("is a release", where=parts.schema.name, remedy="keep it as it is: its hashes tell its files")
    arrays, folder = _arrays(parts), Path(path)
    content = {
        "format": FORMAT,
        "schema": {**schema_facts(parts.schema), "notes": parts.schema.notes},
        "arrays": {name: [array.dtype.str, array.shape] for name, array in arrays.items()},
    }
    with new_graph_folder(folder) as inside:
        inside.chmod(0o700)
        for name, array in arrays.items():
            _write(inside / f"{name}.npy", array)
        write_text(inside / FILE, to_json(content, indent=2))
    return folder


def is_stored(folder: Path) -> bool:
    return (folder / FILE).is_file()


def read_stored(folder: Path) -> GraphParts:
    """Return a graph whose arrays lie on disk; each was looked through once, a part at a time.

    DataError names a file that is absent, damaged or does not fit the others.
    """
    where = str(folder / FILE)
    content = read_json(folder / FILE)
    try:
        if content["format"] != FORMAT:
            raise DataError(f"format {content['format']!r}", where=where, allowed=str(FORMAT), remedy="store it again")
        schema = schema_from(content["schema"])
        kinds = {str(name): (np.dtype(kind), tuple(shape)) for name, (kind, shape) in content["arrays"].items()}
        arrays = {name: _mapped(folder / f"{name}.npy", *kind) for name, kind in kinds.items()}
        x = arrays["x"] if "x" in arrays else _sparse(arrays, schema.dimension, where)
        edges, y = arrays["edges"], arrays["y"]
    except (LookupError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is damaged ({error})", where=where, remedy="store it again") from error
    masks = {name: arrays[name] for name in MASKS if name in arrays}
    ids, public, members = (arrays.get(name) for name in ("ids", "public_edges", "private_nodes"))
    parts = GraphParts(x, edges, y, schema, masks, ids, public, members)
    _check(parts)
    return parts


def _arrays(parts: GraphParts) -> dict[str, np.ndarray]:
    x = parts.x
    features = (
        dict(zip(_SPARSE, (x.values, x.columns, x.starts), strict=True)) if isinstance(x, SparseRows) else {"x": x}
    )
    arrays: dict[str, Any] = {
        **features,
        **{str(name): mask for name, mask in parts.masks.items()},
        "edges": parts.edge_index,
        "y": parts.y,
        "ids": None if parts.ids is None else _plain_ids(parts.ids),
        "public_edges": parts.public_edges,
        "private_nodes": parts.private_nodes,
    }
    return {name: array for name, array in arrays.items() if array is not None}


def _plain_ids(ids: Any) -> np.ndarray:
    """Ids as numbers where each is the text of its number, else as texts."""
    names = np.asarray(ids, dtype=object)
    try:
        numbers = names.astype(np.int64)
    except (ValueError, OverflowError):
        numbers = None
    if numbers is not None and all(str(number) == str(name) for number, name in zip(numbers, names, strict=True)):
        return numbers
    texts = names.astype(np.str_)
    # NumPy cuts a text at its last NUL: two ids could become one.
    if any("\0" in name for name in texts) or [*texts] != [str(name) for name in names]:
        raise InputError("an id holds a NUL character", where="store_parts")
    return texts


def _write(path: Path, array: np.ndarray) -> None:
    # Written and not mapped: on a full disk a mapped file ends the process.
    path.touch(mode=0o600, exist_ok=False)
    with path.open("r+b") as file:
        np.save(file, array, allow_pickle=False)


def _mapped(path: Path, kind: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    # Nothing can be mapped of no bytes.
    array = np.empty(shape, kind) if 0 in shape else Mapped(path).open()
    if array.dtype != kind or array.shape != shape:
        raise DataError(f"is {array.dtype} {array.shape}", where=str(path), allowed=f"{kind} {shape}")
    return array


def _sparse(arrays: Mapping[str, np.ndarray], dimension: int, where: str) -> SparseRows:
    values, columns, starts = (arrays[name] for name in _SPARSE)
    whole = len(starts) > 0 and starts[0] == 0 and starts[-1] == len(values) == len(columns)
    if (
        not whole
        or (starts[1:] < starts[:-1]).any()
        or (len(columns) and not 0 <= columns.min() <= columns.max() < dimension)
    ):
        raise DataError("features are no rows of entries", where=where, remedy="store it again")
    return SparseRows(values, columns, starts, (len(starts) - 1, dimension))


def _check(parts: GraphParts) -> None:
    n, directed = parts.num_nodes, parts.schema.directed
    check_features(parts.x, parts.schema)
    check_labels(parts.y, n, parts.schema.classes)
    check_masks(parts.masks.values(), n)
    if parts.edge_index.dtype != np.int64 or parts.edge_index.ndim != 2 or len(parts.edge_index) != 2:
        raise DataError("edges are no int64 [2, E]", where=parts.schema.name)
    require_ascending(parts.edge_index[0], parts.edge_index[1], n, directed=directed)
    if isinstance(parts.ids, np.ndarray) and parts.ids.dtype == np.int64:
        if parts.ids.shape != (n,) or len(distinct(parts.ids)) < n:
            raise DataError("ids do not tell the nodes apart", where=parts.schema.name, allowed="each id once")
    else:
        names_of(parts.ids, n)
    if parts.public_edges is not None:
        check_public_edges(parts.public_edges, parts.edge_index, n, directed=directed)
    if parts.private_nodes is not None:
        check_private_nodes(parts.private_nodes, n)
