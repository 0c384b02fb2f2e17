"""The two copies of a picture: the owner's, and one that the run's guarantee covers and that may be published.

`own` is for a curator, who has the true edges and labels; nodes have row numbers, never names. Where devices randomize,
the owner of the run does not have the truth, and `own` equals `shareable`. That copy receives neither labels nor
features nor names, and edges only where they are public or were released: what it does not receive it cannot show.
Positions and the choice of nodes reveal edges too, so each copy computes them from the edges that it may show.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from graphveil.privacy import Guarantee
from graphveil.privacy.statement.observer import RELEASE_READERS
from graphveil.reports.base.parties import uncovered
from graphveil.reports.base.text import printable
from graphveil.reports.runs.picture import BOTH, HIDDEN, LINKED, MADE, PUBLIC, RELEASED, Picture

if TYPE_CHECKING:
    from torch import Tensor

    from graphveil.graphs import Graph, Split
    from graphveil.graphs.value.parts import Structure
    from graphveil.methods.base.estimator import Estimator

_PARTS: Final = ("trains", "validates", "tests", "takes no part")
_SEED: Final = 7
_OWN: Final = "For the owner of the run alone: it shows true edges and labels."
_ON_RELEASE: Final = "Edges and labels are those of the release; who takes which part is the maker's alone to know."


def copies(model: Estimator, graph: Graph, split: Split) -> tuple[Picture | None, Picture | None]:
    """Return the owner's copy, and the one that may be published.

    Args:
        model: fitted on the graph.
    """
    shared = shareable(model, graph)
    # Computed once where both are equal: the layout takes longer than everything else.
    return shared if _is_local(model.guarantee) else own(model, graph, split), shared


def own(model: Estimator, graph: Graph, split: Split) -> Picture | None:
    """Return the owner's copy: true edges and labels beside the predictions, where a curator has them.

    Args:
        model, graph, split: as `copies`.
    """
    if _is_local(model.guarantee):
        return shareable(model, graph)
    nodes = int(graph.num_nodes)
    nodes_drawn = sample_nodes(graph.edge_index, nodes)
    true = pairs_among(graph.edge_index, nodes_drawn)
    # With several labels a node, a predicted class is neither right nor wrong.
    labels = graph.y if graph.y.dim() == 1 else None
    masks = [mask.cpu().numpy()[nodes_drawn] for mask in (split.train, split.val, split.test)]
    parts = [str(part) for part in np.select(masks, list(_PARTS[:3]), default=_PARTS[3])]
    members = graph.get("private_nodes")
    private = np.ones(len(nodes_drawn), dtype=bool) if members is None else np.isin(nodes_drawn, members.cpu().numpy())
    return Picture(
        caption=(_extent(nodes_drawn, nodes), _ON_RELEASE if graph.get("release") is not None else _OWN),
        total=nodes,
        classes=_classes(graph),
        places=_as_pairs(layout_of(true, len(nodes_drawn))),
        predicted=_predicted(model, nodes_drawn),
        edges=_drawn_edges(_edges_by_kind(model, graph, true, nodes_drawn)),
        labels=() if labels is None else tuple(int(label) for label in labels[nodes_drawn]),
        parts=tuple(parts),
        covered=tuple(_protected_aspects(model.guarantee, private)),
        names=tuple(str(row) for row in nodes_drawn.tolist()),
    )


def shareable(model: Estimator, graph: Graph) -> Picture | None:
    """Return the copy that may be published, or None where the guarantee covers no picture of people.

    Args:
        graph: its edges are read only where they are public or released.
    """
    guarantee = model.guarantee
    # Without a valid guarantee, predictions and released edges are as private as the data.
    if guarantee.void is not None or math.isinf(guarantee.epsilon):
        return None
    released = _released_graph(model, graph)
    if released is not None:
        return _open_copy(model, released, RELEASED, "the released graph, which its readers have")
    # Predictions of training nodes reveal labels, and all predictions reveal features, unless these have noise.
    bare = uncovered(guarantee, model.name, model.parameters(), graph.schema.private)
    if guarantee.model != "local" or bare:
        return None
    if guarantee.assumption("topology-public") is not None:
        return _open_copy(model, graph, PUBLIC, "edges that are declared public")
    # Reports have noise, and so has everything computed from them; the true edges are only on the devices.
    return _open_copy(model, graph, None, "no edges, so that where a node stands says nothing")


def _is_local(guarantee: Guarantee) -> bool:
    """Whether devices randomize a part of the data, so that no server has the truth."""
    return guarantee.model == "local" and any(math.isfinite(part.epsilon) for part in guarantee.parts or (guarantee,))


def _open_copy(model: Estimator, links: Structure, kind: str | None, what: str) -> Picture:
    # A `Structure` has no labels, features or names, so that this copy cannot show them.
    nodes = int(links.num_nodes)
    edge_index = links.edge_index[:, :0] if kind is None else links.edge_index
    drawn = sample_nodes(edge_index, nodes)
    pairs = pairs_among(edge_index, drawn)
    covered = "Covered by the guarantee: drawn are predictions and " + what + "; no true label, no name."
    return Picture(
        caption=(_extent(drawn, nodes), covered),
        total=nodes,
        classes=_classes(links),
        places=_as_pairs(layout_of(pairs, len(drawn))),
        predicted=_predicted(model, drawn),
        edges={} if kind is None else _drawn_edges({kind: pairs}),
    )


def _released_graph(model: Estimator, graph: Graph) -> Graph | None:
    """Return the released graph: of this run, or the one that it was trained on; None: there is none."""
    # Other methods publish sums, and no graph.
    if model.guarantee.against != RELEASE_READERS:
        return None
    published: Graph | None = getattr(model, "published", None)
    return graph if published is None else published


def _edges_by_kind(model: Estimator, graph: Graph, pairs: np.ndarray, drawn: np.ndarray) -> dict[str, np.ndarray]:
    """Return the edges of the owner's copy by kind: true and released edges apart, where the run released a graph."""
    if graph.get("release") is not None:
        return {RELEASED: pairs}
    released = _released_graph(model, graph)
    if released is None:
        return {LINKED: pairs}
    both = (pairs, pairs_among(released.edge_index, drawn))
    true_pairs, released_pairs = ({tuple(pair) for pair in each.tolist()} for each in both)
    # For the owner's copy alone: the noise hides which released edges are true.
    kinds = {BOTH: true_pairs & released_pairs, HIDDEN: true_pairs - released_pairs, MADE: released_pairs - true_pairs}
    return {kind: np.array(sorted(each), dtype=np.int64).reshape(-1, 2) for kind, each in kinds.items()}


