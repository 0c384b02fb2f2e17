"""The systems: estimators with scikit-learn's manners, their controls and whole runs.

Each method is a class, which loads on first use: what methods there are, and which settings they take, needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphveil.methods.registry import METHODS as METHODS
from graphveil.methods.registry import load_method as load_method
from graphveil.runtime.late import late_names, lazy_names

if TYPE_CHECKING:
    from graphveil.methods.base.estimator import Estimator as Estimator
    from graphveil.methods.base.method import Method as Method
    from graphveil.methods.base.method import Option as Option
    from graphveil.methods.base.people.released import LocalReports as LocalReports
    from graphveil.methods.base.people.released import Topology as Topology
    from graphveil.methods.baselines.network import GAT as GAT
    from graphveil.methods.baselines.network import GCN as GCN
    from graphveil.methods.baselines.network import MLP as MLP
    from graphveil.methods.baselines.network import SAGE as SAGE
    from graphveil.methods.baselines.network import baseline as baseline
    from graphveil.methods.curator.class_sums import ClassSums as ClassSums
    from graphveil.methods.curator.dp_mlp import DPMLP as DPMLP
    from graphveil.methods.curator.gap import GAP as GAP
    from graphveil.methods.curator.node_sums import NodeSums as NodeSums
    from graphveil.methods.curator.progap import ProGAP as ProGAP
    from graphveil.methods.curator.rivals.caribou import Caribou as Caribou
    from graphveil.methods.curator.rivals.dpdgc import DPDGC as DPDGC
    from graphveil.methods.curator.rivals.eclipse import Eclipse as Eclipse
    from graphveil.methods.curator.rivals.gcon import GCON as GCON
    from graphveil.methods.curator.rivals.lpgnet import LPGNet as LPGNet
    from graphveil.methods.links.collection import LinkReports as LinkReports
    from graphveil.methods.links.link_beliefs import LinkBeliefs as LinkBeliefs
    from graphveil.methods.links.link_beliefs import Links as Links
    from graphveil.methods.links.link_beliefs import ListSums as ListSums
    from graphveil.methods.links.solitude import DPRR as DPRR
    from graphveil.methods.links.solitude import Blink as Blink
    from graphveil.methods.links.solitude import Solitude as Solitude
    from graphveil.methods.local.label_propagation import AnswerPool as AnswerPool
    from graphveil.methods.local.label_propagation import LabelPool as LabelPool
    from graphveil.methods.local.label_propagation import LabelPropagation as LabelPropagation
    from graphveil.methods.local.lpgnn import LPGNN as LPGNN
    from graphveil.methods.local.upgnet import UPGNet as UPGNet
    from graphveil.methods.release.counts.class_counts import ClassCounts as ClassCounts
    from graphveil.methods.release.heterorr import EdgeRand as EdgeRand
    from graphveil.methods.release.heterorr import EdgeRR as EdgeRR
    from graphveil.methods.release.heterorr import FeatureRR as FeatureRR
    from graphveil.methods.release.heterorr import HeteroRR as HeteroRR
    from graphveil.methods.release.heterorr import LapGraph as LapGraph
    from graphveil.methods.release.heterorr import PrivHRG as PrivHRG
    from graphveil.methods.runs import experiment as experiment
    from graphveil.methods.runs.intervals import Interval as Interval
    from graphveil.methods.runs.intervals import interval as interval

# A module, and no name in one.
_HOMES = {**late_names(__name__, __file__), "experiment": "runs.experiment"}

__all__ = sorted(["METHODS", "load_method", *_HOMES])


_load, __dir__ = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    """Load a name of this room, or hand on a system of a later one: the package's root knows where it is."""
    if name in _HOMES:
        return _load(name)
    import graphveil

    return graphveil.method(name)
