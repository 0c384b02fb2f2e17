"""Every set of protected pairs there is on a few nodes, a graph of fifty, and what tests of edge methods share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from graphveil.audit import exact
from graphveil.mechanisms import PairDomain
from graphveil.mechanisms.samplers.bits import bit_law
from graphveil.privacy import SeededRandomness
from tests.mechanisms import conformance
from tests.mechanisms.conformance import FALSE_ALARM, ROUNDING

__all__ = ["FALSE_ALARM", "ROUNDING"]
NODES = 50


def tiny(nodes: int = 4) -> PairDomain:
    """All pairs but one, which is a public edge."""
    return PairDomain(nodes, None, torch.tensor([[0], [2]]))


def all_sets(domain: PairDomain) -> list[Tensor]:
    """Every set of protected pairs: set number g has the pair of rank k exactly if bit k of g is 1."""
    ranks = [[k for k in range(domain.size) if g >> k & 1] for g in range(1 << domain.size)]
    return [domain.unrank(torch.tensor(chosen, dtype=torch.int64)) for chosen in ranks]


def number_of(domain: PairDomain, released: Tensor) -> int:
    """The inverse of `all_sets`."""
    return sum(1 << rank for rank in domain.rank(released).tolist())


def table(mechanism: Any) -> np.ndarray[Any, Any]:
    """Pr[released | private edges] of all sets: [private, released]."""
    sets = all_sets(mechanism.domain)
    return np.array([[float(mechanism.log_likelihood(out, true).exp()) for out in sets] for true in sets])


def worst_ratio(probabilities: np.ndarray[Any, Any]) -> float:
    """The largest |log ratio| over all releases when one private edge comes or goes."""
    return exact.worst_ratio(np.log(probabilities), exact.subset_neighbours(len(probabilities)))


def fits(counts: np.ndarray[Any, Any], probabilities: np.ndarray[Any, Any]) -> bool:
    """Whether a chi-square test at a false-alarm rate of 1e-6 accepts counts of releases; rare ones are merged."""
    return conformance.fits(counts, np.log(probabilities)) > FALSE_ALARM


def fits_two_sided(noise: np.ndarray[Any, Any], epsilon: float) -> bool:
    """As `fits`, of whole numbers against two-sided geometric noise; both tails are counted together."""
    top = math.ceil(9 / epsilon)
    law = math.log(math.tanh(epsilon / 2)) - epsilon * np.abs(np.arange(-top, top + 1))
    law[[0, -1]] -= math.log(-math.expm1(-epsilon))
    counts = np.bincount(np.clip(noise, -top, top) + top, minlength=2 * top + 1)
    return conformance.fits(counts, law) > FALSE_ALARM


def fifty() -> tuple[PairDomain, Tensor]:
    """Forty private of fifty nodes with a hundred public and a hundred private edges."""
    order = np.random.default_rng(1)
    members = torch.from_numpy(np.sort(order.choice(NODES, 40, replace=False)))
    inside = PairDomain(NODES, members)
    chosen = order.choice(inside.size, 200, replace=False)
    pairs = inside.unrank(np.sort(chosen))
    public = torch.zeros(200, dtype=torch.bool)
    public[order.choice(200, 100, replace=False)] = True
    return PairDomain(NODES, members, pairs[:, public]), pairs[:, ~public]


def check_audit(build: Callable[[float], Any], epsilon: float, tight: float) -> None:
    """All 32 graphs, all 32 releases; enumerated, so no false alarm. Half the noise is found."""
    claimed = build(epsilon)
    probabilities = table(claimed)
    assert np.allclose(probabilities.sum(1), 1.0, atol=1e-12)
    assert tight * epsilon < worst_ratio(probabilities) <= claimed.guarantee.epsilon * (1 + ROUNDING)
    assert worst_ratio(table(build(2 * epsilon))) > epsilon * (1 + ROUNDING)


def releases(draw: Callable[[], Any], size: int, many: int = 600) -> np.ndarray[Any, Any]:
    """What so many draws of places hold, bool [many, size]."""
    bits = np.zeros((many, size), bool)
    for row in bits:
        row[draw()] = True
    return bits


def check_coins(sparse: np.ndarray[Any, Any], true: Any, epsilon: float) -> None:
    """Releases have the law of one coin for each place, which is the definition; 15% more flips are found."""
    plain = np.zeros(sparse.shape[1], bool)
    plain[true] = True
    flip, laws = bit_law(epsilon, 1).low / 2**64, []
    for part in (sparse[:, plain] ^ True, sparse[:, ~plain]):
        # A second coin for true places would hardly show in a comparison of two samples.
        assert stats.binomtest(int(part.sum()), part.size, flip).pvalue > FALSE_ALARM
    for seed, budget in ((2, epsilon), (3, math.log((math.exp(epsilon) + 1) / 1.15 - 1))):
        source, low = SeededRandomness(seed), np.uint64(bit_law(budget, 1).low)
        dense = releases(lambda: plain ^ (source.uint64(len(plain)) < low), len(plain))  # noqa: B023
        laws.append(same_law(sparse, dense))
    assert laws[0] > FALSE_ALARM > laws[1]


def same_law(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> float:
    """The least p-value of chi-square tests that two sets of releases, bool [releases, pairs], have one law.

    Four tests: of each pair, of pairs of pairs at two distances, and of the number of edges.
    """
    results, many = [], len(first)
    for shift in (0, 1, 7):
        overlaps = [(bits & np.roll(bits, shift, axis=1)).sum(0) for bits in (first, second)]
        pooled = (overlaps[0] + overlaps[1]) / (2 * many)
        used = (pooled * many > 10) & (pooled < 1)
        spread = 2 * many * (pooled * (1 - pooled))[used]
        results.append(float(stats.chi2.sf((((overlaps[0] - overlaps[1]) ** 2)[used] / spread).sum(), used.sum())))
    totals = [bits.sum(1) for bits in (first, second)]
    cuts = np.unique(np.quantile(np.concatenate(totals), np.linspace(0, 1, 21)[1:-1]))
    counts = np.array([np.bincount(np.searchsorted(cuts, total), minlength=len(cuts) + 1) for total in totals])
    # Nothing lies beyond a last cut that is the largest total.
    results.append(float(stats.chi2_contingency(counts[:, counts.any(axis=0)]).pvalue))
    return min(results)
