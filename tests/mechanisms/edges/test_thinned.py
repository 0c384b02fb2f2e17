"""Lists that came whole are thinned to what devices would have sent: the law is that of the mechanism."""

from __future__ import annotations

import numpy as np
import torch
from scipy import stats

from graphveil.mechanisms import AdjacencyRR, DegreePreservingRR
from graphveil.privacy import SeededRandomness

NODES, RUNS = 12, 3000
MECHANISM = DegreePreservingRR(epsilon=2.0, nodes=NODES, mode="both", degree_share=0.25)
PATH = torch.tensor([[one, one + 1] for one in range(NODES - 1)]).T
EDGES = torch.cat([PATH, PATH.flip(0)], dim=1)


def lengths(seed: int, flips: AdjacencyRR) -> int:
    """How many ids the thinned lists hold, of whole lists behind `flips`."""
    noise = SeededRandomness(seed)
    degrees = MECHANISM.degree.randomize(MECHANISM.degree.count(EDGES), randomness=noise)
    whole = flips.randomize(EDGES, randomness=noise)
    return len(MECHANISM.thinned(degrees, whole, randomness=noise).edges.columns)


def test_thinning_afterwards_has_the_law_of_the_devices() -> None:
    """Two samples of 3,000 lengths agree by Kolmogorov and Smirnov's test, which fails 1 of 10^6 right laws."""
    own = [len(MECHANISM.randomize(EDGES, randomness=SeededRandomness(seed)).edges.columns) for seed in range(RUNS)]
    flips = AdjacencyRR(epsilon=1.5, nodes=NODES, mode="both")
    assert stats.ks_2samp(own, [lengths(RUNS + seed, flips) for seed in range(RUNS)]).pvalue > 1e-6
    # Lists behind another flip have other lengths.
    wrong = AdjacencyRR(epsilon=1.2, nodes=NODES, mode="both")
    assert stats.ks_2samp(own, [lengths(2 * RUNS + seed, wrong) for seed in range(RUNS)]).pvalue < 1e-6


def test_nothing_is_added_to_a_list() -> None:
    """A thinned list is part of the whole one, and possible under the exact law."""
    noise = SeededRandomness(1)
    degrees = MECHANISM.degree.randomize(MECHANISM.degree.count(EDGES), randomness=noise)
    whole = AdjacencyRR(epsilon=1.5, nodes=NODES, mode="both").randomize(EDGES, randomness=noise)
    thinned = MECHANISM.thinned(degrees, whole, randomness=noise)
    assert torch.equal(thinned.degrees.levels, degrees.levels)
    named = set(map(tuple, whole.to_edge_index().T.tolist()))
    assert set(map(tuple, thinned.to_edge_index().T.tolist())) <= named
    assert bool(np.isfinite(MECHANISM.log_likelihood(thinned, EDGES).numpy()).all())
