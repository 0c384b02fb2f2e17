"""All mechanisms: one entry each, from which listings, audits, help texts and settings are derived.

Nothing heavy is imported here: an entry names the module of its class, which is loaded when the class is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any, Final, Literal

from graphveil.errors import InputError
from graphveil.privacy.statement import unit

Kind = Literal["features", "labels", "lists", "edges", "counts"]
Trust = Literal["local", "curator"]

FEATURES: Final = unit.USER_FEATURES.text
LABEL: Final = unit.USER_LABEL.text
RELATIONSHIP: Final = unit.RELATIONSHIP.text
PRIVATE_EDGE: Final = unit.PRIVATE_EDGE.text


@dataclass(frozen=True)
class Option:
    """One keyword that a mechanism is built with.

    Args:
        help: what it means, with unit and range.
        default: used if it is not given; only where `required` is false.
    """

    name: str
    type: str
    help: str
    default: float | str | None = None
    required: bool = False


@dataclass(frozen=True, kw_only=True)
class AuditSize:
    """How a mechanism is built for its audits: a small one is enumerated, a larger one is sampled.

    Args:
        dimension: number of coordinates (features) or classes (labels) of the enumerated mechanism.
        drawn_dimension: the same of the sampled mechanism; None: as many.
        samples: reports drawn for each of two neighbouring inputs.
    """

    epsilon: float = 1.0
    dimension: int = 2
    drawn_dimension: int | None = None
    samples: int = 100_000
    options: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MechanismInfo:
    """One mechanism: where it is, what it protects, when to use it, how it is built and audited.

    Args:
        name: in settings, listings, files and audits.
        path: module below this package, and the name of the class or function that builds the mechanism.
        reports: likewise of the class of its reports; None: they are plain tensors.
        kind: what it randomizes: feature vectors, labels, neighbour lists, a curator's edges, counts.
        trust: who adds the noise: each user ("local") or the curator.
        tags: "sparse" where estimates stay sparse, "normal" where the noise is normal, "release" where a curator's
            release alone uses it.
        old_names: names in earlier versions, the oldest first; they are still read, and never written.
        audit: how it is built for its audits; None: the audit of its kind decides.
    """

    name: str
    path: str
    reports: str | None = None
    kind: Kind
    trust: Trust = "local"
    source: str
    report: str
    note: str
    options: tuple[Option, ...]
    tags: tuple[str, ...] = ()
    old_names: tuple[str, ...] = ()
    audit: AuditSize | None = None

    @property
    def mechanism(self) -> Callable[..., Any]:
        """The class or function that builds it from `options`; its module is imported now."""
        builder: Callable[..., Any] = _load(self.path)
        return builder

    @property
    def class_name(self) -> str:
        """The name of that class or function, as `graphveil.mechanisms` exports it."""
        return self.path.partition(":")[2]

    @property
    def first_name(self) -> str:
        """Its name in the first version: permanent noise is derived from it, and must not change when the name does."""
        return (*self.old_names, self.name)[0]

    @property
    def report_type(self) -> type[Any]:
        """The class of its reports. Raises InputError where they are plain tensors."""
        if self.reports is None:
            raise InputError(f"{self.name} makes plain tensors", where="report_type", allowed="mechanisms of devices")
        kind: type[Any] = _load(self.reports)
        return kind

    @property
    def unit(self) -> str:
        """What it protects."""
        if self.kind in _UNITS:
            return _UNITS[self.kind]
        return RELATIONSHIP if self.trust == "local" else PRIVATE_EDGE

    @property
    def reads(self) -> str:
        """What of a person it reads: features, labels or edges."""
        return self.kind if self.kind in _UNITS else "edges"

    def builds(self, mechanism: object) -> bool:
        """Whether a mechanism is an instance of this entry's class; nothing is imported."""
        kind = type(mechanism)
        return f"{kind.__module__}:{kind.__qualname__}" == f"{_PACKAGE}.{self.path}"

    def facts(self) -> dict[str, Any]:
        """The facts that listings print, as plain values."""
        return {
            "name": self.name,
            "mechanism": self.class_name,
            "source": self.source,
            "unit": self.unit,
            "report": self.report,
            "note": self.note,
            "kind": self.kind,
            "trust": self.trust,
            "reads": self.reads,
            "tags": list(self.tags),
            "old_names": list(self.old_names),
            "options": [asdict(option) for option in self.options],
        }

    def takes(self, option: str) -> bool:
        """Whether it is built with this keyword."""
        return option in {keyword.name for keyword in self.options}


