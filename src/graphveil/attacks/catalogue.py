"""Attacks by name, all asked for in the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from graphveil.attacks.attribute_inference import attribute
from graphveil.attacks.feature_reconstruction import reconstruction
from graphveil.attacks.federation.catalogue import FEDERATION_ATTACKS
from graphveil.attacks.influence import linkteller
from graphveil.attacks.limits import limit_of_answers
from graphveil.attacks.membership_inference import lira, membership
from graphveil.attacks.release_edges import published_edges
from graphveil.attacks.repeated_reports import averaging
from graphveil.attacks.result import AttackResult
from graphveil.attacks.service import answer_rows, with_features_of_others
from graphveil.attacks.stolen_links import link_stealing, public_network
from graphveil.errors import InputError
from graphveil.graphs import Graph, Split, random_split
from graphveil.mechanisms import NotCollected, Public, PublicLabels
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.privacy import Randomness

PUBLISHED = "published-edges"
SHADOW = "link-stealing-shadow"
DEALT = 5  # trainings with other people's features, beside which answers are judged
KNOWN_SHARE = 0.5  # of the nodes' links, for the link stealing that learns


@dataclass(frozen=True)
class Target:
    """A fitted method and what a simulated adversary needs beside it.

    Attributes:
        graph: the truth, which scores the attack; served: the graph the method was trained on. split: who trained it.
        train: (graph, split, seed) -> the same method trained once more, on that graph; None where that cannot be done.
        randomness: the noise of reports that are made for an attack on reports.
        nodes: how many nodes' pairs are attacked; shadows: how many shadow models. seed: of the adversary's draws.
        shadow: a graph of the adversary's own, to learn on.
        noiseless: whether to reconstruct from features as they are, as a report or a release would show them.
    """

    method: Any
    graph: Graph
    served: Any
    split: Split
    train: Callable[[Any, Split, int], Any] | None
    randomness: Randomness
    nodes: int = 500
    shadows: int = 16
    seed: int = 0
    shadow: Any | None = None
    noiseless: bool = False


@dataclass(frozen=True)
class Attack:
    """One line about an attack, and the attack."""

    summary: str
    run: Callable[[Target], AttackResult]


def _influence(target: Target) -> AttackResult:
    options: dict[str, Any] = {"targets": target.nodes, "seed": target.seed}
    return linkteller(target.method, target.graph, served=target.served, **options)


def _stealing(target: Target, **options: Any) -> AttackResult:
    if target.served.get("release") is not None:
        # What the public edges show anyway is no leak of the release.
        options["without_edges"] = public_network(target.served, split=target.split, seed=target.seed)
        options["without"] = "a plain network on the public edges of the release alone"
    options |= {"targets": target.nodes, "seed": target.seed, "split": target.split}
    return link_stealing(target.method, target.graph, **options)


def _stealing_by_shadow(target: Target) -> AttackResult:
    if target.shadow is None or target.train is None:
        raise InputError("the adversary has no graph of its own", where=SHADOW, remedy="give one with --shadow DATA")
    trained = target.train(target.shadow, random_split(target.shadow, target.seed), target.seed + 1)
    return _stealing(target, shadow=(trained, target.shadow))


def _published(target: Target) -> AttackResult:
    if target.served.get("release") is None:
        raise InputError("the graph was not published", where=PUBLISHED, allowed="a release, with the truth beside it")
    return published_edges(target.graph, target.served, targets=target.nodes, seed=target.seed)


def _membership(target: Target) -> AttackResult:
    return membership(target.method, target.graph, split=target.split, seed=target.seed)


def _lira(target: Target) -> AttackResult:
    if target.train is None:
        raise InputError("this method cannot be trained again on other nodes", where="lira")
    train = partial(target.train, target.served)
    return lira(target.method, target.graph, split=target.split, train=train, shadows=target.shadows, seed=target.seed)


def _attribute(target: Target) -> AttackResult:
    dealt = []
    # Only where an epsilon could be contradicted: five trainings are a high price where no limit is at stake.
    if target.train is not None and limit_of_answers(target.method).exists:
        for number in range(1, DEALT + 1):
            shuffled = with_features_of_others(target.served, target.seed + number)
            dealt.append(answer_rows(target.train(shuffled, target.split, target.seed + number), shuffled))
    return attribute(target.method, target.graph, dealt=dealt, split=target.split, seed=target.seed)


def _reconstruction(target: Target) -> AttackResult:
    options: dict[str, Any] = {"split": target.split, "randomness": target.randomness, "seed": target.seed}
    return reconstruction(target.method, target.graph, served=target.served, noiseless=target.noiseless, **options)


def _averaging(kind: str) -> Callable[[Target], AttackResult]:
    def run(target: Target) -> AttackResult:
        privacy, schema = getattr(target.method, "privacy", None), target.graph.schema
        mechanism: Any = NotCollected()
        if isinstance(privacy, LocalPrivacy):
            mechanism = privacy.labels(len(schema.classes)) if kind == "labels" else privacy.features(schema)
        if isinstance(mechanism, NotCollected | Public | PublicLabels):
            raise InputError(f"this method collects no {kind} with noise", where="averaging")
        options: dict[str, Any] = {"randomness": target.randomness, "seed": target.seed}
        result = averaging(mechanism, **options)
        # Fewer people: permanent reports are made one device at a time.
        permanent_result = averaging(mechanism, people=100, permanent=True, **options)
        permanent = {f"permanent reports, {name}": value for name, value in permanent_result.figures.items()}
        return replace(result, figures={**result.figures, **permanent})

    return run


ATTACKS: Mapping[str, Attack] = MappingProxyType(
    {
        "linkteller": Attack("edges, by how far changed features sway other nodes' answers", _influence),
        "link-stealing": Attack("edges, by how similar two nodes' answers are", _stealing),
        "link-stealing-known": Attack(
            "the same, learned from the links of half the nodes", partial(_stealing, known_share=KNOWN_SHARE)
        ),
        SHADOW: Attack("the same, learned on a graph and a model of the adversary's own", _stealing_by_shadow),
        PUBLISHED: Attack("edges, by what a published graph lists", _published),
        "membership": Attack("who trained the model, by its confidence", _membership),
        "lira": Attack("who trained the model, by shadow models", _lira),
        "attribute": Attack("private features, read off the answers", _attribute),
        "reconstruction": Attack("whole people, from reports, published features or answers", _reconstruction),
        "averaging": Attack("features of people who report again and again", _averaging("features")),
        "averaging-labels": Attack("labels of people who report again and again", _averaging("labels")),
    }
)


def attack(name: str, target: Target) -> AttackResult:
    """Return what an attack of ATTACKS finds; InputError for an attack that is unknown or does not fit the method.

    Args:
        name: a key of ATTACKS; those on a federation run elsewhere.
    """
    require_attack(name)
    return ATTACKS[name].run(target)


def require_attack(name: str) -> None:
    """Refuse a name of no attack on a model, by InputError."""
    if name in FEDERATION_ATTACKS:
        # No other names: this one is right, and the nearest of the others is not what was meant.
        raise InputError(f"attack {name!r} is on a federation", remedy="name a folder from graphveil federation init")
    if name not in ATTACKS:
        raise InputError(f"attack {name!r} is not known", allowed=", ".join(ATTACKS))
