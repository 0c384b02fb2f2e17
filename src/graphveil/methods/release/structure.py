"""The structure that a released graph preserves: degrees, blocks, homophily, clustering, and overlap beside chance.

A graph is here a list of its pairs, int64 [2, m] with u < v, each once.  Figures of released pairs are post-processing
and may be shown to anybody; figures of the true private pairs are exact and for the curator alone.  `Preserved` keeps
them apart: its public form holds none of the second kind.  Time and memory are linear in nodes plus edges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphveil.errors import InputError
from graphveil.graphs import Graph
from graphveil.mechanisms import protected_pairs
from graphveil.methods.release.published import domain_of
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.late import sparse as sp

CURATOR_ONLY = "computed from the true private edges without noise: for the curator only, not for release"
#: Wedges sampled for the clustering coefficient: standard error at most 0.0036.
WEDGES = 20_000
#: Groups of one grouping: the table of blocks has their square.
MAX_GROUPS = 2_048
_SLAB = 1 << 18


@dataclass(frozen=True)
class Structure:
    """Statistics of one list of pairs.

    Attributes:
        nodes, edges, degrees: how many; [n] int64, sorted.
        clustering: share of closed wedges (paths of two edges whose ends are joined), by sampling; None without wedges.
        homophily: share of edges inside a class; of several labels a node the mean Jaccard similarity of the two ends'
            labels; None without edges between labelled nodes.  Source: of the second, T. Zhao et al., "Multi-label Node
            Classification On Graph-Structured Data", TMLR 2023, section 3.
        blocks, pairs: for each grouping its [g, g] float64 symmetric table of edge counts, inside a group an edge
            counts once; and of possible pairs.
    """

    nodes: int
    edges: int
    degrees: np.ndarray
    clustering: float | None
    homophily: float | None
    blocks: Mapping[str, np.ndarray]
    pairs: Mapping[str, np.ndarray]

    def densities(self, grouping: str) -> np.ndarray:
        """Return edges per possible pair [g, g] of one grouping, 0 where a block has no pair."""
        pairs = self.pairs[grouping]
        densities: np.ndarray = np.divide(self.blocks[grouping], pairs, out=np.zeros_like(pairs), where=pairs > 0)
        return densities

    def to_dict(self) -> dict[str, Any]:
        return {
            "edges": self.edges,
            "mean_degree": 2 * self.edges / max(self.nodes, 1),
            "max_degree": int(self.degrees[-1]) if self.nodes else 0,
            "isolated": int(np.count_nonzero(self.degrees == 0)),
            "clustering": self.clustering,
            "homophily": self.homophily,
            "densities": {name: self.densities(name).tolist() for name in self.blocks},
        }


def structure_of(
    pairs: Tensor,
    nodes: int,
    *,
    labels: Tensor | None = None,
    groups: Mapping[str, Tensor] | None = None,
    seed: int = 0,
) -> Structure:
    """Return the statistics of pairs [2, m] (u < v, distinct) over nodes 0..nodes-1; other pairs, and a grouping of
    more than `MAX_GROUPS` groups, are refused.

    Args:
        labels: int64 [n], -1 unknown, or float 0/1 [n, c]; PUBLIC or released, as the figures show them.
        groups, seed: groupings int64 [n] by name, -1 for no group, public as well; fixes which wedges are sampled.
    """
    left, right = pairs.numpy()
    if len(left) and (int(left.min()) < 0 or int(right.max()) >= nodes or bool((left >= right).any())):
        raise InputError("pairs are not u < v", where="structure", allowed=f"nodes 0 to {nodes - 1}, each pair once")
    degrees = np.bincount(left, minlength=nodes) + np.bincount(right, minlength=nodes)
    tables = {name: _table(name, left, right, group.numpy()) for name, group in (groups or {}).items()}
    return Structure(
        nodes=nodes,
        edges=len(left),
        degrees=np.sort(degrees),
        clustering=_clustering(left, right, degrees, seed),
        homophily=None if labels is None else _homophily(left, right, labels),
        blocks={name: table for name, (table, _) in tables.items()},
        pairs={name: possible for name, (_, possible) in tables.items()},
    )


def degree_distance(first: Structure, second: Structure) -> float:
    """Return the largest gap between two graphs' cumulative degree distributions, in [0, 1] (Kolmogorov-Smirnov)."""
    # Both are step functions: their largest gap is at one of the steps.
    values = np.union1d(first.degrees, second.degrees)
    below = [
        np.searchsorted(structure.degrees, values, side="right") / max(structure.nodes, 1)
        for structure in (first, second)
    ]
    return float(np.abs(below[0] - below[1]).max(initial=0.0))


def block_distance(first: Structure, second: Structure, grouping: str) -> float:
    """Return the Bray-Curtis distance of two tables of edge counts, in [0, 1]: 0 the same, 1 no block in common."""
    # The upper half: in the symmetric table a block would count twice.
    ours, theirs = (np.triu(graph.blocks[grouping]) for graph in (first, second))
    total = float((ours + theirs).sum())
    return float(np.abs(ours - theirs).sum()) / total if total else 0.0


