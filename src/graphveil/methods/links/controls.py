"""Controls and rivals of methods that collect neighbour lists.

Controls cost no privacy beyond what the method spent:

    no-edges           released features and labels alone: logistic regression or perceptron, by validation labels
    random-features    the same method on the same lists and labels, random numbers in place of features
    random-graph       the same method; strangers in the lists: as many links as are expected, at random, same noise
    label-propagation  released labels spread over the lists as reported
    majority           the class that most released labels name, where labels are private
    public-only        what needs no private data: the most frequent public label, or an even guess

Rivals spent the same epsilon on features and labels, and on each relationship.  Their networks have the settings that
the panel chose for them (`RIVAL_NETWORKS`), and validation labels serve all of them alike: they choose the epoch, and
then the network is trained for as many epochs on them as well, as the parts of `links` are:

    base               the lists as they are, nothing smoothed (if anything is by lpgnn)  same reports
    lpgnn              features smoothed over the lists, weights as they are              same reports
    solitude           the same with calibrated weights                                   same reports
    link-beliefs       every report weighed by its likelihood                             same reports
    list-sums          unbiased counts of each class in each list                         same reports
    links              both pooled                                                        same reports
    blink, dprr        as published: both ends report, at half each                       a collection of their own

Each returns, for every test node, 1 for right and 0 for wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from graphveil.aggregation import normalised
from graphveil.graphs import Graph, GraphSchema, Split
from graphveil.late import torch
from graphveil.methods.base.estimator import Estimator
from graphveil.methods.base.family import Control
from graphveil.methods.base.features import features_of, labels_of, random_features
from graphveil.methods.base.network import train_network
from graphveil.methods.base.released import LocalReports, Topology
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.links.collection import LinkReports, named_pairs, randomize_lists, reported_edges
from graphveil.methods.links.link_beliefs import LinkBeliefsCore
from graphveil.methods.links.list_network import FEWEST_EPOCHS
from graphveil.methods.links.plan import link_plan
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.methods.links.readings import Opinion
from graphveil.methods.links.regression import without_links
from graphveil.methods.links.solitude import SolitudeCore
from graphveil.methods.local.controls import hits, majority_of
from graphveil.methods.local.label_propagation import propagate_labels
from graphveil.models.names import BELIEF_ROUNDS
from graphveil.privacy import Randomness, SeededRandomness

if TYPE_CHECKING:
    from torch import Tensor


LinkMethod = Estimator[SolitudeCore] | Estimator[LinkBeliefsCore]
#: Rivals with a collection of their own, and their denoiser.
PUBLISHED = {"blink": "blink-hybrid", "dprr": "degree-preserving"}
#: Rivals that make no graph of the lists, and what they make of them.
WITHOUT_GRAPH = {"link-beliefs": "beliefs", "list-sums": "sums", "links": "all"}


#: What most scouts of the panel chose on the choosing half of its families (university, gender, citation), by
#: validation labels among eight trials each (benchmarks/panel-runs/links.jsonl): all three for hidden and dropout of
#: no-edges, two of three for the rest.  The panel has not run dprr: it has Blink's, whose mode of reporting it shares.
RIVAL_NETWORKS: Mapping[str, Mapping[str, Any]] = {
    "solitude": {"model": "gcn", "hidden": 64, "dropout": 0.5, "weight_decay": 0.0001},
    "blink": {"model": "gcn", "hidden": 64, "dropout": 0.2, "weight_decay": 0.001},
    "no-edges": {"model": "mlp", "hidden": 64, "dropout": 0.2, "weight_decay": 0.01},
}


class _People(TypedDict):
    """The budgets of features and labels, as a method takes them."""

    sampled: int | None
    epsilon_x: float | None
    epsilon_y: float
    mechanism: str
    delta: float


class _Lists(TypedDict):
    """The budget of neighbour lists, and who reports."""

    epsilon_a: float
    mode: str | None


class _Denoising(TypedDict, total=False):
    """What a rival makes of the lists, where it differs from the method."""

    denoiser: str
    steps_x: int
    steps_y: int


def link_controls_of(method: LinkMethod, graph: Graph, split: Split) -> Mapping[str, Control]:
    """Return the controls of a fitted method, each to be run by calling it."""
    released = method.released
    if released is None:
        return {}
    controls: dict[str, Control] = {
        "public-only": lambda: _public_only(released, graph, split),
        "label-propagation": lambda: hits(_spread(released), graph, split),
    }
    labels = labels_of(released.people)
    if labels.keep < 1:  # of public ones it is public-only
        controls["majority"] = lambda: hits(majority_of(labels), graph, split)
    if method.privacy.collects_features:
        controls["no-edges"] = lambda: hits(_no_edges(method, released), graph, split)
        controls["random-features"] = lambda: hits(_random_features(method, released), graph, split)
    if not method.links.public:
        controls["random-graph"] = lambda: hits(_random_graph(method, released), graph, split)
    return controls


def rivals_of(method: LinkMethod, graph: Graph, split: Split, *, randomness: Randomness) -> Mapping[str, Control]:
    """Return other methods at the same price, each to be run by calling it; none where links are public."""
    released = method.released
    if released is None or method.links.public:
        return {}
    rivals: dict[str, Control] = {}
    if method.links.mechanism == "lists":
        same: dict[str, _Denoising] = {
            "base": {"denoiser": "none", "steps_x": 0, "steps_y": 0},
            "lpgnn": {"denoiser": "none"},
            "solitude": {"denoiser": "calibration"},
        }
        hops = settings_of(method)
        if not hops.steps_x and not hops.steps_y:
            del same["base"]  # which is then what lpgnn is
        # The method itself is no rival of its own.
        own = {"calibration": "solitude", "none": "lpgnn"}.get(getattr(method, "denoiser", ""), "")
        for name, options in same.items():
            if name != own:
                rivals[name] = _on_same_reports(method, released, options, graph, split)
        known = _parts_of(method)
        for name, reading in WITHOUT_GRAPH.items():
            if reading != getattr(method, "reading", None):
                rivals[name] = _read_from_same_reports(method, released, reading, known, graph, split)
    too_large = rivals_left_out(method, graph.schema, released.nodes)
    for name in PUBLISHED:
        if name not in too_large and getattr(method, "denoiser", None) != PUBLISHED[name]:
            rivals[name] = _own_collection(method, PUBLISHED[name], graph, split, randomness)
    return rivals


def rivals_left_out(method: LinkMethod, schema: GraphSchema, nodes: int) -> Mapping[str, str]:
    """Return the rivals whose own collection would be too large, and what their mechanism says of its size.

    Both ends report there, each at half the price, which makes far more false entries than one report at all of it.
    """
    if method.links.public:
        return {}
    links = _both_ends(method, schema)
    made = {name: _solitude(method, links, {"denoiser": denoiser}) for name, denoiser in PUBLISHED.items()}
    plans = {name: link_plan(rival.links, schema, nodes) for name, rival in made.items()}
    return {name: plan.warning for name, plan in plans.items() if plan is not None and plan.warning is not None}


def settings_of(method: LinkMethod) -> NetworkSettings:
    """Return the settings of the networks to compare with: the method's own where it trains one."""
    if method.trains_network:
        settings: NetworkSettings = method.settings
        return settings
    hops = 4 if method.privacy.epsilon_x is not None and math.isfinite(method.privacy.epsilon_x) else 0
    network = RIVAL_NETWORKS["solitude"]
    return NetworkSettings(steps_x=hops, steps_y=0, seed=method.seed, device=method.device, **network)


