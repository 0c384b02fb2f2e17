"""Graphs that a caller already has in Python: PyG, sparse adjacency, NetworkX, tables.

Each function takes the public facts as keywords (`Declared`) or as `schema`, and treats what it is given as
`load_graph` treats a folder: self-loops are removed, duplicates merged, undirected edges stored in both directions,
each change counted in `schema.notes`; everything else that does not fit is refused: with InputError where a fact is not
declared (it shows the line that declares it), else with DataError, which names the part, row or node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from graphveil.errors import DataError, InputError
from graphveil.graphs.declared.declaration import Declaration
from graphveil.graphs.declared.keywords import Declared, DeclaredColumns, declaration_of
from graphveil.graphs.public_edges import public_of
from graphveil.graphs.tables.arrays import (
    Frame,
    array_of,
    as_table,
    columns_table,
    is_binary,
    read_ends,
    read_features,
    read_labels,
    read_masks,
    rows_of,
)
from graphveil.graphs.tables.tables import Table
from graphveil.graphs.tables.tabular import Origin, join_people, list_edges, read_people
from graphveil.graphs.value.checks import check_masks, check_parts, check_private_nodes, names_of, require_graph
from graphveil.graphs.value.edges import merge_edges
from graphveil.graphs.value.parts import MASKS, Graph, GraphParts, ImageShape
from graphveil.graphs.value.release import Release
from graphveil.graphs.value.schema import GraphSchema, with_edges
from graphveil.graphs.value.value import graph_of, parts_of
from graphveil.runtime.late import sparse
from graphveil.runtime.words import count_of

if TYPE_CHECKING:
    import networkx
    from torch_geometric.data import Data

_BY_CALLER = "declared by the caller"


def from_pyg(data: Data, *, schema: GraphSchema | None = None, **declared: Unpack[Declared]) -> Graph:
    """Make a graph from a PyG `Data`.

    It reads x [n, d], y, edge_index [2, E] and, where present, train_mask, val_mask, test_mask, ids, public_edges
    (bool [E]) and private_nodes. Everything else is left out; attributes of edges are noted.

    Args:
        data: the PyG graph; it is not changed.
        schema: the public facts as a value; default: `data.schema`, if there is one.
        **declared: the public facts as keywords, see `Declared`; `classes` and, unless the features have the type bool,
            `range` are needed where there is no schema.

    Raises:
        InputError: a fact is not declared; shows the line that declares it.
        DataError: a part cannot be used, or is outside what is declared.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from graphveil.graphs import from_pyg
        >>> data = Data(x=torch.tensor([[0.5], [2.0]]), y=torch.tensor([0, 1]), edge_index=torch.tensor([[0], [1]]))
        >>> graph = from_pyg(data, range=(0, 10), classes=["sales", "support"])
        >>> graph.edge_index.tolist()
        [[0, 1], [1, 0]]
    """
    if hasattr(data, "node_types"):
        raise InputError("data has several kinds of nodes", where="from_pyg", remedy="call data.to_homogeneous()")
    for name, remedy in (
        ("x", "set data.x to the features [n, d]"),
        ("edge_index", "set data.edge_index to the edges [2, E], before ToSparseTensor if that is used"),
    ):
        if getattr(data, name, None) is None:
            raise DataError(f"data has no {name}", where="from_pyg", remedy=remedy)
    schema = schema if schema is not None or declared else getattr(data, "schema", None)
    facts, notes = declaration_of("from_pyg(data", schema, declared, binary=is_binary(data.x))
    x, changes = read_features(data.x, facts)
    # Only a number that was set: PyG infers an unset one from the features, or guesses it from the edges.
    nodes = data["num_nodes"] if hasattr(data, "__contains__") and "num_nodes" in data else None
    if nodes is not None and nodes != x.shape[0]:
        raise DataError(f"data has num_nodes {nodes}, and {count_of(x.shape[0], 'row')} of features", where="from_pyg")
    y, unknown = read_labels(data.y, x.shape[0], facts.classes)
    ends = read_ends(data.edge_index)
    edge_index, merged = merge_edges(ends[0], ends[1], x.shape[0], directed=facts.directed)
    unused = [name for name in ("edge_attr", "edge_weight") if getattr(data, name, None) is not None]
    dropped = (f"left out {' and '.join(unused)}: no weights of edges are read",) if unused else ()
    final = _schema(schema, facts, x.shape[1], "pyg", (*notes, *changes, *unknown, *merged, *dropped))
    masks = read_masks({name: getattr(data, name, None) for name in MASKS})
    # PyG checks no masks, and a mask of another length can index these nodes without an error.
    check_masks(masks.values(), x.shape[0])
    public = getattr(data, "public_edges", None)
    if public is not None:
        public = public_of(array_of(public, "public_edges"), ends, edge_index, directed=facts.directed)
    members = getattr(data, "private_nodes", None)
    if members is not None:
        members = array_of(members, "private_nodes")
        check_private_nodes(members, x.shape[0])
    # An attribute of this name but another type, such as a release date, is the user's own.
    release, image = getattr(data, "release", None), getattr(data, "image", None)
    extras: dict[str, Any] = {
        "ids": getattr(data, "ids", None),
        "release": release if isinstance(release, Release) else None,
        "image": image if isinstance(image, ImageShape) else None,
    }
    if (public is not None or members is not None) and extras["release"] is None:
        final = final.derived(private=with_edges(final.private))
    parts = GraphParts(x, edge_index, y, final, masks, public_edges=public, private_nodes=members, **extras)
    return graph_of(check_parts(parts))


def from_adjacency(
    adjacency: object,
    x: object,
    y: object = None,
    *,
    masks: Mapping[str, object] | None = None,
    ids: Sequence[object] | None = None,
    schema: GraphSchema | None = None,
    **declared: Unpack[Declared],
) -> Graph:
    """Make a graph from an adjacency matrix, features and labels.

    Args:
        adjacency: [n, n], SciPy sparse, torch sparse or dense; every entry that is not 0 is an edge from its row to
            its column, whatever its weight.
        x: features [n, d], dense or sparse.
        y: whole numbers [n] (-1: unknown), class names [n], or zeros and ones [n, c]; None: every label unknown.
        masks: the published split, any of "train_mask", "val_mask", "test_mask", each bool [n].
        ids: the user's own node ids, in row order: texts or whole numbers, each once.
        schema: the public facts as a value.
        **declared: the public facts as keywords, see `Declared`.

    Raises:
        InputError: a fact is not declared; shows the line that declares it.
        DataError: a part cannot be used, or is outside what is declared.

    Example:
        >>> import numpy as np
        >>> from scipy.sparse import csr_matrix
        >>> from graphveil.graphs import from_adjacency
        >>> adjacency = csr_matrix(np.array([[0, 1], [1, 0]]))
        >>> x = np.array([[True, False], [False, True]])
        >>> graph = from_adjacency(adjacency, x, ["no", "yes"], classes=["no", "yes"])
        >>> graph.schema.high, graph.y.tolist()
        (1.0, [0, 1])
    """
    facts, notes = declaration_of("from_adjacency(adjacency, x, y", schema, declared, binary=is_binary(x))
    features, changes = read_features(x, facts)
    n = features.shape[0]
    labels, unknown = read_labels(y, n, facts.classes)
    source, target, weights = _entries(adjacency, n)
    edge_index, merged = merge_edges(source, target, n, directed=facts.directed)
    final = _schema(schema, facts, features.shape[1], "adjacency", (*notes, *changes, *unknown, *weights, *merged))
    split = read_masks(masks or {})
    check_masks(split.values(), n)
    return graph_of(check_parts(GraphParts(features, edge_index, labels, final, split, ids)))


def from_tables(
    nodes: Frame,
    edges: Frame,
    entries: Frame | None = None,
    *,
    schema: GraphSchema | None = None,
    **declared: Unpack[DeclaredColumns],
) -> Graph:
    """Make a graph from the tables that a folder with `graph.toml` holds, as frames; ids become texts.

    Args:
        nodes: one row a node: an id, feature columns, optionally a label (missing where unknown) and a split.
        edges: one row an edge: the ids of its source and target.
        entries: one row (id, feature, value) for each sparse feature entry, in place of feature columns.
        schema: the public facts as a value; its dimension is the number of feature columns.
        **declared: the public facts and the names of the columns as keywords, see `DeclaredColumns`; `range` and
            `classes` are needed unless there is a schema.

    Raises:
        InputError: a fact is not declared; shows the line that declares it.
        DataError: a table cannot be used; names it and, where there is one, the row.

    Example:
        >>> from graphveil.graphs import from_tables
        >>> nodes = {"id": ["ann", "bob"], "hours": [3, 38], "team": ["sales", None]}
        >>> edges = {"source": ["ann"], "target": ["bob"]}
        >>> graph = from_tables(nodes, edges, range=(0, 40), classes=["sales", "support"], label="team")
        >>> list(graph.ids), graph.y.tolist()
        (['ann', 'bob'], [0, -1])
    """
    facts, notes = declaration_of("from_tables(nodes, edges", schema, declared, columns=True)
    remedy = "add some, or hand over sparse entries"
    source = schema.source if schema else _BY_CALLER
    origin = Origin(where="from_tables", name=facts.name or "tables", source=source, remedy=remedy)
    people_table = as_table(nodes, "nodes")
    people = read_people(people_table, None if entries is None else as_table(entries, "entries"), facts, origin)
    parts = join_people(people, list_edges(as_table(edges, "edges"), people, facts), facts, origin)
    people_table.refuse_short_lines()
    return _noted(parts, schema, notes)


def from_networkx(
    graph: networkx.Graph[Any],
    *,
    features: str | Sequence[str] = "x",
    label: str | None = None,
    split: str | None = None,
    public_edges: str | None = None,
    private_nodes: str | None = None,
    schema: GraphSchema | None = None,
    **declared: Unpack[Declared],
) -> Graph:
    """Make a graph from a NetworkX graph; its nodes, texts or whole numbers, become ids, as texts.

    Args:
        graph: of any kind; parallel edges are merged, and a directed graph stays directed.
        features: the node attributes that are features, one number each; or the one that holds a list of d numbers.
        label: the node attribute with the name of the class, absent where unknown; default: "label".
        split: the node attribute with "train", "val", "test" or nothing.
        public_edges: the edge attribute, true or false: the edges that everybody knows.
        private_nodes: the node attribute, true or false: who may have private edges.
        schema: the public facts as a value.
        **declared: the public facts as keywords, see `Declared`.

    Raises:
        InputError: a fact is not declared; shows the line that declares it.
        DataError: an attribute cannot be used; names the node or edge.

    Example:
        >>> import networkx
        >>> from graphveil.graphs import from_networkx
        >>> club = networkx.Graph()
        >>> club.add_node("ann", age=41, team="red")
        >>> club.add_node("bob", age=37, team="blue")
        >>> club.add_edge("ann", "bob")
        >>> graph = from_networkx(club, features=["age"], label="team", range=(0, 120), classes=["red", "blue"])
        >>> graph.num_nodes, graph.y.tolist()
        (2, [0, 1])
    """
    if not (hasattr(graph, "nodes") and hasattr(graph, "is_directed")):
        raise InputError(f"is a {type(graph).__name__}", where="graph", allowed="a NetworkX graph")
    if not isinstance(features, str | Sequence):
        allowed = "the name of an attribute, or a list of names"
        raise InputError(f"is a {type(features).__name__}", where="features", allowed=allowed)
    call = f"from_networkx(graph, features={features if isinstance(features, str) else list(features)!r}"
    columns = {"label": label, "split": split, "public_edges": public_edges, "private_nodes": private_nodes}
    column_names = {key: name for key, name in columns.items() if name is not None}
    nodes, feature_names = _node_table(
        graph, features, [name for key, name in column_names.items() if key != "public_edges"]
    )
    edges = _edge_table(graph, public_edges)
    implied_columns = {"id": "(node)", "source": "(source)", "target": "(target)", "features": feature_names}
    facts, notes = declaration_of(
        call, schema, {**declared, **column_names}, columns=True, directed=graph.is_directed(), implied=implied_columns
    )
    if facts.directed and not graph.is_directed():
        raise InputError("directed=True, but the edges of the graph have no direction", where="from_networkx")
    source = schema.source if schema else _BY_CALLER
    name = facts.name or str(graph.name or "networkx")
    origin = Origin(where="from_networkx", name=name, source=source, remedy="name some with features=")
    people = read_people(nodes, None, facts, origin)
    return _noted(join_people(people, list_edges(edges, people, facts), facts, origin), schema, notes)


def to_pyg(graph: Graph) -> Data:
    """Return a PyG `Data` for PyG's own layers and loaders, with dense features and all other parts: raw data.

    Args:
        graph: sparse features are copied, which takes 4 n d bytes; everything else is shared.

    Example:
        >>> from graphveil.graphs import load_graph, to_pyg
        >>> to_pyg(load_graph("social-100")).x.shape
        torch.Size([100, 1000])
    """
    require_graph(graph, "to_pyg")
    copied = graph_of(parts_of(graph))
    copied.x = graph.x.to_dense() if graph.x.is_sparse_csr else graph.x
    return copied


def object_graph(data: object, schema: GraphSchema | None = None) -> Graph:
    """As `load.as_graph`, for a Python object or the parts of a graph."""
    graph: Any = graph_of(data) if isinstance(data, GraphParts) else data
    if hasattr(graph, "edge_index"):
        own = isinstance(getattr(graph, "schema", None), GraphSchema) and schema is None
        loaded: Graph = graph if own else from_pyg(graph, schema=schema)
        return loaded
    if hasattr(graph, "nodes") and hasattr(graph, "is_multigraph"):
        return from_networkx(graph, schema=schema)
    raise InputError(
        f"a {type(data).__name__} is not a graph",
        allowed="a graph of load_graph, a PyG Data, a NetworkX graph, the name of a data set or a folder",
        remedy="make one with graphveil.from_tables(nodes, edges, ...) or from_adjacency(adjacency, x, y, ...)",
    )


def _schema(
    schema: GraphSchema | None, facts: Declaration, dimension: int, name: str, notes: tuple[str, ...]
) -> GraphSchema:
    if schema is not None:
        return schema.noted(*(note for note in notes if note not in schema.notes))
    return facts.schema(name, dimension, source=_BY_CALLER, notes=notes)


def _noted(parts: GraphParts, schema: GraphSchema | None, notes: tuple[str, ...]) -> Graph:
    before = schema.notes if schema is not None else notes
    return graph_of(replace(parts, schema=parts.schema.derived(notes=(*before, *parts.schema.notes))))


def _entries(adjacency: object, nodes: int) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Rows and columns of the entries that are not 0, and a note where they have weights."""
    rows = rows_of(adjacency)
    if rows is None:
        dense = array_of(adjacency, "adjacency")
        if dense.ndim != 2 or dense.dtype.kind not in "biuf":
            raise DataError(f"has shape {dense.shape} and type {dense.dtype}", where="adjacency", allowed="[n, n]")
        # SciPy keeps no numbers of 16 bits.
        rows = sparse.csr_matrix(dense.astype(np.float32) if dense.dtype == np.float16 else dense)
    if rows.shape != (nodes, nodes):
        raise DataError(f"has shape {rows.shape}", where="adjacency", allowed=f"{nodes, nodes}, as x has {nodes} rows")
    # NaN is not 0 either, and would silently become an edge.
    if rows.dtype.kind == "f" and not np.isfinite(rows.data).all():
        raise DataError("holds NaN or infinity", where="adjacency", allowed="0 for no edge, another number for one")
    rows.sum_duplicates()
    # A stored 0 is no edge, though a sparse format may keep it.
    rows.eliminate_zeros()
    weighted = bool((rows.data != 1).any())
    entries = rows.tocoo()
    notes = ("left out the weights of edges: every entry that is not 0 is an edge",) if weighted else ()
    return entries.row, entries.col, notes


