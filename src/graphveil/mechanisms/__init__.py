"""Randomizers: what each user's device sends, and what a server may conclude from it.

The names below load on first use, so that `import graphveil.mechanisms` and the catalogue stay light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.mechanisms.catalogue import MechanismInfo as MechanismInfo
from graphveil.mechanisms.catalogue import catalogue as catalogue
from graphveil.runtime.late import late_names, lazy_names

if TYPE_CHECKING:
    from graphveil.mechanisms.base.category import CategoryMechanism as CategoryMechanism
    from graphveil.mechanisms.base.category import Labels as Labels
    from graphveil.mechanisms.base.reports import LabelReports as LabelReports
    from graphveil.mechanisms.base.reports import LatticeReports as LatticeReports
    from graphveil.mechanisms.base.reports import MultiBitReports as MultiBitReports
    from graphveil.mechanisms.base.reports import OneBitReports as OneBitReports
    from graphveil.mechanisms.base.reports import SubsetReports as SubsetReports
    from graphveil.mechanisms.base.values import Values as Values
    from graphveil.mechanisms.base.values import clip_to_range as clip_to_range
    from graphveil.mechanisms.edges.adjacency import AdjacencyRR as AdjacencyRR
    from graphveil.mechanisms.edges.degrees import DegreePreservingRR as DegreePreservingRR
    from graphveil.mechanisms.edges.degrees import Degrees as Degrees
    from graphveil.mechanisms.edges.degrees import NoisyDegree as NoisyDegree
    from graphveil.mechanisms.edges.edge_rand import EdgeRand as EdgeRand
    from graphveil.mechanisms.edges.lap_graph import LapGraph as LapGraph
    from graphveil.mechanisms.edges.neighbour_lists import AdjacencyEstimate as AdjacencyEstimate
    from graphveil.mechanisms.edges.neighbour_lists import DegreePreservingReports as DegreePreservingReports
    from graphveil.mechanisms.edges.neighbour_lists import DegreeReports as DegreeReports
    from graphveil.mechanisms.edges.neighbour_lists import EdgeReports as EdgeReports
    from graphveil.mechanisms.edges.neighbour_lists import PairEstimate as PairEstimate
    from graphveil.mechanisms.edges.neighbour_lists import PairEvidence as PairEvidence
    from graphveil.mechanisms.edges.noisy_counts import ClassCounts as ClassCounts
    from graphveil.mechanisms.edges.noisy_counts import NoisyCounts as NoisyCounts
    from graphveil.mechanisms.edges.pair_domain import PairDomain as PairDomain
    from graphveil.mechanisms.edges.pair_domain import protected_pairs as protected_pairs
    from graphveil.mechanisms.features.duchi import Duchi as Duchi
    from graphveil.mechanisms.features.feature_rr import BinReports as BinReports
    from graphveil.mechanisms.features.feature_rr import FeatureRR as FeatureRR
    from graphveil.mechanisms.features.gaussian import AnalyticGaussian as AnalyticGaussian
    from graphveil.mechanisms.features.hybrid import Hybrid as Hybrid
    from graphveil.mechanisms.features.laplace import Laplace as Laplace
    from graphveil.mechanisms.features.multibit import MultiBit as MultiBit
    from graphveil.mechanisms.features.multibit import OneBit as OneBit
    from graphveil.mechanisms.features.piecewise import Piecewise as Piecewise
    from graphveil.mechanisms.features.piecewise import SubOptimal as SubOptimal
    from graphveil.mechanisms.features.privunit import CodewordReports as CodewordReports
    from graphveil.mechanisms.features.privunit import PrivUnit as PrivUnit
    from graphveil.mechanisms.features.sampled import SampledReports as SampledReports
    from graphveil.mechanisms.features.sampled import SampledVectors as SampledVectors
    from graphveil.mechanisms.features.three_outputs import ThreeOutputs as ThreeOutputs
    from graphveil.mechanisms.labels.choice import best_category as best_category
    from graphveil.mechanisms.labels.randomized_response import RandomizedResponse as RandomizedResponse
    from graphveil.mechanisms.labels.subset_selection import SubsetSelection as SubsetSelection
    from graphveil.mechanisms.labels.unary_encoding import UnaryEncoding as UnaryEncoding
    from graphveil.mechanisms.permanent import permanent_guarantee as permanent_guarantee
    from graphveil.mechanisms.permanent import permanent_list as permanent_list
    from graphveil.mechanisms.permanent import permanent_report as permanent_report
    from graphveil.mechanisms.permanent import permanent_reports as permanent_reports
    from graphveil.mechanisms.public import NotCollected as NotCollected
    from graphveil.mechanisms.public import Public as Public
    from graphveil.mechanisms.public import PublicLabels as PublicLabels

_HOMES = late_names(__name__, __file__)

__all__ = sorted(["MechanismInfo", "catalogue", *_HOMES])

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
