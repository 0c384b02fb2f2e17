"""The methods on a public topology: private features and labels, or labels alone."""

from __future__ import annotations

from graphveil.methods.base.method import AnyMethod, Method, Option, Replay
from graphveil.methods.base.options import AGAIN, PEOPLE, network_options, refuse_idle_delta

_FAMILY = "graphveil.methods.local.family:LOCAL"
_LPGNN = "graphveil.methods.local.lpgnn:LPGNNCore"
_LABELS = "graphveil.methods.local.label_propagation:LabelPropagationCore"
_LABELS_ONLY = {
    "epsilon_y": PEOPLE["epsilon_y"],
    "epsilon": Option(None, float, "total per person; the label gets all of it"),
}

LOCAL_METHODS: tuple[AnyMethod, ...] = (
    Method(
        "lpgnn",
        "private features and labels, public topology (CCS 2021)",
        "local",
        _LPGNN,
        _FAMILY,
        {**PEOPLE, **AGAIN, **network_options()},
        free=tuple(network_options()),
        replays=(Replay("person", {"epsilon_x": 1.0, "epsilon_y": 1.0}),),
        refuse=refuse_idle_delta,
    ),
    Method(
        "label-propagation",
        "private labels spread over a public topology; no features, no training",
        "local",
        _LABELS,
        _FAMILY,
        _LABELS_ONLY,
        reads=("labels", "edges"),
        replays=(Replay("label", {"epsilon_y": 1.0}),),
    ),
    Method(
        "label-pool",
        "private labels read in several ways at once and pooled; no features; the strongest on labels alone",
        "local",
        _LABELS,
        _FAMILY,
        _LABELS_ONLY,
        reads=("labels", "edges"),
        replays=(Replay("label", {"epsilon_y": 1.0}),),
        fixed={"rule": "pool"},
    ),
)
