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
from torch import Tensor, nn

from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, Split, node_names
from graphveil.mechanisms import Public
from graphveil.methods.base.account import Account, restored_account
from graphveil.methods.base.asking import (
    handed_in,
    pay_for,
    randomize_features,
    read_people,
    reports_from,
    require_queries,
    require_reports_for,
    require_source,
    save_people,
    side_by_side,
)
from graphveil.methods.base.core import Stored, fitted_or_refuse
from graphveil.methods.base.estimator import Factory
from graphveil.methods.base.features import features_of, labels_of
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.methods.base.network import Network, apply_network, require_shapes, train_network
from graphveil.methods.base.network_storage import backbone_facts, network_facts, network_tensors, restored_network
from graphveil.methods.base.people import Identity, Kept, leans_on
from graphveil.methods.base.released import (
    LocalCollection,
    LocalReports,
    Topology,
    randomize_people,
    require_matching,
    require_same_features,
    require_servable,
    topology_of,
)
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.base.storage import number, restoring, schema_facts, schema_from
from graphveil.models.own import require_scores
from graphveil.privacy import Assumption, Guarantee, Randomness
from graphveil.privacy.old_texts import assumption_of
from graphveil.progress import ProgressCallback
from graphveil.training import Epoch


@dataclass(frozen=True)
class Fitted:
    """What a fitted LPGNN keeps: the public facts of its collection and the trained network.

    `published` is the guarantee of the release that it was trained on, if it was; `several` says that a node has
    several labels, each found or not by itself; `notes` are the facts that predictions for other people lean on.
    """

    schema: GraphSchema
    void: str | None
    fingerprint: str
    network: Network
    published: Guarantee | None = None
    several: bool = False
    notes: tuple[Assumption, ...] = ()

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the probabilities [n, c] of the classes, or of each label by itself where a node has several."""
        return torch.sigmoid(logits) if self.several else torch.softmax(logits, dim=1)


class LPGNNCore:
    """Locally private graph neural network: `fit` is `randomize` (the devices), then `fit_reports` (the server).

    Args:
        epsilon_x: budget of one feature report; inf for public features, None collects none (random numbers stand in).
        epsilon_y: budget of one label report; inf for public labels.
        mechanism: one of `FEATURE_MECHANISMS`; delta belongs to "gaussian" alone.
        queries: how many times a prediction may ask for everybody's features again, at epsilon_x each.
        backbone: a module of your own in place of `model`: propagated features [n, d] -> scores [n, c], any layers,
            since all that it reads is released; its `forward` may name `edge_index` [2, E] as well. It is copied, never
            trained itself, and is given again to load a saved model.
        settings: any field of `NetworkSettings`; `steps_x` and `steps_y` default to 8 and 4, and to 0 for a part that
            is public and needs no denoising.

    After fitting: `guarantee`, `ledger`, `history`, `released`, `topology`.

    Raises:
        InputError: for budgets and settings outside their range, or unknown settings.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import LPGNN
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = LPGNN(epsilon_x=1.0, epsilon_y=2.0, epochs=2).fit(graph)
        >>> model.guarantee.epsilon, [spend.name for spend in model.ledger.spends]
        (3.0, ['feature report', 'label report'])
        >>> tuple(model.predict_proba().shape)
        (200, 3)
    """

    kind = "lpgnn"
    trains_network = True
    says_who = ("people", "reports")
    settings_type, derived = NetworkSettings, ("steps_x", "steps_y")
    epsilon_relationship: float | None = None

    def __init__(
        self,
        *,
        epsilon_x: float | None,
        epsilon_y: float,
        mechanism: str = "multi-bit",
        delta: float = 1e-10,
        queries: int = 0,
        backbone: nn.Module | None = None,
        **settings: Any,
    ) -> None:
        known = [field.name for field in fields(NetworkSettings)]
        for name in settings:
            if name not in known:
                raise InputError(f"setting {name!r} is not known", where="LPGNN", allowed=", ".join(known))
        self.privacy = LocalPrivacy(epsilon_x, epsilon_y, mechanism, delta)
        # Public parts need no averaging against noise, and lose by it.
        hops = {"steps_x": 0 if epsilon_x == math.inf else 8, "steps_y": 0 if epsilon_y == math.inf else 4}
        chosen = {name: value for name, value in settings.items() if value is not None or name not in hops}
        self.settings = NetworkSettings(**{**hops, **chosen})
        self.queries, self.backbone = require_queries(queries), backbone
        # As given and not as used: a clone with other budgets must choose its hops anew.
        self._given = {name: settings.get(name) for name in hops}
        self.account = Account(self.privacy.open_ledger(queries))
        self._fitted: Fitted | None = None
        self.kept = Kept()
        self.released: LocalReports | None = None
        self.topology: Topology | None = None

    # ---- the devices ----

    def randomize(self, graph: Graph, *, split: Split, randomness: Randomness) -> LocalReports:
        """Return every person's report; the only place that reads raw features and labels.

        Raises:
            BudgetError: when this collection has already been made (one report per person), before data is read.
            DataError, InputError: for values outside the declared range or classes; what was paid stays paid.
        """
        spends = self.privacy.spends(graph.schema)
        # Asked before the graph is looked at, paid after: a graph that the method cannot serve costs nothing.
        self.account.afford(*spends)
        schema = require_servable(graph, several=math.isinf(self.privacy.epsilon_y))
        if self.backbone is not None:
            require_scores(self.backbone, schema.dimension, len(schema.classes), edges=True)
        self.account.pay(*spends)
        released = randomize_people(graph, split, self.privacy, randomness=randomness)
        self.account.made(released.digest)
        return released

    # ---- the server ----

    def fit_reports(
        self, released: LocalReports, topology: Topology, *, progress: ProgressCallback | None = None
    ) -> LPGNNCore:
        """Train on reports alone; may be called again and again on the same reports at no privacy cost.

        Raises:
            InputError: when reports, topology and budgets do not belong together.
            BudgetError: other reports than those that were paid for, and no budget for two collections.
        """
        require_matching(released, topology, self.privacy)
        origin = released.origin
        if origin is None:
            self.account.recognise(released.digest, self.privacy.spends(released.schema))
        else:
            self.account.adopt(released.published_as(topology), origin.ledger)
        features, offset = features_of(released, self.settings.seed)
        network = train_network(
            features, offset, labels_of(released), topology, self.settings, backbone=self.backbone, progress=progress
        )
        published = None if origin is None else origin.guarantee
        several, notes = released.labels.dim() == 2, () if self._fitted is None else self._fitted.notes
        self._fitted = Fitted(released.schema, released.void, topology.fingerprint, network, published, several, notes)
        self.kept = Kept.of_run(released.ids, topology.num_nodes, _sent(released.features), self.account.ledger).after(
            self.kept
        )
        self.released, self.topology = released, topology
        return self

    # ---- both ----

    def collect(
        self, graph: Graph, *, split: Split, randomness: Randomness, progress: ProgressCallback | None = None
    ) -> LocalCollection:
        """Simulate the collection on `graph`: everybody's report, and the public topology."""
        return LocalCollection(self.randomize(graph, split=split, randomness=randomness), topology_of(graph))

    def train(
        self,
        collected: LocalCollection,
        *,
        randomness: Randomness | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        """Train on a collection: `fit_reports`."""
        self.fit_reports(collected.reports, collected.topology, progress=progress)

    # ---- what comes out ----

    def probabilities(
        self,
        graph: Graph | None = None,
        *,
        randomness: Randomness | None = None,
        people: Identity | None = None,
        reports: LocalReports | None = None,
    ) -> Tensor:
        """Return class probabilities [n, c].

        For the training topology (or no graph) they were computed while fitting and nothing private is read.  On
        another graph those who are known by their ids are predicted from the report they sent, which is kept; new ids
        send one report at epsilon_x, in a row of the ledger of their own.  Where no ids tell, everybody is taken to be
        asked again, which is charged to those who have reported; see `methods.base.people`.

        Args:
            randomness: the source of noise of those who have to be asked.
            people: what the caller says of people without ids: "same" (row i is the person that row i of the run was)
                or "other" (nobody of them has reported; declared, and stated in the guarantee).
            reports: reports of the graph's people, old or permanent ones, in row order; nobody is asked then.

        Raises:
            BudgetError: the same people would be asked again, and no room was declared; before data is read.
            InputError: for a graph with other features, or people who have to be asked without `randomness`.
        """
        fitted = self.result
        if graph is None:
            return fitted.probabilities(fitted.network.logits)
        topology = topology_of(graph)
        if reports is None and self._is_own(graph, topology, people):
            return fitted.probabilities(fitted.network.logits)
        self._require_same_features(graph.schema)
        mechanism: Any = self.privacy.features(fitted.schema)
        # Declared public, so reading them on every call costs nobody anything.
        if isinstance(mechanism, Public):
            features, offset = graph.x, 0.0
        else:
            sent = self._handed_in(graph, reports) if reports else self._sent(graph, topology, randomness, people)
            features, offset = mechanism.centred(sent), mechanism.midpoint
        logits = apply_network(fitted.network, features, offset, topology, self.settings, **self._built(fitted.schema))
        return fitted.probabilities(logits)

    @property
    def fitted(self) -> bool:
        """Whether there is a trained network."""
        return self._fitted is not None

    @property
    def several(self) -> bool:
        """Whether a node has several labels."""
        return self.result.several

    @property
    def seed(self) -> int:
        """What fixes the default split and initial weights, never privacy noise."""
        return self.settings.seed

    def parameters(self) -> dict[str, Any]:
        """Return the settings that build the core once more; hops that were left to the budgets are None."""
        privacy = {name: getattr(self.privacy, name) for name in ("epsilon_x", "epsilon_y", "mechanism", "delta")}
        return {**privacy, "queries": self.queries, "backbone": self.backbone, **asdict(self.settings), **self._given}

    @property
    def schema(self) -> GraphSchema:
        """The public facts of the collection that was fitted."""
        return self.result.schema

    @property
    def guarantee(self) -> Guarantee:
        """What all that was collected so far protects; of a published graph, what its release protects."""
        fitted = self.result
        if fitted.published is not None:
            return fitted.published
        found = self.privacy.guarantee(fitted.schema, fitted.void, self.account.ledger)
        return replace(found, assumes=(*found.assumes, *leans_on(self.account.ledger), *fitted.notes))

    @property
    def history(self) -> tuple[Epoch, ...]:
        """Every epoch's figures; all of them computed from released labels."""
        return self.result.network.history

    # ---- files ----

    def stored(self) -> Stored:
        """Return weights, predictions, settings, guarantee and ledger; no reports, no edges."""
        return Stored(self.facts(), self.tensors())

    def keep(self, model: Path) -> None:
        """Write people's reports, by which they are known again, beside a saved model, for its owner alone."""
        save_people(model, self.kind, self.kept, of=self.result.fingerprint)

    def recall(self, model: Path) -> None:
        """Read people's reports from the file beside a saved model."""
        with restoring(model):
            self.kept = read_people(model, self.kind, of=self.result.fingerprint)

    def facts(self) -> dict[str, Any]:
        """Return everything a saved file holds beside tensors, as JSON values."""
        fitted = self.result
        return {
            "privacy": {
                "epsilon_x": number(self.privacy.epsilon_x),
                "epsilon_y": number(self.privacy.epsilon_y),
                "mechanism": self.privacy.mechanism,
                "delta": self.privacy.delta,
                "queries": self.queries,
            },
            "settings": asdict(self.settings),
            "schema": schema_facts(fitted.schema),
            "void": fitted.void,
            "fingerprint": fitted.fingerprint,
            "several": fitted.several,
            "notes": [fact.sentence for fact in fitted.notes],
            "collections": sorted(self.account.collections),
            "published": None if fitted.published is None else fitted.published.to_dict(),
            **network_facts(fitted.network),
            **backbone_facts(self.backbone),
            "ledger": self.account.ledger.to_dict(),
            "guarantee": self.guarantee.to_dict(),
        }

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of a saved file by name."""
        return network_tensors(self.result.network)

    @classmethod
    def restore(cls, stored: Stored, *, backbone: nn.Module | None = None) -> LPGNNCore:
        """Return what `stored` gave, able to predict; its collection cannot be repeated.

        Args:
            stored: the facts and tensors of a file.
            backbone: the module that was trained, where it was a user's own; its weights come from the file.

        Raises:
            KeyError, TypeError, ValueError: for anything else.
        """
        facts, tensors = stored.facts, stored.tensors
        privacy = dict(facts["privacy"])
        for name in ("epsilon_x", "epsilon_y"):
            privacy[name] = None if privacy[name] is None else float(privacy[name])
        # A saved model must load where there is no GPU.
        settings = {**facts["settings"], "device": "cpu"}
        method = cls(**privacy, backbone=backbone, **settings)
        network = restored_network(facts, tensors)
        schema = schema_from(facts["schema"])
        require_shapes(network, method.settings, dimension=schema.dimension, **method._built(schema))
        published = facts.get("published")
        guarantee = None if published is None else Guarantee.from_dict(published)
        several = bool(facts.get("several"))
        notes = tuple(map(assumption_of, facts.get("notes", ())))
        method._fitted = Fitted(schema, facts["void"], facts["fingerprint"], network, guarantee, several, notes)
        method.account = restored_account(facts)
        return method

    # ---- helpers ----

    @property
    def result(self) -> Fitted:
        """What fitting left; raises InputError before."""
        return fitted_or_refuse(self._fitted, "LPGNN", "fit_reports")

    def _require_same_features(self, found: GraphSchema) -> None:
        """Refuse a new graph whose features are not those of training, or a model without any."""
        require_same_features(found, self.result.schema)
        if not self.privacy.collects_features:
            raise InputError(
                "this model was trained without features, so it cannot predict on a new graph", where=found.name
            )

    def _built(self, schema: GraphSchema) -> dict[str, Any]:
        """Return what the network is built with beside the settings."""
        return {"classes": len(schema.classes), "backbone": self.backbone}

    def _is_own(self, graph: Graph, topology: Topology, people: Identity | None) -> bool:
        """Whether this is the graph of the run, with its own people as far as ids tell."""
        if people == "other" or topology.fingerprint != self.result.fingerprint:
            return False
        # Without ids the same topology is taken for the same people: nothing of theirs is read, the answer is the old
        # one.
        if node_names(graph) is None or not self.kept.named:
            return True
        found = self.kept.find(graph, None, "", self.account.ledger)
        # In the same rows as well: a permutation of the same people has another prediction in each row.
        return found is not None and torch.equal(found.rows, torch.arange(topology.num_nodes))

    def _sent(self, graph: Graph, topology: Topology, randomness: Randomness | None, people: Identity | None) -> Any:
        """Return everybody's feature report: kept, or asked for: the one place where prediction reads private data."""
        fitted, name, nodes = self.result, graph.schema.name, topology.num_nodes
        group = f"{name}, {nodes} nodes, {topology.fingerprint}"
        found = self.kept.find(graph, people, group, self.account.ledger)
        if found is not None and not bool(found.new.any()):
            self._note(found.said if people == "same" else None)
            return reports_from(self.kept.take(found.rows))
        source = require_source(randomness, "private features")
        spends = [spend for spend in self.privacy.spends(fitted.schema) if spend.unit == "features"]
        self.account.ledger, own = pay_for(
            self.account.ledger, found, spends, name=name, group=group, queries=self.queries
        )
        # Noted before anything is read: a seeded source voids the guarantee even if the answer fails.
        self._note(None, source.void)
        asked = torch.ones(nodes, dtype=torch.bool) if found is None else found.new
        sent = randomize_features(graph, self.privacy.features(fitted.schema), asked, randomness=source).to_tensors()
        if found is None:
            self.kept = self.kept.add_group(graph, group, sent)
            return reports_from(sent)
        everybody = side_by_side(found, self.kept.rows, sent)
        self.kept = self.kept.add_new(found, sent, own)
        return reports_from(everybody)

    def _handed_in(self, graph: Graph, reports: LocalReports) -> Any:
        """Return the reports that a prediction was given, which nobody is asked for."""
        name, mechanism = graph.schema.name, self.privacy.features(self.result.schema)
        require_reports_for(reports, mechanism, int(graph.num_nodes), name=name)
        # Reports of our own collection need no assumption; of others nobody here can say how they were made.
        self._note(None if reports.digest in self.account.collections else handed_in(name), reports.void)
        return reports.features

    def _note(self, said: Assumption | None, void: str | None = None) -> None:
        """Keep what the guarantee leans on from now on."""
        fitted = self.result
        notes = fitted.notes if said is None or said in fitted.notes else (*fitted.notes, said)
        self._fitted = replace(fitted, notes=notes, void=fitted.void or void)


def _sent(reports: object) -> dict[str, Tensor]:
    """Return feature reports as tensors; nothing where features are public or not collected."""
    return reports.to_tensors() if hasattr(reports, "to_tensors") else {}


LPGNN = Factory(LPGNNCore)
