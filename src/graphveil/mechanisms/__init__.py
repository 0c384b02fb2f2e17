"""Randomizers: what each user's device sends, and what a server may conclude from it."""

from graphveil.mechanisms.bin_reports import BinReports
from graphveil.mechanisms.catalogue import MechanismInfo, catalogue
from graphveil.mechanisms.clipping import clip_to_range
from graphveil.mechanisms.codeword_reports import CodewordReports
from graphveil.mechanisms.degree_preserving import DegreePreservingRR
from graphveil.mechanisms.degrees import Degrees, NoisyDegree
from graphveil.mechanisms.duchi import Duchi
from graphveil.mechanisms.edge_rand import EdgeRand
from graphveil.mechanisms.edge_reports import DegreePreservingReports, DegreeReports, EdgeReports
from graphveil.mechanisms.edges import AdjacencyRR
from graphveil.mechanisms.feature_rr import FeatureRR
from graphveil.mechanisms.gaussian import AnalyticGaussian
from graphveil.mechanisms.hybrid import Hybrid
from graphveil.mechanisms.labels import Labels, RandomizedResponse
from graphveil.mechanisms.lap_graph import LapGraph
from graphveil.mechanisms.laplace import Laplace
from graphveil.mechanisms.multibit import MultiBit
from graphveil.mechanisms.noisy_counts import NoisyCounts
from graphveil.mechanisms.onebit import OneBit
from graphveil.mechanisms.pair_domain import PairDomain, protected_pairs
from graphveil.mechanisms.pairs import AdjacencyEstimate, PairEstimate, PairEvidence
from graphveil.mechanisms.permanent import permanent_guarantee, permanent_list, permanent_report, permanent_reports
from graphveil.mechanisms.piecewise import Piecewise
from graphveil.mechanisms.privunit import PrivUnit
from graphveil.mechanisms.reports import LabelReports, LatticeReports, MultiBitReports, OneBitReports
from graphveil.mechanisms.sampled import SampledVectors
from graphveil.mechanisms.sampled_reports import SampledReports
from graphveil.mechanisms.suboptimal import SubOptimal
from graphveil.mechanisms.three_outputs import ThreeOutputs
from graphveil.mechanisms.values import Values

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
