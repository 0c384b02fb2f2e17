"""The systems: estimators with scikit-learn's manners, their controls and whole runs.

A public name such as `LPGNN` is the method's entry in the registry. The other names load on first use: what methods
there are, and which settings they take, needs no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphveil.methods.registry import METHODS as METHODS
from graphveil.methods.registry import PUBLIC
from graphveil.methods.registry import load_method as load_method
from graphveil.runtime.exports import lazy_names

if TYPE_CHECKING:
    from graphveil.methods.base.method import C, P
    from graphveil.methods.base.method import Method as Method
    from graphveil.methods.base.method import Option as Option
    from graphveil.methods.base.people.released import LocalReports as LocalReports
    from graphveil.methods.base.people.released import Topology as Topology
    from graphveil.methods.baselines.network import baseline as baseline
    from graphveil.methods.curator.class_sums import ClassSumsCore
    from graphveil.methods.curator.dp_mlp import DPMLPCore
    from graphveil.methods.curator.gap import GAPCore
    from graphveil.methods.curator.node_sums import NodeSumsCore
    from graphveil.methods.curator.progap import ProGAPCore
    from graphveil.methods.curator.rivals.caribou import CaribouCore
    from graphveil.methods.curator.rivals.dpdgc import DPDGCCore
    from graphveil.methods.curator.rivals.eclipse import EclipseCore
    from graphveil.methods.curator.rivals.gcon import GCONCore
    from graphveil.methods.curator.rivals.lpgnet import LPGNetCore
    from graphveil.methods.links.collection import LinkReports as LinkReports
    from graphveil.methods.links.link_beliefs import LinkBeliefsCore
    from graphveil.methods.links.solitude import SolitudeCore
    from graphveil.methods.local.label_propagation import LabelPropagationCore
    from graphveil.methods.local.lpgnn import LPGNNCore
    from graphveil.methods.release.counts.class_counts import ClassCountsCore
    from graphveil.methods.release.heterorr import HeteroRRCore
    from graphveil.methods.runs import experiment as experiment
    from graphveil.methods.runs.intervals import Interval as Interval
    from graphveil.methods.runs.intervals import interval as interval

    # When the program runs each public name is the registry's entry, and this is its type.
    def _typed(core: Callable[P, C]) -> Method[P, C]: ...

    Caribou = _typed(CaribouCore)
    ClassCounts = _typed(ClassCountsCore)
    ClassSums = _typed(ClassSumsCore)
    DPDGC = _typed(DPDGCCore)
    DPMLP = _typed(DPMLPCore)
    Eclipse = _typed(EclipseCore)
    GAP = _typed(GAPCore)
    GCON = _typed(GCONCore)
    HeteroRR = _typed(HeteroRRCore)
    LabelPropagation = _typed(LabelPropagationCore)
    LinkBeliefs = _typed(LinkBeliefsCore)
    LPGNet = _typed(LPGNetCore)
    LPGNN = _typed(LPGNNCore)
    NodeSums = _typed(NodeSumsCore)
    ProGAP = _typed(ProGAPCore)
    Solitude = _typed(SolitudeCore)

_HOMES = {
    "Interval": "runs.intervals",
    "LinkReports": "links.collection",
    "LocalReports": "base.people.released",
    "Method": "base.method",
    "Option": "base.method",
    "Topology": "base.people.released",
    "baseline": "baselines.network",
    "experiment": "runs.experiment",
    "interval": "runs.intervals",
}

__all__ = sorted(["METHODS", "load_method", *_HOMES, *PUBLIC])


_load, __dir__ = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    """Load a name of this room, or hand on a system of a later one: the package's root knows where it is."""
    if name in PUBLIC:
        return PUBLIC[name]
    if name in _HOMES:
        return _load(name)
    import graphveil

    return graphveil.method(name)
