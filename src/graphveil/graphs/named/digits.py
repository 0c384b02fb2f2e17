"""A real graph that needs no download: scikit-learn's 1,797 handwritten digits."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphveil.graphs.value.checks import check_parts
from graphveil.graphs.value.edges import merge_edges
from graphveil.graphs.value.features import compact_dense
from graphveil.graphs.value.parts import GraphParts, ImageShape
from graphveil.graphs.value.schema import GraphSchema
from graphveil.graphs.value.value import graph_of

if TYPE_CHECKING:
    from graphveil.graphs.value.parts import Graph

NEIGHBOURS = 10


def digits_graph() -> Graph:
    """Return the digits graph: 1,797 nodes, 32 private features in 0..16, 10 classes; the same on every call.

    The 8 x 8 pixels are split like a checkerboard. The 32 pixels (row + column even) are declared public and only build
    the graph: each digit is joined to its 10 nearest neighbours (Euclidean, ties by node number), made symmetric. The
    other 32 pixels are the private features; the digit is the private label. So features and edges never share a pixel,
    and the edges can be known to everyone without giving a feature away.

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
    places = [] if package is None else list(package.submodule_search_locations or ())
    for file in (Path(place) / "datasets" / "data" / "digits.csv.gz" for place in places):
        if file.is_file():
            rows = np.loadtxt(file, delimiter=",")
            return rows[:, :-1], rows[:, -1].astype(np.int64)
    from sklearn.datasets import load_digits  # a release that keeps it elsewhere

    pixels, labels = load_digits(return_X_y=True)
    return pixels, labels


def _nearest(points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Each point and its nearest others by exact whole-number distances; ties go to the lower number."""
    nodes, exact = len(points), points.astype(np.float64)  # whole numbers below 2^53, for a quick product
    norms = (exact**2).sum(axis=1)
    distance = (norms[:, None] + norms[None, :] - 2 * exact @ exact.T).astype(np.int64)
    np.fill_diagonal(distance, distance.max() + 1)
    # Distance and number in one key, each once: its least ones are the nearest, without a sort of all others.
    keys = distance * nodes + np.arange(nodes)
    least = np.sort(np.partition(keys, count - 1, axis=1)[:, :count], axis=1)
    return np.repeat(np.arange(nodes), count), (least % nodes).ravel()
