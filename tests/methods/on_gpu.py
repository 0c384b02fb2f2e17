"""The methods that take a GPU, small enough to be fitted in a test, without dropout: a GPU draws it otherwise."""

from __future__ import annotations

from typing import Any

from graphveil.graphs import Graph, social_graph
from graphveil.methods import DPMLP, GAP, LPGNN, ClassSums, LabelPropagation, LinkBeliefs, NodeSums, ProGAP, Solitude
from graphveil.privacy import SeededRandomness

LOCAL: dict[str, Any] = {"epsilon_x": 2.0, "epsilon_y": 1.0, "dropout": 0.0}
EDGE: dict[str, Any] = {"epsilon": 4.0, "patience": 0}
#: Whole people are protected, with all that they send.
NODE: dict[str, Any] = {"epsilon": 8.0, "unit": "node", "degree_bound": 5, "batch": 10}

#: What is built, its settings, and which of them says how long it trains.
METHODS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "lpgnn": (LPGNN, LOCAL, "epochs"),
    "lpgnn, gcn": (LPGNN, {**LOCAL, "model": "gcn", "scaling": "standard"}, "epochs"),
    "lpgnn, gat": (LPGNN, {**LOCAL, "model": "gat"}, "epochs"),
    "solitude": (Solitude, {**LOCAL, "epsilon_a": 4.0, "epsilon_y": 2.0}, "epochs"),
    "label-propagation": (LabelPropagation, {"epsilon_y": 2.0}, ""),
    "label-pool": (LabelPropagation, {"epsilon_y": 2.0, "rule": "pool"}, ""),
    "link-beliefs": (LinkBeliefs, {"epsilon_x": 2.0, "epsilon_a": 4.0, "epsilon_y": 2.0, "rounds": 2}, ""),
    "class-sums": (ClassSums, {"epsilon": 4.0, "dropout": 0.0}, "epochs"),
    "gap": (GAP, EDGE, "epochs"),
    "gap, weighted": (GAP, {**EDGE, "hops": 1, "weights": "similarity"}, "epochs"),
    "gap, asked": (GAP, {**EDGE, "epsilon": 8.0, "queries": 1}, "epochs"),
    "dp-mlp": (DPMLP, {"epsilon": 4.0, "batch": 10}, "passes"),
    "gap, node": (GAP, NODE, "passes"),
    "progap, node": (ProGAP, NODE, "passes"),
    "node-sums": (NodeSums, NODE, "passes"),
    "progap": (ProGAP, EDGE, "epochs"),
}


def people(seed: int = 1) -> Graph:
    """The graph that all of them are fitted to, or another one."""
    return social_graph(60, average_degree=8, dimension=20, classes=3, seed=seed)


def fitted(name: str, device: str, *, epochs: int) -> Any:
    """One of `METHODS`, fitted with the same noise on every device."""
    kind, settings, length = METHODS[name]
    method = kind(**settings, **({length: epochs} if length else {}), device=device)
    return method.fit(people(), randomness=SeededRandomness(1))
