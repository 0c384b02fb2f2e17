"""Synthetic edges in place of private ones: every method draws pairs of the same protected set, which is public.

    public-tree   a tree over the nodes from public edges alone; noisy counts of the blocks of pairs that it forms; each
                  block's edges drawn anew                                                               (ours)
    mcmc          the same, but the tree is drawn with the help of private edges                         (EdgeRR)
    priv-hrg      the same, without any help of public edges                                             (privHRG)
    edge-rand     randomized response on every pair
    lap-graph     noise on every pair; the largest become edges, as many as a noisy count of the true ones

`class-counts` makes no edges: it counts everybody's private neighbours by public class, with noise.

The paper's tree is fitted on private edges by a Markov chain: its guarantee is stated as asymptotic.  `public-tree`
spends the whole budget on counts and needs no such assumption.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.engine import LOCAL, Engine
from graphveil.graphs.value.release import NeighbourCounts
from graphveil.hierarchy.dendrogram import Dendrogram
from graphveil.mechanisms import ClassCounts, EdgeRand, NoisyCounts, PairDomain
from graphveil.mechanisms.edges.lap_graph import LapGraph
from graphveil.methods.base.settings import require_ranges
from graphveil.methods.release.entries import CHAINS, CLASS_COUNTS
from graphveil.methods.release.privacy import ReleasePrivacy
from graphveil.privacy import Randomness
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.progress import ProgressCallback

if TYPE_CHECKING:
    from graphveil.hierarchy.noisy_blocks import NoisyBlocks

#: Default steps of a Markov chain for each node.
STEPS_A_NODE = 100


@dataclass(frozen=True)
class Chains:
    """The Markov chains that draw a tree; public, and without effect on its price.

    Attributes:
        steps: of each chain; None: STEPS_A_NODE for each node. Fixed beforehand: no trace may shorten a chain.
        chains: one draws the tree, the others read public edges alone, for diagnosis.
    """

    steps: int | None = None
    chains: int = 3

    def __post_init__(self) -> None:
        require_ranges(self)


@dataclass(frozen=True)
class SyntheticEdges:
    """Synthetic edges, pairs [2, S] with u < v, and facts about their making that may be published."""

    pairs: Tensor
    facts: Mapping[str, Any] = field(default_factory=dict)


def make_edges(
    privacy: ReleasePrivacy,
    domain: PairDomain,
    private: Tensor,
    *,
    chains: Chains,
    randomness: Randomness,
    features: Any = None,
    progress: ProgressCallback | None = None,
    engine: Engine = LOCAL,
) -> SyntheticEdges:
    """Return synthetic edges in place of the private ones [2, m], at the price of `privacy.edge_budgets`.

    Args:
        features: [n, d] numpy or CSR, PUBLIC features, which place nodes without public edges in the tree; or None.
        engine: where blocks of pairs are worked on (edge-rand, lap-graph); the result does not depend on it.
    """
    # The price of each step is fixed before the first private edge is read.
    budgets = privacy.edge_budgets()
    # Without protected pairs nothing is read and nothing drawn; class-counts publishes no edges.
    if domain.size == 0 or privacy.edges == CLASS_COUNTS:
        return SyntheticEdges(torch.zeros(2, 0, dtype=torch.int64))
    if privacy.edges == "edge-rand":
        flipped = EdgeRand(epsilon=budgets["edges"], domain=domain)
        return SyntheticEdges(flipped.randomize(private, randomness=randomness, engine=engine))
    if privacy.edges == "lap-graph":
        lap_graph = LapGraph(epsilon=budgets["edges"], domain=domain, count_share=privacy.count_share)
        return SyntheticEdges(lap_graph.randomize(private, randomness=randomness, engine=engine))
    from graphveil.hierarchy.community_tree import public_tree
    from graphveil.hierarchy.sampling import sample_edges

    facts: dict[str, Any] = {}
    tree, public = None, _public_pairs(domain)
    # From public edges and features; a chain may start without a tree.
    if privacy.edges != "priv-hrg" and (privacy.edges != "mcmc" or public.size):
        tree = public_tree(domain.nodes, public, features=features)
    if tree is None or privacy.edges in CHAINS:
        tree, facts = _chain_tree(privacy, domain, private, chains, tree, randomness, progress)
    # If private edges helped to draw the tree, blocks and densities follow the paper's own rules, for comparison.
    informed = privacy.edges not in CHAINS
    noisy = noisy_blocks(tree, domain, private.numpy(), budgets["block counts"], randomness, informed=informed)
    rng = np.random.default_rng(randomness.uint64(4))  # densities are published: sampling from them protects nothing
    pairs = torch.from_numpy(sample_edges(noisy.blocks, noisy.density, rng))
    return SyntheticEdges(pairs, {**facts, "blocks": len(noisy.blocks)})


def joined_edges(domain: PairDomain, synthetic: Tensor) -> tuple[Tensor, Tensor]:
    """Return public edges and synthetic pairs [2, S] as (edge_index [2, E], public [E]), both directions, sorted."""
    public_pairs = domain.public if domain.public is not None else synthetic[:, :0]
    pairs = torch.cat([public_pairs, synthetic], dim=1)
    public = torch.arange(pairs.shape[1]) < public_pairs.shape[1]
    both = torch.cat([pairs, pairs.flip(0)], dim=1)
    # Sorted: the order in which pairs were drawn is no part of the release.
    order = torch.argsort(both[0] * domain.nodes + both[1])
    return both[:, order], public.repeat(2)[order]


def count_neighbours(
    privacy: ReleasePrivacy,
    domain: PairDomain,
    private: Tensor,
    groups: Tensor,
    classes: int,
    *,
    randomness: Randomness,
    engine: Engine = LOCAL,
) -> NeighbourCounts:
    """Return noisy counts of everybody's private neighbours by group, at the price of `privacy.edge_budgets`.

    Args:
        private, groups, classes: [2, m], u < v, the private edges; int64 [n], PUBLIC; the number of classes.
    """
    epsilon = privacy.edge_budgets()["class counts"]
    mechanism = ClassCounts(epsilon=epsilon, domain=domain, groups=groups, classes=classes)
    return NeighbourCounts(groups, mechanism.randomize(private, randomness=randomness, engine=engine))


def warning_of(privacy: ReleasePrivacy, domain: PairDomain) -> str | None:
    """Return the warning of a mechanism before it runs, or None; no private edge is read."""
    if privacy.edges == "edge-rand" and "edges" in privacy.protected:
        return EdgeRand(epsilon=privacy.epsilon_a, domain=domain).warning
    return None


def _chain_tree(
    privacy: ReleasePrivacy,
    domain: PairDomain,
    private: Tensor,
    chains: Chains,
    start: Dendrogram | None,
    randomness: Randomness,
    progress: ProgressCallback | None,
) -> tuple[Dendrogram, dict[str, Any]]:
    """Return a tree drawn by a Markov chain with the help of private edges, and facts that may be published."""
    from graphveil.hierarchy.markov import fit_markov

    public = _public_pairs(domain)
    steps = chains.steps or STEPS_A_NODE * domain.nodes
    count = chains.chains if privacy.edges == "mcmc" else 1
    fitted = fit_markov(
        domain.nodes,
        None if domain.members is None else domain.ids,
        # One joint law for public and private edges: the alternating moves of the paper have no proof and exceed its
        # epsilon.
        public if privacy.edges == "mcmc" else public[:, :0],
        private.numpy(),
        epsilon=privacy.edge_budgets()["tree"],
        steps=steps,
        chains=count,
        randomness=randomness,
        start=start,
        progress=progress,
    )
    facts: dict[str, Any] = {"steps": steps, "chains": count}
    if np.isfinite(fitted.public_rhat):
        facts["public_rhat"] = float(fitted.public_rhat)
    return fitted.dendrogram, facts


def noisy_blocks(
    tree: Dendrogram, domain: PairDomain, private: np.ndarray, epsilon: float, randomness: Randomness, *, informed: bool
) -> NoisyBlocks:
    """Return the blocks of a tree with noisy counts of the private edges [2, m], at the price `epsilon`.

    Args:
        informed: whether public edges determine the blocks and the expected counts, instead of the paper's rules.
    """
    from graphveil.hierarchy.counts import pair_tree
    from graphveil.hierarchy.noisy_blocks import (
        choose_blocks,
        clamped_density,
        collapse_by_scale,
        collapse_by_support,
        informed_density,
        release_counts,
    )

    public, members = _public_pairs(domain), None if domain.members is None else domain.ids
    pairs = pair_tree(tree, members=members, public=public)
    # Both read public edges, sizes and epsilon alone: the shape of the result reveals nothing of private edges.
    collapse = collapse_by_support if informed and pairs.public.size else collapse_by_scale
    blocks = choose_blocks(pairs, collapse(pairs, epsilon))
    noise = NoisyCounts(epsilon=epsilon)
    return release_counts(
        blocks,
        private,
        noise=lambda counts: noise.randomize(torch.from_numpy(counts), randomness=randomness).numpy(),
        share=informed_density(blocks, variance=noise.variance) if informed else clamped_density,
    )


def _public_pairs(domain: PairDomain) -> np.ndarray:
    return np.zeros((2, 0), np.int64) if domain.public is None else domain.public.numpy()
