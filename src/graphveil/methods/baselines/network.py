"""Plain networks on true data: GCN, GraphSAGE, GAT and MLP on raw features, labels and edges.

A plain network is LPGNN with infinite budgets and no propagation before it: the same arithmetic, the same loop.  Its
name states that nothing is protected, so it accepts parts that a graph declares private: it is the ceiling of a run,
the control of an attack, and the methods gcn, sage, gat and mlp.  It is for people who may see its training data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Self, Unpack

from graphveil import models
from graphveil.graphs import Graph, GraphSchema
from graphveil.methods.base.method import entry_of
from graphveil.methods.base.people.released import require_labels
from graphveil.methods.base.settings import NetworkOptions, TrainingOptions
from graphveil.methods.baselines.entries import BASELINE_METHODS, PLAIN_NETWORK
from graphveil.methods.local.lpgnn import LPGNN
from graphveil.privacy import Guarantee
from graphveil.privacy.statement.observer import ALL_BUT_CURATOR
from graphveil.privacy.statement.unit import NODE, NODE_WITHOUT_EDGES
from graphveil.runtime.checks import require_choice
from graphveil.runtime.late import nn


class PlainOptions(TrainingOptions, total=False):
    """Keywords of a network whose backbone is set."""

    steps_x: int | None
    steps_y: int | None


class PlainNetwork(LPGNN):
    """A network on features, labels and edges as they are; protects nothing.

    Args:
        backbone: a module of your own in place of `model`, as in LPGNN.
        settings: any field of `NetworkSettings`, its backbone `model` among them.
    """

    kind = PLAIN_NETWORK
    reads_private_edges = True

    def __init__(self, *, backbone: nn.Module | None = None, **settings: Unpack[NetworkOptions]) -> None:
        super().__init__(epsilon_x=math.inf, epsilon_y=math.inf, pooling="none", backbone=backbone, **settings)

    def require_served(self, graph: Graph) -> None:
        """Refuse a graph that the backbone does not fit; private parts are accepted."""
        schema = require_labels(graph, public=True)
        if self.backbone is not None:
            models.require_scores(self.backbone, schema.dimension, len(schema.classes), edges=True)

    def parameters(self) -> dict[str, Any]:
        return {"backbone": self.backbone, **asdict(self.settings), **self._given}

    @property
    def mechanism_guarantee(self) -> Guarantee:
        """The guarantee of the release on a released graph, else that nothing is protected."""
        return self.result.published or unprotected(self.settings.model)

    @classmethod
    def _built_from(cls, facts: Mapping[str, Any], backbone: nn.Module | None) -> Self:
        return cls(backbone=backbone, **{**facts["settings"], "device": "cpu"})


class _NamedNetwork(PlainNetwork):
    """A plain network whose backbone its class names."""

    def __init__(self, *, backbone: nn.Module | None = None, **settings: Unpack[PlainOptions]) -> None:
        super().__init__(backbone=backbone, **settings, **self.entry.fixed)


class GCN(_NamedNetwork):
    """A graph convolutional network on raw data: the non-private baseline."""

    entry = entry_of("gcn", BASELINE_METHODS)


class SAGE(_NamedNetwork):
    """GraphSAGE on raw data: the non-private baseline."""

    entry = entry_of("sage", BASELINE_METHODS)


class GAT(_NamedNetwork):
    """A graph attention network on raw data: the non-private baseline."""

    entry = entry_of("gat", BASELINE_METHODS)


class MLP(_NamedNetwork):
    """A perceptron on raw features, without edges: the non-private baseline."""

    entry = entry_of("mlp", BASELINE_METHODS)


_NETWORKS: Mapping[str, type[PlainNetwork]] = {"gcn": GCN, "sage": SAGE, "gat": GAT, "mlp": MLP}


def baseline(model: str, **settings: Any) -> PlainNetwork:
    """Return an unfitted network that protects nothing.

    Args:
        model: its backbone, one of `models.names.BACKBONES`. settings: any field of `NetworkSettings`.
    """
    require_choice(_NETWORKS, model=model)
    return _NETWORKS[model](**settings)


def unprotected(model: str) -> Guarantee:
    """Return the guarantee of a plain network, which is none; a perceptron reads no edges."""
    unit = NODE_WITHOUT_EDGES if model == "mlp" else NODE
    return Guarantee(
        unit=unit,
        relation="add/remove",
        model="central",
        epsilon=math.inf,
        delta=0.0,
        against=ALL_BUT_CURATOR,
        assumes=(),
    )


def open_reading(schema: GraphSchema, model: str) -> str:
    """Return in a sentence what a plain network read, and who may see its results."""
    parts = ("features", "labels") if model == "mlp" else ("features", "labels", "edges")
    private = [part for part in parts if part in schema.private]
    declared = f"declared private: {', '.join(private)}" if private else "none of them declared private"
    read = f"{', '.join(parts[:-1])} and {parts[-1]}"
    return (
        f"NOT PROTECTED: a plain network read the true {read} ({declared}); its model, predictions and figures stay "
        "with those who may see these"
    )
