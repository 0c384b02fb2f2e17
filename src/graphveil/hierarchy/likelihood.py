"""How well a dendrogram explains a graph, and how much one edge can change that.

A. Clauset, C. Moore, M. Newman, "Hierarchical structure and the prediction of missing links in networks", Nature 2008,
https://arxiv.org/abs/0811.0484, eq. 2, at the densities that fit best:

    L(D) = sum over inner nodes of N chi(e / N),    chi(t) = t ln t + (1 - t) ln(1 - t) <= 0

with e edges among the N pairs of an inner node. Larger is better.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError


def log_likelihood(edges: npt.ArrayLike, pairs: npt.ArrayLike) -> float:
    """Return L(D) in nats (eq. 2); where all or none of its pairs are edges an inner node adds 0.

    Args:
        edges, pairs: [r], E_r and L_r R_r of each inner node; InputError for a count outside 0 to all pairs.
    """
    e, total = np.asarray(edges, np.float64), np.asarray(pairs, np.float64)
    if e.shape != total.shape or not ((e >= 0) & (e <= total)).all():
        raise InputError("number of edges out of range", where="log_likelihood", allowed="0 to all pairs")
    # From the counts and not as 1 - share: near a full block the difference of two floats would have no digits left.
    rest, some = total - e, total > 0
    share = np.divide(e, total, out=np.zeros_like(e), where=some)
    other = np.divide(rest, total, out=np.zeros_like(e), where=some)
    return float((_weighted_log(e, share) + _weighted_log(rest, other)).sum())


def predictive_log_likelihood(edges: npt.ArrayLike, pairs: npt.ArrayLike, density: npt.ArrayLike) -> float:
    """Return the log-likelihood in nats of edges where each pair is an edge with its inner node's density.

    It is at most `log_likelihood`, and -inf where a density rules out what is there.

    Args:
        edges, pairs: as of `log_likelihood`; density: [r], p_r, 0 to 1.
    """
    e, total, p = (np.asarray(values, np.float64) for values in (edges, pairs, density))
    return float((_weighted_log(e, p) + _weighted_log(total - e, 1 - p)).sum())


def likelihood_sensitivity(members: int) -> float:
    """Return the most by which one private edge among n private nodes can change L(D), in nats: ln N + (N-1)
    ln(N/(N-1)).

    N = floor(n^2 / 4) is the largest number of pairs at one inner node; the change is largest from none to one edge.
    Source: K. Tran et al., "Heterogeneous Randomized Response for Differential Privacy in Graph Neural Networks",
    2022, Lemma 4, with the exponent that its eq. 15 lost; it agrees with all graphs and trees of 3 to 6 nodes.
    InputError: fewer than two private nodes.
    """
    if isinstance(members, bool) or not isinstance(members, int | np.integer) or members < 2:
        raise InputError(f"members is {members!r}", where="likelihood_sensitivity", allowed="at least 2 private nodes")
    # Two halves of n nodes have floor(n^2 / 4) pairs between them, the most of any inner node.
    most = int(members) ** 2 // 4
    if most == 1:
        return 0.0
    # log1p, because 1 - 1/N loses the digits of 1/N, and N - 1 times its logarithm is a whole nat of the bound.
    return math.log(most) - (most - 1) * math.log1p(-1 / most)


def _weighted_log(weight: npt.NDArray[np.float64], value: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """weight * ln(value), 0 where the weight is."""
    result = np.zeros(np.broadcast(weight, value).shape)
    logs = np.full(result.shape, -np.inf)
    np.log(value, out=logs, where=np.asarray(value) > 0)
    # 0 ln 0 counts as 0, its limit; computed, it would be NaN.
    np.multiply(weight, logs, out=result, where=weight > 0)
    return result
