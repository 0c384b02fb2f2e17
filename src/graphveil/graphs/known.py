"""Which edges everybody knows, and who may have private ones: declared by the owner, never read off private edges.

A graph with `public_edges` (bool [E] over `edge_index`, both directions alike) has public edges and private ones; the
others are private. `private_nodes` (int64 ids, ascending) are the only ones that may have private edges; default: all.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import DataError, InputError
from graphveil.graphs.tables import Table

if TYPE_CHECKING:
    from torch_geometric.data import Data


def read_truth(table: Table, column: str) -> np.ndarray:
    """A column of true or false (also 1, 0, yes, no) as bool.

    Raises:
        DataError: there is no such column, or a row says neither; names file and line.
    """
    import polars

    text = table.column(column).cast(polars.String).str.strip_chars().str.to_lowercase()
    yes, no = text.is_in(["true", "1", "yes"]), text.is_in(["false", "0", "no"])
    table.refuse(~(yes | no).fill_null(False), "{column} is {value}", column, "true or false in every row")
    found: np.ndarray = yes.to_numpy()
    return found


def public_columns(
    table: Table, column: str, ends: tuple[np.ndarray, np.ndarray], edge_index: Tensor, nodes: int, *, directed: bool
) -> Tensor:
    """Which columns of a normalised edge index stand for rows of the edges file that are declared public, bool [E].

    Args:
        table: the edges file; column: its column of true or false.
        ends: source and target of each of its rows, as node numbers.

    Raises:
        DataError: an edge is listed as public in one row and as private in another; names file and line.
    """
    import polars

    public = read_truth(table, column)
    source, target = ends
    keys = _keys(source, target, nodes, directed)
    known, hidden = np.unique(keys[public]), np.unique(keys[~public])
    both = np.intersect1d(known, hidden)
    clash = polars.Series(np.isin(keys, both) & public) if len(both) else polars.Series([False] * len(keys))
    table.refuse(clash, "{column} is {value}, but another row lists the same edge as private", column, "both alike")
    low, high = edge_index.numpy()
    return torch.from_numpy(np.isin(_keys(low, high, nodes, directed), known))


def draw_private(graph: Data, share: float, seed: int) -> Data:
    """A copy of a graph in which a share of the edges, drawn at random, is private and the rest is public.

    For experiments on graphs that say nothing about it: the drawing is noted in the schema, not hidden in a setting.

    Args:
        share: of the undirected edges, in (0, 1]; at 1 all edges are private.
        seed: fixes the drawing, never privacy noise.

    Raises:
        InputError: a share outside (0, 1], a directed graph, or one that already says which edges are public.
    """
    if not (math.isfinite(share) and 0 < share <= 1):
        raise InputError(f"private share {share!r}", allowed="a number above 0, at most 1")
    if graph.schema.directed:
        raise InputError("edges have a direction", where=graph.schema.name, allowed="undirected graphs")
    if graph.get("public_edges") is not None:
        raise InputError(
            "the graph says already which edges are public", where=graph.schema.name, remedy="leave the share out"
        )
    low, high = graph.edge_index.numpy()
    up = np.flatnonzero(low < high)
    private = np.sort(np.random.default_rng([seed, 0xED6E]).permutation(up)[: round(share * len(up))])
    nodes = int(graph.num_nodes)
    hidden = _keys(low[private], high[private], nodes, False)
    drawn = copy.copy(graph)
    drawn.public_edges = torch.from_numpy(~np.isin(_keys(low, high, nodes, False), hidden))
    drawn.schema = graph.schema.noted(f"drew {share:g} of the edges as private, with seed {seed}: an experiment")
    return drawn


def check_known(graph: Data) -> None:
    """Refuse public edges and private nodes that do not fit the graph.

    Raises:
        DataError: naming the part and its fault.
    """
    public, members = graph.get("public_edges"), graph.get("private_nodes")
    edges, n = graph.edge_index, int(graph.num_nodes)
    if public is not None:
        if not isinstance(public, Tensor) or public.dtype != torch.bool or public.shape != edges.shape[1:]:
            raise DataError("is not true or false for each edge", where="graph.public_edges", allowed="bool [E]")
        if not graph.schema.directed:
            _check_alike(edges, public, n)
    if members is not None:
        if not isinstance(members, Tensor) or members.dtype != torch.int64 or members.dim() != 1:
            raise DataError("is not a list of node numbers", where="graph.private_nodes", allowed="int64 [k]")
        fits = members.numel() == 0 or (int(members[0]) >= 0 and int(members[-1]) < n)
        if not fits or not bool((members[1:] > members[:-1]).all()):
            raise DataError(
                "are not ascending node numbers", where="graph.private_nodes", allowed=f"0 to {n - 1}, each once"
            )


def _check_alike(edges: Tensor, public: Tensor, nodes: int) -> None:
    low, high = edges.numpy()
    keys, known = _keys(low, high, nodes, False), public.numpy()
    if np.intersect1d(keys[known], keys[~known]).size:
        raise DataError("an edge is public in one direction only", where="graph.public_edges", allowed="both alike")


def _keys(source: np.ndarray, target: np.ndarray, nodes: int, directed: bool) -> np.ndarray:
    """One number for each edge, whichever way it is listed where edges have no direction."""
    source, target = source.astype(np.int64), target.astype(np.int64)
    if not directed:
        source, target = np.minimum(source, target), np.maximum(source, target)
    keys: np.ndarray = source * nodes + target
    return keys
