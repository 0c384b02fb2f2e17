"""What a server makes of the reports of features and labels: estimates and channels.  Post-processing alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from graphveil.aggregation import from_scipy
from graphveil.late import torch
from graphveil.mechanisms import NotCollected
from graphveil.methods.base.network import FeatureMatrix, Labels, as_matrix
from graphveil.methods.base.released import LocalReports


def features_of(released: LocalReports, seed: int) -> tuple[Any, float]:
    """Return (C, o): the feature estimates are C + o; random numbers (`seed`) stand in where none were collected."""
    mechanism = released.privacy.features(released.schema)
    if isinstance(mechanism, NotCollected):
        return random_features(len(released.labels), released.schema.dimension, seed), 0.0
    return mechanism.centred(released.features), mechanism.midpoint


def labels_of(released: LocalReports) -> Labels:
    """Return the released labels with the randomized response they went through."""
    keep, flip = released.channel
    return Labels(released.labels, released.train, released.val, len(released.schema.classes), keep, flip)


def random_features(num_nodes: int, dimension: int, seed: int) -> sp.csr_matrix:
    """Return Gaussian noise in the shape of reports: one random coordinate a node [n, d]."""
    # A stream of its own: the same numbers must not also be somebody's initial weights.
    generator = np.random.default_rng([seed, 0x5EED])
    columns = generator.integers(0, dimension, num_nodes)
    values = generator.standard_normal(num_nodes).astype(np.float32)
    return sp.csr_matrix((values, (np.arange(num_nodes), columns)), shape=(num_nodes, dimension))


def unit_rows(features: FeatureMatrix, device: str) -> Any:
    """Return features [n, d] with rows of length 1, as a matrix with `@`; rows of zeros stay."""
    matrix = as_matrix(features)
    if isinstance(matrix, torch.Tensor):
        return (matrix / matrix.norm(dim=1, keepdim=True).clamp_min(1e-12)).to(device)
    if hasattr(matrix, "tocsr"):
        rows = matrix.tocsr().astype("float32", copy=True)
        lengths = torch.from_numpy(rows.multiply(rows).sum(axis=1)).sqrt().clamp_min(1e-12).numpy().ravel()
        rows.data /= lengths.repeat(rows.indptr[1:] - rows.indptr[:-1])
        return from_scipy(rows).to(device)
    return unit_rows(torch.as_tensor(matrix, dtype=torch.float32), device)
