"""What a run would promise, disturb and cost: the method's family says it, from public facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphveil.graphs import Graph
from graphveil.graphs.value.parts import GraphParts
from graphveil.methods.base.family import Plan
from graphveil.methods.registry import build_method, find_method, require_trainable

__all__ = ["Plan", "plan"]


def plan(name: str, graph: Graph | GraphParts, settings: Mapping[str, Any]) -> Plan:
    """Return what training a method on a graph would promise and cost.

    Only the topology (where it is public), the schema, the storage size of the features and the number of labels a
    person are looked at; no private value is read.

    Args:
        name: of the method.
        graph: n nodes; parts of a graph need no torch.
        settings: the method's own; the rest take their defaults.

    Raises:
        InputError: for an unknown method or setting, or a graph that the method cannot serve.
    """
    method = find_method(name)
    estimator = build_method(name, settings, len(graph.schema.classes))
    family = method.load_family()
    settled = family.used_settings(estimator, method.settle(settings))
    require_trainable(method, graph)
    planned: Plan = family.plan(name, estimator, graph, settled)
    return planned