def _drawn_edges(kinds: Mapping[str, np.ndarray]) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return at most `MOST_EDGES` edges of each kind, a random sample where there are more."""
    # A fixed seed: the sample decides what is drawn and protects nobody.
    rng = np.random.default_rng(_SEED)
    edges = {}
    for kind, pairs in kinds.items():
        drawn = np.sort(rng.choice(len(pairs), min(len(pairs), MOST_EDGES), replace=False))
        edges[kind] = _as_pairs(pairs[drawn])
    return edges


def _as_pairs(rows: np.ndarray) -> tuple[tuple[int, int], ...]:
    return tuple((int(first), int(second)) for first, second in rows.tolist())


def _predicted(model: Estimator, drawn: np.ndarray) -> tuple[int, ...]:
    # For the nodes of the training, for whom nothing more is read or paid.
    best: Tensor = model.predict_proba().argmax(dim=1)
    return tuple(best.cpu().numpy()[drawn].tolist())


def _protected_aspects(guarantee: Guarantee, private: np.ndarray) -> Iterator[str]:
    """Yield for each node the parts that the guarantee protects with a finite epsilon."""
    parts = () if guarantee.void is not None else guarantee.parts or (guarantee,)
    units = [part.unit for part in parts if math.isfinite(part.epsilon)]
    aspects = {aspect for unit in units for aspect in unit.covers}
    connected = any(unit.covers_connections for unit in units)
    for own_edges in private:
        hidden = [word for word in ("features", "label") if word in aspects]
        yield ", ".join([*hidden, *(["edges"] if connected and own_edges else [])]) or "nothing"


def _classes(links: Structure) -> tuple[str, ...]:
    return tuple(printable(name) for name in links.schema.classes)


def _extent(drawn: np.ndarray, nodes: int) -> str:
    if len(drawn) == nodes:
        return f"All {nodes:,} nodes are drawn, and at most {MOST_EDGES:,} edges of a kind."
    return (
        f"A sample: {len(drawn):,} of {nodes:,} nodes, the surroundings of some drawn at random, and at most "
        f"{MOST_EDGES:,} edges of a kind."
    )


#: The most nodes, and the most edges of one kind, that are drawn.
MOST_NODES: Final = 2_000
MOST_EDGES: Final = 6_000
_STEPS: Final = 120
_OTHERS: Final = 24
_HOPS: Final = 40
_LAYOUT_SIZE: Final = 1000
_PICTURE_SEED: Final = 20_240


def sample_nodes(edge_index: Tensor, nodes: int, most: int = MOST_NODES) -> np.ndarray:
    """Return the nodes to draw, ascending: all, or those nearest to a few random nodes.

    Args:
        edge_index: int64 [2, E], only edges that the picture may show: the choice of nodes reveals them.
        most: the number of nodes to draw, if there are more.
    """
    if nodes <= most:
        return np.arange(nodes)
    # The same sample each time, so that pictures of two runs on one graph can be compared.
    rng = np.random.default_rng(_PICTURE_SEED)
    source, target = edge_index.cpu().numpy()
    selected = np.zeros(nodes, dtype=bool)
    # Neighbourhoods: random single nodes of a sparse graph would have no edges among them.
    for _ in range(_HOPS):
        neighbours = np.unique(target[selected[source]])
        new = neighbours[~selected[neighbours]]
        if not len(new):
            new = rng.choice(np.flatnonzero(~selected), 1)
        free = most - int(selected.sum())
        selected[new if len(new) <= free else rng.choice(new, free, replace=False)] = True
    selected[rng.choice(np.flatnonzero(~selected), most - int(selected.sum()), replace=False)] = True
    return np.flatnonzero(selected)


def pairs_among(edge_index: Tensor, drawn: np.ndarray) -> np.ndarray:
    """Return each linked pair of drawn nodes, once, int64 [k, 2], as indices into `drawn`.

    Args:
        edge_index: int64 [2, E].
        drawn: nodes, increasing.
    """
    ends = edge_index.cpu().numpy()
    inside = ends[:, np.isin(ends[0], drawn) & np.isin(ends[1], drawn)]
    pairs = np.sort(np.searchsorted(drawn, inside), axis=0)
    return np.unique(pairs.T, axis=0).reshape(-1, 2)


def layout_of(pairs: np.ndarray, nodes: int) -> np.ndarray:
    """Return a position for each node, int64 [n, 2] in [0, 1000], with linked nodes near each other.

    A force-directed layout: springs along the edges, and repulsion from a few random nodes, drawn anew in each step,
    whose cost is linear in edges and nodes.

    Args:
        pairs: linked nodes [k, 2], only edges that the picture may show: positions reveal edges.
    """
    rng = np.random.default_rng(_PICTURE_SEED)
    links = sp.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(nodes, nodes)).tocsr()
    # Both directions: a spring pulls at both ends.
    links = links + links.T
    counts = links.sum(axis=1)[:, None]
    degree, linked = np.maximum(counts, 1.0), counts > 0
    positions = rng.standard_normal((nodes, 2))
    for step in range(_STEPS):
        # A new sample in each step: over all steps a node is repelled by nearly all other nodes.
        pushers = rng.integers(nodes, size=(nodes, _OTHERS)).T
        # Each coordinate by itself, [sample, n]: long rows are summed faster.
        x, y = (column - column[pushers] for column in positions.T)
        distances = x**2 + y**2 + 0.01
        push = np.stack([(x / distances).mean(axis=0), (y / distances).mean(axis=0)], axis=1)
        pull = links @ positions / degree - positions * linked
        move = 1.5 * push + pull - 0.12 * positions
        # Shorter steps towards the end, so that positions settle.
        length = np.linalg.norm(move, axis=1, keepdims=True) + 1e-9
        positions += move / length * np.minimum(length, 0.5 * (1 - step / _STEPS))
    if not len(positions):
        return np.zeros((0, 2), dtype=np.int64)
    low, high = np.quantile(positions, [0.005, 0.995], axis=0)
    shares = np.clip((positions - low) / np.maximum(high - low, 1e-9), -0.02, 1.02)
    layout: np.ndarray = np.round(_LAYOUT_SIZE * (shares + 0.02) / 1.04).astype(np.int64)
    return layout
