"""Controls and rivals of methods that collect neighbour lists: each returns 1 for right and 0 for wrong by test node.

Controls cost no privacy beyond what the method spent:

    no-edges           released features and labels alone, as the method reads them; as `links` does beside networks
    random-features    the same method on the same lists and labels, random numbers in place of features
    random-graph       the same method; strangers in the lists: as many links as are expected, same noise
    label-propagation  released labels spread over the lists as reported
    majority           the class that most released labels name, where labels are private
    public-only        what needs no private data: the most frequent public label, or an even guess

Rivals read the same reports, so that each spent the same.  `links` is held against what it pools, from parts that it
has read already (link-beliefs, list-sums); a network against others of its hops, with the settings that the panel chose
(`RIVAL_NETWORK`), trained for as many epochs on validation labels as well:

    base               the lists as they are, nothing smoothed (if anything is by lpgnn)
    lpgnn              features smoothed over the lists, weights as they are
    solitude           the same with calibrated weights

`compare` trains readings and networks by their own defaults (`family.comparison_of`); so a run takes three times its
fit at most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from graphveil.graphs import Graph, GraphSchema, Split
from graphveil.methods.base.family import Control, Controls
from graphveil.methods.base.network.features import labels_of, random_features
from graphveil.methods.base.people.released import LocalReports
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.links.collection import LinkReports, named_pairs, randomize_lists, reported_edges
from graphveil.methods.links.link_beliefs import LinkBeliefs
from graphveil.methods.links.opinions import FEWEST_EPOCHS
from graphveil.methods.links.readings import Opinion, read_lists
from graphveil.methods.links.solitude import Solitude
from graphveil.methods.local.controls import hits, majority_of, spread_labels
from graphveil.models.names import BELIEF_ROUNDS
from graphveil.privacy import SeededRandomness
from graphveil.runtime.late import Tensor, torch

#: `Solitude` or `LinkBeliefs`: what they have not in common is told by `trains_network`.
LinkMethod: TypeAlias = Any
#: Rivals of `links`, and what they make of the lists.
WITHOUT_GRAPH = {"link-beliefs": "beliefs", "list-sums": "sums"}

#: What most scouts of the panel chose for solitude on the choosing half of its families (university, gender, citation),
#: by validation labels among eight trials each (benchmarks/panel-runs/links.jsonl).
RIVAL_NETWORK: Mapping[str, Any] = {"model": "gcn", "hidden": 64, "dropout": 0.5, "weight_decay": 0.0001}
#: Parts of a reading that no list is read for, and that no feature is.
_WITHOUT_LISTS, _WITHOUT_FEATURES = ("regression", "network"), ("counts",)


def link_controls_of(method: LinkMethod, graph: Graph, split: Split) -> Controls:
    released = method.released
    if released is None:
        return {}
    labels = labels_of(released.people)
    controls: dict[str, Control] = {
        "public-only": lambda: _public_only(released, graph, split),
        "label-propagation": lambda: hits(spread_labels(labels, reported_edges(released)), graph, split),
    }
    if labels.channel.keep < 1:  # of public ones it is public-only
        controls["majority"] = lambda: hits(majority_of(labels), graph, split)
    if method.privacy.collects_features:
        controls["no-edges"] = lambda: hits(_no_edges(method, released), graph, split)
        controls["random-features"] = lambda: hits(_random_features(method, released), graph, split)
    if not method.links.public:
        controls["random-graph"] = lambda: hits(_random_graph(method, released), graph, split)
    return controls


def rivals_of(method: LinkMethod, graph: Graph, split: Split) -> Controls:
    """Return other methods on the same reports, each to be run by calling it; none where links are public.

    What comes with noisy degrees is read by the method that asked for them alone.
    """
    released = method.released
    if released is None or method.links.public or method.links.mechanism != "lists":
        return {}
    if method.trains_network:
        return _network_rivals(method, released, graph, split)
    if method.reading != "all":  # what the other readings take would be read for them alone
        return {}
    parts = _parts_read(method)

    def read(reading: str) -> np.ndarray:
        # Of the same reports each part is read once, and left in `parts` for the next rival.
        rival = LinkBeliefs(**_budgets(method), reading=reading, seed=method.seed, device=method.device)
        rival.fit_reports(released, earlier=parts)
        parts.update(rival.parts)
        return hits(rival.probabilities(), graph, split)

    return {name: partial(read, reading) for name, reading in WITHOUT_GRAPH.items()}


def _network_rivals(method: LinkMethod, released: LinkReports, graph: Graph, split: Split) -> dict[str, Control]:
    rivals: dict[str, dict[str, Any]] = {
        "base": {"denoiser": "none", "steps_x": 0, "steps_y": 0},
        "lpgnn": {"denoiser": "none"},
        "solitude": {"denoiser": "calibration"},
    }
    if not method.settings.steps_x and not method.settings.steps_y:
        del rivals["base"]  # which is then what lpgnn is
    # The method itself is no rival of its own.
    rivals.pop({"calibration": "solitude", "none": "lpgnn"}.get(method.denoiser, ""), None)
    settings = settings_of(method)
    shared = {key: getattr(settings, key) for key in ("learning_rate", "epochs", "seed", "device", "steps_x")}

    def train(options: Mapping[str, Any]) -> np.ndarray:
        plain = {**_budgets(method), **shared, **RIVAL_NETWORK, **options}
        rival = Solitude(**plain).fit_reports(released)
        # Once more with what validation labels say, for as many epochs as they chose; that spends nothing more.
        if bool(released.people.val.any()):
            epochs = max(rival.result.network.epoch, FEWEST_EPOCHS)
            again = Solitude(**{**plain, "epochs": epochs})
            rival = again.fit_reports(replace(released, people=with_validation_in_training(released.people)))
        return hits(rival.predict_proba(), graph, split)

    return {name: partial(train, options) for name, options in rivals.items()}


def settings_of(method: LinkMethod) -> NetworkSettings:
    """Return the settings of the networks to compare with: the method's own where it trains one."""
    if method.trains_network:
        settings: NetworkSettings = method.settings
        return settings
    return NetworkSettings(steps_x=0, steps_y=0, seed=method.seed, device=method.device, **RIVAL_NETWORK)


