"""LPGNN: train on privately collected features and labels over a public topology.

    devices   x*_v = multi-bit(x_v; eps_x)            y'_v = randomized response(y_v; eps_y)        `randomize`
    server    X' = P^Kx rectify(x*)                   y~ = argmax P^Ky Y'                            `fit_reports`
              minimise  -log p(y~ | x),  p(y~|x) = softmax(P^Ky p(y|x) T)                            (Drop)
              keep the epoch that validates best on noisy labels

Source: Sajadmanesh and Gatica-Perez, "Locally Private Graph Neural Networks", CCS 2021 (arXiv 2006.05535), Algorithms 1
and 2.  Features are never rectified or propagated at their full width (see `aggregation.inputs`).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.graphs import GraphSchema, Split, random_split
from graphveil.methods.features import features_of, labels_of
from graphveil.methods.local_privacy import LocalPrivacy
from graphveil.methods.network import (
    Network,
    NetworkSettings,
    Progress,
    apply_network,
    require_shapes,
    train_network,
)
from graphveil.methods.network_storage import network_facts, network_tensors, restored_network
from graphveil.methods.released import (
    Released,
    Topology,
    collect,
    require_matching,
    require_same_features,
    topology_of,
)
from graphveil.methods.scores import true_score
from graphveil.methods.storage import number, read_method, restoring, save_method, schema_facts, schema_from
from graphveil.privacy import Guarantee, Ledger, Randomness
from graphveil.training import Epoch


@dataclass(frozen=True)
class Fitted:
    """What a fitted LPGNN keeps: the public facts of its collection and the trained network.

    `published` is the guarantee of the release that it was trained on, if it was; `several` says that a node has
    several labels, each found or not by itself.
    """

    schema: GraphSchema
    void: str | None
    fingerprint: str
    network: Network
    published: Guarantee | None = None
    several: bool = False

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the probabilities [n, c] of the classes, or of each label by itself where a node has several."""
        return torch.sigmoid(logits) if self.several else torch.softmax(logits, dim=1)


