"""Randomizers: what each user's device sends, and what a server may conclude from it."""

from graphveil.mechanisms.base.reports import LabelReports, LatticeReports, MultiBitReports, OneBitReports
from graphveil.mechanisms.base.values import Values
from graphveil.mechanisms.catalogue import MechanismInfo, catalogue
from graphveil.mechanisms.edges.adjacency import AdjacencyRR
from graphveil.mechanisms.edges.degree_preserving import DegreePreservingRR
from graphveil.mechanisms.edges.degrees import Degrees, NoisyDegree
from graphveil.mechanisms.edges.edge_rand import EdgeRand
from graphveil.mechanisms.edges.lap_graph import LapGraph
from graphveil.mechanisms.edges.noisy_counts import NoisyCounts
from graphveil.mechanisms.edges.pair_domain import PairDomain, protected_pairs
from graphveil.mechanisms.edges.pairs import AdjacencyEstimate, PairEstimate, PairEvidence
from graphveil.mechanisms.edges.reports import DegreePreservingReports, DegreeReports, EdgeReports
from graphveil.mechanisms.features.bin_reports import BinReports
from graphveil.mechanisms.features.clipping import clip_to_range
from graphveil.mechanisms.features.codeword_reports import CodewordReports
from graphveil.mechanisms.features.duchi import Duchi
from graphveil.mechanisms.features.feature_rr import FeatureRR
from graphveil.mechanisms.features.gaussian import AnalyticGaussian
from graphveil.mechanisms.features.hybrid import Hybrid
from graphveil.mechanisms.features.laplace import Laplace
from graphveil.mechanisms.features.multibit import MultiBit
from graphveil.mechanisms.features.onebit import OneBit
from graphveil.mechanisms.features.piecewise import Piecewise
from graphveil.mechanisms.features.privunit import PrivUnit
from graphveil.mechanisms.features.sampled import SampledVectors
from graphveil.mechanisms.features.sampled_reports import SampledReports
from graphveil.mechanisms.features.suboptimal import SubOptimal
from graphveil.mechanisms.features.three_outputs import ThreeOutputs
from graphveil.mechanisms.labels.randomized_response import Labels, RandomizedResponse
from graphveil.mechanisms.permanent import permanent_guarantee, permanent_list, permanent_report, permanent_reports

__all__ = [
    "AdjacencyEstimate",
    "AdjacencyRR",
    "AnalyticGaussian",
    "BinReports",
    "CodewordReports",
    "DegreePreservingRR",
    "DegreePreservingReports",
    "DegreeReports",
    "Degrees",
    "Duchi",
    "EdgeRand",
    "EdgeReports",
    "FeatureRR",
    "Hybrid",
    "LabelReports",
    "Labels",
    "LapGraph",
    "Laplace",
    "LatticeReports",
    "MechanismInfo",
    "MultiBit",
    "MultiBitReports",
    "NoisyCounts",
    "NoisyDegree",
    "OneBit",
    "OneBitReports",
    "PairDomain",
    "PairEstimate",
    "PairEvidence",
    "Piecewise",
    "PrivUnit",
    "RandomizedResponse",
    "SampledReports",
    "SampledVectors",
    "SubOptimal",
    "ThreeOutputs",
    "Values",
    "catalogue",
    "clip_to_range",
    "permanent_guarantee",
    "permanent_list",
    "permanent_report",
    "permanent_reports",
    "protected_pairs",
]
