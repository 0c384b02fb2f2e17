"""Which edges are public, and which nodes may have private edges: declared by the owner, never read off private edges.

`public_edges` (bool [E] over `edge_index`, equal for both directions) marks the public edges of a graph; its other
edges are private. Only `private_nodes` (int64 node numbers, ascending) may have private edges; default: all nodes.
"""

from __future__ import annotations

import copy
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.engine import Blocks
from graphveil.errors import DataError, InputError
from graphveil.graphs.tables.tables import Table
from graphveil.graphs.value.edges import edge_keys
from graphveil.graphs.value.parts import Graph
from graphveil.graphs.value.schema import with_edges
from graphveil.runtime.checks import require_number
from graphveil.runtime.late import polars, torch
from graphveil.runtime.sorted_arrays import contains, distinct, packed, swapped

# Rows of a block: whole row groups of a parquet file.
_STEP: Final = 1 << 20
_NEITHER: Final = -1


def read_truth(table: Table, column: str) -> np.ndarray:
    """Return a column of true or false (also 1, 0, yes, no) as bool; DataError for another value, naming its line.

    Args:
        table, column: named by messages.
    """
    truths = np.empty(table.rows, np.int8)
    for block in Blocks(table.rows, _STEP):
        cells = table.part(column, block)
        if cells.dtype != polars.Boolean:
            text = cells.cast(polars.String).str.strip_chars().str.to_lowercase()
            words = {**dict.fromkeys(["true", "1", "yes"], True), **dict.fromkeys(["false", "0", "no"], False)}
            cells = text.replace_strict(words, default=None, return_dtype=polars.Boolean)
        truths[block.rows] = cells.cast(polars.Int8).fill_null(_NEITHER).to_numpy()
    if (truths == _NEITHER).any():
        row = int((truths == _NEITHER).argmax())
        raise table.fault(row, "{column} is {value}", column, "true or false in every row")
    return truths.view(np.bool_)


def public_rows(table: Table, column: str, ends: tuple[np.ndarray, np.ndarray], *, directed: bool) -> np.ndarray:
    """Return which rows of the edges file are public, bool [rows].

    Args:
        table: the edges file.
        column: its column of true or false.
        ends: source and target of each of its rows, as node numbers.
        directed: whether an edge is listed in one direction only.

    Raises:
        DataError: an edge is listed as both; names it.
    """
    public = read_truth(table, column)
    # Refused and not resolved: a guess could publish an edge that somebody meant to hide.
    clash = _clash(public, ends, directed=directed)
    if clash.any():
        message = "{column} is {value}, but another row lists the same edge as private"
        raise table.fault(int(clash.argmax()), message, column, "both alike")
    return public


def public_columns(
    public: np.ndarray, ends: tuple[np.ndarray, np.ndarray], edge_index: np.ndarray, *, directed: bool
) -> np.ndarray:
    """Return which columns of a normalised edge index are public, bool [E].

    Args:
        public: bool [L], whether each listed edge is declared public.
        ends: source and target of each listed edge.
        edge_index: int64 [2, E], the same edges as `merge_edges` returns them.
        directed: whether an edge is listed in one direction only.
    """
    public_words = _words(ends, public, directed=directed)
    public_words = distinct(public_words if directed else np.concatenate([public_words, swapped(public_words)]))
    is_public = np.empty(edge_index.shape[1], np.bool_)
    # `edge_index` ascends too, so that each block is looked up in order and nothing is sorted again.
    for block in Blocks(len(is_public), _STEP):
        is_public[block.rows] = contains(public_words, packed(*edge_index[:, block.rows]))
    return is_public


def public_of(public: np.ndarray, ends: np.ndarray, edge_index: np.ndarray, *, directed: bool) -> np.ndarray:
    """As `public_columns`, with the checks that edges from a Python caller need.

    Args:
        public, ends, edge_index, directed: as there; DataError for another type or shape, and for an edge that is
            listed as public and as private.
    """
    if public.dtype != np.bool_ or public.shape != ends.shape[1:]:
        raise DataError("is not true or false for each edge", where="public_edges", allowed="bool [E]")
    pair = (ends[0], ends[1])
    if _clash(public, pair, directed=directed).any():
        raise DataError("an edge is listed as public and as private", where="public_edges", allowed="both alike")
    return public_columns(public, pair, edge_index, directed=directed)


def _words(ends: tuple[np.ndarray, np.ndarray], rows: np.ndarray, *, directed: bool) -> npt.NDArray[np.uint64]:
    """One word for each listed edge; the same for both orders of its ends where edges have no direction."""
    source, target = ends[0][rows], ends[1][rows]
    return packed(source, target) if directed else packed(np.minimum(source, target), np.maximum(source, target))


def _clash(public: np.ndarray, ends: tuple[np.ndarray, np.ndarray], *, directed: bool) -> np.ndarray:
    """Which rows are public and list an edge that another row lists as private: bool [L]."""
    public_words, private_words = (_words(ends, rows, directed=directed) for rows in (public, ~public))
    clash = np.zeros(len(public), np.bool_)
    private_words = distinct(private_words)
    if contains(distinct(public_words), private_words).any():
        clash[public] = contains(private_words, public_words)
    return clash


def draw_private(graph: Graph, share: float, seed: int) -> Graph:
    """Return a copy of a graph in which a share of the edges, drawn at random, is private and the rest is public.

    For experiments on graphs that declare no public edges; the schema notes the draw.

    Args:
        graph: an undirected graph.
        share: of the undirected edges, in (0, 1]; at 1 all edges are private.
        seed: fixes the draw, never privacy noise.

    Raises:
        InputError: a share outside (0, 1], a directed graph, or a graph that declares public edges or all edges
            private.
    """
    require_number("(0, 1]", share=share)
    if graph.schema.directed:
        raise InputError("edges have a direction", where=graph.schema.name, allowed="undirected graphs")
    if graph.get("public_edges") is not None:
        what = "the graph already declares which edges are public"
        raise InputError(what, where=graph.schema.name, remedy="leave out the share")
    # The rest would be published as it is, under an epsilon that does not cover it.
    if "edges" in graph.schema.private:
        what = "the graph declares its edges private, and all but the share would be shown as they are"
        raise InputError(what, where=graph.schema.name, remedy="leave out the share: all of its edges are private")
    source, target = graph.edge_index.numpy()
    forward = np.flatnonzero(source < target)
    private = np.sort(np.random.default_rng([seed, 0xED6E]).permutation(forward)[: round(share * len(forward))])
    nodes = int(graph.num_nodes)
    private_keys = np.sort(edge_keys(source[private], target[private], nodes, directed=False))
    # A shallow copy with a schema of its own: the caller's graph must not change.
    drawn = copy.copy(graph)
    drawn.public_edges = torch.from_numpy(~contains(private_keys, edge_keys(source, target, nodes, directed=False)))
    private_parts = with_edges(graph.schema.private)
    drawn.schema = graph.schema.derived(private=private_parts).noted(
        f"drew {share:g} of the edges as private, with seed {seed}: an experiment"
    )
    return drawn
