"""Tables of nodes, edges and sparse features made into the parts of a graph, wherever the tables came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from graphveil.engine import LOCAL, Engine
from graphveil.errors import DataError
from graphveil.graphs.declared.column_declaration import filled_notes, range_remedy, stand_for
from graphveil.graphs.declared.declaration import Declaration
from graphveil.graphs.declared.id_places import KnownIds, find_places, holds_numbers, plain_ids
from graphveil.graphs.declared.typed_columns import clipped_note, encode_columns, in_range, multi_hot
from graphveil.graphs.public_edges import public_columns, public_rows, read_truth
from graphveil.graphs.tables.tables import Table, whole_texts
from graphveil.graphs.value.checks import DISTINCT, check_features, check_labels, twins_of
from graphveil.graphs.value.edges import merge_edges
from graphveil.graphs.value.features import compact_dense, compact_rows
from graphveil.graphs.value.parts import MASKS, Features, GraphParts, Mask
from graphveil.graphs.value.release import Release
from graphveil.runtime.late import polars, sparse
from graphveil.runtime.words import count_of

_SPLITS = {"train": 0, "val": 1, "test": 2}


@dataclass(frozen=True)
class Origin:
    """Where tables and their declaration came from, for messages and the schema."""

    where: str  # the declaration
    name: str  # of the graph, unless the declaration names it
    source: str  # who declared the range and the classes
    remedy: str  # what to do where there are no feature columns
    in_file: bool = False  # whether the declaration is a file, else keywords in Python


@dataclass(frozen=True)
class People:
    """All but the edges; x [n, d], y [n] or [n, c], and which `members` may have private edges, where declared."""

    ids: KnownIds
    x: Features
    dimension: int
    y: np.ndarray
    masks: dict[Mask, np.ndarray]
    members: np.ndarray | None
    notes: tuple[str, ...]


def read_people(nodes: Table, entries: Table | None, declared: Declaration, origin: Origin) -> People:
    """Read everything but the edges.

    Args:
        nodes: one row a node.
        entries: one row for each sparse feature entry; None: features are columns of `nodes`.
        declared: what is public of them.

    Raises:
        DataError: a table does not fit; names it and, where there is one, the row.
    """
    column = declared.id
    if nodes.rows == 0 and column in nodes.names:
        raise DataError("has no rows", where=nodes.title, allowed="one row for each node")
    numbers = holds_numbers(nodes, column)
    listed = plain_ids(nodes.column(column), numbers=numbers)
    listed = listed if numbers else whole_texts(listed)
    missing = listed.is_null() if numbers else listed.is_null() | (listed == "")
    nodes.refuse(missing, "{column} is missing", column, "an id in every row")
    nodes.refuse(~listed.is_first_distinct(), "{column} {value} appears twice", column, "each id once")
    if not numbers:
        twin = twins_of(listed.to_list())
        if twin is not None:
            raise DataError(f"{column} {twin[1]}", where=nodes.where(twin[0]), allowed=DISTINCT)
    ids = KnownIds(listed)
    y, label_notes = _labels(nodes, declared)
    if declared.columns:
        x, dimension, notes = _typed(nodes, entries, declared, origin)
    elif entries is None:
        x, dimension, notes = _columns(nodes, declared, origin)
    else:
        x, dimension, notes = _entries(entries, ids, declared, origin)
    masks, private = _masks(nodes, declared), declared.private_nodes
    members = None if private is None else np.flatnonzero(read_truth(nodes, private))
    return People(ids, x, dimension, y, masks, members, (*notes, *label_notes))


@dataclass(frozen=True)
class ListedEdges:
    """The table of edges: places [rows] among the people; `public`, where declared, says which everybody knows."""

    source: np.ndarray
    target: np.ndarray
    public: np.ndarray | None


def list_edges(edges: Table, people: People, declared: Declaration, engine: Engine = LOCAL) -> ListedEdges:
    """Read the edges, block by block; the table is no longer needed afterwards.

    Args:
        edges: one row an edge.
        people: from `read_people`.

    Raises:
        DataError: an edge does not fit; names the table and the row.
    """
    source, target = (find_places(edges, column, people.ids, engine) for column in (declared.source, declared.target))
    public = None
    if declared.public_edges is not None:
        public = public_rows(edges, declared.public_edges, (source, target), directed=declared.directed)
    return ListedEdges(source, target, public)


def join_people(
    people: People, edges: ListedEdges, declared: Declaration, origin: Origin, release: Release | None = None
) -> GraphParts:
    """Return the graph of people and their edges; DataError where features or labels are not as declared.

    Args:
        people, edges: from `read_people` and `list_edges`.
        release: what a published graph says about itself.
    """
    edge_index, notes = merge_edges(edges.source, edges.target, len(people.ids), directed=declared.directed)
    public = None
    if edges.public is not None:
        public = public_columns(edges.public, (edges.source, edges.target), edge_index, directed=declared.directed)
    notes = (*people.notes, *notes)
    schema = declared.schema(origin.name, people.dimension, source=origin.source, notes=notes)
    check_features(people.x, schema)
    check_labels(people.y, len(people.ids), schema.classes)
    ids = people.ids.texts.to_numpy()
    return GraphParts(people.x, edge_index, people.y, schema, people.masks, ids, public, people.members, release)


def _typed(
    nodes: Table, entries: Table | None, declared: Declaration, origin: Origin
) -> tuple[Features, int, tuple[str, ...]]:
    if entries is not None:
        what = f"columns are declared, but {entries.short_title} exists"
        raise DataError(what, where=origin.where, remedy="remove one of the two")
    encoded, changes = encode_columns(
        nodes, declared.columns, dict(declared.missing), clip=declared.clips, in_file=origin.in_file
    )
    notes = (*changes, "encoded each feature column as its kind says, in 0..1")
    return compact_dense(encoded), encoded.shape[1], notes


def _columns(nodes: Table, declared: Declaration, origin: Origin) -> tuple[Features, int, tuple[str, ...]]:
    names = list(declared.features_in(nodes.names))
    if not names:
        raise DataError("has no feature columns", where=nodes.title, remedy=origin.remedy)
    if declared.dimension not in (None, len(names)):
        what = f"dimension is {declared.dimension}, but there are {count_of(len(names), 'feature column')}"
        raise DataError(what, where=origin.where)
    values = np.empty((nodes.rows, len(names)), dtype=np.float32)
    bounds, stands = _declared_of(names, declared, origin)
    clipped, filled = 0, []
    for index, (name, (low, high), stand) in enumerate(zip(names, bounds, stands, strict=True)):
        remedy = range_remedy(name, low, high, alone=bool(declared.ranges), in_file=origin.in_file)
        numbers, absent = nodes.filled_numbers(name, stand, remedy)
        column, changed = in_range(nodes, name, numbers, (low, high), clip=declared.clips)
        values[:, index] = (column - low) / (high - low) if declared.ranges else column
        clipped += changed
        if stand is not None:
            filled.append((name, absent, stand))
    notes = filled_notes(filled)
    notes += clipped_note(clipped)
    if declared.ranges:
        notes += ("scaled each feature column from its declared range to 0..1",)
    return compact_dense(values), len(names), notes


def _declared_of(
    names: Sequence[str], declared: Declaration, origin: Origin
) -> tuple[list[tuple[float, float]], list[float | None]]:
    """The range of each feature and what stands for its missing values, checked before any value is read."""
    bounds = [_range_of(name, declared, origin) for name in names]
    stands = [stand_for(name, declared.missing) for name in names]
    for name, (low, high), stand in zip(names, bounds, stands, strict=True):
        if stand is not None and not low <= float(stand) <= high:
            allowed = f"the declared range {low:g} to {high:g}"
            raise DataError(f"missing of {name!r} is {stand:g}", where=origin.where, allowed=allowed)
    for pattern, _ in declared.missing:
        if not any(stand_for(name, ((pattern, 0.0),)) is not None for name in names):
            raise DataError(f"missing names {pattern!r}", where=origin.where, allowed=", ".join(names[:8]))
    return bounds, [None if stand is None else float(stand) for stand in stands]


def _range_of(name: str, declared: Declaration, origin: Origin) -> tuple[float, float]:
    if not declared.ranges:
        return declared.low, declared.high
    for pattern, low, high in declared.ranges:
        if fnmatchcase(name, pattern):
            return low, high
    allowed = f"it has {', '.join(pattern for pattern, _, _ in declared.ranges)}"
    raise DataError(f"range has no entry for the feature column {name!r}", where=origin.where, allowed=allowed)


def _entries(
    table: Table, ids: KnownIds, declared: Declaration, origin: Origin
) -> tuple[Features, int, tuple[str, ...]]:
    """Sparse features from rows (id, feature, value)."""
    if declared.dimension is None:
        what = f"dimension is not declared, but {table.short_title} exists"
        raise DataError(what, where=origin.where, remedy="declare dimension = the number of features")
    if declared.features or declared.ranges or not declared.low <= 0 <= declared.high:
        raise DataError(
            f"features from {table.short_title} have one range, and what is not listed counts as 0",
            where=origin.where,
            allowed="range = [low, high] with low <= 0 <= high, and no key features",
        )
    rows, columns = _entry_places(table, ids, declared.dimension)
    values, clipped = np.ones(len(rows), dtype=np.float32), 0
    filled: tuple[str, ...] = ()
    if "value" in table.names:
        bounds = (declared.low, declared.high)
        stand = stand_for("value", declared.missing)
        remedy = range_remedy("value", *bounds, alone=False, in_file=origin.in_file)
        numbers, absent = table.filled_numbers("value", None if stand is None else float(stand), remedy)
        filled = () if stand is None else filled_notes([("listed features", absent, stand)])
        values, clipped = in_range(table, "value", numbers, bounds, clip=declared.clips)
    shape = (len(ids), declared.dimension)
    matrix = sparse.csr_matrix((values.astype(np.float32), (rows, columns)), shape=shape)
    return compact_rows(matrix), declared.dimension, (*filled, *clipped_note(clipped))


def _entry_places(table: Table, ids: KnownIds, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each sparse entry, each pair once."""
    rows = find_places(table, "id", ids)
    numbers, _ = table.filled_numbers("feature")
    listed = numbers.cast(polars.Int64, strict=False)
    wrong = (listed != numbers) | ~listed.is_between(0, dimension - 1)
    table.refuse(wrong.fill_null(True), "{column} is {value}", "feature", f"whole numbers 0 to {dimension - 1}")
    twice = ~(polars.Series(rows).cast(polars.Int64) * dimension + listed).is_first_distinct()
    table.refuse(twice, "feature {value} of this id appears twice", "feature", "each entry once")
    return rows, listed.to_numpy()


def _labels(nodes: Table, declared: Declaration) -> tuple[np.ndarray, tuple[str, ...]]:
    column = declared.label or "label"
    if declared.label_separator is not None:
        cells = nodes.text(column).fill_null("").str.split(declared.label_separator)
        return multi_hot(nodes, column, cells, declared.classes, "not all of it declared classes"), ()
    if declared.label is None and column not in nodes.names:
        return np.full(nodes.rows, -1), ("no label column: every label unknown",)
    text = nodes.text(column)
    codes = nodes.codes_of(text.set(text == "", None), column, declared.classes, "not a declared class")
    labels = codes.to_physical().cast(polars.Int64).fill_null(-1).to_numpy()
    unknown = int((labels < 0).sum())
    return labels.copy(), (f"{count_of(unknown, 'label')} unknown",) if unknown else ()


def _masks(nodes: Table, declared: Declaration) -> dict[Mask, np.ndarray]:
    if declared.split is None:
        return {}
    text = nodes.text(declared.split).fill_null("")
    nodes.refuse(~text.is_in([*_SPLITS, ""]), "{column} is {value}", declared.split, "train, val, test or empty")
    return {mask: (text == part).to_numpy().copy() for mask, part in zip(MASKS, _SPLITS, strict=True)}
