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

from graphveil.aggregation.propagation import Adjacency
from graphveil.engine import Blocks
from graphveil.errors import InputError
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


#: C, and the middle of the range, for features in [0, 1].
THRESHOLD, MIDDLE = 1.0, 0.5
#: Numbers of a dense matrix, at most: 2 GB in float32, of which a sum of hops and a training hold four at once.
MOST_VALUES = 1 << 29


def upgnet_features(
    centred: sp.csr_matrix | np.ndarray, a: Adjacency, hops: int, reported: Tensor | None = None
) -> Tensor:
    """Return X' [n, d].

    Args:
        centred: X* [n, d] less the middle of its range, of length 1; a: who is linked to whom; hops: K; 0 leaves Z.
        reported: mask [n] of whose row is a report, over whom the averages of Z go; None: everybody's.
    """
    step = torch.from_numpy(regularised(centred, a, None if reported is None else reported.numpy()))
    if not hops:
        return step
    p, total = a.normalised(), torch.zeros_like(step)
    for _ in range(hops):
        step = p @ step
        total += step
    return total / hops


def regularised(centred: sp.csr_matrix | np.ndarray, a: Adjacency, reported: np.ndarray | None = None) -> np.ndarray:
    """Return Z [n, d] float32; zeros where a node has no neighbour.

    Args:
        centred, a, reported: as `upgnet_features`.
    """
    mean, features = a.to_scipy("mean"), np.empty(centred.shape, np.float32)
    for block in Blocks.of(*features.shape):
        rows = mean[block.rows]
        averaged = rows @ centred
        # A constant is its own average, but for nodes that have nobody to average.
        middle = MIDDLE * np.asarray(rows.sum(axis=1)).reshape(-1, 1)
        dense = averaged.toarray() if sp.issparse(averaged) else averaged
        if reported is not None and not reported.all():
            # Shares of neighbours who answered; where nobody did, the row is zeros and stays so.
            share = np.asarray(rows @ reported.astype(np.float32)).reshape(-1, 1)
            dense = np.where(share > 0, dense / np.maximum(share, np.finfo(np.float32).tiny), 0)
        dense = dense + middle
        features[block.rows] = np.sign(dense) * np.maximum(np.abs(dense) - THRESHOLD, 0)
    return features


def require_dense(nodes: int, dimension: int) -> None:
    """Refuse features that would have more than `MOST_VALUES` numbers as a dense matrix."""
    if nodes * dimension > MOST_VALUES:
        raise InputError(
            f"{nodes:,} nodes with {dimension:,} features",
            where="upgnet",
            allowed=f"{MOST_VALUES:,} numbers in all: its layers need every one of them",
            remedy="train lpgnn, which does not",
        )
