"""The methods that a trusted curator trains."""

from __future__ import annotations

from collections.abc import Mapping

from graphveil.aggregation.names import UNITS, WEIGHT_KINDS
from graphveil.graphs.degree_bound import RULES
from graphveil.methods.base.method import PAID_TUNING, PUBLISHED_RIVAL, Forced, Method, Option, Replay
from graphveil.methods.base.settings import NETWORK_HELP, START_OPTION, field_options
from graphveil.methods.curator.settings import (
    LEAST_FOR_VOTES,
    MOST_FOR_VOTES,
    POOLINGS,
    ROWS,
    CaribouSettings,
    CuratorSettings,
    EclipseSettings,
    GapSettings,
    PerceptronSettings,
    ProgapSettings,
    SumsSettings,
)

_FAMILY = "graphveil.methods.curator.family:CURATOR"
_PAID, _RIVAL = frozenset({PAID_TUNING}), frozenset({PUBLISHED_RIVAL})
_ONE_EDGE = Replay("edge", {"epsilon": 2.0})
_CONTACTS = Replay("set of contacts", {"epsilon": 2.0, "unit": "k-edges", "relationships": 4}, "contacts")
_NORMAL = Replay("edge", {"epsilon": 2.0, "noise": "normal"}, "normal")
#: Private training in batches of everybody, whose noise is found at once.
_ALL_AT_ONCE = {"epsilon": 8.0, "batch": 10_000, "passes": 3}
_ATTENTION = Replay("edge", {**_ALL_AT_ONCE, "hops": 1, "weights": "attention"}, "attention")
_ONE_NODE = Replay("node", {**_ALL_AT_ONCE, "degree_bound": 3, "hops": 1, "unit": "node"}, "nodes")
_HELP = {
    "hops": "noisy sums over neighbours, one after the other",
    "hidden": "hidden width",
    "dropout": "dropout in training without noise; default: 0.5 from 500 feature columns on, else 0; progap 0.7",
    "epochs": "epochs of training without noise, at most",
    "learning_rate": "learning rate of Adam",
    "weight_decay": "weight decay of Adam, without noise",
    "patience": "stop after so many epochs in which neither accuracy nor loss got better; 0: never",
    "weights": "weights of messages: " + ", ".join(WEIGHT_KINDS),
    "sharpness": "of the weights kernel",
    "bits": "of the rows' grid; default: as the noise allows",
    "batch": "expected batch of private training (unit node, or weights attention)",
    "passes": "passes of private training (the same); default: 10, and at least 100 steps, 200 below epsilon 3",
    "clip": "norm to which private training clips a gradient (the same)",
    "share_hops": "part of the budget for the sums beside private training (the same); default a half",
    "hop_ratio": "noise of each sum over that of the sum before; above 1 the earlier sums get more of the budget",
}
#: Settings of hops, which a method without edges does not have.
_OF_HOPS = ("hops", "weights", "sharpness", "bits", "share_hops", "hop_ratio")
#: Settings that methods which train privately alone do not have.
_OPEN_ALONE = ("dropout",)
#: Settings of training without noise.
_OPEN = ("hidden", "dropout", "epochs", "learning_rate", "weight_decay", "patience")
#: Settings of hops, but for those of the one sum that neighbours alike are counted in.
_OF_SEVERAL_HOPS = ("hops", "weights", "sharpness", "hop_ratio")
_TYPES = {"bits": int, "dropout": float, "share_hops": float, "passes": int}
_NETWORK = field_options(CuratorSettings, _HELP, _TYPES)
_POOLING = {
    "pooling": Option(
        None,
        str,
        "stages: with an encoder of features, where validation labels are surely likelier so; none: as published; "
        "default: stages, with unit node none",
        within=POOLINGS,
    ),
    "rows": Option(
        None,
        str,
        "labelled: rows that are summed say public labels of training nodes too, and what features say of a training "
        "node itself is learned on other nodes; published: what features say alone; "
        "default: labelled, with unit node, queries or weights published",
        within=ROWS,
    ),
}
_NETWORK_OF_PROGAP = {
    **field_options(ProgapSettings, _HELP, _TYPES),
    "hops": Option(None, int, f"{_HELP['hops']}; default: 2, from epsilon 32 on for a relationship 3"),
    **_POOLING,
}
_PERCEPTRON = field_options(PerceptronSettings, _HELP, _TYPES)
_NETWORK_OF_CARIBOU = field_options(CaribouSettings, _HELP, _TYPES)
_NETWORK_OF_ECLIPSE = field_options(EclipseSettings, _HELP, _TYPES)
_NETWORK_OF_GAP = {
    **field_options(GapSettings, _HELP, _TYPES),
    "hops": Option(None, int, f"{_HELP['hops']}; default: 2, up to epsilon 2 for a relationship 1"),
    "hidden": Option(None, int, f"{_HELP['hidden']}; default: 16, with unit node from epsilon 20 on 64"),
    **_POOLING,
    "scaling": Option(
        None,
        str,
        "standard (a noisy sum loses each column's mean) or published; default: standard, with unit node published",
    ),
}
#: Of methods that train privately as long as somebody else did.
_STEPS = {"steps": Option(None, int, "steps of private training in place of passes (the same)")}
_BUDGET = {
    "epsilon": Option(4.0, float, "what training costs one unit; inf: nothing is protected"),
    "delta": Option(1e-5, float, "delta of one unit; below one over the number of protected units, declared"),
}
_SEVERAL = {"relationships": Option(None, int, "k, of one person, that may be added or removed (unit k-edges)")}
_FUSION = {**field_options(SumsSettings, NETWORK_HELP), **START_OPTION}
#: What `tune` tries of methods with several noisy sums: how many, how the budget is split among them, and the width.
_SUMS = {"hops": (1, 2, 3), "hop_ratio": (1.0, 2.0), "hidden": (16, 64)}
_LAW = {
    "noise": Option(
        "geometric",
        str,
        "law of the sums' noise: geometric, which needs no delta, or normal",
        within=("geometric", "normal"),
    )
}
_UNIT = {
    "unit": Option(None, str, ", ".join(UNITS) + "; default: edge, in a directed graph directed-edge"),
    "degree_bound": Option(None, int, "to how many others one node sends (unit node); default 100"),
    "rule": Option("lists", str, "how that bound is kept (unit node): " + ", ".join(RULES)),
    "queries": Option(0, int, "predictions on other graphs to budget for, each at the price of training"),
    **_SEVERAL,
}
_EDGE_UNITS = {
    "unit": Option(None, str, "edge, directed-edge or k-edges; default: edge, in a directed graph directed-edge"),
    **_SEVERAL,
}

