"""Graphs: the validated value, named data sets, the user's own files and objects, splits.

The names below load on first use, so that looking at a folder of tables needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.exports import lazy_names

if TYPE_CHECKING:
    from graphveil.graphs.conversions import from_adjacency as from_adjacency
    from graphveil.graphs.conversions import from_networkx as from_networkx
    from graphveil.graphs.conversions import from_pyg as from_pyg
    from graphveil.graphs.conversions import from_tables as from_tables
    from graphveil.graphs.conversions import to_pyg as to_pyg
    from graphveil.graphs.degree_bound import BoundedEdges as BoundedEdges
    from graphveil.graphs.degree_bound import keep_lists as keep_lists
    from graphveil.graphs.degree_bound import require_degree as require_degree
    from graphveil.graphs.description import describe as describe
    from graphveil.graphs.digits import digits_graph as digits_graph
    from graphveil.graphs.edges import normalise_edges as normalise_edges
    from graphveil.graphs.known import draw_private as draw_private
    from graphveil.graphs.load import NAMES as NAMES
    from graphveil.graphs.load import as_graph as as_graph
    from graphveil.graphs.load import load_graph as load_graph
    from graphveil.graphs.load import load_parts as load_parts
    from graphveil.graphs.load import load_plain as load_plain
    from graphveil.graphs.protocol import Graph as Graph
    from graphveil.graphs.protocol import Structure as Structure
    from graphveil.graphs.release import Release as Release
    from graphveil.graphs.release import write_release as write_release
    from graphveil.graphs.root import data_root as data_root
    from graphveil.graphs.schema import GraphSchema as GraphSchema
    from graphveil.graphs.social import social_graph as social_graph
    from graphveil.graphs.splits import Split as Split
    from graphveil.graphs.splits import known_labels as known_labels
    from graphveil.graphs.splits import published_split as published_split
    from graphveil.graphs.splits import random_split as random_split
    from graphveil.graphs.splits import shares_of as shares_of
    from graphveil.graphs.stored import store_parts as store_parts
    from graphveil.graphs.value import make_graph as make_graph
    from graphveil.graphs.value import node_names as node_names
    from graphveil.graphs.value import validate as validate
    from graphveil.graphs.write import write_folder as write_folder

_HOMES = {
    "NAMES": "load",
    "BoundedEdges": "degree_bound",
    "Graph": "protocol",
    "GraphSchema": "schema",
    "Release": "release",
    "Split": "splits",
    "Structure": "protocol",
    "as_graph": "load",
    "data_root": "root",
    "describe": "description",
    "digits_graph": "digits",
    "draw_private": "known",
    "from_adjacency": "conversions",
    "from_networkx": "conversions",
    "from_pyg": "conversions",
    "from_tables": "conversions",
    "keep_lists": "degree_bound",
    "known_labels": "splits",
    "load_graph": "load",
    "load_parts": "load",
    "load_plain": "load",
    "make_graph": "value",
    "node_names": "value",
    "normalise_edges": "edges",
    "published_split": "splits",
    "random_split": "splits",
    "require_degree": "degree_bound",
    "shares_of": "splits",
    "social_graph": "social",
    "store_parts": "stored",
    "to_pyg": "conversions",
    "validate": "value",
    "write_folder": "write",
    "write_release": "release",
}

__all__ = list(_HOMES)


__getattr__, __dir__ = lazy_names(__name__, _HOMES)
