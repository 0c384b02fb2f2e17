"""The systems: estimators with scikit-learn's manners, their controls and whole runs."""

from graphveil.methods.baselines import baseline
from graphveil.methods.catalogue import METHODS, MethodInfo, Option, load_method
from graphveil.methods.intervals import Interval, interval
from graphveil.methods.label_propagation import LabelPropagation
from graphveil.methods.lpgnn import LPGNN
from graphveil.methods.released import Released, Topology

__all__ = [
    "LPGNN",
    "METHODS",
    "Interval",
    "LabelPropagation",
    "MethodInfo",
    "Option",
    "Released",
    "Topology",
    "baseline",
    "interval",
    "load_method",
]