_PACKAGE: Final = "graphveil.mechanisms"
_UNITS: Final[Mapping[str, str]] = {"features": FEATURES, "labels": LABEL}

_EPSILON = Option("epsilon", "number", "privacy budget of one report, finite and above 0", required=True)
_PER_EDGE = Option("epsilon", "number", "privacy budget of one private edge, finite and above 0", required=True)
_CLASSES = Option("classes", "whole number", "declared classes", required=True)
_VECTOR = (
    _EPSILON,
    Option("dimension", "whole number", "coordinates of one user's vector", required=True),
    Option("low", "number", "least value of a coordinate: declared and public", 0.0),
    Option("high", "number", "largest value of a coordinate: declared and public", 1.0),
)
_SAMPLED = (*_VECTOR, Option("sampled", "whole number or none", "coordinates a user reports; none: the best number"))
_LISTS = (
    Option("epsilon", "number", "privacy budget of one list, finite and above 0", required=True),
    Option("nodes", "whole number", "users; public", required=True),
    Option("mode", "text", "who reports a relationship: lower, both or directed", "lower"),
)
_PAIRS = (_PER_EDGE, Option("domain", "PairDomain", "the protected pairs; public", required=True))
#: What the laws on sampled coordinates have in common.
_SAMPLED_LAW: Final[Mapping[str, Any]] = {
    "reports": "features.sampled:SampledReports",
    "kind": "features",
    "options": _SAMPLED,
    "tags": ("sparse",),
    "audit": AuditSize(),
}

