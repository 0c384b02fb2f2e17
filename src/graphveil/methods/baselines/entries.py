"""The non-private baselines: one plain network for each backbone."""

from __future__ import annotations

from graphveil.methods.base.method import BASELINE, Method
from graphveil.methods.base.settings import network_options

#: The kind under which plain networks are saved, whatever their backbone.
PLAIN_NETWORK = "plain-network"
_OPTIONS = network_options(without=("model", "steps_x", "steps_y"))

BASELINE_METHODS: tuple[Method, ...] = tuple(
    Method(
        model,
        f"plain {model.upper()} on raw data: the non-private baseline",
        "none",
        f"graphveil.methods.baselines.network:{model.upper()}",
        "graphveil.methods.baselines.family:BASELINES",
        _OPTIONS,
        reads=("features", "labels") if model == "mlp" else ("features", "labels", "edges"),
        tags=frozenset({BASELINE}),
        fixed={"model": model},
        free=tuple(_OPTIONS),
        search={"hidden": (16, 64), "dropout": (0.2, 0.5), "weight_decay": (0.001, 0.01)},
    )
    for model in ("gcn", "sage", "gat", "mlp")
)
