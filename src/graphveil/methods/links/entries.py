"""The methods that collect neighbour lists privately, and the names of how lists are collected and read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from graphveil.errors import InputError
from graphveil.methods.base.method import PUBLISHED_RIVAL, Method, Option, Replay
from graphveil.methods.base.settings import (
    NOISY_LISTS,
    PEOPLE_OPTIONS,
    QUERIES_OPTION,
    network_options,
    refuse_idle_delta,
)
from graphveil.models.names import BELIEF_ROUNDS, BLOCKS

LIST_MECHANISMS = ("lists", "degree-preserving", "degree-and-lists")
#: Who reports a relationship.
MODES = ("lower", "both", "directed")
#: Denoiser -> the list mechanism whose reports it reads.
DENOISERS = {
    "calibration": "lists",
    "none": "lists",
    "beliefs": "lists",
    "degree-preserving": "degree-preserving",
    "blink-hard": "degree-and-lists",
    "blink-hybrid": "degree-and-lists",
    "blink-soft": "degree-and-lists",
}
#: What is made of lists without a graph, see `methods.links.readings`.
READINGS = ("beliefs", "sums", "all")
#: Settings of the calibration alone.
CALIBRATION = ("lambda1", "lambda2", "learning_rate_a", "complement")

_ROOM = "graphveil.methods.links"
_FAMILY = f"{_ROOM}.family:LINKS"
_PEOPLE = {
    "epsilon_x": PEOPLE_OPTIONS["epsilon_x"],
    "epsilon_y": Option(math.inf, float, PEOPLE_OPTIONS["epsilon_y"].help),
    "mechanism": PEOPLE_OPTIONS["mechanism"],
    "delta": PEOPLE_OPTIONS["delta"],
    "sampled": PEOPLE_OPTIONS["sampled"],
}
_CLEAR = {**_PEOPLE, "epsilon_x": Option(math.inf, float, PEOPLE_OPTIONS["epsilon_x"].help)}
_LISTS = {
    "epsilon_a": Option(8.0, float, "epsilon of one bit of a neighbour list; inf: links are public"),
    "mode": Option(
        None, str, "who reports a relationship: lower (its lower id), both (twice the price), directed", within=MODES
    ),
}
_BOTH_REPORT = {**_LISTS, "mode": Option("both", str, _LISTS["mode"].help, within=MODES)}
_READING = {"reading": Option("beliefs", str, "how lists are used: " + ", ".join(READINGS), within=READINGS)}
_ROUNDS = {"rounds": Option(BELIEF_ROUNDS, int, "rounds of belief propagation")}
_BLOCKS = {
    "blocks": Option(
        "full",
        str,
        "densities of links: full (of each two classes), planted (within classes and between; holds forged labels off)",
        within=BLOCKS,
    )
}
_DENOISER = {"denoiser": Option("calibration", str, ", ".join(DENOISERS), within=tuple(DENOISERS))}
_DEGREE_SHARE = {"degree_share": Option(0.1, float, "part of epsilon_a for a noisy degree (blink, dprr), 0.01 to 0.99")}
_CALIBRATION = {
    "lambda1": Option(1e-4, float, "penalty on the distance from the reported lists (calibration)"),
    "lambda2": Option(1e-5, float, "penalty on the weights themselves (calibration)"),
    "learning_rate_a": Option(0.01, float, "learning rate of the weights (calibration)"),
    "complement": Option(0, int, "unreported pairs that are trained as well (calibration)"),
}


def refuse_idle(given: Mapping[str, Any]) -> None:
    """Refuse settings that public links would not look at."""
    if given.get("epsilon_a") == math.inf:
        for name in ("degree_share", *CALIBRATION):
            if name in given:
                raise InputError(f"{name} does not apply where links are public (epsilon_a=inf)", remedy="leave it out")
    refuse_idle_delta(given)


def refuse_idle_by_denoiser(given: Mapping[str, Any]) -> None:
    """Refuse as `refuse_idle`, and settings that the chosen denoiser would not look at."""
    refuse_idle({key: value for key, value in given.items() if key != "delta"})
    denoiser = given.get("denoiser") or "calibration"
    if "degree_share" in given and DENOISERS.get(denoiser) == "lists":
        takers = ", ".join(name for name, kind in DENOISERS.items() if kind != "lists")
        raise InputError(f"degree_share does not apply to denoiser {denoiser}", allowed=f"with {takers}")
    for name in CALIBRATION:
        if name in given and denoiser != "calibration":
            raise InputError(f"{name} does not apply to denoiser {denoiser}", allowed="with calibration")
    refuse_idle_delta(given)


LINK_METHODS: tuple[Method, ...] = (
    Method(
        "solitude",
        "private features and neighbour lists; weights of edges learned with the network (TIFS 2022)",
        "local",
        f"{_ROOM}.solitude:Solitude",
        _FAMILY,
        {**_PEOPLE, **_LISTS, **QUERIES_OPTION, **_DENOISER, **_DEGREE_SHARE, **_CALIBRATION, **network_options()},
        free=(*CALIBRATION, *network_options()),
        search=NOISY_LISTS,
        replays=(Replay("edge", {"epsilon_x": math.inf, "epsilon_a": 2.0}),),
        refuse=refuse_idle_by_denoiser,
    ),
    Method(
        "link-beliefs",
        "private neighbour lists weighted by their exact likelihood; no network",
        "local",
        f"{_ROOM}.link_beliefs:LinkBeliefs",
        _FAMILY,
        {**_CLEAR, **_LISTS, **_READING, **_ROUNDS, **_BLOCKS},
        search={"reading": READINGS},
        replays=(Replay("edge", {"epsilon_a": 2.0}),),
        refuse=refuse_idle,
    ),
    Method(
        "list-sums",
        "private neighbour lists: unbiased counts of each class in each, beside the features of a network",
        "local",
        f"{_ROOM}.link_beliefs:ListSums",
        _FAMILY,
        {**_CLEAR, **_LISTS},
        replays=(Replay("edge", {"epsilon_a": 2.0}),),
        fixed={"reading": "sums"},
        refuse=refuse_idle,
    ),
    Method(
        "links",
        "private neighbour lists: link-beliefs and list-sums combined by released labels; recommended",
        "local",
        f"{_ROOM}.link_beliefs:Links",
        _FAMILY,
        {**_CLEAR, **_LISTS, **_ROUNDS, **_BLOCKS},
        search={"blocks": BLOCKS},
        replays=(Replay("edge", {"epsilon_a": 2.0}),),
        fixed={"reading": "all"},
        refuse=refuse_idle,
    ),
    Method(
        "blink",
        "private neighbour lists and degrees, denoised by their posterior (CCS 2023)",
        "local",
        f"{_ROOM}.solitude:Blink",
        _FAMILY,
        {**_CLEAR, **_BOTH_REPORT, **QUERIES_OPTION, **_DEGREE_SHARE, **network_options()},
        tags=frozenset({PUBLISHED_RIVAL}),
        free=tuple(network_options()),
        search=NOISY_LISTS,
        replays=(Replay("edge", {"epsilon_a": 2.0}),),
        fixed={"denoiser": "blink-hybrid"},
        refuse=refuse_idle,
    ),
    Method(
        "dprr",
        "private neighbour lists thinned on the device to a noisy degree (2022)",
        "local",
        f"{_ROOM}.solitude:DPRR",
        _FAMILY,
        {**_CLEAR, **_BOTH_REPORT, **QUERIES_OPTION, **_DEGREE_SHARE, **network_options()},
        tags=frozenset({PUBLISHED_RIVAL}),
        free=tuple(network_options()),
        search=NOISY_LISTS,
        replays=(Replay("edge", {"epsilon_a": 2.0}),),
        fixed={"denoiser": "degree-preserving"},
        refuse=refuse_idle,
    ),
)
