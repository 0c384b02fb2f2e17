"""The parts of a graph from tables of nodes, edges and sparse features, whatever the source of the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from graphveil.engine import LOCAL, Engine
from graphveil.errors import DataError
from graphveil.graphs.declared.column_declaration import fill_value_for, filling_notes, range_remedy
from graphveil.graphs.declared.declaration import Declaration
from graphveil.graphs.declared.id_lookup import PeopleIds, find_nodes, holds_numbers, plain_ids
from graphveil.graphs.declared.typed_columns import clip_or_refuse, clipping_notes, encode_columns, multi_hot
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
    """All parts of a graph but its edges."""

    ids: PeopleIds
    x: Features  # [n, d]
    y: np.ndarray  # [n] or [n, c]
    masks: dict[Mask, np.ndarray]
    private_nodes: np.ndarray | None  # the nodes that may have private edges; None: not declared
    notes: tuple[str, ...]


def read_people(nodes: Table, entries: Table | None, declared: Declaration, origin: Origin) -> People:
    """Read everything but the edges.

    Args:
        nodes: one row a node.
        entries: one row for each sparse feature entry; None: features are columns of `nodes`.
        declared: their public facts.

    Raises:
        DataError: a table does not fit; names it and, where there is one, the row.
    """
    column = declared.id
    if nodes.rows == 0 and column in nodes.names:
        raise DataError("has no rows", where=nodes.title, allowed="one row for each node")
    numbers = holds_numbers(nodes, column)
    id_cells = plain_ids(nodes.column(column), numbers=numbers)
    id_cells = id_cells if numbers else whole_texts(id_cells)
    missing = id_cells.is_null() if numbers else id_cells.is_null() | (id_cells == "")
    nodes.refuse(missing, "{column} is missing", column, "an id in every row")
    nodes.refuse(~id_cells.is_first_distinct(), "{column} {value} appears twice", column, "each id once")
    if not numbers:
        twins = twins_of(id_cells.to_list())
        if twins is not None:
            raise DataError(f"{column} {twins.message}", where=nodes.where(twins.row), allowed=DISTINCT)
    ids = PeopleIds(id_cells)
    y, label_notes = _labels(nodes, declared)
    if declared.columns:
        x, notes = _encoded_columns(nodes, entries, declared, origin)
    elif entries is None:
        x, notes = _number_columns(nodes, declared, origin)
    else:
        x, notes = _sparse_entries(entries, ids, declared, origin)
    masks, private = _masks(nodes, declared), declared.private_nodes
    private_nodes = None if private is None else np.flatnonzero(read_truth(nodes, private))
    return People(ids, x, y, masks, private_nodes, (*notes, *label_notes))


@dataclass(frozen=True)
class ListedEdges:
    """The edges of a table."""

    source: np.ndarray  # with target: node numbers [rows]
    target: np.ndarray
    public: np.ndarray | None  # bool [rows], which of them everybody knows; None: not declared


def list_edges(edges: Table, people: People, declared: Declaration, engine: Engine = LOCAL) -> ListedEdges:
    """Read the edges, block by block; the table is no longer needed afterwards.

    Args:
        edges: one row an edge.
        people: from `read_people`.

    Raises:
        DataError: an edge does not fit; names the table and the row.
    """
    source, target = (find_nodes(edges, column, people.ids, engine) for column in (declared.source, declared.target))
    public = None
    if declared.public_edges is not None:
        public = public_rows(edges, declared.public_edges, (source, target), directed=declared.directed)
    return ListedEdges(source, target, public)


def join_people(
    people: People, edges: ListedEdges, declared: Declaration, origin: Origin, release: Release | None = None
) -> GraphParts:
    """Return the parts of a graph of people and edges; DataError where features or labels are not as declared.

    Args:
        people, edges: from `read_people` and `list_edges`.
        release: what a published graph says about itself.
    """
    edge_index, notes = merge_edges(edges.source, edges.target, len(people.ids), directed=declared.directed)
    public = None
    if edges.public is not None:
        public = public_columns(edges.public, (edges.source, edges.target), edge_index, directed=declared.directed)
    notes = (*people.notes, *notes)
    schema = declared.schema(origin.name, people.x.shape[1], source=origin.source, notes=notes)
    check_features(people.x, schema)
    check_labels(people.y, len(people.ids), schema.classes)
    ids = people.ids.texts.to_numpy()
    return GraphParts(people.x, edge_index, people.y, schema, people.masks, ids, public, people.private_nodes, release)


def _encoded_columns(
    nodes: Table, entries: Table | None, declared: Declaration, origin: Origin
) -> tuple[Features, tuple[str, ...]]:
    if entries is not None:
        what = f"columns are declared, but {entries.short_title} exists"
        raise DataError(what, where=origin.where, remedy="remove one of the two")
    encoded, changes = encode_columns(
        nodes, declared.columns, dict(declared.missing), clip=declared.clips, in_file=origin.in_file
    )
    return compact_dense(encoded), (*changes, "encoded each feature column as its kind says, in 0..1")


def _number_columns(nodes: Table, declared: Declaration, origin: Origin) -> tuple[Features, tuple[str, ...]]:
    names = list(declared.features_in(nodes.names))
    if not names:
        raise DataError("has no feature columns", where=nodes.title, remedy=origin.remedy)
    if declared.dimension not in (None, len(names)):
        what = f"dimension is {declared.dimension}, but there are {count_of(len(names), 'feature column')}"
        raise DataError(what, where=origin.where)
    values = np.empty((nodes.rows, len(names)), dtype=np.float32)
    clipped, fillings = 0, []
    for index, feature in enumerate(_feature_columns(names, declared, origin)):
        name, low, high = feature.name, feature.low, feature.high
        remedy = range_remedy(name, low, high, own_range=bool(declared.ranges), in_file=origin.in_file)
        numbers, absent = nodes.read_numbers(name, feature.fill_value, remedy)
        column, changed = clip_or_refuse(nodes, name, numbers, (low, high), clip=declared.clips)
        values[:, index] = (column - low) / (high - low) if declared.ranges else column
        clipped += changed
        if feature.fill_value is not None:
            fillings.append((name, absent, feature.fill_value))
    notes = filling_notes(fillings) + clipping_notes(clipped)
    if declared.ranges:
        notes += ("scaled each feature column from its declared range to 0..1",)
    return compact_dense(values), notes


@dataclass(frozen=True)
class _FeatureColumn:
    name: str
    low: float
    high: float
    fill_value: float | None  # in place of a missing value; None: refused


def _feature_columns(names: Sequence[str], declared: Declaration, origin: Origin) -> list[_FeatureColumn]:
    """What is declared of each feature column, checked before any value is read."""
    features = []
    for name in names:
        low, high = _range_of(name, declared, origin)
        fill_value = fill_value_for(name, declared.missing)
        features.append(_FeatureColumn(name, low, high, None if fill_value is None else float(fill_value)))
    for feature in features:
        if feature.fill_value is not None and not feature.low <= feature.fill_value <= feature.high:
            allowed = f"the declared range {feature.low:g} to {feature.high:g}"
            what = f"missing of {feature.name!r} is {feature.fill_value:g}"
            raise DataError(what, where=origin.where, allowed=allowed)
    for pattern, _ in declared.missing:
        if not any(fill_value_for(name, ((pattern, 0.0),)) is not None for name in names):
            raise DataError(f"missing names {pattern!r}", where=origin.where, allowed=", ".join(names[:8]))
    return features


def _range_of(name: str, declared: Declaration, origin: Origin) -> tuple[float, float]:
    if not declared.ranges:
        return declared.low, declared.high
    for pattern, low, high in declared.ranges:
        if fnmatchcase(name, pattern):
            return low, high
    allowed = f"it has {', '.join(pattern for pattern, _, _ in declared.ranges)}"
    raise DataError(f"range has no entry for the feature column {name!r}", where=origin.where, allowed=allowed)


def _sparse_entries(
    table: Table, ids: PeopleIds, declared: Declaration, origin: Origin
) -> tuple[Features, tuple[str, ...]]:
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
    rows, columns = _entry_indices(table, ids, declared.dimension)
    values, clipped = np.ones(len(rows), dtype=np.float32), 0
    notes: tuple[str, ...] = ()
    if "value" in table.names:
        bounds = (declared.low, declared.high)
        fill_value = fill_value_for("value", declared.missing)
        remedy = range_remedy("value", *bounds, own_range=False, in_file=origin.in_file)
        numbers, absent = table.read_numbers("value", None if fill_value is None else float(fill_value), remedy)
        notes = () if fill_value is None else filling_notes([("listed features", absent, fill_value)])
        values, clipped = clip_or_refuse(table, "value", numbers, bounds, clip=declared.clips)
    shape = (len(ids), declared.dimension)
    matrix = sparse.csr_matrix((values.astype(np.float32), (rows, columns)), shape=shape)
    return compact_rows(matrix), notes + clipping_notes(clipped)


def _entry_indices(table: Table, ids: PeopleIds, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each sparse entry, each pair once."""
    rows = find_nodes(table, "id", ids)
    numbers, _ = table.read_numbers("feature")
    features = numbers.cast(polars.Int64, strict=False)
    wrong = (features != numbers) | ~features.is_between(0, dimension - 1)
    table.refuse(wrong.fill_null(True), "{column} is {value}", "feature", f"whole numbers 0 to {dimension - 1}")
    repeated = ~(polars.Series(rows).cast(polars.Int64) * dimension + features).is_first_distinct()
    table.refuse(repeated, "feature {value} of this id appears twice", "feature", "each entry once")
    return rows, features.to_numpy()


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
