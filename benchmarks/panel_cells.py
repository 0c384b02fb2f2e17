"""The panel: which graphs, in which families, and which methods meet on them under which trust.

A family is a kind of graph.  Rules and defaults are chosen on the graphs of one half of the families alone; the other
half tells what the choice is worth.  Graphs are listed by size, and the first of a family is its scout: settings are
chosen there, once, and hold for the whole family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from graphveil.graphs import Graph, Split, draw_private, load_graph
from graphveil.methods.curator.class_sums import train_experts
from graphveil.methods.curator.evidence import corners, feature_evidence
from graphveil.methods.curator.settings import SumsSettings
from graphveil.methods.curator.stages.training import read_people
from graphveil.methods.registry import build_method
from graphveil.methods.release.counts.count_readings import read_public
from graphveil.methods.release.public_part import public_part_of
from graphveil.methods.release.published import domain_of
from graphveil.privacy import SeededRandomness


@dataclass(frozen=True)
class Member:
    """A graph of the panel.

    Attributes:
        name: as in the table.
        family: its kind.
        source: the data set's name; `label` picks one of several labels as a question of yes or no.
    """

    name: str
    family: str
    source: str
    label: int | None = None


#: Choices are made on the first half; the second is looked at once they are made.  By size within a family.
HALVES: Mapping[str, tuple[str, ...]] = {
    "choose": ("citation", "university", "gender"),
    "report": ("shopping", "twitch", "protein", "pages"),
}
MEMBERS: tuple[Member, ...] = (
    Member("caltech", "university", "facebook100-caltech36-2005-2009"),
    Member("hopkins", "university", "facebook100-johnshopkins55-2005-2009"),
    Member("reed-gender", "gender", "facebook100-reed98-gender"),
    Member("cora", "citation", "cora"),
    Member("cora-ml", "citation", "cora-ml"),
    Member("citeseer", "citation", "citeseer"),
    Member("twitch-es", "twitch", "twitch-es"),
    Member("twitch-ru", "twitch", "twitch-ru"),
    Member("hopkins-gender", "gender", "facebook100-johnshopkins55-gender"),
    Member("computers", "shopping", "amazon-computers"),
    Member("ppi", "protein", "ppi-graphsaint", label=0),
    Member("pubmed", "citation", "pubmed"),
    Member("pages", "pages", "facebook"),
    Member("cornell", "university", "facebook100-cornell5-2005-2009"),
    Member("wisconsin", "university", "facebook100-wisconsin87-2005-2009"),
)
BY_NAME = {member.name: member for member in MEMBERS}


@dataclass(frozen=True)
class Contender:
    """A method under one trust.

    Attributes:
        method: its name in graphveil, or FEATURES_POOL, PUBLIC_POOL or MAJORITY.
        settings: of a total epsilon.
        over: settings that the scout of a family chooses by released validation labels, and their values.
        control: what lift is measured against: it reads nothing that the trust protects at a price.
        free_of_epsilon: its result is the same at every epsilon, so it runs once.
        public_edges: private edges are taken out of the graph that it gets.
    """

    method: str
    settings: Callable[[float], Mapping[str, Any]]
    over: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    control: bool = False
    free_of_epsilon: bool = False
    public_edges: bool = False


@dataclass(frozen=True)
class Trust:
    """Who is trusted with what; every contender pays the same total for the same unit.

    Attributes:
        unit: what an epsilon protects here.
        middle: the epsilon at which the scouts choose.
        private_share: of the edges, drawn anew for each split; the rest is public. 0: no edge is public.
        scouts: family -> graph that chooses, where the smallest one is too small to learn from under that unit.
    """

    unit: str
    epsilons: tuple[float, ...]
    middle: float
    contenders: Mapping[str, Contender]
    private_share: float = 0.0
    scouts: Mapping[str, str] = field(default_factory=dict)


#: The experts of class-sums on features alone: no method of the command line, but the strongest control there is.
FEATURES_POOL = "features-pool"
#: The readings of class-counts on public edges, features and labels alone, likewise.
PUBLIC_POOL = "public-pool"
#: The class that most released noisy labels name.
MAJORITY = "majority"
_NETWORK = {"model": ["sage", "gcn"], "hidden": [16, 64], "dropout": [0.2, 0.5], "weight_decay": [0.001, 0.0001]}
_FUSION = {"hidden": [32, 64, 128], "dropout": [0.2, 0.5, 0.8], "weight_decay": [0.0, 0.0005, 0.005]}
_HOPS = {"hops": [1, 2, 3], "hidden": [16, 64], "weight_decay": [0.0, 0.001]}
_TOPOLOGY = {"hidden": [16, 64], "passes": [3, 10], "learning_rate": [0.01, 0.05], "weight_decay": [0.0, 0.001]}
_GCN = {"hidden": [16, 64], "dropout": [0.2, 0.5], "weight_decay": [0.001, 0.0001]}
_CONVOLVED = {"restart": [0.2, 0.5, 0.8], "penalty": [0.01, 0.1], "hops": [2, 10], "hidden": [16, 64]}
_CHAIN = {"contraction": [0.6, 0.9], "floor": [5, 20], **_HOPS, "hops": [2, 6]}
_PERCEPTRON = {"hidden": [16, 64], "dropout": [0.2, 0.5], "weight_decay": [0.01, 0.001, 0.0001]}

_DESCENT = {"batch": [256, 1024], "passes": [10, 30], "learning_rate": [0.01, 0.03]}
_SENT = {"degree_bound": [10, 30, 100], "share_hops": [0.3, 0.5, 0.7]}
_SMOOTHED = {"model": ["sage", "gcn"], "steps_x": [4, 16], "steps_y": [2, 8], "dropout": [0.0, 0.5]}
#: Hops are chosen from reports.
_OF_REPORTS = {"model": ["sage", "gcn"], "hidden": [16, 64], "dropout": [0.0, 0.5]}


#: A network on the release alone, as published: ours is pooled with what is public.
_ON_RELEASE = {"model": "gcn", "pooling": "none"}


def _halved(epsilon: float) -> Mapping[str, Any]:
    return {"epsilon_x": epsilon / 2, "epsilon_y": epsilon / 2}


def _lists(mode: str, **more: Any) -> Callable[[float], Mapping[str, Any]]:
    """Return the settings of one end's lists, or of both at half each: a relationship costs the same."""
    ends = 2 if mode == "both" else 1
    return lambda epsilon: {"epsilon_x": float("inf"), "epsilon_a": epsilon / ends, "mode": mode, **more}


