"""The systems: estimators with scikit-learn's manners, their controls and whole runs."""

from typing import Any

from graphveil.methods.baselines import baseline
from graphveil.methods.catalogue import METHODS, MethodInfo, Option, load_method
from graphveil.methods.class_sums import ClassSums
from graphveil.methods.dp_mlp import DPMLP
from graphveil.methods.gap import GAP
from graphveil.methods.heterorr import HeteroRR
from graphveil.methods.intervals import Interval, interval
from graphveil.methods.label_propagation import LabelPropagation
from graphveil.methods.link_beliefs import LinkBeliefs
from graphveil.methods.lpgnn import LPGNN
from graphveil.methods.private_links import ReleasedGraph
from graphveil.methods.progap import ProGAP
from graphveil.methods.released import Released, Topology
from graphveil.methods.solitude import Solitude

__all__ = [
    "DPMLP",
    "GAP",
    "LPGNN",
    "METHODS",
    "ClassSums",
    "HeteroRR",
    "Interval",
    "LabelPropagation",
    "LinkBeliefs",
    "MethodInfo",
    "Option",
    "ProGAP",
    "Released",
    "ReleasedGraph",
    "Solitude",
    "Topology",
    "baseline",
    "interval",
    "load_method",
]


def __getattr__(name: str) -> Any:
    """Hand on a system that lives in a later room: this room imports none, the package's root knows where it is."""
    import graphveil

    return graphveil.method(name)
