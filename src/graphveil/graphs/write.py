"""Write a graph as a folder that `read_folder` reads back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphveil._serial import toml_lines
from graphveil.errors import InputError, UsedPathError
from graphveil.graphs.declaration import FILE
from graphveil.graphs.features import to_rows
from graphveil.graphs.schema import GraphSchema
from graphveil.graphs.splits import published_split
from graphveil.writing import new_folder, whole_file, write_text

if TYPE_CHECKING:
    import polars

    from graphveil.graphs.protocol import Graph

SEPARATOR = ";"
"""Between the names of several labels of one node."""


def write_folder(graph: Graph, path: str | os.PathLike[str], *, format: str = "csv") -> Path:
    """Write a graph as `graph.toml`, `nodes`, `edges` and, with sparse features, `features`.

    The folder is there whole or not at all: it is written beside and renamed. The files hold the raw private
    data. Undirected edges are written once, labels as class names, unknown labels empty; several labels a node as
    their names with SEPARATOR between them.

    Args:
        graph: the graph.
        path: the new folder.
        format: "csv" or "parquet".

    Returns:
        The path of the folder.

    Raises:
        InputError: the folder is already there, the format is unknown, or nodes have several labels and the name of a
            class holds SEPARATOR.
    """
    if format not in ("csv", "parquet"):
        raise InputError(f"format is {format!r}", where="write_folder", allowed="csv, parquet")
    with new_graph_folder(Path(path)) as inside:
        write_graph(graph, inside, format=format)
    return Path(path)


@contextmanager
def new_graph_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which appears under its name when the block has ended without an error.

    Raises:
        UsedPathError: the folder is already there.
        WriteError: the disk refuses.
    """
    if os.path.lexists(folder):
        raise UsedPathError("exists already", where=str(folder), remedy="name a new folder")
    with new_folder(folder) as inside:
        yield inside


def write_graph(graph: Graph, inside: Path, *, format: str, release: bool = False) -> None:
    """Write the tables of a graph and its declaration into an empty folder.

    Args:
        graph: the graph.
        inside: the folder.
        format: "csv" or "parquet".
        release: whether the folder becomes a published graph.

    Raises:
        InputError: nodes have several labels, and the name of a class holds SEPARATOR.
    """
    if graph.y.dim() == 2 and any(SEPARATOR in name or not name for name in graph.schema.classes):
        raise InputError(
            f"nodes have several labels each, and a class name is empty or holds {SEPARATOR!r}", where="write_folder"
        )
    for stem, frame in _tables(graph).items():
        with whole_file(inside / f"{stem}.{format}") as file:
            _ = frame.write_csv(file) if format == "csv" else frame.write_parquet(file)
    write_text(inside / FILE, _declaration(graph, release=release))


def _tables(graph: Graph) -> dict[str, polars.DataFrame]:
    import polars

    given = graph.get("ids")
    ids = polars.Series("id", np.arange(graph.num_nodes) if given is None else given).cast(polars.String)
    nodes = [ids, _label_names(graph)]
    if (split := published_split(graph)) is not None:
        part = np.select([split.train.numpy(), split.val.numpy(), split.test.numpy()], ["train", "val", "test"], "")
        nodes.append(polars.Series("split", part))
    if (members := graph.get("private_nodes")) is not None:
        nodes.append(polars.Series("private", np.isin(np.arange(graph.num_nodes), members.numpy())))
    tables = {}
    if graph.x.is_sparse_csr:
        entries = to_rows(graph.x).tocoo()
        tables["features"] = polars.DataFrame({"id": ids[entries.row], "feature": entries.col, "value": entries.data})
    else:
        nodes += [polars.Series(f"x{column}", graph.x[:, column].numpy()) for column in range(graph.x.shape[1])]
    source, target = graph.edge_index.numpy()
    kept = slice(None) if graph.schema.directed else source < target
    edges = {"source": ids[source[kept]], "target": ids[target[kept]]}
    if (public := graph.get("public_edges")) is not None:
        edges["public"] = polars.Series(public.numpy()[kept])
    tables["edges"] = polars.DataFrame(edges)
    return {"nodes": polars.DataFrame(nodes), **tables}


def _label_names(graph: Graph) -> polars.Series:
    import polars

    if graph.y.dim() == 2:
        held = [np.flatnonzero(row) for row in graph.y.numpy()]
        classes = graph.schema.classes
        return polars.Series("label", [SEPARATOR.join(classes[place] for place in row) for row in held])
    names = polars.Series("label", [*graph.schema.classes, None], dtype=polars.String)
    return names[np.where(graph.y.numpy() < 0, len(graph.schema.classes), graph.y.numpy())]


def _declaration(graph: Graph, *, release: bool) -> str:
    schema: GraphSchema = graph.schema
    lines = {
        "name": schema.name,
        "private": schema.private,
        "range": (schema.low, schema.high),
        "classes": schema.classes,
        "directed": schema.directed,
        "dimension": schema.dimension,
        **({"label_separator": SEPARATOR} if graph.y.dim() == 2 else {}),
        **({"split": "split"} if published_split(graph) is not None else {}),
        **({"public_edges": "public"} if graph.get("public_edges") is not None else {}),
        **({"private_nodes": "private"} if graph.get("private_nodes") is not None else {}),
        **({"release": True} if release else {}),
    }
    return "\n".join(toml_lines(lines)) + "\n"
