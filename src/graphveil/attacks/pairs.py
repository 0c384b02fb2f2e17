"""The pairs of nodes that an attack on edges has to tell apart: those that are an edge, and all others among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.graphs import Graph
from graphveil.runtime.words import count_of


@dataclass(frozen=True)
class Pairs:
    """Unordered pairs of the nodes under attack.

    Attributes:
        nodes: int64 [t], ascending: whose pairs are judged. first, second: [p] places in `nodes`, first < second.
        edge: bool [p]: whether the pair is one.
    """

    nodes: np.ndarray
    first: np.ndarray
    second: np.ndarray
    edge: np.ndarray

    def split(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores [p] of edges and of other pairs."""
        return scores[self.edge], scores[~self.edge]

    def where(self, chosen: np.ndarray) -> Pairs:
        return Pairs(self.nodes, self.first[chosen], self.second[chosen], self.edge[chosen])

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        return self.nodes[self.first], self.nodes[self.second]


def true_adjacency(graph: Graph) -> sp.csr_matrix:
    """Return who is linked to whom in truth [n, n], 1 in both directions, whichever way an edge points."""
    source, target = graph.edge_index.numpy()
    n = int(graph.num_nodes)
    a = sp.csr_matrix((np.ones(len(source), dtype=np.int8), (source, target)), shape=(n, n))
    # Compared with 0, since an edge that is listed both ways adds up to 2 and many of them would overflow 8 bits.
    return ((a + a.T) > 0).astype(np.int8).tocsr()


def pairs_of(graph: Graph, *, targets: int = 500, seed: int = 0, among: npt.ArrayLike | None = None) -> Pairs:
    """Return all pairs among `targets` random nodes (all nodes of a smaller graph); public edges are no secret.

    Args:
        among: the nodes [k] that are drawn from; None: all.

    Raises:
        InputError: fewer than two edges among them, or nothing but edges.
    """
    n = int(graph.num_nodes)
    rng = np.random.default_rng([seed, 0x7A])
    drawn = np.arange(n) if among is None else np.sort(np.asarray(among))
    # Nodes are drawn and not pairs: a sparse graph's random pairs hold next to no edge.
    nodes = drawn if len(drawn) <= targets else np.sort(rng.choice(drawn, targets, replace=False))
    inside = true_adjacency(graph)[nodes][:, nodes].toarray() > 0
    # Each pair once: a relationship is one secret, whichever list names it.
    first, second = np.triu_indices(len(nodes), 1)
    pairs = Pairs(nodes, first, second, inside[first, second])
    public = graph.get("public_edges") if hasattr(graph, "get") else None
    if public is not None:
        # Place of each node among those under attack; -1 outside.
        place = np.zeros((n,), dtype=np.int64) - 1
        place[nodes] = np.arange(len(nodes))
        ends = place[graph.edge_index[:, public].numpy()]
        ends = ends[:, (ends >= 0).all(axis=0)]
        open_pairs = np.zeros((len(nodes), len(nodes)), dtype=bool)
        open_pairs[ends[0], ends[1]] = open_pairs[ends[1], ends[0]] = True
        # An edge that everybody knows is no find: counted, it would raise every attack's score on releases.
        pairs = pairs.where(~open_pairs[first, second])
    if pairs.edge.sum() < 2:
        what = f"{count_of(int(pairs.edge.sum()), 'private edge')} among {count_of(len(nodes), 'node')}"
        raise too_few(what, len(nodes), len(drawn))
    if pairs.edge.all():
        every = f"all pairs of {count_of(len(nodes), 'node')} are edges"
        raise InputError(every, where="attack", allowed="some pairs without an edge, to tell edges from")
    return pairs


def too_few(what: str, attacked: int, nodes: int) -> InputError:
    """Return the error for an attack on too few edges.

    Args:
        what: is too few.
        attacked: nodes, out of that many `nodes` that could be.
    """
    remedy = (
        f"attack more of the {nodes} nodes, with --nodes" if attacked < nodes else "no more nodes are there to attack"
    )
    return InputError(what, where="attack", allowed="2 private edges or more", remedy=remedy)


def belief_figures(scores: np.ndarray, edge: np.ndarray, beliefs: tuple[float, ...]) -> dict[str, float]:
    """Return precision, recall and F1 when the top k m pairs are called edges, m the true number (LinkTeller, 4.2).
    Ties at the last place are called in random order, so that a constant score finds what chance finds. Returns figure
    by name, each in [0, 1].

    Args:
        scores: [p], higher means an edge.
        edge: true edges, mask [p]; at least one.
        beliefs: k, the believed number of edges over the true one.
    """
    true = int(edge.sum())
    # lexsort's last key counts first: by score, then by lot.
    order = np.lexsort((np.random.default_rng(0).random(len(scores)), -scores))
    figures: dict[str, float] = {}
    for belief in beliefs:
        called = min(max(1, round(belief * true)), len(scores))
        hits = int(edge[order[:called]].sum())
        figures[f"precision at belief {belief:g}"] = hits / called
        figures[f"recall at belief {belief:g}"] = hits / true
        figures[f"f1 at belief {belief:g}"] = 2 * hits / (called + true)
    return figures
