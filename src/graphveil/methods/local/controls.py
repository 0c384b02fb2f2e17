"""Controls: what the same run reaches without the private values in question, at no privacy cost.

    random-features    the same network, structure and released labels, Gaussian noise in place of the feature reports
    label-propagation  released labels and structure, no features, no training
    label-pool         the same labels and structure, read in many ways and pooled (beside features or answers)
    majority           the class that most released labels name
    no-edges           a perceptron on the released features and labels
    public-only        what needs no private data: public labels spread over the public structure; where labels are
                       private nothing public tells one class from another, so an even guess
    ceiling            the same backbone on the raw data (only where the truth is at hand); protects nothing

Each returns, for every test node, 1 for right and 0 for wrong (an even guess: 1/c).
"""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import TypeAlias

import numpy as np

from graphveil.aggregation import normalised
from graphveil.graphs import Graph, Split
from graphveil.methods.base.family import Control, Controls
from graphveil.methods.base.network.features import features_of, labels_of, random_features
from graphveil.methods.base.network.network import Labels, train_network
from graphveil.methods.base.network.objectives import f1_shares
from graphveil.methods.base.people.released import LocalReports, topology_of
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.baselines.network import baseline
from graphveil.methods.local.label_pool import pool_labels
from graphveil.methods.local.label_propagation import LabelPropagation, propagate_labels
from graphveil.methods.local.lpgnn import LPGNN
from graphveil.methods.local.question import QuestionPrivacy
from graphveil.privacy import SeededRandomness
from graphveil.runtime.late import Tensor, torch

#: A plain network is an `LPGNN`; what the two have not in common, `trains_network` tells apart.
LocalMethod: TypeAlias = LPGNN | LabelPropagation
#: Hops of the random-features control where the method itself propagates fewer.
CONTROL_HOPS = 8


def controls_of(method: LocalMethod, graph: Graph, split: Split) -> Controls:
    """Return the controls that apply to a fitted method, each to be run by calling it."""
    released = method.released
    if released is None:
        return {}
    labels = labels_of(released)
    if labels.values.dim() == 2:  # none of these has a form for several labels a node
        return {}
    controls: dict[str, Control] = {
        "public-only": lambda: _public_only(method, labels, graph, split),
        "majority": lambda: hits(majority_of(labels), graph, split),
    }
    if method.trains_network or method.rule != "propagation":
        controls["label-propagation"] = lambda: hits(spread_labels(labels, graph.edge_index), graph, split)
    if method.trains_network or isinstance(method.privacy, QuestionPrivacy):
        controls["label-pool"] = lambda: _label_pool(method, labels, graph, split)
    pooled = not method.trains_network and method.rule == "pool"
    if method.privacy.collects_features or pooled:
        controls["random-features"] = lambda: _random_features(method, labels, graph, split)
    if method.trains_network and method.privacy.collects_features:
        controls["no-edges"] = lambda: _no_edges(method, released, labels, graph, split)
    return controls


def ceiling_of(settings: NetworkSettings, graph: Graph, split: Split, *, pooled: bool = False) -> np.ndarray:
    """Return the hits of a plain network trained on raw features, labels and edges; it protects nothing.

    Args:
        pooled: whether it is pooled with what raw labels say alone, as lpgnn's is.
    """
    # Raw features need no averaging over neighbours before the network: that is there against noise.
    plain = asdict(replace(settings, steps_x=0, steps_y=0, selection="robust", scaling="standard"))
    # A seeded source: what is sent as it is takes no noise.
    network: LPGNN = LPGNN(epsilon_x=math.inf, epsilon_y=math.inf, **plain) if pooled else baseline(**plain)
    network.fit(graph, split=split, randomness=SeededRandomness(settings.seed))
    return hits(network.predict_proba(), graph, split)


def hits(scores: Tensor, graph: Graph, split: Split) -> np.ndarray:
    """Return 1.0 for every test node whose highest score is its true class, else 0.0; of several labels a node, whose
    scores are probabilities, the shares that make up micro-averaged F1.
    """
    test = split.test
    if graph.y.dim() == 2:
        return f1_shares(scores[test] > 0.5, graph.y[test])
    # True labels of test nodes: a figure of a simulation, which no epsilon covers and no release contains.
    right: np.ndarray = (scores.argmax(dim=1)[test] == graph.y[test]).numpy().astype(float)
    return right


def majority_of(labels: Labels) -> Tensor:
    """Return how often released labels name each class, the same for every node [n, c]: randomized response is
    symmetric, so the class that most reports name is the likeliest majority.
    """
    reported = labels.values[labels.train | labels.val]
    counts: Tensor = torch.bincount(reported, minlength=labels.channel.classes)
    return counts.float().expand(len(labels.values), -1)


def spread_labels(labels: Labels, edges: Tensor) -> Tensor:
    """Return class probabilities [n, c] by released labels spread over edges [2, E]."""
    p = normalised(edges, len(labels.values))
    return propagate_labels(p, labels.values, labels.train, labels.val, labels.channel)[0]


def network_settings(method: LocalMethod) -> NetworkSettings:
    """Return the settings of the networks to compare with: the method's own where it trains one."""
    if method.trains_network:
        return method.settings
    return NetworkSettings(seed=method.seed, device=method.device)


def _random_features(method: LocalMethod, labels: Labels, graph: Graph, split: Split) -> np.ndarray:
    settings = network_settings(method)
    noise = random_features(graph.num_nodes, graph.schema.dimension, settings.seed)
    # At least as many hops as the method: smoothed noise carries the structure, and a weaker control would flatter it.
    settings = replace(settings, scaling="standard", steps_x=max(settings.steps_x, CONTROL_HOPS))
    return hits(train_network(noise, 0.0, labels, topology_of(graph), settings).logits, graph, split)


def _no_edges(method: LPGNN, released: LocalReports, labels: Labels, graph: Graph, split: Split) -> np.ndarray:
    features, offset = features_of(released, method.settings.seed)
    settings = replace(method.settings, model="mlp", steps_x=0, steps_y=0, scaling="standard")
    network = train_network(features, offset, labels, topology_of(graph), settings)
    return hits(network.logits, graph, split)


def _label_pool(method: LocalMethod, labels: Labels, graph: Graph, split: Split) -> np.ndarray:
    pooled = method.pooled if method.trains_network and method.trimming == "none" else None
    if pooled is not None and pooled.labels_alone is not None:
        return hits(pooled.labels_alone, graph, split)
    values = torch.where(labels.train | labels.val, labels.values, -1)
    seed, topology = network_settings(method).seed, topology_of(graph)
    pool = pool_labels(topology, values, labels.channel, seed=seed)
    return hits(pool.probabilities, graph, split)


def _public_only(method: LocalMethod, labels: Labels, graph: Graph, split: Split) -> np.ndarray:
    if math.isinf(method.privacy.epsilon_y):
        return hits(spread_labels(labels, graph.edge_index), graph, split)
    return np.full(int(split.test.sum()), 1.0 / labels.channel.classes)
