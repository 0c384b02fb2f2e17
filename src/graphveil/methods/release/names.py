"""The mechanisms of a published graph, by name."""

from __future__ import annotations

from graphveil.mechanisms.catalogue import feature_names

RELEASE_FEATURES = feature_names(releases=True)
#: How the private part of the edges is made anew.
EDGE_METHODS = ("public-tree", "mcmc", "edge-rand", "lap-graph", "priv-hrg")
#: Those that draw a tree with the help of private edges.
CHAINS = ("mcmc", "priv-hrg")
#: Those that draw a tree at all.
TREES = ("public-tree", *CHAINS)
#: What is published in the place of private edges where no edges are made: counts of neighbours by class.
CLASS_COUNTS = "class-counts"