def _people(method: LinkMethod) -> _People:
    """Return the budgets of features and labels as keywords."""
    privacy = method.privacy
    return {
        "epsilon_x": privacy.epsilon_x,
        "epsilon_y": privacy.epsilon_y,
        "mechanism": privacy.mechanism,
        "delta": privacy.delta,
        "sampled": privacy.sampled,
    }


def _solitude(method: LinkMethod, links: _Lists, options: _Denoising, **network: Any) -> Estimator[SolitudeCore]:
    """Return a rival with a network, untrained; `network`: its settings where they are not the panel's."""
    settings = settings_of(method)
    name = "blink" if options.get("denoiser") in PUBLISHED.values() else "solitude"
    shared = {key: getattr(settings, key) for key in ("learning_rate", "epochs", "seed", "device", "steps_x")}
    plain: dict[str, Any] = {**shared, **RIVAL_NETWORKS[name], **options, **network}
    return Estimator(SolitudeCore(**_people(method), **links, **plain))


def _final(method: LinkMethod, chosen: Estimator[SolitudeCore], links: _Lists, options: _Denoising) -> Tensor:
    """Return what a fitted rival says once it has learned from validation labels as well; it spends nothing more."""
    released: LinkReports = chosen.released
    if not bool(released.people.val.any()):
        alone: Tensor = chosen.predict_proba()
        return alone
    epochs = max(chosen.core.result.network.epoch, FEWEST_EPOCHS)
    again = _solitude(method, links, options, epochs=epochs)
    final: Tensor = again.fit_reports(replace(released, people=everybody(released.people))).predict_proba()
    return final


