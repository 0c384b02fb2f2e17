"""Controls and ceiling of the curator's methods.

    no-edges   the same networks on hop 0 alone: what features and labels give without any edge. Where edges are
               protected that is free, and the best of encoder, classifier and the encoder in a pool by validation
               labels; where nodes are, a perceptron trained privately at the same price
    ceiling    the same method without noise

Each returns, for every test node, 1 for right and 0 for wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphveil import models
from graphveil.graphs import Graph, Split
from graphveil.methods.base.estimator import Estimator
from graphveil.methods.base.family import Control
from graphveil.methods.base.method import PAID_TUNING, PUBLISHED_RIVAL, Method
from graphveil.methods.curator.class_sums import train_experts
from graphveil.methods.curator.dp_mlp import DPMLP
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.curator.feature_evidence import feature_evidence
from graphveil.methods.curator.messages import corners
from graphveil.methods.curator.pooled import pools, trained_encoder
from graphveil.methods.curator.settings import CuratorSettings
from graphveil.methods.curator.stages.encoder import encoder_for
from graphveil.methods.curator.stages.training import (
    NodeData,
    blocks,
    build_seeded,
    logits_of,
    read_people,
    train_openly,
)
from graphveil.methods.local.controls import hits
from graphveil.privacy import Randomness
from graphveil.runtime.late import torch
from graphveil.training.full_batch import Rows

if TYPE_CHECKING:
    from torch import Tensor


#: `StagedEstimator`, `DPMLP` or `ClassSums`: what they have not in common is told by `reads_edges`, `counts_classes`.
CuratorEstimator: TypeAlias = Any


def curator_controls_of(
    method: CuratorEstimator, graph: Graph, split: Split, *, randomness: Randomness
) -> Mapping[str, Control]:
    """Return the controls of a fitted method, each to be run by calling it."""
    if method.counts_classes:
        return {"no-edges": lambda: hits(_features_alone(method, graph, split), graph, split)}
    privacy, settings = method.privacy, method.settings
    if not method.reads_edges:
        return {"public-only": lambda: np.full(int(split.test.sum()), 1.0 / len(graph.schema.classes))}
    # Where nodes are protected a control that reads features has to pay too, or it would win by looking.
    if privacy.nodes and not privacy.public:
        shared = {field.name: getattr(settings, field.name) for field in fields(CuratorSettings)}
        rival = DPMLP(epsilon=privacy.epsilon, delta=privacy.delta, **shared)
        fit = partial(rival.fit, graph, split=split, randomness=randomness)
        return {"no-edges": lambda: hits(fit().predict_proba(), graph, split)}
    return {"no-edges": lambda: hits(_hop_zero(method, graph, split), graph, split)}


def curator_ceiling(method: CuratorEstimator, graph: Graph, split: Split, *, randomness: Randomness) -> np.ndarray:
    """Return the hits of the same method without noise; it protects nothing."""
    settings = asdict(method.settings)
    build: Any = type(method)
    plain: Estimator = build(epsilon=float("inf"), **method.privacy.unit_settings, **settings)
    return hits(plain.fit(graph, split=split, randomness=randomness).predict_proba(), graph, split)


def curator_rivals_of(
    method: CuratorEstimator, graph: Graph, split: Split, *, randomness: Randomness
) -> Mapping[str, Control]:
    """Return other methods that hide one edge at the same price, each with a release of its own."""
    privacy = method.privacy
    # Rivals are compared at one price for one unit; no other method here has this one.
    if privacy.nodes or privacy.public or not method.reads_edges:
        return {}
    shared: dict[str, Any] = {"epsilon": privacy.epsilon, "delta": privacy.delta, **privacy.unit_settings}
    shared["seed"] = method.settings.seed

    def run(entry: Method) -> np.ndarray:
        rival = entry.load_class()(**shared).fit(graph, split=split, randomness=randomness)
        return hits(rival.predict_proba(), graph, split)

    candidates = [entry for entry in CURATOR_METHODS if "edges" in entry.reads and PUBLISHED_RIVAL not in entry.tags]
    # Who hides nodes alone cannot be asked to hide an edge.
    rivals = [entry for entry in candidates if entry.name != method.kind and entry.options["unit"].default != "node"]
    # The sort keeps the order in which rivals have always drawn their noise: results for a seed stay.
    return {
        entry.name: partial(run, entry) for entry in sorted(rivals, key=lambda entry: PAID_TUNING not in entry.tags)
    }


def _features_alone(method: CuratorEstimator, graph: Graph, split: Split) -> Tensor:
    """Return the scores of the same network without sums."""
    people = read_people(graph, split)
    evidence = feature_evidence(people, corners(people.classes))
    return train_experts(people, evidence, torch.zeros(people.nodes, 0), method.settings).logits


def _hop_zero(method: CuratorEstimator, graph: Graph, split: Split) -> Tensor:
    """Return the scores of encoder, classifier on hop 0, or the pool's encoder, whichever validates best."""
    settings, people = method.settings, read_people(graph, split)
    train, val = people.labels[people.train], people.labels[people.val]
    # Trained by the method on the same public rows with the same seed: training it again would give the same weights.
    encoder = _encoder_of(method, people) or _encoder(settings, people)
    classifier: models.HopClassifier = build_seeded(
        lambda: models.HopClassifier([settings.hidden], settings.hidden, people.classes, batch_norm=True), settings.seed
    )
    with torch.no_grad():
        first = encoder.embed(blocks([people.features]))
        alone: Tensor = encoder(blocks([people.features]))
    train_openly(classifier, Rows(first[people.train], train), Rows(first[people.val], val), settings)
    with torch.no_grad():
        both: Tensor = classifier(first)
    scores = [alone, both]
    if pools(settings):
        scores.append(logits_of(trained_encoder(people, settings), [people.features]))
    # By validation labels, which are public at edge level: the control is given its best part for free.
    return max(scores, key=lambda each: int((each[people.val].argmax(dim=1) == val).sum()))


def _encoder_of(method: CuratorEstimator, people: NodeData) -> models.Encoder | None:
    """Return the encoder that `method` trained on these very people, from public facts alone: GAP has one."""
    published = method.published
    if published is None or not isinstance(published.networks[0], models.Encoder):
        return None
    same = published.people.key == people.key and torch.equal(published.people.labels, people.labels)
    return published.networks[0] if same and torch.equal(published.people.train, people.train) else None


def _encoder(settings: CuratorSettings, people: NodeData) -> models.Encoder:
    """Return GAP's encoder, trained on features and labels."""
    encoder: models.Encoder = build_seeded(lambda: encoder_for(settings, people.schema, batch_norm=True), settings.seed)
    rows, val = (Rows(blocks([people.features], part), people.labels[part]) for part in (people.train, people.val))
    train_openly(encoder, rows, val, settings)
    return encoder
