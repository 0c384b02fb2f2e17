"""Write a graph as a folder: of tables, which `read_folder` reads back, or of arrays, which loading maps.

A mapped part that is never read takes no memory. A folder of arrays:

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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from graphveil.engine import Mapped
from graphveil.errors import DataError, InputError, UsedPathError
from graphveil.files.reading import read_json
from graphveil.files.serial import to_json, toml_lines
from graphveil.files.writing import new_folder, whole_file, write_text
from graphveil.graphs.declared.column_declaration import declared_columns
from graphveil.graphs.declared.declaration import FILE
from graphveil.graphs.declared.typed_columns import decode_columns
from graphveil.graphs.value.checks import (
    check_features,
    check_labels,
    check_masks,
    check_private_nodes,
    check_public_edges,
    names_of,
)
from graphveil.graphs.value.edges import require_ascending
from graphveil.graphs.value.features import to_rows
from graphveil.graphs.value.parts import MASKS, Graph, GraphParts, SparseRows
from graphveil.graphs.value.schema import GraphSchema, schema_facts, schema_from
from graphveil.graphs.value.splits import published_split
from graphveil.runtime.checks import as_path
from graphveil.runtime.late import polars
from graphveil.runtime.sorted_arrays import distinct

SEPARATOR = ";"
"""Between the names of several labels of one node."""


def write_folder(graph: Graph, path: str | os.PathLike[str], *, format: str = "csv") -> Path:
    """Write a graph as `graph.toml`, `nodes`, `edges` and, with sparse features, `features`; return the folder's path.

    The folder appears whole or not at all: it is written under another name and renamed. The files hold the raw private
    data. Undirected edges are written once, labels as class names, unknown labels empty; several labels of a node as
    their names with SEPARATOR between them; declared columns as cells, with their declaration. Without ids, row numbers
    become the ids; the same numbers in another folder then count as the same people.

    Args:
        format: "csv" or "parquet".

    Raises:
        InputError: the folder exists, the format is unknown, nodes have several labels and the name of a class holds
            SEPARATOR, or features are not an encoding of the declared columns.
    """
    if format not in ("csv", "parquet"):
        raise InputError(f"format is {format!r}", where="write_folder", allowed="csv, parquet")
    folder = as_path(path)
    with new_graph_folder(folder, owner_only=True) as inside:
        write_graph(graph, inside, format=format)
    return folder


@contextmanager
def new_graph_folder(folder: Path, *, owner_only: bool = False) -> Iterator[Path]:
    """Give a folder to fill, as `new_folder` does.

    UsedPathError: it exists; WriteError: the disk refuses.
    """
    if os.path.lexists(folder):
        raise UsedPathError("exists already", where=str(folder), remedy="name a new folder")
    with new_folder(folder, owner_only=owner_only) as inside:
        yield inside


def write_graph(graph: Graph, inside: Path, *, format: str, release: bool = False) -> None:
    """Write the tables of a graph and its declaration into an empty folder; refusals as of `write_folder`.

    Args:
        format: "csv" or "parquet".
        release: whether the folder becomes a published graph.
    """
    if graph.y.dim() == 2 and any(SEPARATOR in name or not name for name in graph.schema.classes):
        what = f"nodes have several labels each, and a class name is empty or holds {SEPARATOR!r}"
        raise InputError(what, where="write_folder")
    for stem, frame in _tables(graph).items():
        with whole_file(inside / f"{stem}.{format}") as file:
            _ = frame.write_csv(file) if format == "csv" else frame.write_parquet(file)
    write_text(inside / FILE, _declaration(graph, release=release))


def _tables(graph: Graph) -> dict[str, polars.DataFrame]:
    node_ids = graph.get("ids")
    column_names = _names(graph.schema)
    ids = polars.Series(column_names["id"], np.arange(graph.num_nodes) if node_ids is None else node_ids).cast(
        polars.String
    )
    nodes = [ids, _label_names(graph).alias(column_names["label"])]
    if (split := published_split(graph)) is not None:
        parts = np.select([split.train.numpy(), split.val.numpy(), split.test.numpy()], ["train", "val", "test"], "")
        nodes.append(polars.Series(column_names["split"], parts))
    if (private_nodes := graph.get("private_nodes")) is not None:
        nodes.append(polars.Series(column_names["private"], np.isin(np.arange(graph.num_nodes), private_nodes.numpy())))
    tables = {}
    if graph.schema.columns:
        # The cells of the declared columns, so that what is read back has the same declaration.
        nodes += decode_columns(to_rows(graph.x) if graph.x.is_sparse_csr else graph.x.numpy(), graph.schema.columns)
    elif graph.x.is_sparse_csr:
        entries = to_rows(graph.x).tocoo()
        tables["features"] = polars.DataFrame({"id": ids[entries.row], "feature": entries.col, "value": entries.data})
    else:
        nodes += [polars.Series(f"x{column}", graph.x[:, column].numpy()) for column in range(graph.x.shape[1])]
    source, target = graph.edge_index.numpy()
    rows = slice(None) if graph.schema.directed else source < target
    edges = {"source": ids[source[rows]], "target": ids[target[rows]]}
    if (public := graph.get("public_edges")) is not None:
        edges["public"] = polars.Series(public.numpy()[rows])
    tables["edges"] = polars.DataFrame(edges)
    return {"nodes": polars.DataFrame(nodes), **tables}


def _names(schema: GraphSchema) -> dict[str, str]:
    """The names of the other columns of the nodes, none of which is the name of a feature."""
    reserved = {column.name for column in schema.columns}
    names = {}
    for name in ("id", "label", "split", "private"):
        free = name
        while free in reserved:
            free += "_"
        names[name] = free
    return names


def _label_names(graph: Graph) -> polars.Series:
    if graph.y.dim() == 2:
        labels = [np.flatnonzero(row) for row in graph.y.numpy()]
        classes = graph.schema.classes
        return polars.Series("label", [SEPARATOR.join(classes[label] for label in row) for row in labels])
    names = polars.Series("label", [*graph.schema.classes, None], dtype=polars.String)
    return names[np.where(graph.y.numpy() < 0, len(graph.schema.classes), graph.y.numpy())]


def _declaration(graph: Graph, *, release: bool) -> str:
    schema: GraphSchema = graph.schema
    column_names, missing = _names(schema), dict(schema.missing)
    range_facts = {} if schema.columns else {"range": (schema.low, schema.high), "dimension": schema.dimension}
    lines = {
        "name": schema.name,
        "private": schema.private,
        "range": None,
        "classes": schema.classes,
        "directed": schema.directed,
        "dimension": None,
        **range_facts,
        # Numbers with a range of their own are written scaled and without their names, so fill values are lost too.
        **({"missing": missing["*"]} if not schema.columns and list(missing) == ["*"] else {}),
        **{key: column_names[key] for key in ("id", "label") if column_names[key] != key},
        **({"label_separator": SEPARATOR} if graph.y.dim() == 2 else {}),
        **({"split": column_names["split"]} if published_split(graph) is not None else {}),
        **({"public_edges": "public"} if graph.get("public_edges") is not None else {}),
        **({"private_nodes": column_names["private"]} if graph.get("private_nodes") is not None else {}),
        **({"release": True} if release else {}),
    }
    text = toml_lines({key: value for key, value in lines.items() if value is not None})
    if schema.columns:
        text += ["", "[columns]", *toml_lines(declared_columns(schema.columns, missing))]
    return "\n".join(text) + "\n"


STORED: Final = "stored.json"
FORMAT: Final = 1
_SPARSE: Final = ("values", "columns", "starts")


def store_parts(parts: GraphParts, path: str | os.PathLike[str]) -> Path:
    """Write a graph as a folder of arrays, which `load_graph` and all commands map instead of reading; return its path.

    The folder appears whole or not at all. Loading checks its arrays as it checks tables, a part at a time.

    Args:
        parts: the graph, as `load_parts` returns it.

    Raises:
        InputError: the folder exists, or the graph is a release, whose files must stay as their hashes say.
        WriteError: the disk refuses.
    """
    if parts.release is not None:
        raise InputError("is a release", where=parts.schema.name, remedy="keep it as it is: its hashes name its files")
    arrays, folder = _arrays(parts), as_path(path)
    content = {
        "format": FORMAT,
        "schema": {**schema_facts(parts.schema), "notes": parts.schema.notes},
        "arrays": {name: [array.dtype.str, array.shape] for name, array in arrays.items()},
    }
    with new_graph_folder(folder, owner_only=True) as inside:
        for name, array in arrays.items():
            array_path = inside / f"{name}.npy"
            # Written and not mapped: on a full disk a mapped file ends the process.
            array_path.touch(mode=0o600, exist_ok=False)
            with array_path.open("r+b") as file:
                np.save(file, array, allow_pickle=False)
        write_text(inside / STORED, to_json(content, indent=2))
    return folder


def is_stored(folder: Path) -> bool:
    return (folder / STORED).is_file()


def read_stored(folder: Path) -> GraphParts:
    """Return a graph whose arrays stay on disk; each is checked once, a part at a time.

    DataError names a file that is absent, damaged or inconsistent with another.
    """
    where = str(folder / STORED)
    content = read_json(folder / STORED)
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


def _mapped(path: Path, kind: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    # A file without bytes cannot be mapped.
    array = np.empty(shape, kind) if 0 in shape else Mapped(path).open()
    if array.dtype != kind or array.shape != shape:
        raise DataError(f"is {array.dtype} {array.shape}", where=str(path), allowed=f"{kind} {shape}")
    return array


def _sparse(arrays: Mapping[str, np.ndarray], dimension: int, where: str) -> SparseRows:
    values, columns, starts = (arrays[name] for name in _SPARSE)
    consistent = len(starts) > 0 and starts[0] == 0 and starts[-1] == len(values) == len(columns)
    if (
        not consistent
        or (starts[1:] < starts[:-1]).any()
        or (len(columns) and not 0 <= columns.min() <= columns.max() < dimension)
    ):
        raise DataError("features are not rows of entries", where=where, remedy="store it again")
    return SparseRows(values, columns, starts, (len(starts) - 1, dimension))


def _check(parts: GraphParts) -> None:
    n, directed = parts.num_nodes, parts.schema.directed
    check_features(parts.x, parts.schema)
    check_labels(parts.y, n, parts.schema.classes)
    check_masks(parts.masks.values(), n)
    if parts.edge_index.dtype != np.int64 or parts.edge_index.ndim != 2 or len(parts.edge_index) != 2:
        raise DataError("edges are not int64 [2, E]", where=parts.schema.name)
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