@dataclass(frozen=True)
class Overlap:
    """How many synthetic pairs are true ones, beside the hits of as many uniform pairs of the protected set.

    Attributes:
        synthetic, true, common: how many pairs of each, and of both.
        chance, low, high: expected number in common of `synthetic` distinct uniform pairs; 95% of such draws.
    """

    synthetic: int
    true: int
    common: int
    chance: float
    low: int
    high: int


def overlap(synthetic: Tensor, true: Tensor, protected: int) -> Overlap:
    """Return the overlap of two lists of pairs [2, .] (u < v, distinct) inside `protected` possible pairs. The hits
    of uniform pairs are hypergeometric.  Exact, and so for the curator only.
    """
    from scipy import stats  # takes longer to load than most commands take

    drawn, present = synthetic.shape[1], true.shape[1]
    if max(drawn, present) > protected:
        raise InputError(f"{max(drawn, present)} pairs", where="overlap", allowed=f"at most the {protected} protected")
    common = len(np.intersect1d(_keys(synthetic.numpy()), _keys(true.numpy()), assume_unique=True))
    # Without replacement, as synthetic pairs are distinct: a binomial would be too wide where the domain is small.
    law = stats.hypergeom(protected, present, drawn)
    low, high = (int(value) for value in law.interval(0.95)) if drawn and present else (0, 0)
    return Overlap(drawn, present, common, drawn * present / max(protected, 1), low, high)


@dataclass(frozen=True)
class Preserved:
    """The structure that a release preserves: the released graph and its parts and, for the curator, the truth.

    Attributes:
        released, public_only, synthetic: public and synthetic edges; the public ones alone; the synthetic ones alone.
        truth, private, overlap: the true graph; its private edges alone; of synthetic and true ones. None outside the
            curator's domain.
    """

    released: Structure
    public_only: Structure
    synthetic: Structure
    truth: Structure | None = None
    private: Structure | None = None
    overlap: Overlap | None = None

    def public(self) -> dict[str, Any]:
        """Return what may be published with the release, as JSON types."""
        return {
            "released": self.released.to_dict(),
            "public_edges_only": self.public_only.to_dict(),
            "synthetic_edges_only": self.synthetic.to_dict(),
        }

    def curator(self) -> dict[str, Any]:
        """Return what the curator alone may see: the truth, each distance to it, the overlap."""
        if self.truth is None or self.private is None or self.overlap is None:
            raise InputError("the true edges are not here", where="structure of a release", remedy="give true=")
        return {
            "warning": CURATOR_ONLY,
            "truth": self.truth.to_dict(),
            "private_edges_only": self.private.to_dict(),
            "distance_of_released": distances(self.released, self.truth),
            "distance_of_public_edges_only": distances(self.public_only, self.truth),
            "distance_of_synthetic_to_private_edges": distances(self.synthetic, self.private),
            "overlap": vars(self.overlap),
        }


def distances(structure: Structure, truth: Structure) -> dict[str, float | None]:
    """Return the distances of one graph's statistics from another's: 0 is equal; None if one of them has none."""
    return {
        "edges": abs(structure.edges - truth.edges) / max(truth.edges, 1),
        "degrees": degree_distance(structure, truth),
        "clustering": _gap(structure.clustering, truth.clustering),
        "homophily": _gap(structure.homophily, truth.homophily),
        **{f"blocks by {name}": block_distance(structure, truth, name) for name in truth.blocks},
    }


def preserved(
    nodes: int,
    public: Tensor,
    synthetic: Tensor,
    *,
    true: Tensor | None = None,
    protected: int = 0,
    labels: Tensor | None = None,
    seed: int = 0,
) -> Preserved:
    """Return the structure that a release of public and synthetic pairs preserves, [2, .] each with u < v, disjoint.

    Args:
        true, protected: the true private pairs, for the curator, None: public figures alone; the number of protected
            pairs.
        labels, seed: see `structure_of`; one-label classes are a grouping "class" of their own.
    """
    groups = {"class": labels} if labels is not None and labels.dim() == 1 else {}

    def of(*parts: Tensor) -> Structure:
        return structure_of(torch.cat(parts, dim=1), nodes, labels=labels, groups=groups, seed=seed)

    public_part = Preserved(of(public, synthetic), of(public), of(synthetic))
    if true is None:
        return public_part
    common = overlap(synthetic, true, protected)
    return Preserved(
        public_part.released, public_part.public_only, public_part.synthetic, of(public, true), of(true), common
    )


@dataclass(frozen=True)
class ReleaseStructure:
    """Structure of a release: `public` may be published with it; `curator` reads the true private edges, exactly."""

    public: Mapping[str, Any]
    curator: Mapping[str, Any]


