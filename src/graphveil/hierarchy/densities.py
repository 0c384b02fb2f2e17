"""Densities of blocks from noisy counts, with what public edges say of the blocks; all of it post-processing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphveil.hierarchy.arrays import BoolArray, FloatArray, IntArray
from graphveil.hierarchy.counts import PairTree, sums_below
from graphveil.hierarchy.noisy_blocks import Blocks, require_positive


def collapse_by_support(sorted_pairs: PairTree, epsilon: float, *, edges: float = 32.0) -> BoolArray:
    """Collapse subtrees with fewer than `edges` / epsilon public edges below: bool [n-1], for `choose_blocks`.

    The rule of the paper looks at densities: in a sparse graph it keeps blocks of a few dozen pairs, of which hardly
    one holds an edge, and their noise is all they tell. Private edges are taken to lie roughly where public ones do; a
    block then has a count worth its noise 1 / epsilon. Without public edges everything collapses: use
    `collapse_by_scale`.

    Args:
        sorted_pairs: the tree and the public facts of its pairs.
        epsilon: the budget of the counts, above 0.
        edges: public edges that a block needs at epsilon 1, above 0.
    """
    require_positive(epsilon=epsilon, edges=edges)
    # Public counts decide, never private ones: which blocks there are is published beside the noise.
    collapse: BoolArray = sums_below(sorted_pairs.tree, sorted_pairs.public_counts) * epsilon < edges
    return collapse


def informed_density(blocks: Blocks, *, variance: float) -> Callable[[FloatArray, IntArray], FloatArray]:
    """Return a rule that weighs each noisy count against what the block's public edges let expect.

    Expected is mu = r (a + B N / 2 sum N) for a block with a public edges and N protected pairs among B blocks (half
    an edge a block, spread over the pairs), r such that the expectations sum to the noisy total. How far true counts
    may lie from mu has the variance t = mu (1 + r) + phi mu^2: that of a Poisson number whose rate is known from public
    edges of the same kind, and a part by which private edges lie elsewhere than public ones; phi >= 0 is estimated from
    the noisy counts by moments. The best linear estimate is then

        mu + t / (t + variance) (noisy - mu),

    brought into 0 to N and scaled to the noisy total, so that clamping adds no edges. As epsilon grows it becomes the
    noisy count; as epsilon falls, the public structure at the private number of edges.

    Args:
        blocks: the partition.
        variance: of the noise of one count, above 0; of two-sided geometric noise 1 / (2 sinh^2(epsilon / 2)).
    """
    require_positive(variance=variance)
    places, pairs = blocks.places, blocks.pairs
    # Half an edge a block on top: a block without a public edge still expects some, or its noisy count would never be
    # believed.
    weight = places - pairs + 0.5 * len(blocks) * pairs / max(1, int(pairs.sum()))

    def density(noisy: FloatArray, pairs: IntArray) -> FloatArray:
        total = max(float(noisy.sum()), 0.0)
        # Noise alone can make the total negative: no edges at all is then the best that can be said.
        if total == 0:
            return np.zeros(len(noisy))
        rate = total / weight.sum()
        # No block holds more edges than pairs, whatever the total says.
        expected = np.minimum(rate * weight, pairs)
        spread = expected * (1 + rate)
        # phi by the method of moments: what the squared deviations have beyond noise and Poisson spread.
        beyond = ((noisy - expected) ** 2 - variance - spread).sum() / (expected**2).sum()
        spread = spread + max(beyond, 0.0) * expected**2
        # The noisy counts add up to more than 0, so some estimate is above 0, and so is the sum that divides.
        estimate = np.clip(expected + spread / (spread + variance) * (noisy - expected), 0, pairs)
        share: FloatArray = np.clip(estimate / pairs * (total / estimate.sum()), 0.0, 1.0)
        return share

    return density
