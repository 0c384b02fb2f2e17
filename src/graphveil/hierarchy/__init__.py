"""Trees over the nodes of a graph: counts of edges by tree node, and graphs drawn from noisy counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.runtime.late import late_names, lazy_names

if TYPE_CHECKING:
    from graphveil.hierarchy.community_tree import public_tree as public_tree
    from graphveil.hierarchy.counts import PairTree as PairTree
    from graphveil.hierarchy.counts import count_edges as count_edges
    from graphveil.hierarchy.counts import likelihood_sensitivity as likelihood_sensitivity
    from graphveil.hierarchy.counts import log_likelihood as log_likelihood
    from graphveil.hierarchy.counts import lowest_common_ancestors as lowest_common_ancestors
    from graphveil.hierarchy.counts import pair_tree as pair_tree
    from graphveil.hierarchy.counts import predictive_log_likelihood as predictive_log_likelihood
    from graphveil.hierarchy.counts import sums_below as sums_below
    from graphveil.hierarchy.dendrogram import Dendrogram as Dendrogram
    from graphveil.hierarchy.dendrogram import Layout as Layout
    from graphveil.hierarchy.dendrogram import balanced_dendrogram as balanced_dendrogram
    from graphveil.hierarchy.dendrogram import dendrogram_of as dendrogram_of
    from graphveil.hierarchy.markov import ASYMPTOTIC as ASYMPTOTIC
    from graphveil.hierarchy.markov import MarkovFit as MarkovFit
    from graphveil.hierarchy.markov import fit_markov as fit_markov
    from graphveil.hierarchy.markov import private_weight as private_weight
    from graphveil.hierarchy.markov import split_rhat as split_rhat
    from graphveil.hierarchy.noisy_blocks import Blocks as Blocks
    from graphveil.hierarchy.noisy_blocks import NoisyBlocks as NoisyBlocks
    from graphveil.hierarchy.noisy_blocks import choose_blocks as choose_blocks
    from graphveil.hierarchy.noisy_blocks import clamped_density as clamped_density
    from graphveil.hierarchy.noisy_blocks import collapse_by_scale as collapse_by_scale
    from graphveil.hierarchy.noisy_blocks import collapse_by_support as collapse_by_support
    from graphveil.hierarchy.noisy_blocks import informed_density as informed_density
    from graphveil.hierarchy.noisy_blocks import release_counts as release_counts
    from graphveil.hierarchy.sampling import sample_edges as sample_edges

_HOMES = late_names(__name__, __file__)

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
