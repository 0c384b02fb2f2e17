"""The one table into which `apoc.export.csv.all` of Neo4j writes nodes and relationships:

_id, _labels, properties of nodes, _start, _end, _type, properties of relationships
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from graphveil.errors import DataError
from graphveil.graphs.sources.rows import EDGES, Imported, free_names, left_out, new_table

_NODE: Final = ["_id", "_labels"]
_EDGE: Final = ["_start", "_end", "_type"]


def is_neo4j(path: Path) -> bool:
    """Whether a csv file begins as such a table."""
    with path.open("rb") as file:
        head = file.readline(1 << 20).decode("utf-8-sig", "replace").replace('"', "").strip().split(",")
    return head[:2] == _NODE and set(_EDGE) <= set(head)


def import_neo4j(path: Path, folder: Path) -> Imported:
    """Copy nodes with labels and properties, and the ends of relationships, by the database's own numbers.

    Args:
        path: of the file; DataError names the line that is neither a node nor a relationship.
    """
    rows = _rows(path)
    _, head = next(rows)
    start = head.index("_start")
    with ExitStack() as stack:
        columns = ["id", "labels", *free_names(head[2:start])]
        node_row = stack.enter_context(new_table(folder, "nodes", columns, str(path)))
        edge_row = stack.enter_context(new_table(folder, "edges", EDGES, str(path)))
        for number, row in rows:
            ends = row[start : start + 2]
            if len(row) != len(head) or bool(row[0]) == all(ends):
                raise DataError("is neither a node nor a relationship", where=f"{path}, line {number}")
            if row[0]:
                node_row(row[:start])
            else:
                edge_row(ends)
    return Imported(True, left_out(head[start + 2 :]))


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each row with the number of its last line."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            for row in rows:
                yield rows.line_num, row
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataError(f"cannot be read ({error})", where=f"{path}, line {rows.line_num}") from error
