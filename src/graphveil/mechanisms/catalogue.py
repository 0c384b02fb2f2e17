"""The mechanisms there are, for people who choose one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from graphveil.mechanisms.edges.adjacency import AdjacencyRR
from graphveil.mechanisms.edges.degree_preserving import DegreePreservingRR
from graphveil.mechanisms.edges.degrees import NoisyDegree
from graphveil.mechanisms.edges.edge_rand import EdgeRand
from graphveil.mechanisms.edges.lap_graph import LapGraph
from graphveil.mechanisms.edges.noisy_counts import NoisyCounts
from graphveil.mechanisms.features.duchi import Duchi
from graphveil.mechanisms.features.feature_rr import FeatureRR
from graphveil.mechanisms.features.gaussian import AnalyticGaussian
from graphveil.mechanisms.features.hybrid import Hybrid
from graphveil.mechanisms.features.laplace import Laplace
from graphveil.mechanisms.features.multibit import MultiBit
from graphveil.mechanisms.features.onebit import OneBit
from graphveil.mechanisms.features.piecewise import Piecewise
from graphveil.mechanisms.features.privunit import PrivUnit
from graphveil.mechanisms.features.suboptimal import SubOptimal
from graphveil.mechanisms.features.three_outputs import ThreeOutputs
from graphveil.mechanisms.labels.randomized_response import RandomizedResponse
from graphveil.privacy import ProtectedUnit
from graphveil.privacy.unit import PRIVATE_EDGE, RELATIONSHIP, USER_FEATURES, USER_LABEL


@dataclass(frozen=True)
class MechanismInfo:
    """One mechanism: what makes it and its source, the unit it protects, the size of one report, when to use it."""

    name: str
    mechanism: Callable[..., Any]
    source: str
    unit: ProtectedUnit
    report: str
    note: str


_ENTRIES: Final = (
    MechanismInfo(
        "multi-bit",
        MultiBit,
        "Sajadmanesh and Gatica-Perez, CCS 2021",
        USER_FEATURES,
        "m (log2 d + 1) bits, m = max(1, min(d, floor(epsilon / 2.18)))",
        "pure epsilon; the smallest reports, and estimates stay sparse",
    ),
    MechanismInfo(
        "duchi",
        Duchi,
        "Duchi, Jordan and Wainwright, JASA 2018; Wang et al., ICDE 2019",
        USER_FEATURES,
        "k (log2 d + 1) bits, k = 1, or 2 from epsilon 1.34 on",
        "pure epsilon; with one coordinate as multi-bit, with two less noisy: least of the sampled from 1.4 to 6.5",
    ),
    MechanismInfo(
        "piecewise",
        Piecewise,
        "Wang et al., ICDE 2019",
        USER_FEATURES,
        "k (log2 d + log2 of the levels) bits; 170 levels at epsilon 1",
        "pure epsilon; a number near the value; the next two are less noisy",
    ),
    MechanismInfo(
        "sub-optimal",
        SubOptimal,
        "Zhao et al., IEEE Internet of Things Journal 2021",
        USER_FEATURES,
        "k (log2 d + log2 of the levels) bits; 153 levels at epsilon 1",
        "pure epsilon; the least noise where every coordinate is sent at epsilon 2.6 or more",
    ),
    MechanismInfo(
        "hybrid",
        Hybrid,
        "Wang et al., ICDE 2019",
        USER_FEATURES,
        "k (log2 d + log2 of the levels) bits; 172 levels at epsilon 1",
        "pure epsilon; the least noise where every coordinate is sent at epsilon 0.6 to 1.6",
    ),
    MechanismInfo(
        "three-outputs",
        ThreeOutputs,
        "Zhao et al., IEEE Internet of Things Journal 2021",
        USER_FEATURES,
        "k (log2 d + 2) bits",
        "pure epsilon; the least noise where every coordinate is sent at epsilon 1.7 to 2.5",
    ),
    MechanismInfo(
        "one-bit",
        OneBit,
        "Ding, Kulkarni and Yekhanin, NeurIPS 2017",
        USER_FEATURES,
        "d bits",
        "pure epsilon; multi-bit with every coordinate, noisier unless epsilon exceeds 2.18 d",
    ),
    MechanismInfo(
        "laplace",
        Laplace,
        "Dwork, McSherry, Nissim and Smith, TCC 2006; two-sided geometric on a grid",
        USER_FEATURES,
        "d integers of 32 bits",
        "pure epsilon; the classical baseline",
    ),
    MechanismInfo(
        "analytic-gaussian",
        AnalyticGaussian,
        "Balle and Wang, ICML 2018; rounded normal on a grid",
        USER_FEATURES,
        "d integers of 32 bits",
        "needs a delta; less noise than Laplace in many dimensions, more than multi-bit after averaging",
    ),
    MechanismInfo(
        "privunit",
        PrivUnit,
        "Bhowmick et al., 2018; Asi, Feldman and Talwar, ICML 2022; Isik et al., NeurIPS 2023",
        USER_FEATURES,
        "log2 K bits, K = 2 to 1024 codewords, 32 at epsilon 1",
        "pure epsilon; the least noise for vectors of bounded length, from epsilon 3.2 on for all; dense estimates",
    ),
    MechanismInfo(
        "feature-rr",
        FeatureRR,
        "Tran et al., IEEE Big Data 2022 (HeteroRR)",
        USER_FEATURES,
        "d log2 k bits, k = 10 bins",
        "pure epsilon, in public parts by feature; every feature is sent, so far noisier: a rival rather than a choice",
    ),
    MechanismInfo(
        "randomized-response",
        RandomizedResponse,
        "Warner 1965; Kairouz, Bonawitz and Ramage, ICML 2016",
        USER_LABEL,
        "log2 c bits",
        "pure epsilon; the best for few classes",
    ),
    MechanismInfo(
        "adjacency-rr",
        AdjacencyRR,
        "Warner 1965; Qin et al., CCS 2017; Imola, Murakami and Chaudhuri, USENIX Security 2021",
        RELATIONSHIP,
        "about degree + (n - 1) / (e^epsilon + 1) ids of 32 bits",
        "pure epsilon if the lower id reports, 2 epsilon if both ends do; all evidence kept, false edges included",
    ),
    MechanismInfo(
        "degree-preserving-rr",
        DegreePreservingRR,
        "Hidano and Murakami, 2022",
        RELATIONSHIP,
        "about degree ids of 32 bits and one integer",
        "as adjacency-rr, thinned to the right number of edges; loses true edges, a rival rather than a choice",
    ),
    MechanismInfo(
        "noisy-degree",
        NoisyDegree,
        "Ghosh, Roughgarden and Sundararajan, STOC 2009",
        RELATIONSHIP,
        "one integer of 32 bits",
        "pure epsilon if the lower id reports, 2 epsilon if both ends do; what a prior of links is made from",
    ),
    MechanismInfo(
        "edge-rand",
        EdgeRand,
        "Wu, Long, Zhang and Li, IEEE S&P 2022 (LinkTeller)",
        PRIVATE_EDGE,
        "about edges + pairs / (e^epsilon + 1) pairs of ids",
        "a curator's; pure epsilon; most edges stay, among many false ones unless epsilon exceeds log of the pairs",
    ),
    MechanismInfo(
        "lap-graph",
        LapGraph,
        "Wu, Long, Zhang and Li, IEEE S&P 2022 (LinkTeller)",
        PRIVATE_EDGE,
        "about as many pairs of ids as edges",
        "a curator's; pure epsilon; keeps the number of edges, not which, unless epsilon exceeds log of the pairs",
    ),
    MechanismInfo(
        "noisy-counts",
        NoisyCounts,
        "Ghosh, Roughgarden and Sundararajan, STOC 2009; McSherry, SIGMOD 2009",
        PRIVATE_EDGE,
        "one integer of 64 bits a count",
        "a curator's; pure epsilon for all counts of disjoint sets together; what made graphs are drawn from",
    ),
)


def catalogue() -> tuple[MechanismInfo, ...]:
    """All mechanisms, the ones to prefer first."""
    return _ENTRIES
