"""The inputs of a network: estimates from reports, or what stands in for features that nobody sends.

    normal    one Gaussian number in a random coordinate of each node
    uniform   uniform in [0, 1], all coordinates
    ones      1 in every coordinate
    degree    the number of neighbours as a one-hot code; the last coordinate stands for all larger degrees

Post-processing alone: a stand-in reads no feature; "degree" reveals no more than the topology.  Source of all but the
first: Sajadmanesh and Gatica-Perez, CCS 2021, who compare LPGNN with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphveil.aggregation import from_scipy
from graphveil.mechanisms import NotCollected
from graphveil.methods.base.network.network import FeatureMatrix, Labels, as_matrix
from graphveil.methods.base.people.released import Answers, LocalReports, Topology
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.late import sparse as sp


def features_of(released: LocalReports, seed: int) -> tuple[Any, float]:
    """Return (C, o): the feature estimates are C + o; random numbers (`seed`) stand in where none were collected.

    People who sent none have rows of zeros in C: they stand at o, the middle of the range.
    """
    mechanism = released.privacy.features(released.schema)
    if isinstance(mechanism, NotCollected):
        return random_features(len(released.labels), released.schema.dimension, seed), 0.0
    return centred_features(mechanism, released.features), mechanism.midpoint


def centred_features(mechanism: Any, sent: Any) -> Any:
    """Return the estimates of everybody's features minus the middle of the range [n, d]; zeros where none were sent."""
    if not isinstance(sent, Answers):
        return mechanism.centred(sent)
    rows, who = sp.csr_matrix(mechanism.centred(sent.reports)), sent.who.numpy()
    # Rows without a report store nothing: a stored zero would count as a report when rows are counted or scaled.
    lengths = np.zeros(len(who) + 1, rows.indptr.dtype)
    lengths[1:][who] = np.diff(rows.indptr)
    return sp.csr_matrix((rows.data, rows.indices, np.cumsum(lengths)), shape=(len(who), rows.shape[1]))


def reported_of(sent: object) -> Tensor | None:
    """Return the mask [n] of people who sent features; None if all did, or nobody was asked."""
    return sent.who if isinstance(sent, Answers) else None


def labels_of(released: LocalReports) -> Labels:
    """Return the released labels with the channel of their randomized response."""
    return Labels(released.labels, released.train, released.val, released.channel)


def random_features(num_nodes: int, dimension: int, seed: int) -> sp.csr_matrix:
    """Return Gaussian noise in the shape of reports: one random coordinate a node [n, d]."""
    # A stream of its own: the same numbers must not also be initial weights of a network.
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


STAND_INS = ("normal", "uniform", "ones", "degree")


def stand_in_features(kind: str, topology: Topology, dimension: int, seed: int) -> tuple[FeatureMatrix, float]:
    """Return (C, o): C + o [n, d] stands in for the features.

    Args:
        kind: one of STAND_INS.
        seed: for the two random kinds.
    """
    nodes = topology.num_nodes
    if kind == "ones":
        return sp.csr_matrix((nodes, dimension), dtype=np.float32), 1.0
    if kind == "degree":
        # The in-degree: a node aggregates from the sources of its edges.
        degrees = np.bincount(topology.edge_index[1].cpu().numpy(), minlength=nodes).clip(max=dimension - 1)
        return sp.csr_matrix((np.ones(nodes, np.float32), (np.arange(nodes), degrees)), shape=(nodes, dimension)), 0.0
    if kind == "uniform":
        # A stream of its own: the same numbers must not also be initial weights of a network.
        return np.random.default_rng([seed, 0x0A1]).random((nodes, dimension), dtype=np.float32), 0.0
    return random_features(nodes, dimension, seed), 0.0
