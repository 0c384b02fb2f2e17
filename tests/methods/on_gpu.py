"""The methods that take a GPU, small enough to be fitted in a test, without dropout: a GPU draws it otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphveil.graphs import Graph, social_graph
from graphveil.methods import DPMLP, GAP, LPGNN, ClassSums, LabelPropagation, LinkBeliefs, NodeSums, ProGAP, Solitude
from graphveil.privacy import SeededRandomness

#: Whole people are protected, with all that they send.
NODE: dict[str, Any] = {"unit": "node", "degree_bound": 5, "batch": 10}

METHODS: dict[str, Callable[[str, int], Any]] = {
    "lpgnn": lambda device, epochs: LPGNN(epsilon_x=2.0, epsilon_y=1.0, epochs=epochs, dropout=0.0, device=device),
    "lpgnn, gcn": lambda device, epochs: LPGNN(
        epsilon_x=2.0, epsilon_y=1.0, model="gcn", scaling="standard", epochs=epochs, dropout=0.0, device=device
    ),
    "lpgnn, gat": lambda device, epochs: LPGNN(
        epsilon_x=2.0, epsilon_y=1.0, model="gat", epochs=epochs, dropout=0.0, device=device
    ),
    "solitude": lambda device, epochs: Solitude(
        epsilon_x=2.0, epsilon_a=4.0, epsilon_y=2.0, epochs=epochs, dropout=0.0, device=device
    ),
    "label-propagation": lambda device, epochs: LabelPropagation(epsilon_y=2.0, device=device),
    "label-pool": lambda device, epochs: LabelPropagation(epsilon_y=2.0, rule="pool", device=device),
    "link-beliefs": lambda device, epochs: LinkBeliefs(
        epsilon_x=2.0, epsilon_a=4.0, epsilon_y=2.0, rounds=2, device=device
    ),
    "class-sums": lambda device, epochs: ClassSums(epsilon=4.0, epochs=epochs, dropout=0.0, device=device),
    "gap": lambda device, epochs: GAP(epsilon=4.0, epochs=epochs, patience=0, device=device),
    "gap, weighted": lambda device, epochs: GAP(
        epsilon=4.0, epochs=epochs, patience=0, hops=1, weights="similarity", device=device
    ),
    "gap, asked": lambda device, epochs: GAP(epsilon=8.0, epochs=epochs, patience=0, queries=1, device=device),
    "dp-mlp": lambda device, epochs: DPMLP(epsilon=4.0, batch=10, passes=epochs, device=device),
    "gap, node": lambda device, epochs: GAP(epsilon=8.0, passes=epochs, device=device, **NODE),
    "progap, node": lambda device, epochs: ProGAP(epsilon=8.0, passes=epochs, device=device, **NODE),
    "node-sums": lambda device, epochs: NodeSums(epsilon=8.0, passes=epochs, device=device, **NODE),
    "progap": lambda device, epochs: ProGAP(epsilon=4.0, epochs=epochs, patience=0, device=device),
}


def people(seed: int = 1) -> Graph:
    """The graph that all of them are fitted to, or another one."""
    return social_graph(60, average_degree=8, dimension=20, classes=3, seed=seed)


def fitted(name: str, device: str, *, epochs: int) -> Any:
    """One of `METHODS`, fitted with the same noise on every device."""
    return METHODS[name](device, epochs).fit(people(), randomness=SeededRandomness(1))
