"""Write a graph as a folder that `read_folder` reads back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphveil.errors import InputError, UsedPathError
from graphveil.files.serial import toml_lines
from graphveil.files.writing import new_folder, whole_file, write_text
from graphveil.graphs.declared.column_declaration import declared_columns
from graphveil.graphs.declared.declaration import FILE
from graphveil.graphs.declared.typed_columns import decode_columns
from graphveil.graphs.value.features import to_rows
from graphveil.graphs.value.schema import GraphSchema
from graphveil.graphs.value.splits import published_split
from graphveil.runtime.late import polars

if TYPE_CHECKING:
    from graphveil.graphs.value.parts import Graph

SEPARATOR = ";"
"""Between the names of several labels of one node."""


def write_folder(graph: Graph, path: str | os.PathLike[str], *, format: str = "csv") -> Path:
    """Write a graph as `graph.toml`, `nodes`, `edges` and, with sparse features, `features`; return the folder's path.

    The folder is there whole or not at all: it is written beside and renamed. The files hold the raw private data.
    Undirected edges are written once, labels as class names, unknown labels empty; several labels a node as their names
    with SEPARATOR between them; declared columns as the cells that they hold, with their declaration. InputError: the
    folder is already there, the format is unknown, nodes have several labels and the name of a class holds SEPARATOR,
    or features are none that declared columns are encoded as.

    Args:
        graph: of any kind; path: of a new folder; format: "csv" or "parquet".
    """
    if format not in ("csv", "parquet"):
        raise InputError(f"format is {format!r}", where="write_folder", allowed="csv, parquet")
    with new_graph_folder(Path(path)) as inside:
        write_graph(graph, inside, format=format)
    return Path(path)


@contextmanager
def new_graph_folder(folder: Path) -> Iterator[Path]:
    """Give a folder to fill, which appears under its name when the block has ended without an error.

    UsedPathError: it is already there; WriteError: the disk refuses.
    """
    if os.path.lexists(folder):
        raise UsedPathError("exists already", where=str(folder), remedy="name a new folder")
    with new_folder(folder) as inside:
        yield inside


def write_graph(graph: Graph, inside: Path, *, format: str, release: bool = False) -> None:
    """Write the tables of a graph and its declaration into an empty folder, refusing as `write_folder`.

    Args:
        graph: of any kind; inside: the folder; format: "csv" or "parquet".
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
    named = _names(graph.schema)
    ids = polars.Series(named["id"], np.arange(graph.num_nodes) if node_ids is None else node_ids).cast(polars.String)
    nodes = [ids, _label_names(graph).alias(named["label"])]
    if (split := published_split(graph)) is not None:
        part = np.select([split.train.numpy(), split.val.numpy(), split.test.numpy()], ["train", "val", "test"], "")
        nodes.append(polars.Series(named["split"], part))
    if (members := graph.get("private_nodes")) is not None:
        nodes.append(polars.Series(named["private"], np.isin(np.arange(graph.num_nodes), members.numpy())))
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
    listed = slice(None) if graph.schema.directed else source < target
    edges = {"source": ids[source[listed]], "target": ids[target[listed]]}
    if (public := graph.get("public_edges")) is not None:
        edges["public"] = polars.Series(public.numpy()[listed])
    tables["edges"] = polars.DataFrame(edges)
    return {"nodes": polars.DataFrame(nodes), **tables}


def _names(schema: GraphSchema) -> dict[str, str]:
    """The names of the columns beside the features; none of them is the name of a feature."""
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
        return polars.Series("label", [SEPARATOR.join(classes[place] for place in row) for row in labels])
    names = polars.Series("label", [*graph.schema.classes, None], dtype=polars.String)
    return names[np.where(graph.y.numpy() < 0, len(graph.schema.classes), graph.y.numpy())]


def _declaration(graph: Graph, *, release: bool) -> str:
    schema: GraphSchema = graph.schema
    named, missing = _names(schema), dict(schema.missing)
    numbers = {} if schema.columns else {"range": (schema.low, schema.high), "dimension": schema.dimension}
    lines = {
        "name": schema.name,
        "private": schema.private,
        "range": None,
        "classes": schema.classes,
        "directed": schema.directed,
        "dimension": None,
        **numbers,
        # Of numbers with a range of their own the names are lost here, and with them what stands for each.
        **({"missing": missing["*"]} if not schema.columns and list(missing) == ["*"] else {}),
        **{key: named[key] for key in ("id", "label") if named[key] != key},
        **({"label_separator": SEPARATOR} if graph.y.dim() == 2 else {}),
        **({"split": named["split"]} if published_split(graph) is not None else {}),
        **({"public_edges": "public"} if graph.get("public_edges") is not None else {}),
        **({"private_nodes": named["private"]} if graph.get("private_nodes") is not None else {}),
        **({"release": True} if release else {}),
    }
    text = toml_lines({key: value for key, value in lines.items() if value is not None})
    if schema.columns:
        text += ["", "[columns]", *toml_lines(declared_columns(schema.columns, missing))]
    return "\n".join(text) + "\n"
