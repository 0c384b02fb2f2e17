"""A published graph taken at its word: whether it lists a pair says whether that pair is an edge.

score of a pair    1 where the release lists it, else 0
without the pair   neighbours that both have in the release in common, then their degrees there, the pair itself left
                   out: what all other pairs say about it, made edges and public ones.  A dense block of made edges
                   shows that there are many, which is meant to be seen, and not which

Only pairs that the release protects are judged.  Blocks of the true graph are dense where those of the release are, so
a release may list more true edges than epsilon allows for one edge; it is held against it only where listing tells
more than the other pairs do.
"""

from __future__ import annotations

import copy

import numpy as np
import scipy.sparse as sp
import torch

from graphveil.attacks.limits import limit_of
from graphveil.attacks.pairs import Pairs, pairs_of, true_adjacency
from graphveil.attacks.result import AttackResult, auc_of, judge
from graphveil.errors import InputError
from graphveil.graphs import Graph


def published_edges(graph: Graph, released: Graph, *, targets: int = 500, seed: int = 0) -> AttackResult:
    """Return how well what a release lists tells its private edges from other protected pairs.

    Args:
        graph: the truth, with the same nodes in the same order.
        released: the released graph; or the truth once more, for what publishing it as it is would show.
        targets: among how many random nodes, out of those that may have private edges, pairs are judged.

    Raises:
        InputError: the nodes differ, or there are fewer than two private edges among the nodes drawn.
    """
    # Drawn among the declared nodes: pairs elsewhere are no secret, and easy ones would flatter the attack.
    pairs = pairs_of(
        with_public_edges(graph, released), targets=targets, seed=seed, among=released.get("private_nodes")
    )
    adjacency = true_adjacency(released)
    listed = entries_of(adjacency, pairs)
    members, non_members = pairs.split(listed)
    return judge(
        "published-edges",
        f"which of {len(listed):,} protected pairs of {len(pairs.nodes):,} nodes are an edge, by what is listed",
        members,
        non_members,
        limit=limit_of(released.get("release"), "edge"),
        seed=seed,
        baseline=auc_of(*pairs.split(common_neighbours(adjacency, pairs, listed))),
        baseline_note="common neighbours and degrees in the release, the pair itself left out",
        figures={"edges listed": float(members.mean()), "others listed": float(non_members.mean())},
    )


def with_public_edges(graph: Graph, released: Graph) -> Graph:
    """Return the truth with the edges marked public that a release marks; InputError where the nodes differ.

    Args:
        released: the release made of it, with the same nodes in the same order.
    """
    n = int(graph.num_nodes)
    if n != int(released.num_nodes):
        raise InputError(f"the truth has {n} nodes", allowed=f"the {int(released.num_nodes)} of what was published")
    names = [[str(node_id) for node_id in ids] for ids in (graph.get("ids"), released.get("ids")) if ids is not None]
    # In another order the attack would score pairs of strangers, find nothing, and seem to prove the release safe.
    if len(names) == 2 and names[0] != names[1]:
        raise InputError("the truth has other node ids, or another order", where=graph.schema.name)
    public = released.get("public_edges")
    if public is None:
        return graph
    # One number for each directed edge, so that two lists can be compared at once.
    keys = [edges[0].long() * n + edges[1] for edges in (graph.edge_index, released.edge_index[:, public])]
    marked = copy.copy(graph)
    marked.public_edges = torch.isin(*keys)
    return marked


def as_it_is(graph: Graph, released: Graph) -> Graph:
    """Return the truth as if it had been published without noise, with the same public edges and private nodes.

    Args:
        graph: the truth.
    """
    view = copy.copy(with_public_edges(graph, released))
    view["private_nodes"] = released.get("private_nodes")
    return view


def entries_of(adjacency: sp.csr_matrix, pairs: Pairs) -> np.ndarray:
    """Return the entries [p] of a matrix at the pairs, float64.

    Args:
        adjacency: [n, n].
        pairs: p pairs among the nodes under attack.
    """
    inside = adjacency[pairs.nodes][:, pairs.nodes].toarray()
    return np.asarray(inside[pairs.first, pairs.second], dtype=np.float64)


def common_neighbours(adjacency: sp.csr_matrix, pairs: Pairs, listed: np.ndarray) -> np.ndarray:
    """Return common neighbours [p], float64, ties broken by the product of degrees, as a rest below 1.

    Args:
        adjacency: the published adjacency matrix [n, n].
        pairs: p pairs among the nodes under attack.
        listed: whether the pair itself is in `adjacency` [p], 0 or 1; it is taken off both degrees.
    """
    rows = adjacency[pairs.nodes].astype(np.int64)
    common = (rows @ rows.T).toarray()[pairs.first, pairs.second]
    degrees = np.asarray(rows.sum(axis=1)).ravel()
    # The pair's own entry is taken off: it is what the release is judged by, and must not speak through the degrees.
    product = (degrees[pairs.first] - listed) * (degrees[pairs.second] - listed)
    return np.asarray(common + product / (product.max() + 1.0), dtype=np.float64)
