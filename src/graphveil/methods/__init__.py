"""The systems: estimators with scikit-learn's manners, their controls and whole runs.

The names below load on first use: what methods there are, and which settings they take, needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphveil.exports import lazy_names

if TYPE_CHECKING:
    from graphveil.methods.base.method import Method as Method
    from graphveil.methods.base.method import Option as Option
    from graphveil.methods.base.released import LocalReports as LocalReports
    from graphveil.methods.base.released import Topology as Topology
    from graphveil.methods.curator.class_sums import ClassSums as ClassSums
    from graphveil.methods.curator.dp_mlp import DPMLP as DPMLP
    from graphveil.methods.curator.gap import GAP as GAP
    from graphveil.methods.curator.progap import ProGAP as ProGAP
    from graphveil.methods.links.collection import LinkReports as LinkReports
    from graphveil.methods.links.link_beliefs import LinkBeliefs as LinkBeliefs
    from graphveil.methods.links.solitude import Solitude as Solitude
    from graphveil.methods.local.baselines import baseline as baseline
    from graphveil.methods.local.label_propagation import LabelPropagation as LabelPropagation
    from graphveil.methods.local.lpgnn import LPGNN as LPGNN
    from graphveil.methods.registry import METHODS as METHODS
    from graphveil.methods.registry import load_method as load_method
    from graphveil.methods.release.heterorr import HeteroRR as HeteroRR
    from graphveil.methods.runs import experiment as experiment
    from graphveil.methods.runs.intervals import Interval as Interval
    from graphveil.methods.runs.intervals import interval as interval

_HOMES = {
    "DPMLP": "curator.dp_mlp",
    "GAP": "curator.gap",
    "LPGNN": "local.lpgnn",
    "METHODS": "registry",
    "ClassSums": "curator.class_sums",
    "HeteroRR": "release.heterorr",
    "Interval": "runs.intervals",
    "LabelPropagation": "local.label_propagation",
    "LinkBeliefs": "links.link_beliefs",
    "LinkReports": "links.collection",
    "LocalReports": "base.released",
    "Method": "base.method",
    "Option": "base.method",
    "ProGAP": "curator.progap",
    "Solitude": "links.solitude",
    "Topology": "base.released",
    "baseline": "local.baselines",
    "experiment": "runs.experiment",
    "interval": "runs.intervals",
    "load_method": "registry",
}

__all__ = list(_HOMES)


_load, __dir__ = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    """Load a name of this room, or hand on a system of a later one: the package's root knows where it is."""
    if name in _HOMES:
        return _load(name)
    import graphveil

    return graphveil.method(name)
