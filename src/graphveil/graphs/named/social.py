"""Graphs that need no download: a seeded generator of social networks, linear in edges, and scikit-learn's digits."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from graphveil.errors import InputError
from graphveil.graphs.value.checks import check_parts
from graphveil.graphs.value.edges import merge_edges
from graphveil.graphs.value.features import compact_dense, compact_rows
from graphveil.graphs.value.parts import Graph, GraphParts, ImageShape
from graphveil.graphs.value.schema import GraphSchema
from graphveil.graphs.value.value import graph_of
from graphveil.runtime.late import sparse

_TAIL = 1.5  # P[weight > w] = w^-1.5, so degrees follow a power law with exponent 2.5
_ROUNDS = 30  # of drawing further edges in place of duplicates


def social_graph(
    nodes: int = 10_000,
    average_degree: float = 20.0,
    dimension: int = 1_000,
    classes: int = 8,
    *,
    homophily: float = 0.7,
    apps: float = 20.0,
    signal: float = 0.5,
    seed: int = 0,
) -> Graph:
    """Make a social network: communities, power-law degrees, and "installed apps" as 0/1 features.

    Edges follow a degree-corrected block model (Karrer, Newman, "Stochastic blockmodels and community structure in
    networks", Phys. Rev. E 2011, eq. 14): an edge starts at a node drawn by its weight and ends, with probability
    `homophily`, in the same class, else in another, at a node drawn by its weight. Duplicates and self-loops are drawn
    again, so there are nodes * average_degree / 2 edges unless the graph is too small. Each person installs about
    `apps` apps; each is drawn by popularity, from the class's own ranking with probability `signal`, else from the
    ranking everybody shares.

    Args:
        nodes: n.
        average_degree: mean number of neighbours.
        dimension: d, apps there are.
        classes: communities, of equal expected size.
        homophily: share of edges inside a class.
        apps: mean number of draws a person.
        signal: share of draws that depend on the class.
        seed: the same seed gives the same graph.

    Raises:
        InputError: a setting outside its range.
    """
    parts = social_parts(
        nodes, average_degree, dimension, classes, homophily=homophily, apps=apps, signal=signal, seed=seed
    )
    return graph_of(parts)


def social_parts(
    nodes: int = 10_000,
    average_degree: float = 20.0,
    dimension: int = 1_000,
    classes: int = 8,
    *,
    homophily: float = 0.7,
    apps: float = 20.0,
    signal: float = 0.5,
    seed: int = 0,
) -> GraphParts:
    """Return the parts of `social_graph`.

    Args:
        nodes, average_degree, dimension, classes, homophily, apps, signal, seed: as there.
    """
    for name, value, low, high in (
        ("nodes", nodes, 10, 2**31 - 2),
        ("average_degree", average_degree, 0, (nodes - 1) / 4),
        ("dimension", dimension, 1, 2**31 - 2),
        ("classes", classes, 2, min(nodes // 5, 30_000)),
        ("homophily", homophily, 0, 1),
        ("apps", apps, 1, dimension),
        ("signal", signal, 0, 1),
    ):
        if not low <= value <= high:
            raise InputError(f"{name} is {value}", where="social_graph", allowed=f"{low} to {high:g}")
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=nodes, dtype=np.int16)
    source, target = social_edges(labels, classes, round(nodes * average_degree / 2), homophily, rng)
    edge_index, notes = merge_edges(source, target, nodes, directed=False)
    del source, target
    x = compact_rows(social_features(labels, classes, dimension, apps, signal, rng))
    schema = GraphSchema(
        name=f"social-{nodes}",
        dimension=dimension,
        low=0.0,
        high=1.0,
        classes=tuple(f"community {index}" for index in range(classes)),
        source="made data: an app is installed or not, 0 or 1; the communities are settings of the generator",
        notes=(f"made by social_graph with seed {seed}", *notes),
    )
    return check_parts(GraphParts(x, edge_index, labels.astype(np.int64), schema))


def social_edges(
    labels: np.ndarray, classes: int, count: int, homophily: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the higher end, int32 [count] both, of distinct edges drawn as `social_graph` describes.

    Args:
        labels: int16 [n], the class of each node.
        classes, homophily: as there.
        count: edges to draw; fewer where the graph is too small for them.
    """
    n = len(labels)
    # Cut at sqrt(n): two larger hubs would expect more than one edge between them, and most draws would repeat.
    weights = np.minimum((1.0 - rng.random(n)) ** (-1.0 / _TAIL), np.sqrt(n))
    order = np.argsort(labels, kind="stable").astype(np.int32)
    ends = np.cumsum(weights[order])  # a class is one stretch of this line
    stops = ends[np.searchsorted(labels[order], np.arange(classes), side="right") - 1]
    starts = np.concatenate([[0.0], stops[:-1]])
    keys = np.empty(0, dtype=np.int64)
    for _ in range(_ROUNDS):
        missing = count - len(keys)
        if missing <= 0:
            break
        fresh = _draw(labels, order, ends, starts, stops, missing + missing // 20 + 10, homophily, rng)
        keys = np.concatenate([keys, fresh])
        keys.sort()  # np.unique hashes, which takes several times as long here
        keys = keys[np.diff(keys, prepend=-1) > 0]
    if len(keys) > count:
        retained = np.ones(len(keys), dtype=bool)
        retained[rng.choice(len(keys), len(keys) - count, replace=False)] = False
        keys = keys[retained]
    return (keys // n).astype(np.int32), (keys % n).astype(np.int32)


def _draw(
    labels: np.ndarray,
    order: np.ndarray,
    ends: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    count: int,
    homophily: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Keys lower * n + higher of up to `count` drawn pairs; self-loops left out, duplicates kept."""
    total, last = ends[-1], len(order) - 1
    position = rng.random(count) * total
    position.sort()  # the order of edges does not matter, and neighbouring searches hit the same cache lines
    source = order[np.minimum(np.searchsorted(ends, position, side="right"), last)]
    start, stop = starts[labels[source]], stops[labels[source]]
    position = rng.random(count)
    inside = start + position * (stop - start)
    outside = position * (total - (stop - start))
    outside[outside >= start] += (stop - start)[outside >= start]  # step over the own class
    position = np.where(rng.random(count) < homophily, inside, outside)
    target = order[np.minimum(np.searchsorted(ends, position, side="right"), last)]
    different = source != target
    low, high = np.minimum(source, target)[different], np.maximum(source, target)[different]
    keys: np.ndarray = low.astype(np.int64) * len(order) + high
    return keys


def social_features(
    labels: np.ndarray, classes: int, dimension: int, apps: float, signal: float, rng: np.random.Generator
) -> sparse.csr_matrix:
    """Return 0/1 rows [n, dimension] drawn as `social_graph` describes: everybody has at least one app.

    Args:
        labels: [n], the class of each node.
        classes, dimension, apps, signal: as there.
    """
    counts = 1 + rng.poisson(apps - 1.0, len(labels))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    popularity = np.cumsum(1.0 / np.arange(2, dimension + 2) ** 0.8)
    rankings = np.stack([np.arange(dimension), *(rng.permutation(dimension) for _ in range(classes))]).astype(np.int32)
    draws = int(indptr[-1])
    rank = np.searchsorted(popularity, rng.random(draws) * popularity[-1], side="right")
    ranking_of = np.repeat(labels.astype(np.int16) + 1, counts)
    ranking_of[rng.random(draws) >= signal] = 0
    items = rankings[ranking_of, np.minimum(rank, dimension - 1)]
    shape = (len(labels), dimension)
    rows = sparse.csr_matrix((np.ones(draws, dtype=np.float32), items, indptr), shape=shape)
    rows.sum_duplicates()
    rows.data[:] = 1.0
    return rows


NEIGHBOURS = 10


def digits_graph() -> Graph:
    """Return the digits graph: 1,797 nodes, 32 private features in 0..16, 10 classes; the same on every call.

    The 8 x 8 pixels are split like a checkerboard. The 32 pixels with an even sum of row and column are declared public
    and only define the edges: each digit is joined to its 10 nearest neighbours (Euclidean, ties by node number), both
    ways. The other 32 pixels are the private features, and the digit is the private label. Features and edges share no
    pixel, so that the edges can be public without revealing a feature.

    Source: E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI 1998, as in
    `sklearn.datasets.load_digits`.
    """
    return graph_of(digits_parts())


def digits_parts() -> GraphParts:
    """Return the parts of `digits_graph`."""
    pixels, labels = _handwritten()
    public = (np.add.outer(np.arange(8), np.arange(8)) % 2 == 0).ravel()
    source, target = _nearest(pixels[:, public].astype(np.int64), NEIGHBOURS)
    edge_index, notes = merge_edges(source, target, len(pixels), directed=False)
    schema = GraphSchema(
        name="digits",
        dimension=32,
        low=0.0,
        high=16.0,
        classes=tuple(str(digit) for digit in range(10)),
        source="scikit-learn's load_digits documents whole pixel values from 0 to 16 and ten digits",
        notes=("edges built on the 32 public pixels of a checkerboard; the other 32 are private", *notes),
    )
    image = ImageShape(8, 8, tuple(np.flatnonzero(~public).tolist()))
    x = compact_dense(pixels[:, ~public])
    return check_parts(GraphParts(x, edge_index, labels.astype(np.int64), schema, image=image))


def _handwritten() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's pixels [1797, 64] and digits [1797], read from its file without loading scikit-learn."""
    package = find_spec("sklearn")
    folders = [] if package is None else list(package.submodule_search_locations or ())
    for file in (Path(folder) / "datasets" / "data" / "digits.csv.gz" for folder in folders):
        if file.is_file():
            rows = np.loadtxt(file, delimiter=",")
            return rows[:, :-1], rows[:, -1].astype(np.int64)
    from sklearn.datasets import load_digits  # a release that keeps it elsewhere

    pixels, labels = load_digits(return_X_y=True)
    return pixels, labels


def _nearest(points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Each point and its nearest others by exact whole-number distances; ties go to the lower number."""
    nodes, exact = len(points), points.astype(np.float64)  # exact below 2^53, and float products are fast
    norms = (exact**2).sum(axis=1)
    distance = (norms[:, None] + norms[None, :] - 2 * exact @ exact.T).astype(np.int64)
    np.fill_diagonal(distance, distance.max() + 1)
    # Distance and number in one distinct key: the smallest keys are the nearest, without sorting the rest.
    keys = distance * nodes + np.arange(nodes)
    least = np.sort(np.partition(keys, count - 1, axis=1)[:, :count], axis=1)
    return np.repeat(np.arange(nodes), count), (least % nodes).ravel()
