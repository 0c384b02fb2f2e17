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
from graphveil.graphs.sources.rows import EDGES, Imported, free_names, left_out_note, new_table

_NODE: Final = ["_id", "_labels"]
_EDGE: Final = ["_start", "_end", "_type"]


def is_neo4j(path: Path) -> bool:
    """Whether a csv file has the header of such a table."""
    with path.open("rb") as file:
        head = file.readline(1 << 20).decode("utf-8-sig", "replace").replace('"', "").strip().split(",")
    return head[:2] == _NODE and set(_EDGE) <= set(head)


def import_neo4j(path: Path, folder: Path) -> Imported:
    """Copy nodes with labels and properties, and the ends of relationships; ids are those of the database.

    Args:
        path: of the file; DataError names a line that is neither a node nor a relationship.
        folder: of the tables.
    """
    rows = _rows(path)
    _, head = next(rows)
    start = head.index("_start")
    with ExitStack() as stack:
        columns = ["id", "labels", *free_names(head[2:start])]
        write_node = stack.enter_context(new_table(folder, "nodes", columns, str(path)))
        write_edge = stack.enter_context(new_table(folder, "edges", EDGES, str(path)))
        for number, row in rows:
            ends = row[start : start + 2]
            if len(row) != len(head) or bool(row[0]) == all(ends):
                raise DataError("is neither a node nor a relationship", where=f"{path}, line {number}")
            if row[0]:
                write_node(row[:start])
            else:
                write_edge(ends)
    return Imported(True, left_out_note(head[start + 2 :]))


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each row with the number of its last line."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            for row in rows:
                yield rows.line_num, row
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataError(f"cannot be read ({error})", where=f"{path}, line {rows.line_num}") from error
