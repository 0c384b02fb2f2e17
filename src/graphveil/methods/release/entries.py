"""The ways to publish a graph and train on it.

`class-counts` publishes counts of neighbours in place of private edges, and reads them itself.  All others are one
estimator: `heterorr` protects features and edges, the rest one of the two, by one mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from graphveil.errors import InputError
from graphveil.mechanisms.catalogue import feature_names, feature_names_with
from graphveil.methods.base.method import RELEASE, Forced, Method, Option, Replay
from graphveil.methods.base.settings import NOISY_HOPS, network_options

RELEASE_FEATURES = feature_names(releases=True)
#: The mechanisms for private edges.
EDGE_METHODS = ("public-tree", "mcmc", "edge-rand", "lap-graph", "priv-hrg")
#: Those that draw a tree with the help of private edges, by Markov chains.
CHAINS = ("mcmc", "priv-hrg")
#: Those that draw a tree at all.
TREES = ("public-tree", *CHAINS)
#: The method that publishes counts of neighbours by class in place of private edges.
CLASS_COUNTS = "class-counts"

#: Settings of publishing, in the order of lists.
OPTIONS: Mapping[str, Option] = {
    "epsilon_x": Option(1.0, float, "epsilon of one node's features; inf: published as they are"),
    "epsilon_a": Option(1.0, float, "epsilon of one private undirected edge; inf: published as they are"),
    "epsilon_y": Option(math.inf, float, "epsilon of one node's label; inf: published as they are"),
    "features": Option("multi-bit", str, "feature mechanism: " + ", ".join(RELEASE_FEATURES), within=RELEASE_FEATURES),
    "edges": Option(
        "public-tree", str, "how private edges are made anew: " + ", ".join(EDGE_METHODS), within=EDGE_METHODS
    ),
    "delta": Option(1e-10, float, "delta of features=gaussian"),
    "bins": Option(10, int, "bins of a feature (features=feature-rr)"),
    "scores": Option(
        None, str, "file of one public number a feature: its share of epsilon_x (features=feature-rr)", file=True
    ),
    "tree_share": Option(0.5, float, "part of epsilon_a for a tree drawn with private edges (edges=mcmc, priv-hrg)"),
    "steps": Option(None, int, "steps of each Markov chain; default 100 a node (edges=mcmc, priv-hrg)"),
    "chains": Option(3, int, "Markov chains; all but one see public edges alone (edges=mcmc)"),
    "count_share": Option(0.01, float, "part of epsilon_a for the number of edges (edges=lap-graph)"),
}
#: The mechanisms of edge-rr: all others have a method of their own.
_TREES: Mapping[str, Option] = {
    "edges": Option(
        "public-tree", str, "how private edges are made anew: public-tree, mcmc", within=("public-tree", "mcmc")
    )
}
#: Settings of training on a release, on which nothing published depends.
WEIGHTS: Mapping[str, Option] = {
    "weights": Option(
        "none",
        str,
        "none, or posterior: each made edge counts by the probability that it is a true one",
        within=("none", "posterior"),
    )
}
POOLING: Mapping[str, Option] = {
    "pooling": Option(
        "public-part",
        str,
        "public-part: pooled with what is public, and left out where validation labels do not find it better; or none",
        within=("public-part", "none"),
    )
}
_OF_FEATURES = ("epsilon_x", "features", "delta", "bins", "scores")
_OF_EDGES = ("epsilon_a", "edges", "tree_share", "steps", "chains", "count_share")


def refuse_idle(given: Mapping[str, Any], *, fixed: Mapping[str, Any]) -> None:
    """Refuse settings without effect on the chosen mechanisms, naming one and where it applies.

    Args:
        given, fixed: settings without defaults; those that the method fixes.
    """
    # The fixed settings come last: a setting that they overrule has no effect.
    chosen = {key: option.default for key, option in OPTIONS.items()} | dict(given) | dict(fixed)
    for unit, epsilon, settings in (("features", "epsilon_x", _OF_FEATURES), ("edges", "epsilon_a", _OF_EDGES)):
        idle = [key for key in settings[1:] if key in given]
        if chosen[epsilon] == math.inf and idle:
            raise InputError(f"{idle[0]} does not apply where {unit} are public ({epsilon}=inf)", remedy="leave it out")
    features, edges = chosen["features"], chosen["edges"]
    takers = {
        "delta": (features in feature_names_with("delta"), "features=gaussian"),
        "bins": (features == "feature-rr", "features=feature-rr"),
        "scores": (features == "feature-rr", "features=feature-rr"),
        "tree_share": (edges in CHAINS, "edges=mcmc or priv-hrg"),
        "steps": (edges in CHAINS, "edges=mcmc or priv-hrg"),
        "chains": (edges == "mcmc", "edges=mcmc"),
        "count_share": (edges == "lap-graph", "edges=lap-graph"),
    }
    for key, (used, taker) in takers.items():
        if key in given and not used:
            raise InputError(f"{key} does not apply here", allowed=f"with {taker}", remedy="leave it out")


def refuse_other_trees(given: Mapping[str, Any]) -> None:
    """Refuse mechanisms that have a method of their own, and settings without effect."""
    refuse_idle(given, fixed={"epsilon_x": math.inf})
    if given.get("edges", _TREES["edges"].default) not in (_TREES["edges"].within or ()):
        raise InputError(f"edges is {given['edges']!r}", allowed=", ".join(_TREES["edges"].within or ()))


def _release(
    name: str,
    class_name: str,
    summary: str,
    takes: tuple[str, ...],
    replays: tuple[Replay, ...],
    forced: tuple[Forced, ...] = (),
    **fixed: Any,
) -> Method:
    weighed = WEIGHTS if name in ("edge-rand", "lap-graph") else {}
    free = {**weighed, **POOLING, **network_options(without=("steps_y",))}
    hops = NOISY_HOPS if "epsilon_x" in takes else {"steps_x": (0, 1, 2)}
    weights = {key: option.within or () for key, option in weighed.items()}
    return Method(
        name,
        summary,
        "central",
        f"graphveil.methods.release.heterorr:{class_name}",
        "graphveil.methods.release.family:RELEASES",
        {**{key: OPTIONS[key] for key in takes}, **(_TREES if name == "edge-rr" else {}), **free},
        tags=frozenset({RELEASE}),
        fixed=fixed,
        free=tuple(free),
        search={**hops, "model": ("sage", "gcn"), **weights},
        replays=replays,
        refuse=refuse_other_trees if name == "edge-rr" else partial(refuse_idle, fixed=fixed),
        forced=forced,
    )


_ONE_EDGE = Replay("private edge", {"epsilon_a": 2.0})
RELEASE_METHODS: tuple[Method, ...] = (
    Method(
        CLASS_COUNTS,
        "a curator publishes noisy counts of everybody's private neighbours by public class (ours)",
        "central",
        "graphveil.methods.release.counts.class_counts:ClassCounts",
        "graphveil.methods.release.family:COUNTS",
        {"epsilon_a": OPTIONS["epsilon_a"]},
        tags=frozenset({RELEASE}),
        replays=(_ONE_EDGE,),
    ),
    _release(
        "heterorr",
        "HeteroRR",
        "a curator publishes a graph with private features and edges, once, for anybody to train on (2022)",
        tuple(OPTIONS),
        (_ONE_EDGE,),
        (
            Forced("bins", "features", "feature-rr"),
            Forced("scores", "features", "feature-rr"),
            # Not edges=mcmc for steps or chains: an asymptotic guarantee must be chosen explicitly.
            Forced("count_share", "edges", "lap-graph"),
        ),
    ),
    _release(
        "feature-rr",
        "FeatureRR",
        "a curator publishes private features, every one in a bin near the true one (HeteroRR's)",
        ("epsilon_x", "epsilon_y", "bins", "scores"),
        (Replay("feature vector", {"epsilon_x": 2.0}),),
        features="feature-rr",
        epsilon_a=math.inf,
    ),
    _release(
        "edge-rr",
        "EdgeRR",
        "a curator publishes edges made from noisy counts of blocks of a tree (HeteroRR's, corrected)",
        ("epsilon_a", "edges", "tree_share", "steps", "chains"),
        (_ONE_EDGE, Replay("private edge", {"epsilon_a": 2.0, "edges": "mcmc", "steps": 500}, "mcmc")),
        epsilon_x=math.inf,
    ),
    _release(
        "edge-rand",
        "EdgeRand",
        "a curator publishes edges after randomized response on every pair (LinkTeller's EdgeRand)",
        ("epsilon_a",),
        (_ONE_EDGE,),
        epsilon_x=math.inf,
        edges="edge-rand",
    ),
    _release(
        "lap-graph",
        "LapGraph",
        "a curator publishes the pairs that are largest after noise (LinkTeller's LapGraph)",
        ("epsilon_a", "count_share"),
        (_ONE_EDGE,),
        epsilon_x=math.inf,
        edges="lap-graph",
    ),
    _release(
        "priv-hrg",
        "PrivHRG",
        "a curator publishes edges drawn from a tree that private edges helped to fit (KDD 2014)",
        ("epsilon_a", "tree_share", "steps"),
        (Replay("private edge", {"epsilon_a": 2.0, "steps": 500}),),
        epsilon_x=math.inf,
        edges="priv-hrg",
    ),
)


def require_epsilons(method: Method, given: Mapping[str, Any]) -> None:
    """Refuse to publish at a default epsilon, naming it: a release cannot be taken back."""
    meaning = {"epsilon_x": "one node's features", "epsilon_a": "one private edge"}
    for key, unit in meaning.items():
        if key in method.options and given.get(key) is None:
            flag = "--" + key.replace("_", "-")
            raise InputError(
                f"{flag} is required: the epsilon of {unit}, spent for good",
                where=f"release {method.name}",
                allowed="a number above 0, or inf for what is declared public",
            )