#: Settings that one unit alone has.
_K_EDGES = (Forced("relationships", "unit", "k-edges"),)
_OF_UNITS = (*_K_EDGES, Forced("degree_bound", "unit", "node"), Forced("rule", "unit", "node", ("declared",)))

#: Of methods that make room for queries, with any unit of edges.
_HOPS_OF_EDGES = {**_BUDGET, "unit": _EDGE_UNITS["unit"], "queries": _UNIT["queries"], **_SEVERAL}

CURATOR_METHODS: tuple[Method, ...] = (
    Method(
        "class-sums",
        "a curator releases one noisy count of neighbours by class; the strongest where labels are public",
        "central",
        "graphveil.methods.curator.class_sums:ClassSums",
        _FAMILY,
        {**_BUDGET, **_EDGE_UNITS, **_LAW, **_FUSION},
        free=tuple(_FUSION),
        search={"hidden": (16, 64), "dropout": (0.2, 0.5), "weight_decay": (0.0005, 0.005)},
        replays=(_ONE_EDGE, _CONTACTS, _NORMAL),
        forced=_K_EDGES,
    ),
    Method(
        "gap",
        "a curator trains on noisy sums over neighbours, made once (USENIX Security 2023)",
        "central",
        "graphveil.methods.curator.gap:GAP",
        _FAMILY,
        {**_BUDGET, **_UNIT, **_NETWORK_OF_GAP, **_STEPS},
        search=_SUMS,
        tags=_PAID,
        replays=(_ONE_EDGE, _CONTACTS, _ATTENTION, _ONE_NODE),
        forced=(*_OF_UNITS, Forced("weights", "hops", 1, ("attention",))),
    ),
    Method(
        "progap",
        "a curator trains in stages, each on noisy sums of what the last one learned (WSDM 2024)",
        "central",
        "graphveil.methods.curator.progap:ProGAP",
        _FAMILY,
        {**_BUDGET, **_UNIT, **_NETWORK_OF_PROGAP, **_STEPS},
        search=_SUMS,
        tags=_PAID,
        replays=(_ONE_EDGE, _CONTACTS, _ONE_NODE),
        forced=_OF_UNITS,
    ),
    Method(
        "lpgnet",
        "a curator counts neighbours by guessed class, with noise, between perceptrons (CCS 2022)",
        "central",
        "graphveil.methods.curator.rivals.lpgnet:LPGNet",
        _FAMILY,
        {
            **_HOPS_OF_EDGES,
            "hops": Option(
                None, int, f"{_HELP['hops']}; default: 2, up to epsilon 2 for a relationship 1, from 32 on 3"
            ),
            **{name: _NETWORK[name] for name in _OPEN},
        },
        search={"hops": (1, 2, 3), "hidden": (16, 64)},
        tags=_RIVAL,
        replays=(_ONE_EDGE, _CONTACTS),
        forced=_K_EDGES,
    ),
    Method(
        "dpdgc",
        "a curator learns a row for each node privately and sums them once, apart from features (NeurIPS 2023)",
        "central",
        "graphveil.methods.curator.rivals.dpdgc:DPDGC",
        _FAMILY,
        {
            **_BUDGET,
            "unit": Option(None, str, "edge or directed-edge; default: edge, in a directed graph directed-edge"),
            **{name: _NETWORK[name] for name in (*_OPEN, "bits", "batch", "passes", "clip", "share_hops")},
        },
        search={"share_hops": (0.3, 0.5, 0.7), "passes": (10, 40)},
        tags=_RIVAL,
        replays=(Replay("edge", _ALL_AT_ONCE),),
    ),
    Method(
        "gcon",
        "a curator releases a linear head trained on convolved rows, with noise, and one noisy sum (ICDE 2025)",
        "central",
        "graphveil.methods.curator.rivals.gcon:GCON",
        _FAMILY,
        {
            **_BUDGET,
            "unit": Option(None, str, "edge"),
            "hops": Option(2, int, "how deep the head's convolution goes"),
            "restart": Option(0.5, float, "restart probability of the convolution's PageRank; 1 reads no edge"),
            "penalty": Option(0.1, float, "penalty on the head's squared weights; more needs less noise"),
            **{name: _NETWORK[name] for name in (*_OPEN, "bits", "share_hops")},
            "hidden": Option(64, int, _HELP["hidden"]),
        },
        search={"hops": (1, 2, 4), "restart": (0.25, 0.5, 0.75)},
        tags=_RIVAL,
        replays=(_ONE_EDGE,),
    ),
    Method(
        "eclipse",
        "a curator finds a low-rank graph in noisy products with it, and trains on that (PETS 2024)",
        "central",
        "graphveil.methods.curator.rivals.eclipse:Eclipse",
        _FAMILY,
        {**_HOPS_OF_EDGES, **{name: _NETWORK_OF_ECLIPSE[name] for name in ("hops", *_OPEN, "bits", "hop_ratio")}},
        search=_SUMS,
        tags=_RIVAL,
        replays=(_ONE_EDGE, _CONTACTS),
        forced=_K_EDGES,
    ),
    Method(
        "caribou",
        "a curator runs contracting hops with noise in each and releases the last alone (NDSS 2026)",
        "central",
        "graphveil.methods.curator.rivals.caribou:Caribou",
        _FAMILY,
        {
            **_BUDGET,
            "unit": Option(None, str, "edge"),
            "hops": Option(2, int, "length of the chain"),
            "contraction": Option(0.6, float, "by how much a step contracts distances; smaller needs less noise"),
            "share": Option(0.95, float, "weight of neighbours against the mean of all nodes"),
            "residual": Option(0.9, float, "weight of the first rows in each step"),
            "floor": Option(20, int, "smaller degrees are filled up with self-loops; higher needs less noise"),
            **{name: _NETWORK_OF_CARIBOU[name] for name in _OPEN},
        },
        search={"hops": (1, 2, 4), "contraction": (0.4, 0.6, 0.8)},
        tags=_RIVAL,
        replays=(Replay("edge", {"epsilon": 2.0, "hops": 3}),),
    ),
    Method(
        "node-sums",
        "a curator releases one noisy sum of neighbours by class and protects whole nodes; the strongest for them",
        "central",
        "graphveil.methods.curator.node_sums:NodeSums",
        _FAMILY,
        {
            **_BUDGET,
            "unit": Option("node", str, "node, the only one"),
            **{name: _UNIT[name] for name in ("degree_bound", "rule", "queries")},
            **{name: option for name, option in _PERCEPTRON.items() if name not in (*_OF_SEVERAL_HOPS, *_OPEN_ALONE)},
            "share_hops": Option(
                None,
                float,
                "part of the budget for the sum beside private training; default: epsilon / 16, at most "
                f"{MOST_FOR_VOTES}, below epsilon 3 {LEAST_FOR_VOTES}",
            ),
            "passes": Option(None, int, f"{_HELP['passes']}; from epsilon 20 on 40"),
        },
        search={"share_hops": (0.3, 0.5, 0.7), "passes": (10, 40), "hidden": (16, 64)},
        tags=_PAID,
        replays=(Replay("node", {**_ALL_AT_ONCE, "degree_bound": 3}, "nodes"),),
    ),
    Method(
        "dp-mlp",
        "a curator trains a perceptron by private gradient descent; no edges",
        "central",
        "graphveil.methods.curator.dp_mlp:DPMLP",
        _FAMILY,
        {
            **_BUDGET,
            "unit": Option("node", str, "node: edges are not read"),
            **{name: option for name, option in _PERCEPTRON.items() if name not in (*_OF_HOPS, *_OPEN_ALONE)},
        },
        reads=("features", "labels"),
        search={"passes": (10, 40, 100), "hidden": (16, 64)},
        tags=_PAID,
        replays=(Replay("person", _ALL_AT_ONCE),),
    ),
)

#: A line about each setting of any of them: their classes take settings that have no effect there, as files name them.
CURATOR_HELP: Mapping[str, str] = {
    name: option.help for method in CURATOR_METHODS for name, option in method.options.items()
}
