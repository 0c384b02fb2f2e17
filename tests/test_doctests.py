"""The examples of docstrings say what they say they do."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

#: Modules whose docstrings hold examples.
MODULES = (
    "graphveil.aggregation.perturbed",
    "graphveil.aggregation.propagation",
    "graphveil.federation.core.setting",
    "graphveil.federation.crypto.ring",
    "graphveil.federation.crypto.sharing",
    "graphveil.federation.estimator",
    "graphveil.graphs.conversions",
    "graphveil.graphs.description",
    "graphveil.graphs.edges",
    "graphveil.graphs.load",
    "graphveil.graphs.social",
    "graphveil.graphs.splits",
    "graphveil.graphs.value",
    "graphveil.hierarchy.dendrogram",
    "graphveil.mechanisms.catalogue",
    "graphveil.mechanisms.edges.adjacency",
    "graphveil.mechanisms.edges.degree_preserving",
    "graphveil.mechanisms.edges.degrees",
    "graphveil.mechanisms.edges.edge_rand",
    "graphveil.mechanisms.edges.lap_graph",
    "graphveil.mechanisms.edges.noisy_counts",
    "graphveil.mechanisms.edges.pair_domain",
    "graphveil.mechanisms.features.clipping",
    "graphveil.mechanisms.features.duchi",
    "graphveil.mechanisms.features.feature_rr",
    "graphveil.mechanisms.features.gaussian",
    "graphveil.mechanisms.features.laplace",
    "graphveil.mechanisms.features.multibit",
    "graphveil.mechanisms.features.onebit",
    "graphveil.mechanisms.features.privunit",
    "graphveil.mechanisms.labels.randomized_response",
    "graphveil.mechanisms.public",
    "graphveil.methods.base.estimator",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name: str) -> None:
    failed, tried = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried and not failed