_ENTRIES: Final = (
    MechanismInfo(
        name="multi-bit",
        path="features.multibit:MultiBit",
        reports="base.reports:MultiBitReports",
        kind="features",
        source="Sajadmanesh and Gatica-Perez, CCS 2021",
        report="m (log2 d + 1) bits, m = max(1, min(d, floor(epsilon / 2.18)))",
        note="pure epsilon; the smallest reports, and estimates stay sparse",
        options=_SAMPLED,
        tags=("sparse",),
        audit=AuditSize(dimension=3),
    ),
    MechanismInfo(
        name="duchi",
        path="features.duchi:Duchi",
        source="Duchi, Jordan and Wainwright, JASA 2018; Wang et al., ICDE 2019",
        report="k (log2 d + 1) bits, k = 1, or 2 from epsilon 1.34 on",
        note="pure epsilon; with one coordinate as multi-bit, with two less noisy: "
        "least of the sampled from 1.4 to 6.5",
        **_SAMPLED_LAW,
    ),
    MechanismInfo(
        name="piecewise",
        path="features.piecewise:Piecewise",
        source="Wang et al., ICDE 2019",
        report="k (log2 d + log2 of the levels) bits; 170 levels at epsilon 1",
        note="pure epsilon; a number near the value; the next two are less noisy",
        **_SAMPLED_LAW,
    ),
    MechanismInfo(
        name="sub-optimal",
        path="features.piecewise:SubOptimal",
        source="Zhao et al., IEEE Internet of Things Journal 2021",
        report="k (log2 d + log2 of the levels) bits; 153 levels at epsilon 1",
        note="pure epsilon; the least noise where every coordinate is sent at epsilon 2.6 or more",
        **_SAMPLED_LAW,
    ),
    MechanismInfo(
        name="hybrid",
        path="features.hybrid:Hybrid",
        source="Wang et al., ICDE 2019",
        report="k (log2 d + log2 of the levels) bits; 172 levels at epsilon 1",
        note="pure epsilon; the least noise where every coordinate is sent at epsilon 0.6 to 1.6",
        **_SAMPLED_LAW,
    ),
    MechanismInfo(
        name="three-outputs",
        path="features.three_outputs:ThreeOutputs",
        source="Zhao et al., IEEE Internet of Things Journal 2021",
        report="k (log2 d + 2) bits",
        note="pure epsilon; the least noise where every coordinate is sent at epsilon 1.7 to 2.5",
        **_SAMPLED_LAW,
    ),
    MechanismInfo(
        name="one-bit",
        path="features.multibit:OneBit",
        reports="base.reports:OneBitReports",
        kind="features",
        source="Ding, Kulkarni and Yekhanin, NeurIPS 2017",
        report="d bits",
        note="pure epsilon; multi-bit with every coordinate, noisier unless epsilon exceeds 2.18 d",
        options=_VECTOR,
        audit=AuditSize(epsilon=2.0, dimension=3),
    ),
    MechanismInfo(
        name="laplace",
        path="features.laplace:Laplace",
        reports="base.reports:LatticeReports",
        kind="features",
        source="Dwork, McSherry, Nissim and Smith, TCC 2006; two-sided geometric on a grid",
        report="d integers of 32 bits",
        note="pure epsilon; the classical baseline",
        options=_VECTOR,
        audit=AuditSize(dimension=1),
    ),
    MechanismInfo(
        name="gaussian",
        path="features.gaussian:AnalyticGaussian",
        reports="base.reports:LatticeReports",
        kind="features",
        source="Balle and Wang, ICML 2018; rounded normal on a grid",
        report="d integers of 32 bits",
        note="needs a delta; less noise than Laplace in many dimensions, more than multi-bit after averaging",
        options=(
            _EPSILON,
            Option("delta", "number", "delta of one report, in [1e-30, 1)", required=True),
            *_VECTOR[1:],
        ),
        tags=("normal",),
        old_names=("analytic-gaussian",),
        audit=AuditSize(dimension=1, drawn_dimension=4, options={"delta": 1e-6}),
    ),
    MechanismInfo(
        name="privunit",
        path="features.privunit:PrivUnit",
        reports="features.privunit:CodewordReports",
        kind="features",
        source="Bhowmick et al., 2018; Asi, Feldman and Talwar, ICML 2022; Isik et al., NeurIPS 2023",
        report="log2 K bits, K = 2 to 1024 codewords, 32 at epsilon 1",
        note="pure epsilon; the least noise for vectors of bounded length, from epsilon 3.2 on for all; "
        "dense estimates",
        options=(
            *_VECTOR,
            Option(
                "radius", "number or none", "public bound on a vector's distance from the middle; none: the range's"
            ),
            Option(
                "codewords", "whole number or none", "codewords of a codebook, a power of two; none: the best number"
            ),
            Option("public_seed", "whole number", "what the public codebooks are made from", 0),
        ),
        audit=AuditSize(epsilon=3.0, dimension=3, samples=40_000, options={"codewords": 16}),
    ),
    MechanismInfo(
        name="feature-rr",
        path="features.feature_rr:FeatureRR",
        reports="features.feature_rr:BinReports",
        kind="features",
        source="Tran et al., IEEE Big Data 2022 (HeteroRR)",
        report="d log2 k bits, k = 10 bins",
        note="pure epsilon, in public parts by feature; every feature is sent, so far noisier: "
        "a rival rather than a choice",
        options=(
            *_VECTOR,
            Option("bins", "whole number", "levels of a coordinate, 2 to 256", 10),
            Option("shares", "numbers or none", "public share of epsilon of each feature; none: all alike"),
        ),
        tags=("release",),
        audit=AuditSize(epsilon=2.0),
    ),
    MechanismInfo(
        name="randomized-response",
        path="labels.randomized_response:RandomizedResponse",
        reports="base.reports:LabelReports",
        kind="labels",
        source="Warner 1965; Kairouz, Bonawitz and Ramage, ICML 2016",
        report="log2 c bits",
        note="pure epsilon; the best for few classes",
        options=(_EPSILON, _CLASSES),
        audit=AuditSize(dimension=7),
    ),
    MechanismInfo(
        name="subset-selection",
        path="labels.subset_selection:SubsetSelection",
        reports="base.reports:SubsetReports",
        kind="labels",
        source="Ye and Barg, IEEE Trans. Inf. Theory 2018",
        report="k log2 c bits, k near c / (e^epsilon + 1)",
        note="pure epsilon; the least noise for a category with many values; with k = 1 randomized-response",
        options=(
            _EPSILON,
            _CLASSES,
            Option("size", "whole number or none", "classes in a report; none: the best number"),
        ),
        audit=AuditSize(dimension=7),
    ),
    MechanismInfo(
        name="unary-encoding",
        path="labels.unary_encoding:UnaryEncoding",
        reports="base.reports:OneBitReports",
        kind="labels",
        source="Wang, Blocki, Li and Jha, USENIX Security 2017 (OUE)",
        report="c bits",
        note="pure epsilon; noise that does not grow with the classes, a little above subset-selection's",
        options=(_EPSILON, _CLASSES),
        audit=AuditSize(dimension=7),
    ),
    MechanismInfo(
        name="adjacency-rr",
        path="edges.adjacency:AdjacencyRR",
        reports="edges.neighbour_lists:EdgeReports",
        kind="lists",
        source="Warner 1965; Qin et al., CCS 2017; Imola, Murakami and Chaudhuri, USENIX Security 2021",
        report="about degree + (n - 1) / (e^epsilon + 1) ids of 32 bits",
        note="pure epsilon if the lower id reports, 2 epsilon if both ends do; all evidence kept, false edges included",
        options=_LISTS,
    ),
    MechanismInfo(
        name="degree-preserving-rr",
        path="edges.degrees:DegreePreservingRR",
        reports="edges.neighbour_lists:DegreePreservingReports",
        kind="lists",
        source="Hidano and Murakami, 2022",
        report="about degree ids of 32 bits and one integer",
        note="as adjacency-rr, thinned to the right number of edges; loses true edges, a rival rather than a choice",
        options=(*_LISTS, Option("degree_share", "number", "part of epsilon that pays for the degree, in (0, 1)", 0.1)),
    ),
    MechanismInfo(
        name="noisy-degree",
        path="edges.degrees:NoisyDegree",
        reports="edges.neighbour_lists:DegreeReports",
        kind="counts",
        source="Ghosh, Roughgarden and Sundararajan, STOC 2009",
        report="one integer of 32 bits",
        note="pure epsilon if the lower id reports, 2 epsilon if both ends do; what a prior of links is made from",
        options=_LISTS,
    ),
    MechanismInfo(
        name="edge-rand",
        path="edges.edge_rand:EdgeRand",
        kind="edges",
        trust="curator",
        source="Wu, Long, Zhang and Li, IEEE S&P 2022 (LinkTeller)",
        report="about edges + pairs / (e^epsilon + 1) pairs of ids",
        note="a curator's; pure epsilon; most edges stay, among many false ones "
        "unless epsilon exceeds log of the pairs",
        options=_PAIRS,
    ),
    MechanismInfo(
        name="lap-graph",
        path="edges.lap_graph:LapGraph",
        kind="edges",
        trust="curator",
        source="Wu, Long, Zhang and Li, IEEE S&P 2022 (LinkTeller)",
        report="about as many pairs of ids as edges",
        note="a curator's; pure epsilon; keeps the number of edges, not which, unless epsilon exceeds log of the pairs",
        options=(*_PAIRS, Option("count_share", "number", "part of epsilon for the number of edges, in (0, 1)", 0.01)),
    ),
    MechanismInfo(
        name="class-counts",
        path="edges.noisy_counts:ClassCounts",
        kind="edges",
        trust="curator",
        source="ours; the noise: Ghosh, Roughgarden and Sundararajan, STOC 2009",
        report="one integer of 64 bits a node and class",
        note="a curator's; pure epsilon; says how many neighbours of each public class, not who, at a noise that does "
        "not grow with the graph",
        options=(
            *_PAIRS,
            Option("groups", "integers", "everybody's public class", required=True),
            Option("classes", "whole number", "how many classes there are", required=True),
        ),
    ),
    MechanismInfo(
        name="noisy-counts",
        path="edges.noisy_counts:NoisyCounts",
        kind="counts",
        trust="curator",
        source="Ghosh, Roughgarden and Sundararajan, STOC 2009; McSherry, SIGMOD 2009",
        report="one integer of 64 bits a count",
        note="a curator's; pure epsilon for all counts of disjoint sets together; what generated graphs are drawn from",
        options=(_PER_EDGE,),
    ),
)