class LPGNN:
    """The estimator; `fit` is `randomize` (the devices) followed by `fit_reports` (the server).

    Args:
        epsilon_x: budget of one feature report; inf for public features, None collects none (random numbers stand in).
        epsilon_y: budget of one label report; inf for public labels.
        mechanism: one of `FEATURE_MECHANISMS`; delta belongs to "gaussian" alone.
        settings: any field of `NetworkSettings`; `steps_x` and `steps_y` default to 8 and 4, and to 0 for a part that
            is public and needs no denoising.

    After fitting: `guarantee`, `ledger`, `history`, `released`, `topology`.

    Raises:
        InputError: for budgets and settings outside their range, or unknown settings.
    """

    kind = "lpgnn"

    def __init__(
        self,
        *,
        epsilon_x: float | None,
        epsilon_y: float,
        mechanism: str = "multi-bit",
        delta: float = 1e-10,
        **settings: Any,
    ) -> None:
        known = [field.name for field in fields(NetworkSettings)]
        for name in settings:
            if name not in known:
                raise InputError(f"setting {name!r} is not known", where="LPGNN", allowed=", ".join(known))
        self.privacy = LocalPrivacy(epsilon_x, epsilon_y, mechanism, delta)
        hops = {"steps_x": 0 if epsilon_x == math.inf else 8, "steps_y": 0 if epsilon_y == math.inf else 4}
        chosen = {name: value for name, value in settings.items() if value is not None or name not in hops}
        self.settings = NetworkSettings(**{**hops, **chosen})
        self.ledger: Ledger = self.privacy.open_ledger()
        self._fitted: Fitted | None = None
        self._answers: dict[str, Tensor] = {}
        self.released: Released | None = None
        self.topology: Topology | None = None

    # ---- the devices ----

    def randomize(self, graph: Any, *, split: Split, randomness: Randomness) -> Released:
        """Return every person's report; the only place that reads raw features and labels.

        Raises:
            BudgetError: when this collection has already been made (one report per person), before data is read.
            DataError, InputError: for values outside the declared range or classes.
        """
        released, self.ledger = collect(self.ledger, graph, split, self.privacy, randomness=randomness, several=True)
        return released

    # ---- the server ----

    def fit_reports(self, released: Released, topology: Topology, *, progress: Progress | None = None) -> LPGNN:
        """Train on reports alone; may be called again and again on the same reports at no privacy cost.

        Raises:
            InputError: when reports, topology and budgets do not belong together.
        """
        require_matching(released, topology, self.privacy)
        if not self.ledger.spends:
            self.ledger = self.ledger.spend(*self.privacy.spends(released.schema))
        features, offset = features_of(released, self.settings.seed)
        network = train_network(features, offset, labels_of(released), topology, self.settings, progress=progress)
        origin = released.origin
        published = None if origin is None else origin.guarantee
        several = released.labels.dim() == 2
        self._fitted = Fitted(released.schema, released.void, topology.fingerprint, network, published, several)
        if origin is not None:
            self.ledger = origin.ledger
        self.released, self.topology = released, topology
        return self

    def fit(
        self,
        graph: Any,
        *,
        randomness: Randomness,
        split: Split | None = None,
        progress: Progress | None = None,
    ) -> LPGNN:
        """Simulate the collection on `graph` and train on its reports.

        Args:
            graph: a graph value with the truth at hand.
            randomness: the source of the devices' noise.
            split: who sends a label; default: a random half trains, a quarter validates (from `seed`).
        """
        split = split or random_split(graph, self.settings.seed)
        released = self.randomize(graph, split=split, randomness=randomness)
        return self.fit_reports(released, topology_of(graph), progress=progress)

    # ---- what comes out ----

    def predict_proba(self, graph: Any = None, *, randomness: Randomness | None = None) -> Tensor:
        """Return class probabilities [n, c].

        For the training topology (or no graph) they were computed while fitting and nothing private is read.  For
        another graph each of its people sends one feature report at epsilon_x, which needs `randomness` and a row of
        the ledger; asked again for the same graph, the first answer is given again, also after save and load.

        Raises:
            InputError: for a graph with other features, or a new graph without `randomness`.
        """
        fitted = self._require_fitted()
        if graph is None:
            return fitted.probabilities(fitted.network.logits)
        topology = topology_of(graph)
        if topology.fingerprint == fitted.fingerprint:
            return fitted.probabilities(fitted.network.logits)
        self._require_same_features(graph.schema)
        if topology.fingerprint in self._answers:
            return self._answers[topology.fingerprint]
        mechanism = self.privacy.features(fitted.schema)
        features, offset = (graph.x, 0.0) if mechanism == "public" else self._collect(graph, topology, randomness)
        classes = len(fitted.schema.classes)
        logits = apply_network(fitted.network, features, offset, topology, self.settings, classes=classes)
        found = fitted.probabilities(logits)
        if mechanism != "public":
            self._answers[topology.fingerprint] = found
        return found

    def predict(self, graph: Any = None, *, randomness: Randomness | None = None) -> Tensor:
        """Return the most likely class of every node [n]; 0/1 [n, c] where a node has several labels."""
        found = self.predict_proba(graph, randomness=randomness)
        return (found > 0.5).long() if self._require_fitted().several else found.argmax(dim=1)

    def score(self, graph: Any, mask: Tensor | None = None, *, randomness: Randomness | None = None) -> float:
        """Return the accuracy against the true labels of `graph` on `mask` (default: all nodes with a label).

        Where a node has several labels: the micro-averaged F1.
        """
        return true_score(self.predict(graph, randomness=randomness), graph, mask)

    @property
    def schema(self) -> GraphSchema:
        """The public facts of the collection that was fitted."""
        return self._require_fitted().schema

    @property
    def guarantee(self) -> Guarantee:
        """What the collection that was fitted protects; of a published graph, what its release protects."""
        fitted = self._require_fitted()
        return fitted.published or self.privacy.guarantee(fitted.schema, fitted.void)

    @property
    def history(self) -> tuple[Epoch, ...]:
        """Every epoch's figures; all of them computed from released labels."""
        return self._require_fitted().network.history

    # ---- files ----

    def save(self, path: str | Path) -> Path:
        """Write weights, predictions, settings, guarantee and ledger to one safetensors file; no reports, no edges."""
        return save_method(path, self.kind, self.facts(), self.tensors())

    def facts(self) -> dict[str, Any]:
        """Return everything a saved file holds beside tensors, as JSON values."""
        fitted = self._require_fitted()
        return {
            "privacy": {
                "epsilon_x": number(self.privacy.epsilon_x),
                "epsilon_y": number(self.privacy.epsilon_y),
                "mechanism": self.privacy.mechanism,
                "delta": self.privacy.delta,
            },
            "settings": asdict(self.settings),
            "schema": schema_facts(fitted.schema),
            "void": fitted.void,
            "fingerprint": fitted.fingerprint,
            "several": fitted.several,
            "published": None if fitted.published is None else fitted.published.to_dict(),
            **network_facts(fitted.network),
            "ledger": self.ledger.to_dict(),
            "guarantee": self.guarantee.to_dict(),
        }

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of a saved file by name."""
        found = network_tensors(self._require_fitted().network)
        return found | {f"answers.{fingerprint}": answer for fingerprint, answer in self._answers.items()}

    @classmethod
    def load(cls, path: str | Path) -> LPGNN:
        """Return a saved method, able to predict; its collection cannot be repeated.

        Raises:
            ModelFileError: for a file that is missing, damaged or not an LPGNN.
        """
        _, facts, tensors = read_method(path, cls.kind)
        with restoring(path):
            return cls.restore(facts, tensors)

    @classmethod
    def restore(cls, facts: dict[str, Any], tensors: dict[str, Tensor]) -> LPGNN:
        """Return what `facts` and `tensors` gave; raises KeyError, TypeError or ValueError for anything else."""
        privacy = dict(facts["privacy"])
        for name in ("epsilon_x", "epsilon_y"):
            privacy[name] = None if privacy[name] is None else float(privacy[name])
        settings = {**facts["settings"], "device": "cpu"}
        method = cls(**privacy, **settings)
        network = restored_network(facts, tensors)
        schema = schema_from(facts["schema"])
        require_shapes(network, method.settings, dimension=schema.dimension, classes=len(schema.classes))
        published = facts.get("published")
        guarantee = None if published is None else Guarantee.from_dict(published)
        several = bool(facts.get("several"))
        method._fitted = Fitted(schema, facts["void"], facts["fingerprint"], network, guarantee, several)
        method.ledger = Ledger.from_dict(facts["ledger"])
        method._answers = {
            name.removeprefix("answers."): t for name, t in tensors.items() if name.startswith("answers.")
        }
        return method

    # ---- helpers ----

    def _require_fitted(self) -> Fitted:
        if self._fitted is None:
            raise InputError("this LPGNN has not been fitted", remedy="call fit or fit_reports first")
        return self._fitted

    def _require_same_features(self, found: GraphSchema) -> None:
        """Refuse a new graph whose features are not those of training, or a model without any."""
        require_same_features(found, self._require_fitted().schema)
        if not self.privacy.collects_features:
            raise InputError(
                "this model was trained without features, so it cannot predict on a new graph", where=found.name
            )

    def _collect(self, graph: Any, topology: Topology, randomness: Randomness | None) -> tuple[Any, float]:
        """Collect the feature reports of a new graph's people: the one place where prediction reads private data."""
        fitted = self._require_fitted()
        if randomness is None:
            raise InputError(
                "the people of a new graph send private features, which needs a source of noise",
                where="predict",
                remedy="pass randomness=SecureRandomness()",
            )
        unit = f"features of {graph.schema.name} ({topology.fingerprint[:8]})"
        (spend,) = (s for s in self.privacy.spends(fitted.schema) if s.unit == "features")
        paid = self.ledger.declare(unit, spend.epsilon, spend.delta).spend(replace(spend, unit=unit))
        mechanism = self.privacy.features(fitted.schema)
        reports = mechanism.randomize(graph.x, randomness=randomness)
        self.ledger = paid
        self._fitted = replace(fitted, void=fitted.void or randomness.void)
        return mechanism.centred(reports), mechanism.midpoint
