"""What a network reads where nobody sends features: numbers made of nothing, or of the public topology.

    normal    one Gaussian number in a random coordinate of each node
    uniform   uniform in [0, 1], all coordinates
    ones      1 in every coordinate
    degree    the number of neighbours as a one-hot code; the last coordinate stands for all larger degrees

No feature is read for any of them, so they cost nobody anything; "degree" shows what the topology shows.

Source of all but the first: Sajadmanesh and Gatica-Perez, CCS 2021, who compare LPGNN with them.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from graphveil.methods.base.network.features import random_features
from graphveil.methods.base.network.network import FeatureMatrix
from graphveil.methods.base.people.released import Topology

STAND_INS = ("normal", "uniform", "ones", "degree")


def stand_in_features(kind: str, topology: Topology, dimension: int, seed: int) -> tuple[FeatureMatrix, float]:
    """Return (C, o): C + o [n, d] stands in for the features.

    Args:
        kind: one of STAND_INS.
        topology: public; its n nodes get rows.
        dimension: d, as declared.
        seed: of the two kinds that are drawn.
    """
    nodes = topology.num_nodes
    if kind == "ones":
        return sp.csr_matrix((nodes, dimension), dtype=np.float32), 1.0
    if kind == "degree":
        # Of neighbours that a node hears: in a directed graph who hears is at the end of an edge.
        degrees = np.bincount(topology.edge_index[1].cpu().numpy(), minlength=nodes).clip(max=dimension - 1)
        return sp.csr_matrix((np.ones(nodes, np.float32), (np.arange(nodes), degrees)), shape=(nodes, dimension)), 0.0
    if kind == "uniform":
        # A stream of its own: the same numbers must not also be somebody's initial weights.
        return np.random.default_rng([seed, 0x0A1]).random((nodes, dimension), dtype=np.float32), 0.0
    return random_features(nodes, dimension, seed), 0.0
