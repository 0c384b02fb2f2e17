"""The systems: estimators with scikit-learn's manners, their controls and whole runs."""

from typing import Any

from graphveil.methods.base.released import LocalReports, Topology
from graphveil.methods.curator.class_sums import ClassSums
from graphveil.methods.curator.dp_mlp import DPMLP
from graphveil.methods.curator.gap import GAP
from graphveil.methods.curator.progap import ProGAP
from graphveil.methods.links.collection import LinkReports
from graphveil.methods.links.link_beliefs import LinkBeliefs
from graphveil.methods.links.solitude import Solitude
from graphveil.methods.local.baselines import baseline
from graphveil.methods.local.label_propagation import LabelPropagation
from graphveil.methods.local.lpgnn import LPGNN
from graphveil.methods.release.heterorr import HeteroRR
from graphveil.methods.runs.catalogue import METHODS, MethodInfo, Option, load_method
from graphveil.methods.runs.intervals import Interval, interval

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
    "LinkReports",
    "LocalReports",
    "MethodInfo",
    "Option",
    "ProGAP",
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
