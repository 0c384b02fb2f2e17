"""Graphs: the validated value, named data sets, the user's own files, splits."""

from __future__ import annotations

from graphveil.graphs.degree_bound import BoundedEdges, keep_lists, require_degree
from graphveil.graphs.describe import describe
from graphveil.graphs.digits import digits_graph
from graphveil.graphs.edges import normalise_edges
from graphveil.graphs.known import draw_private
from graphveil.graphs.load import NAMES, load_graph
from graphveil.graphs.release import Release, write_release
from graphveil.graphs.root import data_root
from graphveil.graphs.schema import GraphSchema
from graphveil.graphs.social import social_graph
from graphveil.graphs.splits import Split, known_labels, published_split, random_split, shares_of
from graphveil.graphs.value import make_graph, node_names, validate
from graphveil.graphs.write import write_folder

__all__ = [
    "NAMES",
    "BoundedEdges",
    "GraphSchema",
    "Release",
    "Split",
    "data_root",
    "describe",
    "digits_graph",
    "draw_private",
    "keep_lists",
    "known_labels",
    "load_graph",
    "make_graph",
    "node_names",
    "normalise_edges",
    "published_split",
    "random_split",
    "require_degree",
    "shares_of",
    "social_graph",
    "validate",
    "write_folder",
    "write_release",
]
