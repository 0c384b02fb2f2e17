"""Trees over the nodes of a graph: counts of edges by tree node, and graphs drawn from noisy counts."""

from __future__ import annotations

from graphveil.hierarchy.dendrogram import Dendrogram, Layout, balanced_dendrogram, dendrogram_of

__all__ = [
    "Dendrogram",
    "Layout",
    "balanced_dendrogram",
    "dendrogram_of",
]
