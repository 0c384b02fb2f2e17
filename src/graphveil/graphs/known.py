"""Which edges everybody knows, and who may have private ones: declared by the owner, never read off private edges.

A graph with `public_edges` (bool [E] over `edge_index`, both directions alike) has public edges and private ones; the
others are private. `private_nodes` (int64 ids, ascending) are the only ones that may have private edges; default: all.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import numpy as np

from graphveil.ascending import contains, distinct
from graphveil.errors import DataError, InputError
from graphveil.graphs.edges import edge_keys
from graphveil.graphs.tables import Table

if TYPE_CHECKING:
    from graphveil.graphs.protocol import Graph


def read_truth(table: Table, column: str) -> np.ndarray:
    """A column of true or false (also 1, 0, yes, no) as bool.

    Args:
        table: the table.
        column: the name of the column.

    Raises:
        DataError: there is no such column, or a row says neither; names file and line.
    """
    import polars

    text = table.column(column).cast(polars.String).str.strip_chars().str.to_lowercase()
    yes, no = text.is_in(["true", "1", "yes"]), text.is_in(["false", "0", "no"])
    table.refuse(~(yes | no).fill_null(False), "{column} is {value}", column, "true or false in every row")
    truth: np.ndarray = yes.to_numpy()
    return truth


def public_columns(
    table: Table,
    column: str,
    ends: tuple[np.ndarray, np.ndarray],
    edge_index: np.ndarray,
    *,
    nodes: int,
    directed: bool,
) -> np.ndarray:
    """Return which columns of a normalised edge index stand for rows of the edges file that are declared public.

    Args:
        table: the edges file; column: its column of true or false.
        ends: source and target of each of its rows, as node numbers.
        edge_index: int64 [2, E], what `merge_edges` made of them.
        nodes: n.
        directed: whether an edge stands in one direction only.

    Returns:
        bool [E].

    Raises:
        DataError: an edge is listed as public in one row and as private in another; names file and line.
    """
    import polars

    public = read_truth(table, column)
    source, target = ends
    keys = edge_keys(source, target, nodes, directed=directed)
    # Refused and not resolved: either answer could publish an edge that somebody meant to hide.
    clash = np.zeros(len(keys), np.bool_)
    clash[public] = contains(distinct(keys[~public]), keys[public])
    message = "{column} is {value}, but another row lists the same edge as private"
    table.refuse(polars.Series(clash, dtype=polars.Boolean), message, column, "both alike")
    return contains(distinct(keys[public]), edge_keys(edge_index[0], edge_index[1], nodes, directed=directed))


def public_of(
    public: np.ndarray, ends: np.ndarray, edge_index: np.ndarray, *, nodes: int, directed: bool
) -> np.ndarray:
    """Return which columns of a normalised edge index stand for listed edges that are declared public.

    Args:
        public: bool [L], one truth for each listed edge.
        ends: int [2, L], the edges as they were listed.
        edge_index: int64 [2, E], what `merge_edges` made of them.
        nodes: n.
        directed: whether an edge stands in one direction only.

    Returns:
        bool [E].

    Raises:
        DataError: not one truth for each listed edge, or an edge is listed as public and as private.
    """
    if public.dtype != np.bool_ or public.shape != ends.shape[1:]:
        raise DataError("is not true or false for each edge", where="public_edges", allowed="bool [E]")
    keys = edge_keys(ends[0], ends[1], nodes, directed=directed)
    known = distinct(keys[public])
    if contains(known, keys[~public]).any():
        raise DataError("an edge is listed as public and as private", where="public_edges", allowed="both alike")
    return contains(known, edge_keys(edge_index[0], edge_index[1], nodes, directed=directed))


def draw_private(graph: Graph, share: float, seed: int) -> Graph:
    """Return a copy of a graph in which a share of the edges, drawn at random, is private and the rest is public.

    For experiments on graphs that say nothing about it: the drawing is noted in the schema, not hidden in a setting.

    Args:
        graph: an undirected graph.
        share: of the undirected edges, in (0, 1]; at 1 all edges are private.
        seed: fixes the drawing, never privacy noise.

    Raises:
        InputError: a share outside (0, 1], a directed graph, or one that already says which edges are public.
    """
    import torch

    if not (math.isfinite(share) and 0 < share <= 1):
        raise InputError(f"private share {share!r}", allowed="a number above 0, at most 1")
    if graph.schema.directed:
        raise InputError("edges have a direction", where=graph.schema.name, allowed="undirected graphs")
    if graph.get("public_edges") is not None:
        raise InputError(
            "the graph already declares which edges are public", where=graph.schema.name, remedy="leave out the share"
        )
    low, high = graph.edge_index.numpy()
    up = np.flatnonzero(low < high)
    private = np.sort(np.random.default_rng([seed, 0xED6E]).permutation(up)[: round(share * len(up))])
    nodes = int(graph.num_nodes)
    hidden = np.sort(edge_keys(low[private], high[private], nodes, directed=False))
    # Shallow, and the schema anew: the caller's graph must not come to say something else.
    drawn = copy.copy(graph)
    drawn.public_edges = torch.from_numpy(~contains(hidden, edge_keys(low, high, nodes, directed=False)))
    drawn.schema = graph.schema.noted(f"drew {share:g} of the edges as private, with seed {seed}: an experiment")
    return drawn