def everybody(people: LocalReports) -> LocalReports:
    """Return the same reports, those who validate among those who train."""
    return replace(people, train=people.train | people.val, val=torch.zeros_like(people.val))


def _on_same_reports(
    method: LinkMethod, released: LinkReports, options: _Denoising, graph: Graph, split: Split
) -> Control:
    links: _Lists = {"epsilon_a": method.links.epsilon_a, "mode": method.links.mode}

    def run() -> np.ndarray:
        rival = _solitude(method, links, options).fit_reports(released)
        return hits(_final(method, rival, links, options), graph, split)

    return run


def _parts_of(method: LinkMethod) -> dict[str, tuple[Opinion, ...]]:
    """Return the opinions that a method has made of the reports already, as a rival with its defaults would."""
    if method.trains_network or (method.rounds, method.blocks) != (BELIEF_ROUNDS, "full"):
        return {}
    return dict(method.parts)


def _read_from_same_reports(
    method: LinkMethod,
    released: LinkReports,
    reading: str,
    known: dict[str, tuple[Opinion, ...]],
    graph: Graph,
    split: Split,
) -> Control:
    """Return a rival that pools parts of the same reports; each part is read once, and `known` to those that follow."""
    links = _Lists(epsilon_a=method.links.epsilon_a, mode=method.links.mode)
    rival = LinkBeliefsCore(**_people(method), **links, reading=reading, seed=settings_of(method).seed)

    def run() -> np.ndarray:
        rival.fit_reports(released, known=known)
        known.update(rival.parts)
        return hits(rival.probabilities(), graph, split)

    return run


def _both_ends(method: LinkMethod, schema: GraphSchema) -> _Lists:
    """Return the budget of lists that each end of a relationship keeps, at the method's price of a relationship."""
    price = method.links.relationship_epsilon
    directed = method.links.mode_for(schema) == "directed"
    return {"epsilon_a": price if directed else price / 2, "mode": "directed" if directed else "both"}


def _own_collection(method: LinkMethod, denoiser: str, graph: Graph, split: Split, randomness: Randomness) -> Control:
    """Return a rival as it was published: each end of a relationship reports it, at half the price."""
    links, options = _both_ends(method, graph.schema), _Denoising(denoiser=denoiser)
    rival = _solitude(method, links, options)

    def run() -> np.ndarray:
        chosen = rival.fit(graph, split=split, randomness=randomness)
        return hits(_final(method, chosen, links, options), graph, split)

    return run


def _spread(released: LinkReports) -> Tensor:
    labels = labels_of(released.people)
    p = normalised(reported_edges(released), released.nodes)
    spread, _ = propagate_labels(
        p, labels.values, labels.train, labels.val, classes=labels.classes, keep=labels.keep, flip=labels.flip
    )
    return spread


def _no_edges(method: LinkMethod, released: LinkReports) -> Tensor:
    """Return the better of two models without edges, as released validation labels judge them."""
    settings = replace(settings_of(method), steps_x=0, steps_y=0, scaling="standard", **RIVAL_NETWORKS["no-edges"])
    labels = labels_of(released.people)
    features, offset = features_of(released.people, settings.seed)
    empty = Topology(torch.empty(2, 0, dtype=torch.int64), released.nodes)
    network = train_network(features, offset, labels, empty, settings)
    regression, score = without_links(released, seed=settings.seed)
    perceptron = float((network.logits.argmax(dim=1) == labels.values)[labels.val].float().mean())
    # By labels that were released: choosing between two models costs nothing, and gives the control its best.
    if not perceptron > score:
        return regression
    longest = replace(settings, epochs=max(network.epoch, FEWEST_EPOCHS))
    return train_network(features, offset, labels_of(everybody(released.people)), empty, longest).logits


