"""DP-MLP: a perceptron on features and labels by private gradient descent; no edge is read.

What a curator can promise a whole node without looking at the graph, and what any method that sums over neighbours must
beat. Source of the descent: see `training.dp_sgd`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, Split, random_split
from graphveil.methods.base.account import Booked
from graphveil.methods.base.released import require_same_features
from graphveil.methods.base.scores import true_score
from graphveil.methods.base.storage import number, read_method, restoring, save_method, schema_facts, schema_from
from graphveil.methods.curator.privacy import CuratorPrivacy, Noise, budget_from
from graphveil.methods.curator.settings import CuratorSettings
from graphveil.methods.curator.training import (
    FittedCurator,
    blocks,
    build_seeded,
    dense_blocks,
    parameters_of,
    prefixed,
    read_features,
    read_people,
    restored,
    train_openly,
    train_with_noise,
    without_prefix,
)
from graphveil.methods.links.collection import people_key
from graphveil.models.perceptrons import Encoder
from graphveil.privacy import Guarantee, Ledger, Randomness, RepeatAndSelect
from graphveil.progress import ProgressCallback
from graphveil.training import Epoch
from graphveil.training.full_batch import Rows

_NAME = "perceptron"


class DPMLP(Booked):
    """The estimator; the unit is one node's features and label.

    Args:
        epsilon, delta: what training costs one node; inf trains without noise.
        tuning: see `CuratorPrivacy`.
        settings: any field of `CuratorSettings` but those about hops, which it ignores.

    After fitting: `guarantee`, `ledger`, `history` (empty where training was private).

    Raises:
        InputError: for budgets and settings outside their range, or unknown settings.
    """

    kind = "dp-mlp"
    reads_edges = False

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 1e-5,
        unit: str = "node",
        tuning: RepeatAndSelect | None = None,
        **settings: Any,
    ) -> None:
        known = [field.name for field in fields(CuratorSettings)]
        for name in settings:
            if name not in known:
                raise InputError(f"setting {name!r} is not known", where=self.kind, allowed=", ".join(known))
        if unit != "node":
            raise InputError(
                f"unit {unit!r} says nothing to {self.kind}, which reads no edges",
                allowed="node",
                remedy="train mlp: features and labels are open where edges are the unit",
            )
        self.privacy = CuratorPrivacy(epsilon, delta, "node", tuning=tuning)
        self.settings = CuratorSettings(**settings)
        self.ledger: Ledger = self.privacy.open_ledger()
        self._fitted: FittedCurator | None = None

    def planned_noise(self, schema: GraphSchema, people: int) -> Noise:
        """Return the noise of a training with so many training nodes, from public facts alone."""
        return self._noise(schema, self._network(schema), people)

    def fit(
        self,
        graph: Graph,
        *,
        randomness: Randomness,
        split: Split | None = None,
        progress: ProgressCallback | None = None,
    ) -> DPMLP:
        """Train on the features and labels of `graph`.

        Args:
            randomness: the source of the noise.
            split: who trains, validates and tests; default: a random half trains, a quarter validates.

        Raises:
            BudgetError: when the ledger cannot pay, before anything is read.
            InputError: for data outside the declared range or classes.
        """
        split, schema = split or random_split(graph, self.settings.seed), graph.schema
        network = self._network(schema)
        noise = self._noise(schema, network, int(split.train.sum()))
        self.pay(*self.privacy.spend("training", schema, noise))
        people = read_people(graph, split)
        train = people.labels[people.train]
        history: tuple[Epoch, ...] = ()
        if self.privacy.public:
            val = Rows(blocks([people.features], people.val), people.labels[people.val])
            rows = Rows(blocks([people.features], people.train), train)
            history = train_openly(network, rows, val, self.settings, progress)
        else:
            rows = Rows(dense_blocks([people.features], people.train), train)
            train_with_noise(
                network, rows, self.settings, noise.multipliers[_NAME], randomness=randomness, progress=progress
            )
        void = None if self.privacy.public else randomness.void
        logits = _scores(network, people.features)
        self._fitted = FittedCurator(schema, people.key, (network,), noise, logits, history, void)
        return self

    def predict_proba(self, graph: Graph | None = None, *, randomness: Randomness | None = None) -> Tensor:
        """Return class probabilities [n, c], each row from that node's features: for that node alone.

        Another graph's nodes cost nothing: the weights are released, and no edge is read.

        Raises:
            InputError: for a graph with other features, or a loaded model asked without a graph.
        """
        fitted = self._require_fitted()
        if graph is not None and (fitted.logits is None or people_key(graph) != fitted.people):
            require_same_features(graph.schema, fitted.schema)
            return torch.softmax(_scores(fitted.networks[0], read_features(graph)), dim=1)
        if fitted.logits is None:
            raise InputError(
                "predictions of the training nodes are not in the saved model: each is for its node alone",
                where="unit node",
                remedy="predict on a graph",
            )
        return torch.softmax(fitted.logits, dim=1)

    def predict(self, graph: Graph | None = None, *, randomness: Randomness | None = None) -> Tensor:
        """Return the most likely class of every node [n]."""
        return self.predict_proba(graph, randomness=randomness).argmax(dim=1)

    def score(self, graph: Graph, mask: Tensor | None = None, *, randomness: Randomness | None = None) -> float:
        """Return the accuracy against the true labels of `graph` on `mask` (default: all nodes with a label)."""
        return true_score(self.predict(graph, randomness=randomness), graph, mask)

    @property
    def schema(self) -> GraphSchema:
        """The public facts of the graph that was fitted."""
        return self._require_fitted().schema

    @property
    def guarantee(self) -> Guarantee:
        """What the training protects."""
        fitted = self._require_fitted()
        return self.privacy.guarantee(fitted.schema, self.ledger, void=fitted.void, edges=False)

    @property
    def history(self) -> tuple[Epoch, ...]:
        """Every epoch's figures; none where training is private: they would have to be paid for."""
        return self._require_fitted().history

    def save(self, path: str | Path) -> Path:
        """Write weights, settings, guarantee and ledger to one safetensors file; no features, no predictions."""
        fitted = self._require_fitted()
        facts = {
            "privacy": {
                "epsilon": number(self.privacy.epsilon),
                "delta": self.privacy.delta,
                "tuning": None if self.privacy.tuning is None else asdict(self.privacy.tuning),
            },
            "settings": asdict(self.settings),
            "schema": schema_facts(fitted.schema),
            "people": fitted.people,
            "noise": {**asdict(fitted.noise), "epsilon": number(fitted.noise.epsilon)},
            "history": [asdict(epoch) for epoch in fitted.history],
            "void": fitted.void,
            "ledger": self.ledger.to_dict(),
            "guarantee": self.guarantee.to_dict(),
        }
        return save_method(path, self.kind, facts, prefixed("network", fitted.networks[0].state_dict()))

    @classmethod
    def load(cls, path: str | Path) -> DPMLP:
        """Return a saved method, able to predict on a graph.

        Raises:
            ModelFileError: for a file that is missing, damaged or of another method.
        """
        _, facts, tensors = read_method(path, cls.kind)
        with restoring(path):
            method = cls(**budget_from(facts["privacy"]), **facts["settings"])
            method._restore(facts, tensors)
        return method

    def _restore(self, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        schema = schema_from(facts["schema"])
        with torch.device("meta"):
            network = Encoder(
                schema.dimension, self.settings.hidden, len(schema.classes), batch_norm=self.privacy.public
            )
        restored(network, without_prefix("network", tensors))
        said = facts["noise"]
        noise = Noise((), said["multipliers"], float(said["epsilon"]), said["delta"])
        history = tuple(Epoch(**row) for row in facts["history"])
        self._fitted = FittedCurator(schema, facts["people"], (network,), noise, None, history, facts["void"])
        self.ledger = Ledger.from_dict(facts["ledger"])

    def _network(self, schema: GraphSchema) -> Encoder:
        settings, open_training = self.settings, self.privacy.public
        found: Encoder = build_seeded(
            lambda: Encoder(schema.dimension, settings.hidden, len(schema.classes), batch_norm=open_training),
            settings.seed,
        )
        return found

    def _noise(self, schema: GraphSchema, network: Encoder, people: int) -> Noise:
        trained = {_NAME: (self.settings.descent(_NAME, people), parameters_of(network))}
        return self.privacy.noise(schema, hops=0, trained=trained)

    def _require_fitted(self) -> FittedCurator:
        if self._fitted is None:
            raise InputError(f"this {self.kind} has not been fitted", remedy="call fit first")
        return self._fitted


def _scores(network: nn.Module, features: Any) -> Tensor:
    network.eval()
    with torch.no_grad():
        found: Tensor = network(blocks([features]))
    return found
