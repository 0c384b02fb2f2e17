"""What a release keeps of the graph: figures for everybody, and figures for the curator alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphveil.graphs import Graph
from graphveil.mechanisms import protected_pairs
from graphveil.methods.release.published import domain_of
from graphveil.methods.release.structure import CURATOR_ONLY, preserved

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Kept:
    """Structure of a release: `public` may be published with it; `curator` reads the true private edges, exactly."""

    public: Mapping[str, Any]
    curator: Mapping[str, Any]


def kept_structure(graph: Graph, released: Graph, *, seed: int = 0) -> Kept | None:
    """Return what a release keeps, or None where it publishes edges as they are.

    Args:
        graph: the true graph; its private edges are read, for the curator's figures alone.
        released: what `HeteroRR.release` made of it.
    """
    if not released.release.edges:
        return None
    nodes, domain = int(graph.num_nodes), domain_of(graph)
    facts = {"public_edges": graph.get("public_edges"), "members": graph.get("private_nodes")}
    # Exact and without noise: what is made of it goes into the curator's part alone.
    _, private = protected_pairs(nodes, graph.edge_index, **facts)
    public, synthetic = pairs_of(released, public=True), pairs_of(released, public=False)
    structure = preserved(nodes, public, synthetic, true=private, protected=domain.size, labels=released.y, seed=seed)
    return Kept(structure.public(), structure.curator())


def with_statistics(released: Graph, figures: Kept | None) -> Graph:
    """Return the released graph with the public figures in its `release`; the curator's stay out."""
    if figures is not None:
        # A function of what was published: anybody could compute it, so it may be published with it.
        statistics = {**released.release.statistics, **figures.public}
        released.release = replace(released.release, statistics=statistics)
    return released


def pairs_of(graph: Graph, *, public: bool) -> Tensor:
    """Return the public (known) or the other edges of a graph as pairs [2, m], u < v, each once."""
    chosen = graph.edge_index[:, graph.public_edges if public else ~graph.public_edges]
    pairs: Tensor = chosen[:, chosen[0] < chosen[1]]
    return pairs


__all__ = ["CURATOR_ONLY", "Kept", "kept_structure", "pairs_of", "with_statistics"]
