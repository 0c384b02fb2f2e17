"""Links weighed by the agreement of their ends, so that forged reports and fake people have less influence.

    b_v   = class probabilities of v, pooled from the labels that were reported           `label_pool`
    w_uv  = b_u . b_v            the estimated probability that u and v are of one class

In most graphs honest links are mostly between people of one class; a fake person that links to its targets agrees with
few of them, and so has less influence on each. No report is left out and none is collected again: this is post-
processing of reports, at no price. No weight exceeds that of a link between two people who surely agree, so a forger
gains nothing from certainty. If most links are between people of unlike classes it costs accuracy.
"""

from __future__ import annotations

from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.methods.base.people.released import LocalReports, Topology
from graphveil.methods.local.label_pool import pool_labels
from graphveil.runtime.late import Tensor

TRIMMINGS = ("none", "agreement")
#: The least weight: without any link, a person would have no neighbours.
LEAST = 1e-3


def trimmed(
    topology: Topology, released: LocalReports, *, seed: int, device: str = "cpu", engine: Engine = LOCAL
) -> Topology:
    """Return the topology with links weighed by the agreement of their ends. Raises InputError for several labels a
    person, or edges that have weights already.

    Args:
        seed, device, engine: the seed fixes the folds of the pool, never privacy noise.
    """
    if released.labels.dim() != 1 or topology.weights is not None:
        raise InputError("trimming by agreement", allowed="one label a person, and edges without weights")
    pool = pool_labels(topology, released.labels, released.channel, seed=seed, device=device, engine=engine)
    return Topology(topology.edge_index, topology.num_nodes, agreement(pool.probabilities, topology.edge_index))


def agreement(beliefs: Tensor, edge_index: Tensor) -> Tensor:
    """Return the agreement of the ends of each edge [E], between `LEAST` and 1.

    Args:
        beliefs, edge_index: [n, c], rows adding up to 1; int64 [2, E].
    """
    source, target = edge_index
    weights: Tensor = (beliefs[source] * beliefs[target]).sum(dim=1).clamp(LEAST, 1.0).float()
    return weights
