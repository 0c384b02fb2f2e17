"""The systems: estimators with scikit-learn's manners, their controls and whole runs."""

from graphveil.methods.baselines import baseline
from graphveil.methods.catalogue import METHODS, MethodInfo, Option, load_method
from graphveil.methods.intervals import Interval, interval
from graphveil.methods.label_propagation import LabelPropagation
from graphveil.methods.link_beliefs import LinkBeliefs
from graphveil.methods.lpgnn import LPGNN
from graphveil.methods.private_links import ReleasedGraph
from graphveil.methods.released import Released, Topology
from graphveil.methods.solitude import Solitude

__all__ = [
    "LPGNN",
    "METHODS",
    "Interval",
    "LabelPropagation",
    "LinkBeliefs",
    "MethodInfo",
    "Option",
    "Released",
    "ReleasedGraph",
    "Solitude",
    "Topology",
    "baseline",
    "interval",
    "load_method",
]
