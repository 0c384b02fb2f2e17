"""Where the nodes of a picture stand: a sample of a large graph, and places computed once, the same each time."""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy.sparse as sp
from torch import Tensor

#: Nodes and edges of one kind that are drawn at most.
MOST_NODES: Final = 2_000
MOST_EDGES: Final = 6_000
_STEPS: Final = 120
_OTHERS: Final = 24
_HOPS: Final = 40
_SIDE: Final = 1000
_SEED: Final = 20_240


def sample_nodes(edge_index: Tensor, nodes: int, most: int = MOST_NODES) -> np.ndarray:
    """Return the nodes to draw, ascending: all, or those nearest to a few random ones.

    Args:
        edge_index: int64 [2, E], of the edges that the picture may show and no others: the choice tells of them.
    """
    if nodes <= most:
        return np.arange(nodes)
    # The same sample each time, so that pictures of two runs on one graph can be laid side by side.
    rng = np.random.default_rng(_SEED)
    source, target = edge_index.cpu().numpy()
    chosen = np.zeros(nodes, dtype=bool)
    # Neighbourhoods and not single nodes: of a sparse graph, single nodes would have no edge among them.
    for _ in range(_HOPS):
        neighbours = np.unique(target[chosen[source]])
        new = neighbours[~chosen[neighbours]]
        if not len(new):
            new = rng.choice(np.flatnonzero(~chosen), 1)
        free = most - int(chosen.sum())
        chosen[new if len(new) <= free else rng.choice(new, free, replace=False)] = True
    chosen[rng.choice(np.flatnonzero(~chosen), most - int(chosen.sum()), replace=False)] = True
    return np.flatnonzero(chosen)


def pairs_among(edge_index: Tensor, drawn: np.ndarray) -> np.ndarray:
    """Return each pair of drawn nodes that is linked, once, int64 [k, 2], as places in `drawn`.

    Args:
        edge_index: int64 [2, E]. drawn: nodes, increasing.
    """
    ends = edge_index.cpu().numpy()
    inside = ends[:, np.isin(ends[0], drawn) & np.isin(ends[1], drawn)]
    places = np.sort(np.searchsorted(drawn, inside), axis=0)
    return np.unique(places.T, axis=0).reshape(-1, 2)


def places_of(pairs: np.ndarray, nodes: int) -> np.ndarray:
    """Return a place for each node, int64 [n, 2] in [0, 1000]: linked nodes near, others apart. Springs along the edges
    and a push from a few others, drawn anew in each step, which so costs as many operations as there are edges and
    nodes.

    Args:
        pairs: linked nodes [k, 2], those that the picture may show and no others: places tell of edges.
    """
    rng = np.random.default_rng(_SEED)
    links = sp.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(nodes, nodes)).tocsr()
    # Pairs stand once; a spring pulls at both ends.
    links = links + links.T
    degree = np.maximum(links.sum(axis=1), 1.0)[:, None]
    place = rng.standard_normal((nodes, 2))
    for step in range(_STEPS):
        # Each step draws others: over all steps a node is pushed from everybody, at the price of a few.
        sampled = place[rng.integers(nodes, size=(nodes, _OTHERS))]
        offsets = place[:, None, :] - sampled
        push = (offsets / (np.sum(offsets**2, axis=2, keepdims=True) + 0.01)).mean(axis=1)
        pull = links @ place / degree - place * (links.sum(axis=1)[:, None] > 0)
        move = 1.5 * push + pull - 0.12 * place
        # Shorter steps towards the end, so that what has found its place stays there.
        length = np.linalg.norm(move, axis=1, keepdims=True) + 1e-9
        place += move / length * np.minimum(length, 0.5 * (1 - step / _STEPS))
    return _scaled(place)


def _scaled(place: np.ndarray) -> np.ndarray:
    """Return places on a square of whole numbers; a few distant nodes do not shrink all others."""
    if not len(place):
        return np.zeros((0, 2), dtype=np.int64)
    low, high = np.quantile(place, [0.005, 0.995], axis=0)
    shares = np.clip((place - low) / np.maximum(high - low, 1e-9), -0.02, 1.02)
    whole: np.ndarray = np.round(_SIDE * (shares + 0.02) / 1.04).astype(np.int64)
    return whole
