"""The probability that a published edge of randomized response or LapGraph is a true one, as its weight.

    prior      Pr[edge | groups g, h] = total S_gh,     S: share of public edges a pair, by groups of its ends
    channel    e^l = Pr[published | edge] / Pr[published | none],   l = epsilon, for lap-graph that of the cells
    weight     1 / (1 + (1 - prior) / prior e^-l);  public edges have 1

The groups are the labels of training nodes, and the classes that public edges and features lead to expect of other
nodes (`methods.release.public_part`); the total is the release's own unbiased estimate of the number of private edges.
All of it is post-processing of a release.
"""

from __future__ import annotations

import math
from typing import Final

from graphveil.errors import InputError
from graphveil.graphs import Graph, Release, Split
from graphveil.mechanisms import EdgeRand, PairDomain
from graphveil.methods.base.people.released import Topology
from graphveil.methods.release.public_part import PublicPart, public_part_of
from graphveil.runtime.late import Tensor, torch

NONE, POSTERIOR = WEIGHTS = ("none", "posterior")
#: The largest prior probability of a pair.
MOST: Final = 0.5


def weighted_topology(released: Graph, split: Split, domain: PairDomain, *, seed: int = 0) -> Topology:
    """Return the edges of a release with the probability that each is a true one. Raises InputError for a release by
    another mechanism, or with features or labels behind noise.

    Args:
        released, split: public and published edges, public features and labels; who trains and validates.
        domain, seed: the protected pairs, and the public edges; fixes weights of the networks that predict groups.
    """
    origin: Release = released.release
    edges, nodes = released.edge_index, int(released.num_nodes)
    # The groups take features and labels for public facts.
    if (
        origin.settings.get("edges") not in ("edge-rand", "lap-graph")
        or "features" in origin.settings
        or origin.keep < 1
    ):
        raise InputError("weights = 'posterior'", allowed="releases of edge-rand and lap-graph alone")
    synthetic = edges[:, ~released.public_edges]
    log_ratio, total = _ratio_and_total(origin, domain, synthetic[:, synthetic[0] < synthetic[1]])
    part = public_part_of(released, split, domain, seed=seed)
    # Weights that depended on a validation label would leak it to the network that it judges.
    groups = part.groups(of_judges=False)
    prior = block_prior(part, groups, total)[groups[edges[0]], groups[edges[1]]]
    posterior = 1 / (1 + (1 - prior) / prior * math.exp(-log_ratio))
    return Topology(edges, nodes, torch.where(released.public_edges, 1.0, posterior).float())


def _ratio_and_total(origin: Release, domain: PairDomain, synthetic: Tensor) -> tuple[float, float]:
    """Return l, and the release's estimate of the number of private edges, at least one."""
    epsilon = float(origin.settings["epsilon_a"])
    if origin.settings["edges"] == "edge-rand":
        return epsilon, max(EdgeRand(epsilon=epsilon, domain=domain).estimate(synthetic).total, 1.0)
    # Above the threshold both tails decay alike: their ratio is that of the noise in cells.
    return (1 - float(origin.settings["count_share"])) * epsilon, max(float(synthetic.shape[1]), 1.0)


def block_prior(part: PublicPart, groups: Tensor, total: float) -> Tensor:
    """Return Pr[private edge] by the groups of its ends [c, c].

    Args:
        part, groups: the public part with its edges; int64 [n].
        total: the estimated number of private edges.
    """
    member = torch.nn.functional.one_hot(groups, part.people.classes).double()
    source, target = part.pairs
    counts = member[source].T @ member[target]
    size = member.sum(dim=0)
    pairs = (size[:, None] * size - torch.diag(size)).clamp_min(1.0)
    # Plus one edge in each cell: a cell without public edges is improbable, not impossible.
    density = (counts + counts.T + 1.0) / pairs
    return (density * (2 * total / (density * pairs).sum())).clamp_max(MOST)
