"""Randomizers: what each user's device sends, and what a server may conclude from it.

The names below load on first use, so that `import graphveil.mechanisms` and the catalogue stay light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphveil.mechanisms.catalogue import MechanismInfo, catalogue
from graphveil.runtime.late import lazy_names

if TYPE_CHECKING:
    from graphveil.mechanisms.base.category import CategoryMechanism, Labels
    from graphveil.mechanisms.base.reports import (
        LabelReports,
        LatticeReports,
        MultiBitReports,
        OneBitReports,
        SubsetReports,
    )
    from graphveil.mechanisms.base.values import Values
    from graphveil.mechanisms.edges.adjacency import AdjacencyRR
    from graphveil.mechanisms.edges.degrees import DegreePreservingRR, Degrees, NoisyDegree
    from graphveil.mechanisms.edges.edge_rand import EdgeRand
    from graphveil.mechanisms.edges.lap_graph import LapGraph
    from graphveil.mechanisms.edges.neighbour_lists import (
        AdjacencyEstimate,
        DegreePreservingReports,
        DegreeReports,
        EdgeReports,
        PairEstimate,
        PairEvidence,
    )
    from graphveil.mechanisms.edges.noisy_counts import ClassCounts, NoisyCounts
    from graphveil.mechanisms.edges.pair_domain import PairDomain, protected_pairs
    from graphveil.mechanisms.features.clipping import clip_to_range
    from graphveil.mechanisms.features.duchi import Duchi
    from graphveil.mechanisms.features.feature_rr import BinReports, FeatureRR
    from graphveil.mechanisms.features.gaussian import AnalyticGaussian
    from graphveil.mechanisms.features.hybrid import Hybrid
    from graphveil.mechanisms.features.laplace import Laplace
    from graphveil.mechanisms.features.multibit import MultiBit, OneBit
    from graphveil.mechanisms.features.piecewise import Piecewise, SubOptimal
    from graphveil.mechanisms.features.privunit import CodewordReports, PrivUnit
    from graphveil.mechanisms.features.sampled import SampledReports, SampledVectors
    from graphveil.mechanisms.features.three_outputs import ThreeOutputs
    from graphveil.mechanisms.labels.choice import best_category
    from graphveil.mechanisms.labels.randomized_response import RandomizedResponse
    from graphveil.mechanisms.labels.subset_selection import SubsetSelection
    from graphveil.mechanisms.labels.unary_encoding import UnaryEncoding
    from graphveil.mechanisms.permanent import permanent_guarantee, permanent_list, permanent_report, permanent_reports
    from graphveil.mechanisms.public import NotCollected, Public, PublicLabels

#: Modules of this package and the names that they export here, beside those of the catalogue.
_NAMES: Final = {
    "base.category": ("CategoryMechanism", "Labels"),
    "base.values": ("Values",),
    "edges.degrees": ("Degrees",),
    "edges.pair_domain": ("PairDomain", "protected_pairs"),
    "edges.neighbour_lists": ("AdjacencyEstimate", "PairEstimate", "PairEvidence"),
    "features.clipping": ("clip_to_range",),
    "features.sampled": ("SampledVectors",),
    "labels.choice": ("best_category",),
    "public": ("NotCollected", "Public", "PublicLabels"),
    "permanent": ("permanent_guarantee", "permanent_list", "permanent_report", "permanent_reports"),
}


def _homes() -> dict[str, str]:
    """The module of every name: those of `_NAMES`, and the classes of mechanisms and of their reports."""
    homes = {name: module for module, names in _NAMES.items() for name in names}
    for info in catalogue():
        for path in filter(None, (info.path, info.reports)):
            module, _, name = path.partition(":")
            homes[name] = module
    return homes


__all__ = ["AdjacencyEstimate", "AdjacencyRR", "AnalyticGaussian", "BinReports", "CategoryMechanism", "ClassCounts"]
__all__ += ["CodewordReports", "DegreePreservingRR", "DegreePreservingReports", "DegreeReports", "Degrees", "Duchi"]
__all__ += ["EdgeRand", "EdgeReports", "FeatureRR", "Hybrid", "LabelReports", "Labels", "LapGraph", "Laplace"]
__all__ += ["LatticeReports", "MechanismInfo", "MultiBit", "MultiBitReports", "NoisyCounts", "NoisyDegree"]
__all__ += ["NotCollected", "OneBit", "OneBitReports", "PairDomain", "PairEstimate", "PairEvidence", "Piecewise"]
__all__ += ["PrivUnit", "Public", "PublicLabels", "RandomizedResponse", "SampledReports", "SampledVectors"]
__all__ += ["SubOptimal", "SubsetReports", "SubsetSelection", "ThreeOutputs", "UnaryEncoding", "Values"]
__all__ += ["best_category", "catalogue", "clip_to_range", "permanent_guarantee", "permanent_list"]
__all__ += ["permanent_report", "permanent_reports", "protected_pairs"]


__getattr__, __dir__ = lazy_names(__name__, _homes())
