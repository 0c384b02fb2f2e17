"""The ways to publish a graph by name, and the settings each takes.

All of them are one estimator: `heterorr` protects features and edges, the others one of the two, by one mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from graphveil.errors import InputError
from graphveil.methods.release.heterorr import HeteroRR
from graphveil.methods.release.privacy import CHAINS, EDGE_METHODS, RELEASE_FEATURES

INFINITE = math.inf
#: What each fixes; everything else is a setting of its own.
FIXED: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "heterorr": {},
        "feature-rr": {"features": "feature-rr", "epsilon_a": INFINITE},
        "edge-rr": {"epsilon_x": INFINITE},
        "edge-rand": {"epsilon_x": INFINITE, "edges": "edge-rand"},
        "lap-graph": {"epsilon_x": INFINITE, "edges": "lap-graph"},
        "priv-hrg": {"epsilon_x": INFINITE, "edges": "priv-hrg"},
    }
)
RELEASES = tuple(FIXED)
SUMMARIES = {
    "heterorr": "a curator publishes a graph with private features and edges, once, for anybody to train on (2022)",
    "feature-rr": "a curator publishes private features, every one in a bin near the true one (HeteroRR's)",
    "edge-rr": "a curator publishes edges made from noisy counts of blocks of a tree (HeteroRR's, corrected)",
    "edge-rand": "a curator publishes edges after randomized response on every pair (LinkTeller's EdgeRand)",
    "lap-graph": "a curator publishes the pairs that are largest after noise (LinkTeller's LapGraph)",
    "priv-hrg": "a curator publishes edges drawn from a tree that private edges helped to fit (KDD 2014)",
}
#: setting -> (default, type, help), in the order in which they are listed.
SETTINGS: Mapping[str, tuple[Any, type, str]] = MappingProxyType(
    {
        "epsilon_x": (1.0, float, "epsilon of one node's features; inf: published as they are"),
        "epsilon_a": (1.0, float, "epsilon of one private undirected edge; inf: published as they are"),
        "epsilon_y": (INFINITE, float, "epsilon of one node's label; inf: published as they are"),
        "features": ("multi-bit", str, "feature mechanism: " + ", ".join(RELEASE_FEATURES)),
        "edges": ("public-tree", str, "how private edges are made anew: " + ", ".join(EDGE_METHODS)),
        "delta": (1e-10, float, "delta of features=gaussian"),
        "bins": (10, int, "bins of a feature (features=feature-rr)"),
        "scores": (None, str, "file of one public number a feature: its share of epsilon_x (features=feature-rr)"),
        "tree_share": (0.5, float, "part of epsilon_a for a tree drawn with private edges (edges=mcmc, priv-hrg)"),
        "steps": (None, int, "steps of each Markov chain; default 100 a node (edges=mcmc, priv-hrg)"),
        "chains": (3, int, "Markov chains; all but one see public edges alone (edges=mcmc)"),
        "count_share": (0.01, float, "part of epsilon_a for the number of edges (edges=lap-graph)"),
    }
)
_OF_FEATURES = ("epsilon_x", "features", "delta", "bins", "scores")
_OF_EDGES = ("epsilon_a", "edges", "tree_share", "steps", "chains", "count_share")
_TAKES = {
    "heterorr": tuple(SETTINGS),
    "feature-rr": ("epsilon_x", "epsilon_y", "bins", "scores"),
    "edge-rr": ("epsilon_a", "edges", "tree_share", "steps", "chains"),
    "edge-rand": ("epsilon_a",),
    "lap-graph": ("epsilon_a", "count_share"),
    "priv-hrg": ("epsilon_a", "tree_share", "steps"),
}
#: What a curator who publishes must say, instead of leaving it to a default.
REQUIRED = {name: tuple(key for key in ("epsilon_x", "epsilon_a") if key in takes) for name, takes in _TAKES.items()}


def settings_taken(name: str) -> dict[str, tuple[Any, type, str]]:
    """Return setting -> (default, type, help) of one way to publish."""
    return {key: SETTINGS[key] for key in _TAKES[name]}


def build_release(name: str) -> Callable[..., HeteroRR]:
    """Return what builds the estimator of one way to publish from its settings."""

    def build(**settings: Any) -> HeteroRR:
        if name == "edge-rr" and settings.get("edges", "public-tree") not in ("public-tree", "mcmc"):
            raise InputError(f"edges = {settings['edges']!r}", allowed="public-tree, mcmc")
        return HeteroRR(**{**settings, **FIXED[name]})

    return build


def refuse_idle_release(name: str, given: Mapping[str, Any]) -> None:
    """Refuse settings that the chosen mechanisms would not look at.

    Args:
        given: the settings that somebody chose, without defaults.

    Raises:
        InputError: naming the setting and what it belongs to.
    """
    chosen = {key: default for key, (default, _, _) in SETTINGS.items()} | dict(given) | dict(FIXED[name])
    for unit, epsilon, settings in (("features", "epsilon_x", _OF_FEATURES), ("edges", "epsilon_a", _OF_EDGES)):
        idle = [key for key in settings[1:] if key in given]
        if chosen[epsilon] == INFINITE and idle:
            raise InputError(f"{idle[0]} says nothing where {unit} are public ({epsilon} = inf)", remedy="leave it out")
    features, edges = chosen["features"], chosen["edges"]
    takers = {
        "delta": (features == "gaussian", "features=gaussian"),
        "bins": (features == "feature-rr", "features=feature-rr"),
        "scores": (features == "feature-rr", "features=feature-rr"),
        "tree_share": (edges in CHAINS, "edges=mcmc"),
        "steps": (edges in CHAINS, "edges=mcmc"),
        "chains": (edges == "mcmc", "edges=mcmc"),
        "count_share": (edges == "lap-graph", "edges=lap-graph"),
    }
    for key, (used, taker) in takers.items():
        if key in given and not used:
            raise InputError(f"{key} says nothing here", allowed=f"with {taker}", remedy="leave it out")


def require_epsilons(name: str, given: Mapping[str, Any]) -> None:
    """Refuse to publish at an epsilon that nobody chose: what is out cannot be taken back.

    Raises:
        InputError: naming the epsilon that is missing.
    """
    meaning = {"epsilon_x": "one node's features", "epsilon_a": "one private edge"}
    for key in REQUIRED[name]:
        if given.get(key) is None:
            flag = "--" + key.replace("_", "-")
            raise InputError(
                f"{flag} is not given: what {meaning[key]} may cost, for ever",
                where=f"release {name}",
                allowed="a number above 0, or inf for what is declared public",
            )