def _budgets(method: LinkMethod) -> dict[str, Any]:
    return {**asdict(method.privacy), "epsilon_a": method.links.epsilon_a, "mode": method.links.mode}


def with_validation_in_training(people: LocalReports) -> LocalReports:
    """Return the same reports, those who validate among those who train."""
    return replace(people, train=people.train | people.val, val=torch.zeros_like(people.val))


def _parts_read(method: LinkMethod, names: tuple[str, ...] | None = None) -> dict[str, tuple[Opinion, ...]]:
    """Return those parts of these names that a method has read already; by default what its rivals would read too."""
    if method.trains_network:
        return {}
    if names is None:  # fields alone depend on these settings
        usual = (method.rounds, method.blocks) == (BELIEF_ROUNDS, "full")
        return {name: opinions for name, opinions in method.parts.items() if usual or name != "fields"}
    return {name: opinions for name, opinions in method.parts.items() if name in names}


def _no_edges(method: LinkMethod, released: LinkReports) -> Tensor:
    """Return what the method says without lists, and in the place of a network on them `links`; no list is read."""
    settings, reading = settings_of(method), "all" if method.trains_network else method.reading
    earlier = _parts_read(method, _WITHOUT_LISTS)
    keywords: dict[str, Any] = {"rounds": BELIEF_ROUNDS, "seed": settings.seed, "device": settings.device}
    return read_lists(released, reading, **keywords, earlier=earlier, leave_lists=True).scores.cpu()


def _random_features(method: LinkMethod, released: LinkReports) -> Tensor:
    people = released.people
    noise = random_features(released.nodes, people.schema.dimension, settings_of(method).seed)
    # Random numbers have no channel to correct for: they are read as public features.
    public = replace(people.privacy, epsilon_x=math.inf)
    other = replace(released, people=replace(people, features=noise, privacy=public))
    # Such numbers are alike by chance alone.
    return _refit_scores(method, other, _WITHOUT_FEATURES, alike=False)


def _random_graph(method: LinkMethod, released: LinkReports) -> Tensor:
    schema, seed = released.people.schema, settings_of(method).seed
    # Half of all pairs at most: the estimate can be far off where lists are swamped, and must fit in memory.
    links = min(expected_links(released), released.nodes * (released.nodes - 1) // 4)
    strangers = RandomGraph(schema, released.nodes, random_edges(released.nodes, links, schema.directed, seed))
    # Seeded on purpose: these links are made up, so their noise protects nobody, and the control repeats.
    lists = randomize_lists(strangers, released.links, randomness=SeededRandomness(seed))
    return _refit_scores(method, replace(released, lists=lists), _WITHOUT_LISTS)


def _refit_scores(method: LinkMethod, released: LinkReports, same: tuple[str, ...], *, alike: bool = True) -> Tensor:
    """Return scores of the method on a changed collection, in a copy that spends nothing of the method's.

    Args:
        same: the parts that are what they were, and are not read again.
        alike: whether features that are alike say anything of pairs.
    """
    if not method.trains_network:
        plain: dict[str, Any] = {name: getattr(method, name) for name in ("rounds", "blocks", "seed", "device")}
        return read_lists(
            released, method.reading, **plain, earlier=_parts_read(method, same), alike=alike
        ).scores.cpu()
    # Hops as they were chosen, and a network of the library's own.
    options = {**method.parameters(), **asdict(method.settings), "backbone": None}
    again = Solitude(**{**options, "epsilon_x": released.people.privacy.epsilon_x})
    return again.fit_reports(released).probabilities()


@dataclass(frozen=True)
class RandomGraph:
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
    # One number a pair: to sort numbers is ten times as fast as to sort columns, and leaves the same order.
    codes = torch.unique(pairs[0] * nodes + pairs[1])
    return torch.stack([codes // nodes, codes % nodes])


def expected_links(released: LinkReports) -> int:
    """Return how many links the reports let one expect, at least 1."""
    if released.links.mechanism == "degree-preserving":
        lists = 2 if released.links.mode == "both" else 1  # in which a link is counted
        return max(1, int(released.lists["lists"].degrees.levels.clamp_min(0).sum()) // lists)
    return max(1, round(named_pairs(released).expected_links))


def _public_only(released: LinkReports, graph: Graph, split: Split) -> np.ndarray:
    labels = labels_of(released.people)
    if math.isinf(released.people.privacy.epsilon_y):
        counts = torch.bincount(labels.values[labels.train | labels.val], minlength=labels.channel.classes)
        return hits(counts.float().expand(released.nodes, -1), graph, split)
    return np.full(int(split.test.sum()), 1.0 / labels.channel.classes)