def catalogue() -> tuple[MechanismInfo, ...]:
    """All mechanisms, the ones to prefer first."""
    return _ENTRIES


def mechanism_named(name: str) -> MechanismInfo:
    """The mechanism of this name, or of the name that an earlier version had for it. Raises InputError where there is
    none.

    >>> info = mechanism_named("multi-bit")
    >>> info.class_name, info.kind, [option.name for option in info.options]
    ('MultiBit', 'features', ['epsilon', 'dimension', 'low', 'high', 'sampled'])
    """
    for info in _ENTRIES:
        if name in (info.name, *info.old_names):
            return info
    raise InputError(f"mechanism {name!r} is not known", allowed=", ".join(info.name for info in _ENTRIES))


def current_name(name: str) -> str:
    """`name`, or the present name of a mechanism that an earlier version called so."""
    return next((info.name for info in _ENTRIES if name in info.old_names), name)


def feature_names(*, releases: bool = False) -> tuple[str, ...]:
    """The names of the feature mechanisms, as settings have them; with those that only a curator's release uses, if
    `releases`.
    """
    mechanisms = (info for info in _ENTRIES if info.kind == "features")
    return tuple(info.name for info in mechanisms if releases or "release" not in info.tags)


def feature_names_with(option: str) -> tuple[str, ...]:
    """The names of the feature mechanisms that are built with this keyword.

    >>> feature_names_with("delta")
    ('gaussian',)
    """
    return tuple(info.name for info in _ENTRIES if info.kind == "features" and info.takes(option))


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(f"{_PACKAGE}.{module}"), name)
