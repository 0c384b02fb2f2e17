"""The methods on a public topology: private features and labels, or labels alone."""

from __future__ import annotations

import math

from graphveil.methods.base.method import ONE_REPORT, PUBLISHED_RIVAL, Forced, Method, Option, Replay
from graphveil.methods.base.settings import (
    NOISY_HOPS,
    PEOPLE_OPTIONS,
    QUERIES_OPTION,
    START_OPTION,
    network_options,
    refuse_idle_delta,
)
from graphveil.privacy import require_budget
from graphveil.runtime.checks import require_number

_ROOM = "graphveil.methods.local"
_FAMILY = f"{_ROOM}.family:LOCAL"
_LABELS_ONLY = {
    "epsilon_y": PEOPLE_OPTIONS["epsilon_y"],
    "epsilon": Option(None, float, "total per person; the label gets all of it"),
}

#: What the paper compares itself with.
_OF_RIVALS = {
    "loss": Option("drop", str, "drop, or cross-entropy on labels as reported (with steps_y=0)"),
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
        "labels: combined with label-pool, weighted by validation reports; none: as published",
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
        {**PEOPLE_OPTIONS, **QUERIES_OPTION, **network_options(), **_OF_RIVALS, **_TRIMMING, **_POOLING},
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
        {**PEOPLE_OPTIONS, **QUERIES_OPTION, **network_options()},
        tags=frozenset({PUBLISHED_RIVAL}),
        fixed={"denoising": "upgnet", "pooling": "none"},
        free=tuple(network_options()),
        search=_HOPS,
        replays=(Replay("person", {"epsilon_x": 1.0, "epsilon_y": 1.0}),),
        refuse=refuse_idle_delta,
    ),
    Method(
        "label-propagation",
        "private labels propagated over a public topology; no features, no training",
        "local",
        f"{_ROOM}.label_propagation:LabelPropagation",
        _FAMILY,
        _LABELS_ONLY,
        reads=("labels", "edges"),
        replays=(Replay("label", {"epsilon_y": 1.0}),),
    ),
    Method(
        "label-pool",
        "private labels, by several label models combined; no features; the strongest on labels alone",
        "local",
        f"{_ROOM}.label_propagation:LabelPool",
        _FAMILY,
        {**_LABELS_ONLY, **START_OPTION},
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
            "epsilon_x": Option(1.0, float, "epsilon of one answer, all that people without a label spend"),
            "epsilon_y": PEOPLE_OPTIONS["epsilon_y"],
            "epsilon": Option(None, float, "total per person: a label or an answer gets all of it"),
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

#: How a total is split, measured on public benchmark graphs (benchmarks/lead.py): while the label report still errs
#: often, epsilon buys more on the label than on one bit about one of d features. A label that randomized response keeps
#: this often gains nothing more worth having: the rest goes to the features.
SATURATED = 0.98
#: A feature report below this epsilon is not worth asking for.
LEAST_FEATURE_EPSILON = 1.0


def advised_split(total: float, classes: int) -> tuple[float | None, float]:
    """Return (epsilon_x, epsilon_y) for a finite total budget per person above 0; None collects no features."""
    require_number("(0, inf)", epsilon=total)
    require_budget("epsilon", total, "data declared public, in epsilon_x or epsilon_y")
    # e^eps / (e^eps + c - 1) = SATURATED, solved for eps.
    enough = math.log(SATURATED * (classes - 1) / (1 - SATURATED))
    if total < enough + LEAST_FEATURE_EPSILON:
        return None, total
    return total - enough, enough
