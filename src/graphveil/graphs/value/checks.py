"""What every graph must satisfy, checked on arrays, with and without torch; DataError names the first fault."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from graphveil.errors import DataError, InputError
from graphveil.graphs.value.edges import edge_keys, is_normalised
from graphveil.graphs.value.features import check_range
from graphveil.graphs.value.parts import Features, Graph, GraphParts
from graphveil.graphs.value.schema import GraphSchema
from graphveil.runtime.sorted_arrays import contains, distinct
from graphveil.runtime.words import count_of

#: How the ids of two people must differ.
DISTINCT = "ids that differ in more than case, spaces, accents written apart and letters that nobody sees"
#: Ids of these characters are their own canonical form, see `graphveil.device.people.canonical_id`.
_PLAIN = re.compile("[!-@[-`{-~]*")


def require_graph(graph: object, where: str = "graph") -> None:
    """Refuse with InputError anything but a graph of graphveil.

    Args:
        where: the function or parameter that received it.
    """
    if not isinstance(getattr(graph, "schema", None), GraphSchema):
        what, remedy = f"a {type(graph).__name__} is no graph of graphveil", "make one with graphveil.as_graph"
        raise InputError(what, where=where, remedy=remedy)


def check_parts(parts: GraphParts) -> GraphParts:
    """Check features, labels and ids against the schema; edges come checked from `merge_edges`."""
    check_features(parts.x, parts.schema)
    check_labels(parts.y, parts.num_nodes, parts.schema.classes)
    names_of(parts.ids, parts.num_nodes)
    return parts


def require_one_label(graph: Graph | GraphParts) -> GraphSchema:
    """Return the schema of a graph; InputError where a node has several labels, which reports and sums do not cover."""
    schema: GraphSchema = graph.schema
    if graph.y is None or graph.y.ndim != 1:
        raise InputError(
            f"{schema.name} has several labels for each node",
            where="labels",
            allowed="graphs with one label a node",
            remedy="choose one of the labels as the class",
        )
    return schema


def check_features(x: Features, schema: GraphSchema) -> None:
    """Refuse features that are not float32, have another dimension or no rows, or leave the declared range.

    Args:
        x: [n, d].
        schema: the declared dimension and range.
    """
    if len(x.shape) != 2 or (isinstance(x, np.ndarray) and x.dtype != np.float32):
        raise DataError("x is not a float32 matrix", where="graph.x", allowed="float32 [n, d], dense or sparse CSR")
    if x.shape[1] != schema.dimension:
        raise DataError(f"x has {x.shape[1]} features", where="graph.x", allowed=f"the declared {schema.dimension}")
    if x.shape[0] == 0:
        raise DataError("the graph has no nodes", where="graph.x")
    check_range(x, schema.low, schema.high, "graph.x")


def check_labels(y: np.ndarray, nodes: int, classes: Sequence[str]) -> None:
    """Refuse labels that are not declared classes.

    Args:
        y: int [n], -1 where unknown; or float [n, c] of zeros and ones.
        classes: the c declared names.
    """
    if y.shape[:1] != (nodes,):
        raise DataError("y does not have one row for each node", where="graph.y", allowed=f"{nodes} rows")
    if y.ndim == 2:
        if y.dtype.kind != "f" or y.shape[1] != len(classes) or bool(((y != 0) & (y != 1)).any()):
            allowed = f"float [n, {len(classes)}]"
            raise DataError("y is not a 0/1 matrix of the declared classes", where="graph.y", allowed=allowed)
        return
    # No cast: 0.5, or a number that int64 cannot hold, would silently become another class.
    if y.dtype != np.int64:
        raise DataError(f"y is {y.dtype}", where="graph.y", allowed="int64 [n] or float [n, classes]")
    bad = np.flatnonzero((y < -1) | (y >= len(classes)))
    if len(bad):
        row, names = int(bad[0]), ", ".join([*classes[:5], *(["..."] if len(classes) > 5 else [])])
        allowed = f"0 to {len(classes) - 1} ({names}), or -1 for unknown"
        raise DataError(f"label of node {row} is {int(y[row])}", where="graph.y", allowed=allowed)


def check_edges(edge_index: np.ndarray, nodes: int, *, directed: bool) -> None:
    """Refuse edges with an end that is no node, or edges that are not in the form of `normalise_edges`.

    Args:
        edge_index: int64 [2, E].
    """
    if edge_index.size and (int(edge_index.min()) < 0 or int(edge_index.max()) >= nodes):
        bad = int(((edge_index < 0) | (edge_index >= nodes)).any(axis=0).argmax())
        ends = edge_index[:, bad].tolist()
        raise DataError(f"edge {bad} joins nodes {ends}", where="graph.edge_index", allowed=f"0 to {nodes - 1}")
    if not is_normalised(edge_index, directed=directed):
        what = "edges are unsorted, repeated, self-loops, or listed in one direction only"
        raise DataError(what, where="graph.edge_index", remedy="pass them through graphveil.graphs.normalise_edges")


def check_masks(masks: Iterable[np.ndarray], nodes: int) -> None:
    """Refuse masks that are not bool [n], or share a node.

    Args:
        masks: of one split.
    """
    present = list(masks)
    for mask in present:
        if mask.dtype != np.bool_ or mask.shape != (nodes,):
            what = "a split mask is not a bool vector over the nodes"
            raise DataError(what, where="graph masks", allowed=f"[{nodes}]")
    # A node that trains and tests would be scored on its own label.
    if present and int(np.stack(present).sum(axis=0).max()) > 1:
        raise DataError("a node is in two parts of the split", where="graph masks")


def check_public_edges(public: np.ndarray, edge_index: np.ndarray, nodes: int, *, directed: bool) -> None:
    """Refuse a mask of public edges that is not bool [E], or marks one direction of an edge only.

    Args:
        public: which columns of `edge_index` everybody knows.
        edge_index: int64 [2, E].
    """
    if public.dtype != np.bool_ or public.shape != edge_index.shape[1:]:
        raise DataError("is not true or false for each edge", where="graph.public_edges", allowed="bool [E]")
    if directed:
        return
    keys = edge_keys(edge_index[0], edge_index[1], nodes, directed=False)
    # One public direction publishes the edge: noise on the other would spend budget and protect nothing.
    if contains(distinct(keys[public]), keys[~public]).any():
        raise DataError("an edge is public in one direction only", where="graph.public_edges", allowed="both alike")


def check_private_nodes(members: np.ndarray, nodes: int) -> None:
    """Refuse private nodes that are not ascending node numbers.

    Args:
        members: int64 [k].
    """
    if members.dtype != np.int64 or members.ndim != 1:
        raise DataError("is not a list of node numbers", where="graph.private_nodes", allowed="int64 [k]")
    fits = members.size == 0 or (int(members[0]) >= 0 and int(members[-1]) < nodes)
    if not fits or not bool((members[1:] > members[:-1]).all()):
        what = "are not ascending node numbers"
        raise DataError(what, where="graph.private_nodes", allowed=f"0 to {nodes - 1}, each once")


def names_of(ids: Sequence[object] | np.ndarray | None, nodes: int) -> tuple[str, ...] | None:
    """Return ids as texts, the same for 1, "1" and 1.0, or None; DataError where an id is missing or repeated.

    Args:
        ids: texts or whole numbers, in row order.
    """
    if ids is None:
        return None
    values = ids.tolist() if hasattr(ids, "tolist") else ids
    if isinstance(values, str) or not isinstance(values, Collection):
        what = f"{type(ids).__name__} in place of a list"
        raise DataError(what, where="graph.ids", allowed="texts and whole numbers, in row order")
    # Texts pass unchanged: a check of each of a million would take longer than reading them.
    names = tuple(values) if set(map(type, values)) <= {str} else tuple(map(_name, values))
    if len(names) != nodes:
        what = f"{count_of(len(names), 'id')} for {count_of(nodes, 'node')}"
        raise DataError(what, where="graph.ids", allowed="one for each")
    # People are recognized by their ids: two people with one id would share a report and a budget.
    if len(set(names)) < len(names):
        repeated = next(name for name, count in Counter(names).items() if count > 1)
        raise DataError(f"{repeated!r} appears twice", where="graph.ids", allowed="each id once")
    twins = twins_of(names)
    if twins is not None:
        raise DataError(twins.message, where="graph.ids", allowed=DISTINCT)
    return names


class TwinIds(NamedTuple):
    """Two ids that people read as the same: one person would have two budgets."""

    row: int  # of the second id
    message: str


def twins_of(ids: Sequence[str]) -> TwinIds | None:
    """Return the first id that people read as an earlier one, or None."""
    # Most ids are numbers or lower-case ASCII, each of which is its own canonical form.
    if _PLAIN.fullmatch("".join(ids)):
        return None
    from graphveil.device.people.canonical_id import find_twins, known_as, one_id

    twins = find_twins(ids, known_as)
    return None if twins is None else TwinIds(twins[1], one_id(*(ids[row] for row in twins)))


def _name(node_id: object) -> str:
    if isinstance(node_id, float) and node_id.is_integer():  # a column of whole numbers that once had a gap
        node_id = int(node_id)
    if isinstance(node_id, bool) or not isinstance(node_id, str | int | np.integer):
        what = f"{node_id!r} is a {type(node_id).__name__}"
        raise DataError(what, where="graph.ids", allowed="texts and whole numbers")
    return str(node_id)