def _curated(**more: Any) -> Callable[[float], Mapping[str, Any]]:
    return lambda epsilon: {"epsilon": epsilon, "delta": 1e-6, "unit": "edge"} | more


def _of_one(**more: Any) -> Callable[[float], Mapping[str, Any]]:
    return _curated(unit="k-edges", relationships=5, **more)


def _released(**more: Any) -> Callable[[float], Mapping[str, Any]]:
    return lambda epsilon: {"epsilon_a": epsilon, **more}


def _whole(epsilon: float) -> Mapping[str, Any]:
    return {"epsilon": epsilon, "delta": 1e-5, "unit": "node"}


def _nothing(_: float) -> Mapping[str, Any]:
    return {}


def _on_sums(priced: Callable[..., Callable[[float], Mapping[str, Any]]]) -> dict[str, Contender]:
    """Return the curator's methods on noisy sums and their controls, at the price of one unit of edges."""
    return {
        "no-edges": Contender("mlp", _nothing, _PERCEPTRON, control=True, free_of_epsilon=True),
        "features-pool": Contender(FEATURES_POOL, _nothing, control=True, free_of_epsilon=True),
        "class-sums": Contender("class-sums", priced(), _FUSION),
        "class-sums-normal": Contender("class-sums", priced(noise="normal"), _FUSION),
        "gap": Contender("gap", priced(), _HOPS),
        "progap": Contender("progap", priced(), _HOPS),
        "lpgnet": Contender("lpgnet", priced(), _HOPS),
    }


