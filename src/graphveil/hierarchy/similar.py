"""Places in a tree for nodes without public edges, from public features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.hierarchy.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    Features: TypeAlias = npt.NDArray[np.floating] | csr_matrix
    """Rows of numbers, dense or sparse."""

_WIDTH: Final = 16
_ROWS: Final = 1 << 16
_LEAF_SIZE: Final = 16  # so few nodes are near enough as they are


def random_projection(features: Features, nodes: int, rng: np.random.Generator) -> FloatArray:
    """Return public features [n, d] as a few random sums of each row, scaled to length 1: float64 [n, 16].

    Angles between rows are kept up to about a quarter (Johnson and Lindenstrauss); a row of zeros stays one.
    InputError: another number of rows than `nodes`, or values that are not finite.
    """
    if len(features.shape) != 2 or features.shape[0] != nodes:
        raise InputError(f"features have shape {list(features.shape)}", allowed=f"{nodes} rows")
    # Sixteen sums of up to thousands of columns: enough to put like next to like, and the work no longer grows with the
    # width.
    projection = rng.normal(size=(features.shape[1], _WIDTH))
    result: FloatArray = np.empty((nodes, _WIDTH))
    for first in range(0, nodes, _ROWS):
        result[first : first + _ROWS] = features[first : first + _ROWS] @ projection
    if not np.isfinite(result).all():
        raise InputError("features that are not numbers", where="public features", allowed="finite numbers")
    length = np.linalg.norm(result, axis=1, keepdims=True)
    np.divide(result, length, out=result, where=length > 0)
    return result


def nearest_groups(rows: FloatArray, groups: IntArray, isolated: IntArray) -> IntArray:
    """Return for each isolated node the group whose other members are most like it: the largest product with their mean
    row.

    Args:
        rows: [n, k] of length 1; groups: [n], numbered from 0; isolated: the nodes to place.
    """
    connected = np.ones(len(groups), np.bool_)
    connected[isolated] = False
    count = int(groups.max()) + 1
    sizes = np.bincount(groups[connected], minlength=count)
    sums = np.stack([np.bincount(groups[connected], column, count) for column in rows[connected].T], axis=1)
    inhabited = np.flatnonzero(sizes)
    means = sums[inhabited] / sizes[inhabited, None]
    result = np.empty(len(isolated), np.int64)
    step = max(1, (1 << 22) // len(inhabited))
    for first in range(0, len(isolated), step):
        result[first : first + step] = inhabited[np.argmax(rows[isolated[first : first + step]] @ means.T, axis=1)]
    return result


def similar_order(rows: FloatArray, nodes: IntArray) -> IntArray:
    """Return ranks 0..m-1 of m nodes that put like ones side by side: sorted along the widest direction and halved,
    repeatedly.

    Args:
        rows: [n, k]; nodes: the m to rank.
    """
    order = np.arange(len(nodes))
    width = 1 << max(0, len(nodes) - 1).bit_length()  # powers of two, as the leaves are joined in pairs of neighbours
    while width > _LEAF_SIZE:
        for first in range(0, len(order), width):
            part = order[first : first + width]
            values = rows[nodes[part]] - rows[nodes[part]].mean(axis=0)
            # eigh sorts eigenvalues upwards: the last vector is the direction of most spread.
            widest = np.linalg.eigh(values.T @ values)[1][:, -1]
            order[first : first + width] = part[np.argsort(values @ widest, kind="stable")]
        width //= 2
    ranks = np.empty(len(nodes), np.int64)
    ranks[order] = np.arange(len(nodes))
    return ranks
