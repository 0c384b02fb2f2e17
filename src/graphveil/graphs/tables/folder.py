"""The user's own graph: a folder of tables and a `graph.toml` that declares what is public about them."""

from __future__ import annotations

from pathlib import Path

from graphveil.engine import LOCAL, Engine
from graphveil.errors import DataError
from graphveil.graphs.declared.declaration import FILE, read_declaration
from graphveil.graphs.releases.release import read_release, refuse_stray_release
from graphveil.graphs.tables.tables import find_table, open_table, read_table
from graphveil.graphs.tables.tabular import Origin, join_people, list_edges, read_people
from graphveil.graphs.value.parts import GraphParts


def read_folder(folder: Path, engine: Engine = LOCAL) -> GraphParts:
    """Read a graph from `graph.toml`, `nodes.csv|parquet`, `edges.csv|parquet` and `features.csv|parquet`.

    `nodes` has one row a node: an id (any text), feature columns, optionally a label (empty where unknown)
    and a split (train, val, test or empty). `edges` has a source and a target id a row. Big sparse features
    go into `features` instead: one row (id, feature, value) for each entry, feature 0..dimension-1; what is
    not listed is 0, and without a value column each listed entry is 1.

    Normalised and reported in `schema.notes`: self-loops removed, duplicate edges merged, undirected edges
    stored in both directions, out-of-range values clipped when `out_of_range = "clip"`, columns with a range
    of their own scaled to 0..1. Everything else that does not fit is refused.

    Args:
        folder: where the files are.
        engine: works on blocks of rows of the edges.

    A folder that `write_release` wrote has `graph.release`: guarantee and ledger of what was published.

    Raises:
        DataError: names the file and, where there is one, the line; or a release is incomplete or was changed.
    """
    declared = read_declaration(folder / FILE)
    if not declared.release:
        # A release.json that nobody declared would lend its guarantee to other data.
        refuse_stray_release(folder)
    release = read_release(folder) if declared.release else None
    origin = Origin(
        where=str(folder / FILE),
        name=folder.resolve().name,
        source=f"declared by the owner in {FILE}",
        remedy=f"add some, or a features file beside {folder}",
        in_file=True,
    )
    nodes = read_table(_path(folder, "nodes"))
    listed = find_table(folder, "features", required=False)
    people = read_people(nodes, None if listed is None else read_table(listed), declared, origin)
    # Nothing holds on to the table of edges: they are put in order in the room that it took.
    edges = list_edges(open_table(_path(folder, "edges")), people, declared, engine)
    parts = join_people(people, edges, declared, origin, release)
    nodes.refuse_short_lines()
    return parts


def _path(folder: Path, stem: str) -> Path:
    path = find_table(folder, stem)
    if path is None:  # find_table has refused already
        raise DataError(f"no {stem} found", where=str(folder))
    return path
