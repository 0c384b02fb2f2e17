"""The methods on a public topology: private features and labels, or labels alone."""

from __future__ import annotations

from graphveil.methods.base.method import ONE_REPORT, PUBLISHED_RIVAL, Forced, Method, Option, Replay
from graphveil.methods.base.options import AGAIN, NOISY_HOPS, PEOPLE, START, network_options, refuse_idle_delta

_ROOM = "graphveil.methods.local"
_FAMILY = f"{_ROOM}.family:LOCAL"
_LABELS_ONLY = {
    "epsilon_y": PEOPLE["epsilon_y"],
    "epsilon": Option(None, float, "total per person; the label gets all of it"),
}

#: What the paper compares itself with.
_OF_RIVALS = {
    "loss": Option("drop", str, "drop, or cross-entropy on labels as they came (with steps_y=0)"),
    "stand_in": Option(
        "normal",
        str,
        "what is read with epsilon_x=none: normal, uniform, ones or degree (one-hot)",
        within=("normal", "uniform", "ones", "degree"),
    ),
}

_TRIMMING = {
    "trimming": Option(
        "none",
        str,
        "none, or agreement: a link counts for as much as its ends agree, which holds forged reports off",
        within=("none", "agreement"),
    )
}

_POOLING = {
    "pooling": Option(
        "labels",
        str,
        "labels: pooled with what labels say alone, weighed by validation reports; none: as published",
        within=("labels", "none"),
    )
}

_HOPS = {**NOISY_HOPS, "steps_y": (0, 1, 4)}

LOCAL_METHODS: tuple[Method, ...] = (
    Method(
        "lpgnn",
        "private features and labels, public topology (CCS 2021)",
        "local",
        f"{_ROOM}.lpgnn:LPGNN",
        _FAMILY,
        {**PEOPLE, **AGAIN, **network_options(), **_OF_RIVALS, **_TRIMMING, **_POOLING},
        free=(*network_options(), "loss", *_TRIMMING, *_POOLING),
        search=_HOPS,
        replays=(Replay("person", {"epsilon_x": 1.0, "epsilon_y": 1.0}),),
        refuse=refuse_idle_delta,
        forced=(Forced("stand_in", "epsilon_x", None, ("uniform", "ones", "degree")),),
    ),
    Method(
        "upgnet",
        "lpgnn with UPGNet's two layers in place of its hops: small averages set to zero, hops averaged (ICML 2025)",
        "local",
        f"{_ROOM}.upgnet:UPGNet",
        _FAMILY,
        {**PEOPLE, **AGAIN, **network_options()},
        tags=frozenset({PUBLISHED_RIVAL}),
        fixed={"denoising": "upgnet", "pooling": "none"},
        free=tuple(network_options()),
        search=_HOPS,
        replays=(Replay("person", {"epsilon_x": 1.0, "epsilon_y": 1.0}),),
        refuse=refuse_idle_delta,
    ),
    Method(
        "label-propagation",
        "private labels spread over a public topology; no features, no training",
        "local",
        f"{_ROOM}.label_propagation:LabelPropagation",
        _FAMILY,
        _LABELS_ONLY,
        reads=("labels", "edges"),
        replays=(Replay("label", {"epsilon_y": 1.0}),),
    ),
    Method(
        "label-pool",
        "private labels read in several ways at once and pooled; no features; the strongest on labels alone",
        "local",
        f"{_ROOM}.label_propagation:LabelPool",
        _FAMILY,
        {**_LABELS_ONLY, **START},
        reads=("labels", "edges"),
        replays=(Replay("label", {"epsilon_y": 1.0}),),
        fixed={"rule": "pool"},
    ),
    Method(
        "answer-pool",
        "label-pool, and everybody who sends no label answers one question about a feature instead",
        "local",
        f"{_ROOM}.label_propagation:AnswerPool",
        _FAMILY,
        {
            "epsilon_x": Option(1.0, float, "budget of one answer, all that people without a label spend"),
            "epsilon_y": PEOPLE["epsilon_y"],
            "epsilon": Option(None, float, "most per person: the label and the answer get all of it each"),
            "question": Option(
                None, str, "needed: COLUMN, COLUMN=VALUE, COLUMN=VALUE|VALUE or COLUMN>=NUMBER, of a declared column"
            ),
            "statistics": Option(
                None, str, "how often each class gives each answer, if public: 0.9,0.1; 0.2,0.8; none: learned"
            ),
        },
        reads=("features", "labels", "edges"),
        tags=frozenset({ONE_REPORT}),
        replays=(Replay("person", {"epsilon_x": 1.0, "epsilon_y": 1.0, "question": "0>=0.5"}),),
        fixed={"rule": "pool"},
    ),
)