def kept_structure(graph: Graph, released: Graph) -> ReleaseStructure | None:
    """Return the structure that a release preserves, or None if it publishes edges as they are.

    Args:
        graph, released: the true graph, whose private edges are read for the curator alone; its release.
    """
    if not released.release.edges:
        return None
    nodes, domain = int(graph.num_nodes), domain_of(graph)
    facts = {"public_edges": graph.get("public_edges"), "members": graph.get("private_nodes")}
    # Exact, without noise: it enters the curator's part alone.
    _, private = protected_pairs(nodes, graph.edge_index, **facts)
    public, synthetic = pairs_of(released, public=True), pairs_of(released, public=False)
    statistics = preserved(nodes, public, synthetic, true=private, protected=domain.size, labels=released.y)
    return ReleaseStructure(statistics.public(), statistics.curator())


def with_statistics(released: Graph, figures: ReleaseStructure | None) -> Graph:
    """Return the released graph with the public figures in its `release`, without those for the curator."""
    if figures is not None:
        # Anybody could compute these figures from the release, so they may be published with it.
        statistics = {**released.release.statistics, **figures.public}
        released.release = replace(released.release, statistics=statistics)
    return released


def pairs_of(graph: Graph, *, public: bool) -> Tensor:
    """Return the public or the other edges of a graph as pairs [2, m], u < v, each once."""
    chosen = graph.edge_index[:, graph.public_edges if public else ~graph.public_edges]
    pairs: Tensor = chosen[:, chosen[0] < chosen[1]]
    return pairs


def _keys(pairs: np.ndarray) -> np.ndarray:
    keys: np.ndarray = pairs[1] * (pairs[1] - 1) // 2 + pairs[0]  # u < v: one number a pair, below 2^63
    return keys


def _table(name: str, left: np.ndarray, right: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edge counts and the possible pairs of every two groups, [g, g] float64 each."""
    count = int(group.max(initial=0)) + 1
    if count > MAX_GROUPS:
        raise InputError(f"{count} groups in {name!r}", where="block densities", allowed=f"at most {MAX_GROUPS}")
    grouped = (group[left] >= 0) & (group[right] >= 0)
    cells = np.bincount(group[left[grouped]] * count + group[right[grouped]], minlength=count**2)
    listed = cells.reshape(count, count).astype(np.float64)
    sizes = np.bincount(group[group >= 0], minlength=count).astype(np.float64)
    possible = np.outer(sizes, sizes)
    np.fill_diagonal(possible, sizes * (sizes - 1) / 2)
    return listed + listed.T - np.diag(np.diag(listed)), possible


def _homophily(left: np.ndarray, right: np.ndarray, labels: Tensor) -> float | None:
    values = labels.numpy()
    if values.ndim == 1:
        labelled = (values[left] >= 0) & (values[right] >= 0)
        return float((values[left[labelled]] == values[right[labelled]]).mean()) if labelled.any() else None
    present = values > 0
    total, count = 0.0, 0
    # In slabs: pairs times labels at once would be many times the size of the graph.
    for start in range(0, len(left), _SLAB):
        ours, theirs = (present[ends[start : start + _SLAB]] for ends in (left, right))
        either = (ours | theirs).sum(axis=1)
        shared = (ours & theirs).sum(axis=1)
        total += float((shared[either > 0] / either[either > 0]).sum())
        count += int((either > 0).sum())
    return total / count if count else None


def _clustering(left: np.ndarray, right: np.ndarray, degrees: np.ndarray, seed: int) -> float | None:
    """Return the share of closed wedges among `WEDGES` uniform ones. Source: T. Schank, D. Wagner, "Approximating
    Clustering Coefficient and Transitivity", JGAA 2005, section 2.
    """
    wedges = degrees * (degrees - 1) // 2
    total = int(wedges.sum())
    if total == 0:
        return None
    generator = np.random.default_rng(seed)
    centre = np.searchsorted(np.cumsum(wedges), generator.integers(0, total, WEDGES), side="right")
    nodes = len(degrees)
    marks = np.ones(2 * len(left), dtype=bool)
    both = (np.concatenate([left, right]), np.concatenate([right, left]))
    neighbours = sp.coo_matrix((marks, both), shape=(nodes, nodes)).tocsr()
    first = generator.integers(0, degrees[centre])
    second = generator.integers(0, degrees[centre] - 1)
    # The second end is drawn from one fewer and moved past the first: two different neighbours, all pairs equally
    # likely.
    second += second >= first
    ends = np.sort(neighbours.indices[neighbours.indptr[centre] + np.stack([first, second])].astype(np.int64), axis=0)
    keys, which = np.unique(_keys(ends), return_inverse=True)
    listed = _keys(np.stack([left, right]))
    # `searchsorted` may return one past the end; the comparison below drops such keys.
    index = np.minimum(np.searchsorted(keys, listed), len(keys) - 1)
    closed = np.zeros(len(keys), dtype=bool)
    closed[index[keys[index] == listed]] = True
    return float(closed[which].mean())


def _gap(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else math.fabs(first - second)
