"""Graphs: the validated value, named data sets, the user's own files and objects, splits.

The names below load on first use, so that looking at a folder of tables needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.runtime.late import late_names, lazy_names

if TYPE_CHECKING:
    from graphveil.graphs.conversions import from_adjacency as from_adjacency
    from graphveil.graphs.conversions import from_networkx as from_networkx
    from graphveil.graphs.conversions import from_pyg as from_pyg
    from graphveil.graphs.conversions import from_tables as from_tables
    from graphveil.graphs.conversions import to_pyg as to_pyg
    from graphveil.graphs.degree_bound import BoundedEdges as BoundedEdges
    from graphveil.graphs.degree_bound import keep_lists as keep_lists
    from graphveil.graphs.degree_bound import require_degree as require_degree
    from graphveil.graphs.load import NAMES as NAMES
    from graphveil.graphs.load import as_graph as as_graph
    from graphveil.graphs.load import load_graph as load_graph
    from graphveil.graphs.load import load_parts as load_parts
    from graphveil.graphs.load import load_plain as load_plain
    from graphveil.graphs.named.root import data_root as data_root
    from graphveil.graphs.named.social import digits_graph as digits_graph
    from graphveil.graphs.named.social import social_graph as social_graph
    from graphveil.graphs.public_edges import draw_private as draw_private
    from graphveil.graphs.releases.release import write_release as write_release
    from graphveil.graphs.tables.write import store_parts as store_parts
    from graphveil.graphs.tables.write import write_folder as write_folder
    from graphveil.graphs.value.description import describe as describe
    from graphveil.graphs.value.edges import normalise_edges as normalise_edges
    from graphveil.graphs.value.parts import Graph as Graph
    from graphveil.graphs.value.parts import Structure as Structure
    from graphveil.graphs.value.release import Release as Release
    from graphveil.graphs.value.schema import GraphSchema as GraphSchema
    from graphveil.graphs.value.splits import Split as Split
    from graphveil.graphs.value.splits import known_labels as known_labels
    from graphveil.graphs.value.splits import published_split as published_split
    from graphveil.graphs.value.splits import random_split as random_split
    from graphveil.graphs.value.splits import require_split as require_split
    from graphveil.graphs.value.splits import require_taught as require_taught
    from graphveil.graphs.value.splits import shares_of as shares_of
    from graphveil.graphs.value.value import make_graph as make_graph
    from graphveil.graphs.value.value import node_names as node_names
    from graphveil.graphs.value.value import validate as validate

_HOMES = late_names(__name__, __file__)

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
