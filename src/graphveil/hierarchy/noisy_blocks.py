"""Blocks of protected pairs with one noisy count each, and their densities, which are post-processing.

Q. Xiao, R. Chen, K.-L. Tan, "Differentially private network data release via structural inference", KDD 2014 (its
CalculateNoisyProb): from the root down an inner node is a block of its own, the pairs between its two halves, or its
whole subtree collapses into one block. Every protected pair lies in one block, so one private edge moves one count by
one, and the noise of one count is paid for once whatever the number of blocks (parallel composition). Which blocks
there are follows from public facts alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.hierarchy.counts import PairTree, lowest_common_ancestors, sums_below
from graphveil.runtime.checks import require_number
from graphveil.runtime.sorted_arrays import BoolArray, FloatArray, IntArray

#: Exact counts [B] in, noisy counts [B] out; called once, and its result is all that leaves the private side.
Noise = Callable[[IntArray], npt.ArrayLike]


@dataclass(frozen=True, eq=False)
class Blocks:
    """A partition of the protected pairs."""

    sorted_pairs: PairTree  # the tree and its private nodes in a row
    node: IntArray  # int64 [B] the inner node of each block, falling
    whole: BoolArray  # bool [B] all pairs at places start..stop-1 of the row; else those across `middle`
    start: IntArray  # with middle, stop: int64 [B]
    middle: IntArray
    stop: IntArray
    pairs: IntArray  # int64 [B], protected ones, at least 1
    owner: IntArray  # int64 [n-1] the block in which the pairs of each inner node lie; -1 where there are none

    def __len__(self) -> int:
        return len(self.node)

    @cached_property
    def places(self) -> IntArray:
        """int64 [B] all pairs of each block, public ones included."""
        across = (self.middle - self.start) * (self.stop - self.middle)
        size = self.stop - self.start
        return np.where(self.whole, size * (size - 1) // 2, across)

    def of(self, pairs: npt.ArrayLike) -> IntArray:
        """Return the block of each pair [2, S]. Raises InputError for a pair in none, naming its column only."""
        tree = self.sorted_pairs.tree
        block = self.owner[lowest_common_ancestors(tree, pairs) - tree.leaves]
        if (block < 0).any():
            column = int(np.flatnonzero(block < 0)[0])
            raise InputError("no protected pair", where=f"pairs, column {column}", allowed="pairs of private nodes")
        return block

    def counts(self, edges: npt.ArrayLike) -> IntArray:
        """Return how many edges [2, S] each block has, int64 [B]: L1 sensitivity 1 for one edge added or removed.
        Raises InputError where an edge is no protected pair.
        """
        return np.bincount(self.of(edges), minlength=len(self)).astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False)
class NoisyBlocks:
    """Blocks with noisy counts: what a release publishes, and all that is made of it is post-processing."""

    blocks: Blocks
    noisy: FloatArray  # float64 [B] counts with noise, below 0 or above the pairs where the noise put them
    density: FloatArray  # float64 [B] the share of a block's pairs that are edges, 0 to 1


def choose_blocks(sorted_pairs: PairTree, collapse: BoolArray) -> Blocks:
    """Go down from the root and stop at each subtree that is to collapse.

    Args:
        collapse: bool [n-1], whether each inner node's subtree becomes one block, unless a subtree above it does.
    """
    from graphveil.hierarchy.kernels import topmost_collapsed

    tree = sorted_pairs.tree
    if collapse.shape != (tree.leaves - 1,) or collapse.dtype != np.bool_:
        raise InputError(f"collapse has shape {list(collapse.shape)}", allowed="true or false for each inner node")
    top = topmost_collapsed(tree.left, tree.right, collapse)
    own = top == np.arange(len(top))
    # One noisy count for a collapsed subtree: with a count for each node below, an edge would enter one a level.
    pairs = np.where(collapse, sorted_pairs.pairs_below, sorted_pairs.pairs)
    # A block without protected pairs would publish noise alone.
    rows = np.flatnonzero(own & (pairs > 0))[::-1]
    number = np.full(len(top), -1, np.int64)
    number[rows] = np.arange(len(rows))
    nodes = rows + tree.leaves
    return Blocks(
        sorted_pairs,
        node=nodes,
        whole=collapse[rows],
        start=sorted_pairs.start[nodes],
        middle=sorted_pairs.middle[nodes],
        stop=sorted_pairs.stop[nodes],
        pairs=pairs[rows],
        owner=number[top],
    )


def collapse_by_scale(
    sorted_pairs: PairTree, epsilon: float, *, between: float = 0.05, within: float = 0.01
) -> BoolArray:
    """Apply the rule of the paper, collapse where noise 1 / epsilon is large beside the pairs: bool [n-1]. Raises
    InputError for an epsilon or threshold that is not above 0.

    1 / (epsilon L R) >= tau1 = `between` and 1 / (epsilon pairs below) >= tau2 = `within`, with L and R the private
    nodes on either side (the /2 that the paper drops in tau2 stands here, as in its authors' code).

    Args:
        epsilon, between, within: the budget of the counts, tau1 and tau2, above 0.
    """
    require_number("(0, inf)", epsilon=epsilon, between=between, within=within)
    tree, start, stop = sorted_pairs.tree, sorted_pairs.start, sorted_pairs.stop
    size = (stop - start)[tree.leaves :]
    left = (sorted_pairs.middle - start)[tree.leaves :]
    across, below = left * (size - left), size * (size - 1) // 2
    # Read off epsilon and public sizes alone: by private counts it would be a query that nobody paid for.
    collapse: BoolArray = (across * (epsilon * between) <= 1) & (below * (epsilon * within) <= 1)
    return collapse


def release_counts(
    blocks: Blocks, edges: npt.ArrayLike, *, noise: Noise, share: Callable[..., FloatArray]
) -> NoisyBlocks:
    """Count the private edges of each block, add noise to all counts in one draw, and forget the counts. InputError: an
    edge is no protected pair, or the noise gives back another shape or values that are not finite.

    Args:
        blocks: the partition; nothing in it may depend on the private edges.
        edges: integers [2, S], the private edges, each once.
        noise: called once with the exact counts int64 [B], of L1 sensitivity 1.
        share: how densities are made of noisy counts: `clamped_density`, or what `informed_density` gives.
    """
    # The one line that reads private edges: all counts in one draw, as one edge moves one of them by one.
    noisy = np.asarray(noise(blocks.counts(edges)), np.float64)
    # The result is published: the output of a noise function that failed must not pass as noise.
    if noisy.shape != (len(blocks),) or not np.isfinite(noisy).all():
        raise InputError(f"noisy counts have shape {list(noisy.shape)}", allowed=f"{len(blocks)} numbers")
    return NoisyBlocks(blocks, noisy, share(noisy, blocks.pairs))


def clamped_density(noisy: FloatArray, pairs: IntArray) -> FloatArray:
    """Return noisy counts over pairs, each brought into 0 to 1 for itself, float64 [B].

    Unbiased but for the clamp, which adds up to half of the noise's mean size to every empty block.

    Args:
        noisy: float64 [B], counts with noise.
        pairs: int64 [B], protected pairs, at least 1.
    """
    # At both ends: the paper clamps from above only, and a negative density is none.
    return np.clip(noisy / pairs, 0.0, 1.0)


def collapse_by_support(sorted_pairs: PairTree, epsilon: float, *, edges: float = 32.0) -> BoolArray:
    """Collapse subtrees with fewer than `edges` / epsilon public edges below: bool [n-1], for `choose_blocks`. Raises
    InputError for an epsilon or a number of edges that is not above 0.

    The rule of the paper looks at densities: in a sparse graph it keeps blocks of a few dozen pairs, of which hardly
    one holds an edge, and their noise is all they tell. Private edges are taken to lie roughly where public ones do; a
    block then has a count worth its noise 1 / epsilon. Without public edges everything collapses: use
    `collapse_by_scale`.

    Args:
        edges: public edges that a block needs at epsilon 1, above 0.
    """
    require_number("(0, inf)", epsilon=epsilon, edges=edges)
    # Public counts decide, never private ones: which blocks there are is published beside the noise.
    collapse: BoolArray = sums_below(sorted_pairs.tree, sorted_pairs.public_counts) * epsilon < edges
    return collapse


def informed_density(blocks: Blocks, *, variance: float) -> Callable[[FloatArray, IntArray], FloatArray]:
    """Return a rule that weighs each noisy count against what the block's public edges let expect. Raises InputError
    for a variance that is not above 0.

    Expected is mu = r (a + B N / 2 sum N) for a block with a public edges and N protected pairs among B blocks (half
    an edge a block, spread over the pairs), r such that the expectations sum to the noisy total. How far true counts
    may lie from mu has the variance t = mu (1 + r) + phi mu^2: that of a Poisson number whose rate is known from public
    edges of the same kind, and a part by which private edges lie elsewhere than public ones; phi >= 0 is estimated from
    the noisy counts by moments. The best linear estimate is then

        mu + t / (t + variance) (noisy - mu),

    brought into 0 to N and scaled to the noisy total, so that clamping adds no edges. As epsilon grows it becomes the
    noisy count; as epsilon falls, the public structure at the private number of edges.

    Args:
        variance: of the noise of one count, above 0; of two-sided geometric noise 1 / (2 sinh^2(epsilon / 2)).
    """
    require_number("(0, inf)", variance=variance)
    places, pairs = blocks.places, blocks.pairs
    # Plus half an edge a block: otherwise the noisy count of a block without public edges would have no weight.
    weight = places - pairs + 0.5 * len(blocks) * pairs / max(1, int(pairs.sum()))

    def density(noisy: FloatArray, pairs: IntArray) -> FloatArray:
        total = max(float(noisy.sum()), 0.0)
        # Noise alone can make the total negative: then the best estimate is no edges.
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
