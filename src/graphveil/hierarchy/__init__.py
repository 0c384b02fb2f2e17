"""Trees over the nodes of a graph: counts of edges by tree node, and graphs drawn from noisy counts."""

from __future__ import annotations

from graphveil.hierarchy.counts import PairTree, count_edges, lowest_common_ancestors, pair_tree, sums_below
from graphveil.hierarchy.dendrogram import Dendrogram, Layout, balanced_dendrogram, dendrogram_of
from graphveil.hierarchy.densities import collapse_by_support, informed_density
from graphveil.hierarchy.diagnostics import split_rhat
from graphveil.hierarchy.likelihood import likelihood_sensitivity, log_likelihood, predictive_log_likelihood
from graphveil.hierarchy.markov import ASYMPTOTIC, MarkovFit, fit_markov, private_weight
from graphveil.hierarchy.noisy_blocks import (
    Blocks,
    NoisyBlocks,
    choose_blocks,
    clamped_density,
    collapse_by_scale,
    release_counts,
)
from graphveil.hierarchy.public_tree import public_tree
from graphveil.hierarchy.sampling import sample_edges

__all__ = [
    "ASYMPTOTIC",
    "Blocks",
    "Dendrogram",
    "Layout",
    "MarkovFit",
    "NoisyBlocks",
    "PairTree",
    "balanced_dendrogram",
    "choose_blocks",
    "clamped_density",
    "collapse_by_scale",
    "collapse_by_support",
    "count_edges",
    "dendrogram_of",
    "fit_markov",
    "informed_density",
    "likelihood_sensitivity",
    "log_likelihood",
    "lowest_common_ancestors",
    "pair_tree",
    "predictive_log_likelihood",
    "private_weight",
    "public_tree",
    "release_counts",
    "sample_edges",
    "split_rhat",
    "sums_below",
]
