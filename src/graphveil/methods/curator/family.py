"""The family that a trusted curator trains: GAP, ProGAP, class sums and the private perceptron.

no-edges   features and labels without any edge. Where edges are protected that is free: the best of encoder,
           classifier on hop 0 and the encoder in a pool, by validation labels; where nodes are protected, a
           perceptron trained privately at the same price
ceiling    the same method without noise
rivals     other methods that protect one edge at the same price, each with a release of its own
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import partial
from typing import Any, cast

import numpy as np

from graphveil import models
from graphveil.graphs import Graph, Split
from graphveil.graphs.load import is_name
from graphveil.graphs.value.parts import GraphParts
from graphveil.methods.base.estimator import Estimator
from graphveil.methods.base.family import Controls, Family, Plan
from graphveil.methods.base.method import PAID_TUNING, PUBLISHED_RIVAL, Method
from graphveil.methods.base.network.start import start_notes
from graphveil.methods.curator.class_sums import ClassSums, train_experts
from graphveil.methods.curator.dp_mlp import DPMLP
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.curator.evidence import corners, feature_evidence
from graphveil.methods.curator.plan import CuratorEstimator, curator_plan
from graphveil.methods.curator.pooled import may_pool, trained_encoder
from graphveil.methods.curator.settings import CuratorSettings
from graphveil.methods.curator.stages.encoder import encoder_for
from graphveil.methods.curator.stages.recipe import StagedEstimator
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
from graphveil.runtime.late import Tensor, torch
from graphveil.training.full_batch import Rows


class CuratorFamily(Family[Any, Any]):
    """See `base.family.Family`."""

    serves_releases = False

    def plan(
        self, name: str, estimator: CuratorEstimator, graph: Graph | GraphParts, settled: Mapping[str, object]
    ) -> Plan:
        return curator_plan(name, estimator, graph, settled)

    def controls(self, estimator: CuratorEstimator, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
        if estimator.counts_classes:

            def features_alone() -> np.ndarray:
                people, settings = read_people(graph, split), cast(ClassSums, estimator).settings
                evidence, sums = feature_evidence(people, corners(people.classes)), torch.zeros(people.nodes, 0)
                return hits(train_experts(people, evidence, sums, settings).logits, graph, split)

            return {"no-edges": features_alone}
        if not estimator.reads_edges:
            return {"public-only": lambda: np.full(int(split.test.sum()), 1.0 / len(graph.schema.classes))}
        privacy, settings = estimator.privacy, estimator.settings
        # Where nodes are protected a control must pay for features as well, or the comparison would be unfair.
        if privacy.protects_nodes and not privacy.unprotected:
            # With its own width: none of its columns is summed.
            names = {field.name for field in fields(CuratorSettings)} - {"hidden"}
            shared = {name: getattr(settings, name) for name in names}
            rival = DPMLP(epsilon=privacy.epsilon, delta=privacy.delta, **shared)
            fit = partial(rival.fit, graph, split=split, randomness=randomness)
            return {"no-edges": lambda: hits(fit().predict_proba(), graph, split)}
        staged = cast(StagedEstimator, estimator)
        return {"no-edges": lambda: hits(_scores_without_edges(staged, graph, split), graph, split)}

    def ceiling(self, estimator: CuratorEstimator, graph: Graph, split: Split, *, randomness: Randomness) -> np.ndarray:
        build: Any = type(estimator)
        settings = {**estimator.privacy.unit_settings, **asdict(estimator.settings)}
        plain: Estimator = build(epsilon=float("inf"), **settings)
        return hits(plain.fit(graph, split=split, randomness=randomness).predict_proba(), graph, split)

    def rivals(self, estimator: CuratorEstimator, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
        privacy = estimator.privacy
        # Rivals protect the same unit at the same price: there are none for nodes.
        if privacy.protects_nodes or privacy.unprotected:
            return {}
        shared: dict[str, Any] = {"epsilon": privacy.epsilon, "delta": privacy.delta, **privacy.unit_settings}
        shared["seed"] = estimator.settings.seed

        def run(entry: Method) -> np.ndarray:
            rival = entry.load_class()(**shared).fit(graph, split=split, randomness=randomness)
            return hits(rival.predict_proba(), graph, split)

        # Methods that protect nodes alone have no unit of edges.
        rivals = [
            entry
            for entry in CURATOR_METHODS
            if "edges" in entry.reads and PUBLISHED_RIVAL not in entry.tags
            if entry.name != estimator.kind and entry.options["unit"].default != "node"
        ]
        # In this order rivals have always drawn their noise: it keeps the results for a seed.
        rivals.sort(key=lambda entry: PAID_TUNING not in entry.tags)
        return {entry.name: partial(run, entry) for entry in rivals}

    def notes(
        self, estimator: CuratorEstimator, graph: Graph, settled: Mapping[str, object], *, controlled: bool
    ) -> tuple[str, ...]:
        name, notes = graph.schema.name, start_notes(settled.get("start"), estimator.kind, graph.schema.name)
        # A named set is public, whatever experiments protect in it.
        open_parts = "" if is_name(name) else estimator.privacy.unprotected_parts(graph.schema)
        warning = f"{name} declares {open_parts} private: NOT protected here, the model may show them"
        return (warning, *notes) if open_parts else notes

    def train(self, estimator: CuratorEstimator, collected: Any, *, exclude_validation: bool = False) -> Tensor:
        estimator.train(collected)
        return torch.as_tensor(collected.people.labels)


CURATOR = CuratorFamily()


def _scores_without_edges(method: StagedEstimator, graph: Graph, split: Split) -> Tensor:
    """Return the scores of encoder, classifier on hop 0, or the encoder in the pool, whichever validates best."""
    settings, people = method.settings, read_people(graph, split)
    train, val = people.labels[people.train], people.labels[people.val]
    # The method's own, if it trained one on the same public rows with the same seed: the weights would be the same.
    encoder = _encoder_of(method, people)
    if encoder is None:
        encoder = build_seeded(lambda: encoder_for(settings, people.schema, batch_norm=True), settings.seed)
        rows, judges = (
            Rows(blocks([people.features], part), people.labels[part]) for part in (people.train, people.val)
        )
        train_openly(encoder, rows, judges, settings)
    classifier: models.HopClassifier = build_seeded(
        lambda: models.HopClassifier([settings.hidden], settings.hidden, people.classes, batch_norm=True), settings.seed
    )
    with torch.no_grad():
        embedding = encoder.embed(blocks([people.features]))
        encoder_scores: Tensor = encoder(blocks([people.features]))
    train_openly(classifier, Rows(embedding[people.train], train), Rows(embedding[people.val], val), settings)
    with torch.no_grad():
        classifier_scores: Tensor = classifier(embedding)
    scores = [encoder_scores, classifier_scores]
    if may_pool(settings):
        scores.append(logits_of(trained_encoder(people, settings), [people.features]))
    # By validation labels, which are public where edges are protected: the control gets its best part for free.
    return max(scores, key=lambda each: int((each[people.val].argmax(dim=1) == val).sum()))


def _encoder_of(method: StagedEstimator, people: NodeData) -> models.Encoder | None:
    """Return the encoder that `method` trained on these very people, from public facts alone: GAP has one."""
    published = method.published
    if published is None or not isinstance(published.networks[0], models.Encoder):
        return None
    same = published.people.key == people.key and torch.equal(published.people.labels, people.labels)
    return published.networks[0] if same and torch.equal(published.people.train, people.train) else None
