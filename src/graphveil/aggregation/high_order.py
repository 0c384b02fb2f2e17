"""What UPGNet makes of noisy features before a network reads them: small averages set to zero, hops averaged.

    Z = S_C(D^-1 A X*),      S_C(z) = sign(z) max(|z| - C, 0)          node feature regularisation (NFR)
    X' = (P Z + P^2 Z + ... + P^K Z) / K                               high-order aggregator (HOA)

P is that of `propagation`.  NFR is not linear, so it needs the n x d matrix that `inputs` avoids.
Source: "Going Deeper into Locally Differentially Private Graph Neural Networks", ICML 2025; C = 1 is that of the
authors' code, which after the subtraction also sets to zero what is left within C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from graphveil.aggregation.inputs import DENSE_VALUES
from graphveil.aggregation.propagation import Adjacency, normalised
from graphveil.errors import InputError
from graphveil.late import torch

if TYPE_CHECKING:
    from torch import Tensor


#: C, and the middle of the range, for features in [0, 1].
THRESHOLD, MIDDLE = 1.0, 0.5


def upgnet_features(centred: sp.csr_matrix | np.ndarray, edges: Tensor, hops: int) -> Tensor:
    """Return X' [n, d].

    Args:
        centred: X* less the middle of its range, which has length 1 [n, d].
        edges: int64 [2, E].
        hops: K; 0 leaves Z.
    """
    step = torch.from_numpy(regularised(centred, edges))
    if not hops:
        return step
    p, total = normalised(edges, len(step)), torch.zeros_like(step)
    for _ in range(hops):
        step = p @ step
        total += step
    return total / hops


def regularised(centred: sp.csr_matrix | np.ndarray, edges: Tensor) -> np.ndarray:
    """Return Z [n, d] float32; zeros where a node has no neighbour.

    Args:
        centred, edges: as `upgnet_features`.
    """
    mean = Adjacency.of(edges, centred.shape[0]).to_scipy("mean")
    averaged = mean @ centred
    # A constant is its own average, but for nodes that have nobody to average.
    middle = MIDDLE * np.asarray(mean.sum(axis=1)).reshape(-1, 1)
    dense = (averaged.toarray() if sp.issparse(averaged) else averaged) + middle
    shrunk: np.ndarray = np.sign(dense) * np.maximum(np.abs(dense) - THRESHOLD, 0)
    return shrunk.astype(np.float32)


def require_dense(nodes: int, dimension: int) -> None:
    """Refuse features that would take too much memory as a dense matrix.

    Raises:
        InputError: more than `DENSE_VALUES` numbers.
    """
    if nodes * dimension > DENSE_VALUES:
        raise InputError(
            f"{nodes:,} nodes with {dimension:,} features",
            where="upgnet",
            allowed=f"{DENSE_VALUES:,} numbers in all: its layers need every one of them",
            remedy="train lpgnn, which does not",
        )