def _node_table(
    graph: networkx.Graph[Any], features: str | Sequence[str], attributes: Sequence[str]
) -> tuple[Table, list[str]]:
    """The nodes as a table, and the names of its feature columns."""
    names = names_of(list(graph.nodes), graph.number_of_nodes()) or ()
    node_values = [values for _, values in graph.nodes(data=True)]
    columns: dict[str, object] = {"(node)": list(names)}
    for name in dict.fromkeys(("label", *attributes)):
        if any(name in values for values in node_values):
            columns[name] = [values.get(name) for values in node_values]
    if isinstance(features, str):
        rows: list[np.ndarray] = []
        for name, values in zip(names, node_values, strict=True):
            row = array_of(values[features], f"node {name!r}") if values.get(features) is not None else np.empty((0, 0))
            if row.ndim != 1 or row.dtype.kind not in "biuf" or (rows and len(row) != len(rows[0])):
                what, allowed = f"{features} is not such a list", "a list of numbers, equally long for every node"
                remedy = "if features are several attributes, name them: features=[...]"
                raise DataError(what, where=f"node {name!r}", allowed=allowed, remedy=remedy)
            rows.append(row)
        matrix = np.stack(rows).astype(np.float64) if rows else np.empty((0, 1))
        feature_names = [f"{features}[{column}]" for column in range(matrix.shape[1])]
        columns.update({name: matrix[:, column] for column, name in enumerate(feature_names)})
    else:
        feature_names = list(features)
        columns.update({name: [values.get(name) for values in node_values] for name in feature_names})
    return columns_table(columns, "nodes", [f"node {name!r}" for name in names]), feature_names


def _edge_table(graph: networkx.Graph[Any], public: str | None) -> Table:
    ends = [(str(source), str(target)) for source, target in graph.edges()]
    columns: dict[str, object] = {"(source)": [end[0] for end in ends], "(target)": [end[1] for end in ends]}
    if public is not None:
        columns[public] = [values.get(public) for _, _, values in graph.edges(data=True)]
    return columns_table(columns, "edges", [f"edge {source!r} to {target!r}" for source, target in ends])
