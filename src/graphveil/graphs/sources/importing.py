"""`import_source`: chooses the reader of a source by its address or the ending of its name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from graphveil.errors import InputError
from graphveil.graphs.sources.arrays import HOW_TO_SAVE, import_arrays
from graphveil.graphs.sources.database import SQLITE_ENDINGS, import_database
from graphveil.graphs.sources.files import import_edge_list, import_node_link
from graphveil.graphs.sources.graphml import import_graphml
from graphveil.graphs.sources.neo4j import import_neo4j, is_neo4j
from graphveil.graphs.sources.rows import Imported

_READERS: Final = {
    ".graphml": import_graphml,
    ".json": import_node_link,
    **dict.fromkeys((".safetensors", ".npz"), import_arrays),
    **dict.fromkeys((".csv", ".tsv", ".txt", ".edges", ".edgelist"), import_edge_list),
}
_PICKLES: Final = (".pt", ".pth", ".pkl", ".pickle")
SOURCES: Final = f"{', '.join((*_READERS, *SQLITE_ENDINGS))}, sqlite:///FILE, postgresql://USER@HOST/DATABASE"


def import_source(address: str, folder: Path, queries: tuple[str | None, str | None] = (None, None)) -> Imported:
    """Copy a graph into the tables of a folder.

    Args:
        address: a path, or the URL of a database; InputError for an unknown kind, DataError where it cannot be read.
        folder: of the tables, empty.
        queries: for nodes and for edges, of a database.
    """
    path, ending = Path(address), Path(address).suffix.lower()
    nodes_query, edges_query = queries
    if "://" in address or ending in SQLITE_ENDINGS:
        if nodes_query is None or edges_query is None:
            raise InputError("a database needs both", where="--nodes-query, --edges-query", allowed="SELECT queries")
        return import_database(address, folder, nodes_query, edges_query)
    if queries != (None, None):
        raise InputError("only a database is queried", where="--nodes-query, --edges-query", remedy="leave them out")
    if ending in _PICKLES:
        raise InputError("is a pickle, and nothing is unpickled", where=address, remedy=HOW_TO_SAVE)
    if not path.is_file():
        raise InputError("no such file", where=address, allowed=SOURCES)
    if ending not in _READERS:
        raise InputError(f"no source ends in {ending!r}", where=address, allowed=SOURCES)
    if ending == ".csv" and is_neo4j(path):
        return import_neo4j(path, folder)
    return _READERS[ending](path, folder)
