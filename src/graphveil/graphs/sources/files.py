"""Import of node-link JSON of NetworkX, and of edge lists."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from graphveil.errors import DataError
from graphveil.files.reading import LARGEST_DATA, read_json, require_file
from graphveil.graphs.drafts.public_knowledge import role_of
from graphveil.graphs.sources.rows import EDGES, Imported, free_names, left_out_note, new_table

_EDGES_KEYS: Final = ("edges", "links")
_SHAPE: Final = '{"directed": false, "nodes": [{"id": ...}], "edges": [{"source": ..., "target": ...}]}'


def import_node_link(path: Path, folder: Path) -> Imported:
    """Copy the JSON of `networkx.node_link_data`: nodes with their attributes, and edges, under `edges` or `links`.

    A list of numbers becomes one column for each number; other lists are joined by semicolons, as tags are.

    Args:
        path: of the file; DataError names the node or edge that cannot be copied.
        folder: of the tables.
    """
    content = read_json(path, largest=LARGEST_DATA)
    nodes, edges = _lists(content, path)
    names = list(dict.fromkeys(name for node in nodes for name in node if name != "id"))
    widths = {name: _width(name, nodes) for name in names}
    columns = [column for name in names for column in _columns(name, widths[name])]
    with new_table(folder, "nodes", ["id", *free_names(columns)], str(path)) as write_node:
        for number, node in enumerate(nodes, 1):
            where = f"{path}, node {number}"
            write_node(
                [_id(node.get("id"), where), *(cell for name in names for cell in _cells(node, name, widths, where))]
            )
    with new_table(folder, "edges", EDGES, str(path)) as write_edge:
        for number, edge in enumerate(edges, 1):
            write_edge([_id(edge.get(end), f"{path}, edge {number}") for end in EDGES])
    other_attributes = dict.fromkeys(name for edge in edges for name in edge if name not in (*EDGES, "key"))
    directed = content["directed"] if isinstance(content.get("directed"), bool) else None
    return Imported(directed, left_out_note(other_attributes))


def _lists(content: Any, path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    holder = content if isinstance(content, Mapping) else {}
    lists = holder.get("nodes"), next((holder[key] for key in _EDGES_KEYS if key in holder), None)
    for items in lists:
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise DataError("is no node-link JSON", where=str(path), allowed=_SHAPE)
    return lists  # type: ignore[return-value]


def _id(value: object, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise DataError(f"id, source or target is {value!r}", where=where, allowed="a text or a whole number")
    return str(value)


def _width(name: str, nodes: list[dict[str, Any]]) -> int | None:
    """The length of an attribute that is a list of numbers; None for any other attribute."""
    first = next((node[name] for node in nodes if node.get(name) is not None), None)
    if not isinstance(first, list) or not first or not all(isinstance(item, int | float) for item in first):
        return None
    return len(first)


def _columns(name: str, width: int | None) -> list[str]:
    return [name] if width is None else [f"{name}{index}" for index in range(width)]


def _cells(node: dict[str, Any], name: str, widths: Mapping[str, int | None], where: str) -> list[object]:
    value, width = node.get(name), widths[name]
    if width is None:
        return [value]
    if value is None:
        return [None] * width
    if not isinstance(value, list) or len(value) != width:
        raise DataError(f"{name} is not a list of {width} numbers", where=where, allowed="equally many at each node")
    return value


def import_edge_list(path: Path, folder: Path) -> Imported:
    """Copy a list of edges: two ids a line with commas, semicolons, tabs or spaces between; `#` begins a comment.

    Args:
        path: of the file. A first line such as `source,target` is a header. DataError for a file without edges, for a
            line without two ids, and for a first line of words above ids that are numbers.
        folder: of the tables; the table of nodes holds only their ids.
    """
    ids: set[str] = set()
    most_fields, first_edge = 0, ("", set[str]())  # where the first edge stands, and its ends
    with new_table(folder, "edges", EDGES, str(path)) as write_row:
        for where, ends in _edge_lines(path):
            if len(ends) < 2 or "" in ends[:2]:
                raise DataError("holds no two ids", where=where, allowed="two ids, the same separator in every line")
            write_row(ends[:2])
            ids.update(ends[:2])
            first_edge = first_edge if most_fields else (where, set(ends[:2]))
            most_fields = max(most_fields, len(ends))
    if not ids:
        raise DataError("holds no edges", where=str(path), allowed="two ids a line")
    # An unrecognized header would become two people.
    where, first_ids = first_edge
    other_ids = ids - first_ids
    if other_ids and all(map(str.isdecimal, other_ids)) and not any(map(str.isdecimal, first_ids)):
        what = f"{' and '.join(sorted(first_ids))} stand above ids that are numbers"
        raise DataError(what, where=where, remedy="if they name the columns, write source,target there")
    with new_table(folder, "nodes", ["id"], str(path)) as write_row:
        # Sorted: in the order of the edges, ids would reveal which edges come first.
        for node in sorted(ids, key=lambda node: (not node.isdecimal(), len(node) if node.isdecimal() else 0, node)):
            write_row([node])
    alone = "nodes.csv holds ids alone, and nobody without an edge: add people, columns of features and a label first"
    return Imported(notes=(*left_out_note(["whatever follows two ids"] if most_fields > 2 else []), alone))


def _edge_lines(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The fields of each line, behind its name in messages."""
    require_file(path)
    separator: str | None = None
    first = True
    with path.open("rb") as raw:
        for number, content in enumerate(raw, 1):
            where = f"{path}, line {number}"
            try:
                line = content.decode("utf-8-sig" if number == 1 else "utf-8").strip("\r\n")
            except UnicodeDecodeError as error:
                raise DataError("is not UTF-8 text", where=where, remedy="save the file as UTF-8") from error
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            if first:
                separator = next((mark for mark in ",;\t" if mark in line), None)
            fields = _fields(line, separator, where)
            # Single letters are ids and no header.
            names = role_of("source", fields[:1]) and role_of("target", fields[1:2]) and len("".join(fields[:2])) > 2
            if not (first and names):
                yield where, fields
            first = False


def _fields(line: str, separator: str | None, where: str) -> list[str]:
    if separator is None:
        return line.split()
    if '"' not in line:
        return [field.strip() for field in line.split(separator)]
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=separator, strict=True))]
    except csv.Error as error:
        raise DataError(f"cannot be read ({error})", where=where) from error
