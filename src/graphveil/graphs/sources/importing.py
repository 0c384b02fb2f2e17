"""One door to every source: which it is, by its address or the ending of its name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from graphveil.errors import InputError
from graphveil.graphs.sources.arrays import HOW_TO_SAVE, import_arrays
from graphveil.graphs.sources.database import SQLITE_ENDINGS, import_database
from graphveil.graphs.sources.files import import_edge_list, import_node_link
from graphveil.graphs.sources.graphml import import_graphml
from graphveil.graphs.sources.rows import Imported

_LISTS: Final = (".csv", ".tsv", ".txt", ".edges", ".edgelist")
_PICKLES: Final = (".pt", ".pth", ".pkl", ".pickle")
SOURCES: Final = (
    f".graphml, .json (node-link), .safetensors or .npz (a PyG Data), {', '.join(_LISTS)} (a list of edges), "
    f"{', '.join(SQLITE_ENDINGS)}, sqlite:///FILE, postgresql://USER@HOST/DATABASE"
)


@dataclass(frozen=True)
class Source:
    """Where a graph lies, and what its kind needs beside."""

    address: str  # a path, or the URL of a database
    nodes: Path | None = None  # of a list of edges: a table of the nodes
    nodes_query: str | None = None  # of a database, with edges_query
    edges_query: str | None = None

    @property
    def is_database(self) -> bool:
        return "://" in self.address or self.ending in SQLITE_ENDINGS

    @property
    def ending(self) -> str:
        return Path(self.address).suffix.lower()


def import_source(source: Source, folder: Path) -> Imported:
    """Copy a graph into the tables of a folder.

    Args:
        source: InputError where its kind is unknown, or takes other options; DataError where it cannot be read.
        folder: empty.
    """
    _require_options(source)
    path = Path(source.address)
    if source.is_database:
        return import_database(source.address, folder, str(source.nodes_query), str(source.edges_query))
    if source.ending in _PICKLES:
        raise InputError("is a pickle, and nothing is unpickled", where=source.address, remedy=HOW_TO_SAVE)
    if not path.is_file():
        raise InputError("no such file", where=source.address, allowed=SOURCES)
    if source.ending in _LISTS:
        return import_edge_list(path, folder, source.nodes)
    readers = {".graphml": import_graphml, ".json": import_node_link, ".safetensors": import_arrays}
    reader = {**readers, ".npz": import_arrays}.get(source.ending)
    if reader is None:
        raise InputError(f"the ending {source.ending!r} is of no source", where=source.address, allowed=SOURCES)
    return reader(path, folder)


def _require_options(source: Source) -> None:
    queries = (source.nodes_query, source.edges_query)
    if source.is_database and None in queries:
        raise InputError("a database needs both", where="--nodes-query, --edges-query", allowed="two SELECT queries")
    if not source.is_database and queries != (None, None):
        raise InputError("only a database is queried", where="--nodes-query, --edges-query", remedy="leave them out")
    if source.nodes is not None and source.ending not in _LISTS:
        raise InputError("only a list of edges needs a table of nodes", where="--nodes", remedy="leave it out")
