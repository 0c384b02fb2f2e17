"""Edges that everybody knows, as the file that `graphveil train METHOD FOLDER --edges FILE` reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from graphveil.files.writing import whole_file
from graphveil.graphs.value.parts import GraphParts

FILE = "edges.parquet"


def write_edges(graph: GraphParts, ids: Sequence[str], path: Path) -> None:
    """Write the edges of a graph by the ids of their ends, columns source and target, a row for each.

    Args:
        graph: whose edges are public. ids: of its nodes, in order. path: of the file.

    Raises:
        WriteError: the disk refuses.
    """
    import polars

    source, target = graph.edge_index
    # Both directions stand there; of an edge without one a row says enough.
    is_listed = np.ones(len(source), np.bool_) if graph.schema.directed else source < target
    names = np.array(ids, dtype=np.object_)
    table = polars.DataFrame({"source": names[source[is_listed]].tolist(), "target": names[target[is_listed]].tolist()})
    with whole_file(path) as file:
        table.write_parquet(file)