def _random_features(method: LinkMethod, released: LinkReports) -> Tensor:
    people = released.people
    noise = random_features(released.nodes, people.schema.dimension, settings_of(method).seed)
    # Random numbers have no channel to correct for: they are read as public features.
    public = replace(people.privacy, epsilon_x=math.inf)
    other = replace(released, people=replace(people, features=noise, privacy=public))
    return _again(method, other)


def _random_graph(method: LinkMethod, released: LinkReports) -> Tensor:
    schema, seed = released.people.schema, settings_of(method).seed
    # Half of all pairs at most: the estimate can be far off where lists are swamped, and a made graph must fit in
    # memory.
    links = min(expected_links(released), released.nodes * (released.nodes - 1) // 4)
    strangers = Strangers(schema, released.nodes, random_edges(released.nodes, links, schema.directed, seed))
    # Seeded on purpose: these links are made up, so their noise protects nobody, and the control repeats.
    lists = randomize_lists(strangers, released.links, randomness=SeededRandomness(seed))
    return _again(method, replace(released, lists=lists))


def _again(method: LinkMethod, released: LinkReports) -> Tensor:
    """Return what the method makes of a changed collection, in a copy that spends nothing of the method's."""
    privacy = released.people.privacy
    people: _People = {**_people(method), "epsilon_x": privacy.epsilon_x}
    links: LinkPrivacy = method.links
    shared: dict[str, Any] = {"epsilon_a": links.epsilon_a, "mode": links.mode}
    if not method.trains_network:
        names = ("reading", "rounds", "blocks", "seed", "device")
        plain: dict[str, Any] = {name: getattr(method, name) for name in names}
        copy = LinkBeliefsCore(**people, **shared, **plain)
        return copy.fit_reports(released).probabilities()
    calibration = method.calibration
    network = {name: getattr(method.settings, name) for name in NetworkSettings.__dataclass_fields__}
    again = SolitudeCore(
        **people,
        **shared,
        denoiser=method.denoiser,
        degree_share=links.degree_share,
        lambda1=calibration.lambda1,
        lambda2=calibration.lambda2,
        learning_rate_a=calibration.learning_rate,
        complement=calibration.complement,
        **network,
    )
    return again.fit_reports(released).probabilities()


@dataclass(frozen=True)
class Strangers:
    """A made graph, as far as `randomize_lists` looks at one."""

    schema: GraphSchema
    num_nodes: int
    edge_index: Tensor


def random_edges(nodes: int, links: int, directed: bool, seed: int) -> Tensor:
    """Return about `links` random links as edges [2, E], both directions unless directed."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(0, nodes, (2, links), generator=generator)
    pairs = pairs[:, pairs[0] != pairs[1]]
    if not directed:
        pairs = torch.cat([pairs, pairs.flip(0)], dim=1)
    edges: Tensor = torch.unique(pairs, dim=1)
    return edges


def expected_links(released: LinkReports) -> int:
    """Return how many links the reports let one expect, at least 1."""
    if released.links.mechanism == "degree-preserving":
        lists = 2 if released.links.mode == "both" else 1  # in which a link is counted
        return max(1, int(released.lists["lists"].degrees.levels.clamp_min(0).sum()) // lists)
    return max(1, round(named_pairs(released).expected_links))


def _public_only(released: LinkReports, graph: Graph, split: Split) -> np.ndarray:
    labels = labels_of(released.people)
    if math.isinf(released.people.privacy.epsilon_y):
        counts = torch.bincount(labels.values[labels.train | labels.val], minlength=labels.classes)
        return hits(counts.float().expand(released.nodes, -1), graph, split)
    return np.full(int(split.test.sum()), 1.0 / labels.classes)