TRUSTS: Mapping[str, Trust] = {
    "links": Trust(
        "one relationship (features and labels public)",
        (8.0, 6.0, 4.0, 2.0),
        4.0,
        {
            "no-lists": Contender("mlp", _nothing, _PERCEPTRON, control=True, free_of_epsilon=True),
            "links": Contender("links", _lists("lower")),
            "link-beliefs": Contender("link-beliefs", _lists("lower")),
            "list-sums": Contender("list-sums", _lists("lower")),
            "solitude": Contender("solitude", _lists("lower"), _NETWORK),
            "blink": Contender("blink", _lists("both"), _NETWORK),
            "dprr": Contender("dprr", _lists("both"), _NETWORK),
        },
    ),
    "curator": Trust(
        "one edge (features and labels public)",
        (8.0, 4.0, 2.0, 1.0),
        4.0,
        {
            **_on_sums(_curated),
            "dpdgc": Contender("dpdgc", _curated(), _TOPOLOGY),
            "gcon": Contender("gcon", _curated(), _CONVOLVED),
            "eclipse": Contender("eclipse", _curated(), _HOPS),
            "caribou": Contender("caribou", _curated(), _CHAIN),
        },
    ),
    "contacts": Trust(
        "up to five relationships of one person (features and labels public)",
        (8.0, 4.0, 2.0, 1.0),
        4.0,
        _on_sums(_of_one),
    ),
    "release": Trust(
        "one private edge; 90% of the edges are private (features and labels public)",
        (8.0, 4.0, 2.0, 1.0),
        4.0,
        {
            "public-edges": Contender("gcn", _nothing, _GCN, control=True, free_of_epsilon=True, public_edges=True),
            "public-pool": Contender(PUBLIC_POOL, _nothing, control=True, free_of_epsilon=True),
            "class-counts": Contender("class-counts", _released()),
            "edge-rand": Contender("edge-rand", _released(**_ON_RELEASE), _GCN),
            "lap-graph": Contender("lap-graph", _released(**_ON_RELEASE), _GCN),
            "edge-rand-weighted": Contender("edge-rand", _released(**_ON_RELEASE, weights="posterior"), _GCN),
            "lap-graph-weighted": Contender("lap-graph", _released(**_ON_RELEASE, weights="posterior"), _GCN),
            "edge-rr": Contender("edge-rr", _released(**_ON_RELEASE), _GCN),
            "priv-hrg": Contender("priv-hrg", _released(**_ON_RELEASE), _GCN),
        },
        private_share=0.9,
    ),
    "nodes": Trust(
        "one node: its features, its label and its list of neighbours",
        (16.0, 8.0, 4.0, 2.0),
        8.0,
        {
            "dp-mlp": Contender("dp-mlp", _whole, _DESCENT, control=True),
            "node-sums": Contender("node-sums", _whole, {**_DESCENT, **_SENT}),
            "gap": Contender("gap", _whole, {**_DESCENT, **_SENT, "hops": [1, 2]}),
            "progap": Contender("progap", _whole, {**_DESCENT, **_SENT, "hops": [1, 2]}),
        },
        scouts={"university": "hopkins", "citation": "cora-ml"},
    ),
    "local": Trust(
        "one person's features and label (the server knows the graph)",
        (4.0, 3.0, 2.0, 1.0),
        2.0,
        {
            "majority": Contender(MAJORITY, lambda epsilon: {"epsilon": epsilon}, control=True),
            "label-propagation": Contender("label-propagation", lambda epsilon: {"epsilon": epsilon}, control=True),
            "label-pool": Contender("label-pool", lambda epsilon: {"epsilon": epsilon}),
            "lpgnn": Contender("lpgnn", _halved, _OF_REPORTS),
            "upgnet": Contender("upgnet", _halved, _SMOOTHED),
        },
    ),
}


def features_pool(graph: Graph, split: Split, seed: int) -> Tensor:
    """Return the classes [n] that the experts of class-sums expect without any edge."""
    people = read_people(graph, split)
    evidence = feature_evidence(people, corners(people.classes))
    nothing = torch.zeros(people.nodes, 0)
    return train_experts(people, evidence, nothing, SumsSettings(seed=seed)).logits.argmax(dim=1)


def public_pool(graph: Graph, split: Split, seed: int) -> Tensor:
    """Return the classes [n] that class-counts expects of everybody without its counts."""
    return read_public(public_part_of(graph, split, domain_of(graph), seed=seed)).argmax(dim=1)


def drawn_graph(graph: Graph, share: float, seed: int, *, public: bool) -> Graph:
    """Return a graph with a share of its edges private, or what is left of it without those.

    Args:
        graph: all edges.
        share: of the undirected edges; 0 leaves the graph as it is.
        seed: fixes which.
        public: whether private edges are taken out.
    """
    if not share:
        return graph
    drawn = draw_private(graph, share, seed)
    if not public:
        return drawn
    alone = copy(graph)
    alone.edge_index = drawn.edge_index[:, drawn.public_edges]
    return alone


def majority(graph: Graph, split: Split, seed: int, epsilon: float) -> Tensor:
    """Return the class [n] that most labels name, released as label-propagation releases them."""
    spread = build_method("label-propagation", {"epsilon": epsilon}, len(graph.schema.classes), seed=seed)
    reported = spread.randomize(graph, split=split, randomness=SeededRandomness(seed)).labels
    return torch.bincount(reported[reported >= 0]).argmax().expand(graph.num_nodes)


@cache
def panel_graph(name: str, root: str | None) -> Graph:
    """Return a graph of the panel; several labels become one question of yes or no."""
    member = BY_NAME[name]
    graph = load_graph(member.source, root)
    if member.label is not None:
        graph.y = graph.y[:, member.label].to(torch.int64)
        graph.schema = replace(graph.schema, name=f"{graph.schema.name}-{member.label}", classes=("no", "yes"))
        for mask in ("train_mask", "val_mask", "test_mask"):
            if getattr(graph, mask, None) is not None:
                setattr(graph, mask, None)
    return graph


def scout_of(family: str, trust: str) -> str:
    """Return the graph of a family that chooses settings: the smallest, unless the trust names another."""
    return TRUSTS[trust].scouts.get(family) or next(member.name for member in MEMBERS if member.family == family)


def half_of(name: str) -> str:
    """Return "choose" or "report"."""
    return next(half for half, families in HALVES.items() if BY_NAME[name].family in families)
