"""Import of GraphML, as NetworkX, igraph and Gephi write it, read element by element."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, iterparse
from xml.parsers import expat

from graphveil.errors import DataError
from graphveil.files.reading import require_file
from graphveil.graphs.sources.rows import EDGES, Imported, WriteRow, free_names, left_out_note, new_table


def import_graphml(path: Path, folder: Path) -> Imported:
    """Copy the nodes with their attributes, and the edges, into tables.

    Args:
        path: of the file; DataError where it is no GraphML of one graph with edges of one kind.
        folder: of the tables.
    """
    _refuse_document_type(path)
    keys: dict[str, Element] = {}
    writers: dict[str, WriteRow] = {}
    undeclared: dict[str, None] = {}
    directed = ""
    with ExitStack() as stack:
        for element in _elements(path):
            kind = element.tag.rpartition("}")[2]
            if kind == "key":
                keys[element.get("id", "")] = element
            elif kind == "graph" and writers:
                raise DataError("holds a second graph, or one inside a node", where=str(path), allowed="one graph")
            elif kind == "graph":
                directed = "true" if element.get("edgedefault") == "directed" else "false"
                columns = {"nodes": ["id", *free_names(list(_attributes(keys)))], "edges": EDGES}
                writers = {
                    stem: stack.enter_context(new_table(folder, stem, columns[stem], str(path))) for stem in columns
                }
            elif kind == "hyperedge" or element.get("directed", directed) != directed:
                raise DataError(f"holds a {kind} of another kind", where=str(path), allowed="all directed, or none")
            elif writers:
                writers[f"{kind}s"](_row(element, kind, keys, path))
                undeclared |= dict.fromkeys(set(_values(element)) - {*keys} if kind == "node" else ())
        if not writers:
            raise DataError("holds no graph", where=str(path), allowed="GraphML with one graph")
    names = (key.get("attr.name", name) for name, key in keys.items() if key.get("for") == "edge")
    # Neo4j writes labels like this when types are not requested.
    undeclared_note = f"left out of the nodes, since no key declares it: {', '.join(sorted(undeclared))}"
    return Imported(directed == "true", (*left_out_note(names), *([undeclared_note] if undeclared else [])))


def _refuse_document_type(path: Path) -> None:
    """Refuse a document type declaration: an entity in it may expand to another file, or to endless text."""

    def refuse(*_: object) -> None:
        remedy = "remove the line <!DOCTYPE ...>"
        raise DataError("declares a document type", where=str(path), allowed="GraphML without one", remedy=remedy)

    require_file(path)
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    try:
        with path.open("rb") as file:
            parser.ParseFile(file)
    except (expat.ExpatError, LookupError, ValueError) as error:  # LookupError: an unknown encoding
        if isinstance(error, DataError):
            raise
        raise DataError(f"cannot be read as XML ({error})", where=str(path)) from error


def _elements(path: Path) -> Iterator[Element]:
    """Each key, node and edge when it ends, and each graph when it begins; elements are freed after use."""
    graph = None
    try:
        for event, element in iterparse(path, events=("start", "end")):
            kind = element.tag.rpartition("}")[2]
            if (event == "start") == (kind == "graph") and kind in ("key", "graph", "node", "edge", "hyperedge"):
                yield element
            if kind == "graph" and graph is None:
                graph = element
            if event == "end" and kind in ("node", "edge") and graph is not None:
                graph.clear()
    except ParseError as error:
        raise DataError(f"cannot be read as XML ({error})", where=str(path)) from error


def _attributes(keys: dict[str, Element]) -> dict[str, list[str]]:
    """Attribute of nodes -> ids of its keys: NetworkX writes one key for each type of value."""
    ids: dict[str, list[str]] = {}
    for name, key in keys.items():
        if key.get("for", "all") in ("node", "all"):
            ids.setdefault(key.get("attr.name", name), []).append(name)
    return ids


def _row(element: Element, kind: str, keys: dict[str, Element], path: Path) -> list[str | None]:
    ends = [element.get(name) for name in (("id",) if kind == "node" else EDGES)]
    if not all(ends):
        what = "a node without an id" if kind == "node" else "an edge without two ends"
        raise DataError(f"holds {what}", where=str(path))
    if kind == "edge":
        return ends
    values, cells = _values(element), []
    for names in _attributes(keys).values():
        defaults = filter(None, (keys[name].findtext("{*}default") for name in names))
        cells.append([*(values[name] for name in names if name in values), *defaults, None][0])
    return [*ends, *cells]


def _values(element: Element) -> dict[str, str | None]:
    """Id of a key -> value, for a node or an edge."""
    return {part.get("key", ""): part.text for part in element if part.tag.rpartition("}")[2] == "data"}
