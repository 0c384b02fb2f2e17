"""One graph cut into parts for several organisations: feature columns and edges divided by proportion.

Every column and every edge goes to exactly one holder, at random; the labels go to the first. A declared column stays
whole: a part of a category's block would mean nothing.
Source: Chen et al., IJCAI 2022, arXiv 2005.11903, section 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.core.setting import Member
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.files.columns import blocks_of
from graphveil.graphs import Graph, GraphSchema, Split
from graphveil.graphs.value.features import to_rows


def feature_parts(schema: GraphSchema, shares: Sequence[float], *, seed: int) -> list[np.ndarray]:
    """Return which features every holder gets, ascending; arguments and errors as of `vertical_partition`."""
    return _feature_parts(schema, shares, np.random.default_rng(seed))


def _feature_parts(schema: GraphSchema, shares: Sequence[float], rng: np.random.Generator) -> list[np.ndarray]:
    blocks = [np.arange(block.start, block.stop) for block in blocks_of(schema.columns)]
    columns = len(blocks) or schema.dimension
    dealt = [np.sort(mine) for mine in _parts(rng.permutation(columns), shares)]
    for number, mine in enumerate(dealt, start=1):
        if not len(mine):
            what = f"holder {number} gets none of the {columns} feature columns"
            raise InputError(what, allowed="shares that give each holder at least one")
    return [np.concatenate([blocks[place] for place in mine]) for mine in dealt] if blocks else dealt


def vertical_partition(graph: Graph, shares: Sequence[float], *, seed: int) -> list[tuple[Any, Tensor]]:
    """Return (features, edge_index) for every holder; raises InputError for shares that leave one without a column.

    Args:
        shares: one number a holder, any scale; 5, 5 halves columns and edges.
    """
    rng = np.random.default_rng(seed)
    columns = _feature_parts(graph.schema, shares, rng)
    # Both directions of an undirected edge go to one holder: otherwise two holders would know it.
    both = not graph.schema.directed
    forth = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]] if both else graph.edge_index
    edges = _parts(rng.permutation(forth.shape[1]), shares)
    rows, parts = to_rows(graph.x), []
    for mine, here in zip(columns, edges, strict=True):
        picked = forth[:, torch.from_numpy(np.sort(here))]
        own = torch.cat([picked, picked.flip(0)], dim=1) if both else picked
        parts.append((rows[:, mine], own))
    return parts


def partition_graph(
    graph: Graph, split: Split, shares: Sequence[float], *, seed: int
) -> tuple[tuple[Member, ...], dict[str, Holding]]:
    """Return the members "holder1".. and what each holds; arguments as of `vertical_partition`."""
    members, holdings = [], {}
    bound = max(abs(graph.schema.low), abs(graph.schema.high))
    for number, (part, own) in enumerate(vertical_partition(graph, shares, seed=seed), start=1):
        name = f"holder{number}"
        head = LabelHead(graph.y, split.train, split.val, split.test) if number == 1 else None
        features = part if graph.x.layout == torch.sparse_csr else torch.from_numpy(part.toarray())
        holdings[name] = Holding(features, own, bound, head)
        members.append(Member(name, int(part.shape[1]), number == 1))
    return tuple(members), holdings


def _parts(order: np.ndarray, shares: Sequence[float]) -> list[np.ndarray]:
    # Cut at rounded sums and not part by part, so that the parts always add up to all columns.
    cuts = np.cumsum(np.asarray(shares, dtype=float) / sum(shares))[:-1]
    return np.split(order, np.round(cuts * len(order)).astype(int))
