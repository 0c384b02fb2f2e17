"""Graph neural networks on private graph data, with the guarantee stated as one value.

The names below load on first use, so that `import graphveil` stays light.
"""

from __future__ import annotations

from importlib import import_module
from os import environ
from typing import TYPE_CHECKING, Any

from graphveil.runtime.late import late_names, lazy_names

if TYPE_CHECKING:
    from graphveil import federation as federation
    from graphveil import graphs as graphs
    from graphveil import mechanisms as mechanisms
    from graphveil import methods as methods
    from graphveil import privacy as privacy
    from graphveil.federation import VFGNN as VFGNN
    from graphveil.graphs import GraphSchema as GraphSchema
    from graphveil.graphs import as_graph as as_graph
    from graphveil.graphs import from_adjacency as from_adjacency
    from graphveil.graphs import from_networkx as from_networkx
    from graphveil.graphs import from_pyg as from_pyg
    from graphveil.graphs import from_tables as from_tables
    from graphveil.graphs import load_graph as load_graph
    from graphveil.graphs import to_pyg as to_pyg
    from graphveil.methods import DPMLP as DPMLP
    from graphveil.methods import GAP as GAP
    from graphveil.methods import LPGNN as LPGNN
    from graphveil.methods import AnswerPool as AnswerPool
    from graphveil.methods import ClassCounts as ClassCounts
    from graphveil.methods import ClassSums as ClassSums
    from graphveil.methods import HeteroRR as HeteroRR
    from graphveil.methods import LabelPool as LabelPool
    from graphveil.methods import LabelPropagation as LabelPropagation
    from graphveil.methods import LinkBeliefs as LinkBeliefs
    from graphveil.methods import Links as Links
    from graphveil.methods import ListSums as ListSums
    from graphveil.methods import NodeSums as NodeSums
    from graphveil.methods import ProGAP as ProGAP
    from graphveil.methods import Solitude as Solitude
    from graphveil.methods import load_method as load_method
    from graphveil.privacy import Guarantee as Guarantee
    from graphveil.privacy import Ledger as Ledger

__version__ = "0.1.0"

# Torch asks once, at its first array. Large arrays are taken from the system anew each time, and it hands over pages of
# 2 MB in a fraction of the time that it takes for as much in pages of 4 KB.
environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

#: name -> the room that has it, or that it is
_HOMES = late_names(__name__, __file__)

__all__ = sorted([*_HOMES, "__version__"], key=lambda name: (not name.isupper(), not name[0].isupper(), name))

#: Systems that need a room which may import `methods`; that room cannot be imported by it.
_LATER = {"VFGNN": "federation"}
_LATER_KINDS = {"vfgnn": "VFGNN"}


__getattr__, __dir__ = lazy_names(__name__, _HOMES)


def method(name: str) -> object:
    """Return a system of a room after ``methods``, which hands it on by name. Raises AttributeError: no system has that
    name.
    """
    if name in _LATER:
        return getattr(import_module(f"graphveil.{_LATER[name]}"), name)
    raise AttributeError(f"module 'graphveil.methods' has no attribute {name!r}")


def method_of_kind(kind: str) -> Any:
    """Return the system of such a room that saves files of a kind; None where there is none."""
    return method(_LATER_KINDS[kind]) if kind in _LATER_KINDS else None
