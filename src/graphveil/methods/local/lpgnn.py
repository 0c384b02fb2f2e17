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
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, Unpack

from graphveil import models
from graphveil.aggregation.inputs import require_dense, upgnet_features
from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, Split, node_names
from graphveil.mechanisms import Public
from graphveil.methods.base.method import entry_of
from graphveil.methods.base.network.features import (
    STAND_INS,
    centred_features,
    features_of,
    labels_of,
    reported_of,
    stand_in_features,
)
from graphveil.methods.base.network.hops import ChosenHops, choose_hops
from graphveil.methods.base.network.network import (
    FeatureMatrix,
    apply_network,
    as_matrix,
    backbone_facts,
    network_facts,
    network_tensors,
    require_labels_near,
    require_shapes,
    restored_network,
    train_network,
)
from graphveil.methods.base.people.account import Account, restored_account
from graphveil.methods.base.people.asking import (
    everybodys_rows,
    handed_in_assumption,
    load_records,
    note_assumption,
    randomize_features,
    reports_from_tensors,
    require_reports_for,
    save_records,
)
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.people.people import Identity, Records, identity_assumptions, not_other_people
from graphveil.methods.base.people.released import (
    LocalReports,
    Topology,
    require_public_edges,
    require_same_features,
    require_servable,
    topology_of,
)
from graphveil.methods.base.settings import NUMBERS, NetworkOptions, NetworkSettings
from graphveil.methods.base.storage import Stored, number, restoring, schema_facts, schema_from, stored_number
from graphveil.methods.local.entries import LOCAL_METHODS
from graphveil.methods.local.fitted import Fitted
from graphveil.methods.local.pooled import Pooled, can_pool, pool_with_labels
from graphveil.methods.local.reports import ReportsEstimator
from graphveil.methods.local.trimming import TRIMMINGS, trimmed
from graphveil.privacy import Guarantee, Randomness
from graphveil.privacy.statement.texts import assumption_of
from graphveil.runtime.checks import require_choice
from graphveil.runtime.late import Tensor, nn, torch
from graphveil.runtime.progress import ProgressCallback
from graphveil.training import Epoch

DENOISINGS = ("hops", "upgnet")
POOLINGS = ("labels", "none")
#: What a file stores only where it is another value.
_FILE_DEFAULTS = {"denoising": "hops", "stand_in": "normal", "trimming": "none", "pooling": "labels"}


class LPGNN(ReportsEstimator[Fitted]):
    """Locally private graph neural network: `fit` is `randomize` (the devices), then `fit_reports` (the server).

    Args:
        epsilon_x: budget of one feature report; inf for public features, None collects none (`stand_in`).
        denoising: "hops" (above), or "upgnet", see `aggregation.inputs`.
        backbone: a module of your own in place of `model`: propagated features [n, d] -> scores [n, c], any layers,
            since all is released; its `forward` may name `edge_index` [2, E] as well. It is copied, and given again to
            load a saved model.

    After fitting: `guarantee`, `ledger`, `history`, `released`, `topology`.

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

    entry, kind = entry_of("lpgnn", LOCAL_METHODS), "lpgnn"
    trains_network: ClassVar[Literal[True]] = True
    predicts_by_blocks: ClassVar[bool] = True
    reads_private_edges: ClassVar[bool] = False
    says_who = ("people", "reports")
    settings_type, derived = NetworkSettings, ("steps_x", "steps_y")

    def __init__(
        self,
        *,
        epsilon_x: float | None,
        epsilon_y: float,
        mechanism: str = "multi-bit",
        delta: float = 1e-10,
        sampled: int | None = None,
        queries: int = 0,
        denoising: str = "hops",
        stand_in: str = "normal",
        trimming: str = "none",
        pooling: str = "labels",
        backbone: nn.Module | None = None,
        **settings: Unpack[NetworkOptions],
    ) -> None:
        require_choice(DENOISINGS, denoising=denoising)
        require_choice(STAND_INS, stand_in=stand_in)
        if stand_in != "normal" and epsilon_x is not None:
            raise InputError(f"stand_in {stand_in} beside features", remedy="collect none: epsilon_x=none")
        if trimming not in TRIMMINGS or (trimming != "none" and denoising != "hops"):
            raise InputError(f"trimming {trimming!r} with {denoising}", allowed="none, or agreement with hops")
        require_choice(POOLINGS, pooling=pooling)
        self.privacy = LocalPrivacy(epsilon_x, epsilon_y, mechanism, delta, sampled)
        plain = settings.get("loss", "drop") != "drop"
        # Public parts need no averaging against noise, and lose by it.
        options: dict[str, Any] = {**settings}
        hops = {"steps_x": 0 if epsilon_x == math.inf else 8, "steps_y": 0 if epsilon_y == math.inf or plain else 4}
        chosen = {name: value for name, value in options.items() if value is not None or name not in hops}
        self.settings = NetworkSettings(**{**hops, **chosen})
        NUMBERS["queries"].require(queries=queries)
        self.queries, self.denoising, self.backbone = queries, denoising, backbone
        self.stand_in, self.trimming, self.pooling = stand_in, trimming, pooling
        # As given and not as used: a clone with other budgets must choose its hops anew.
        self._given = {name: options.get(name) for name in hops}
        self.account = Account(self.privacy.open_ledger(queries))
        self.records = Records()
        self.released: LocalReports | None = None
        self.topology: Topology | None = None
        self.hops: ChosenHops | None = None
        self.pooled: Pooled | None = None

    @property
    def open_hops(self) -> tuple[str, ...]:
        """Which hops reports choose: those that were left open, of a part that is private."""
        private = {
            "steps_x": self.privacy.epsilon_x not in (None, math.inf),
            "steps_y": math.isfinite(self.privacy.epsilon_y) and self.settings.loss == "drop",
        }
        return tuple(name for name, noisy in private.items() if noisy and self._given[name] is None)

    def require_served(self, graph: Graph) -> None:
        """Refuse several labels a node where labels are private, or a graph that the backbone does not fit."""
        schema = require_servable(graph, several=math.isinf(self.privacy.epsilon_y))
        if self.backbone is not None:
            models.require_scores(self.backbone, schema.dimension, len(schema.classes), edges=True)
        if self._denoises:
            require_dense(int(graph.num_nodes), schema.dimension)

    def require_reached(self, graph: Graph, split: Split) -> None:
        """Refuse hops over which no training node has a label near, before anybody reports."""
        if self._given["steps_y"] is not None:
            require_labels_near(topology_of(graph), split, self.settings.steps_y)

    def fit_reports(
        self,
        released: LocalReports,
        topology: Topology,
        *,
        exclude_validation: bool = False,
        progress: ProgressCallback | None = None,
        engine: Engine = LOCAL,
    ) -> Self:
        """Train on reports alone, see `ReportsEstimator.fit_reports`.

        Args:
            exclude_validation: keep validation reports out of the targets, so that they may choose between trainings.
        """
        published = self.check_and_book(released, topology)
        edges = topology.uncached()
        if self.trimming == "agreement":
            edges = trimmed(edges, released, seed=self.settings.seed, device=self.settings.device, engine=engine)
        labels, reported = labels_of(released), reported_of(released.features)
        network_inputs = partial(self._denoised, *self._inputs(released, edges), released.schema, edges, reported)
        options: dict[str, Any] = {"backbone": self.backbone, "reported": reported, "engine": engine}
        if self.open_hops:
            self.hops = choose_hops(network_inputs, labels, edges, self.settings, self.open_hops, **options)
            self.settings = replace(self.settings, **{name: getattr(self.hops, name) for name in self.open_hops})
        features, offset, settings = network_inputs(self.settings)
        fitting = options | {"exclude_validation": exclude_validation, "progress": progress}
        network = train_network(features, offset, labels, edges, settings, **fitting)
        self.pooled = None
        if self.pooling == "labels" and can_pool(labels, settings) and not exclude_validation:
            self.pooled = pool_with_labels(network, self.hops, features, offset, labels, edges, settings, **options)
            network = replace(network, logits=self.pooled.logits)
        several, notes = released.labels.dim() == 2, () if self._fitted is None else self._fitted.notes
        self._fitted = Fitted(released.schema, released.void, topology.fingerprint, network, published, several, notes)
        # If some sent nothing, rows do not identify people, so no report is remembered.
        sent, ids = (_as_tensors(released.features), released.ids) if reported is None else ({}, None)
        self.records = Records.of_run(ids, topology.num_nodes if sent else 0, sent, self.account.ledger).with_earlier(
            self.records
        )
        self.released, self.topology = released, topology
        return self

    def probabilities(
        self,
        graph: Graph | None = None,
        *,
        randomness: Randomness | None = None,
        people: Identity | None = None,
        reports: LocalReports | None = None,
        engine: Engine = LOCAL,
    ) -> Tensor:
        """Return class probabilities [n, c]. For the training topology (or no graph) they were computed while fitting
        and nothing private is read.  On another graph the network speaks alone: those known by their ids are predicted
        from the report they sent; new ids send one at epsilon_x, in a row of the ledger of their own.  Where no ids
        tell, everybody is taken to be asked again, which is charged to those who have reported; see
        `methods.base.people.people`.

        Args:
            people: what the caller says of people without ids: "same" (row i is the person that row i of the run was)
                or "other" (nobody of them has reported; declared, and stated in the guarantee).
            reports: reports of the graph's people, old or permanent ones, in row order; nobody is asked then.
        """
        fitted = self.result
        if graph is None:
            return fitted.probabilities(fitted.network.logits)
        topology = topology_of(graph)
        own = reports is None and self._is_own(graph, topology)
        if own and people != "other":
            return fitted.probabilities(fitted.network.logits)
        self._require_readable(graph.schema)
        mechanism: Any = self.privacy.features(fitted.schema)
        reported = None
        # Declared public, so reading them on every call costs nobody anything.
        if isinstance(mechanism, Public):
            features, offset = graph.x, 0.0
        elif own:
            raise not_other_people(graph)
        else:
            collect = partial(self._feature_reports, graph, topology, randomness, people, engine)
            sent = self._handed_in(graph, reports) if reports is not None else collect()
            features, offset, reported = centred_features(mechanism, sent), mechanism.midpoint, reported_of(sent)
        smooth, offset, settings = self._denoised(features, offset, fitted.schema, topology, reported, self.settings)
        options = {**self._network_arguments(fitted.schema), "reported": reported, "engine": engine}
        logits = apply_network(fitted.network, smooth, offset, topology, settings, **options)
        return fitted.probabilities(logits)

    @property
    def answers_features(self) -> bool:
        """Whether the fitted network is applied, for nothing, to any features that somebody hands in."""
        return self.privacy.epsilon_x == math.inf

    @property
    def several(self) -> bool:
        return self.result.several

    def parameters(self) -> dict[str, Any]:
        names = ("epsilon_x", "epsilon_y", "mechanism", "delta", "sampled")
        privacy = {name: getattr(self.privacy, name) for name in names}
        choices = {name: getattr(self, name) for name in ("queries", "backbone", *_FILE_DEFAULTS)}
        return {**privacy, **choices, **asdict(self.settings), **self._given}

    @property
    def mechanism_guarantee(self) -> Guarantee:
        fitted = self.result
        if fitted.published is not None:
            return fitted.published
        guarantee = self.privacy.guarantee(fitted.schema, fitted.void, self.account.ledger)
        return replace(
            guarantee, assumes=(*guarantee.assumes, *identity_assumptions(self.account.ledger), *fitted.notes)
        )

    @property
    def history(self) -> tuple[Epoch, ...]:
        return self.result.network.history

    def stored(self) -> Stored:
        """Return weights, predictions, settings, guarantee and ledger; no reports, no edges."""
        return Stored(self.facts(), self.tensors())

    def keep(self, model: Path) -> None:
        """Write people's reports, by which they are known again, beside a saved model, for its owner alone."""
        save_records(model, self.kind, self.records, collection=self.result.fingerprint)

    def recall(self, model: Path) -> None:
        with restoring(model):
            self.records = load_records(model, self.kind, collection=self.result.fingerprint)

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
                **({} if self.privacy.sampled is None else {"sampled": self.privacy.sampled}),
            },
            "settings": asdict(self.settings),
            **{name: value for name, usual in _FILE_DEFAULTS.items() if (value := getattr(self, name)) != usual},
            "schema": schema_facts(fitted.schema),
            "void": fitted.void,
            "fingerprint": fitted.fingerprint,
            "several": fitted.several,
            "notes": [fact.sentence for fact in fitted.notes],
            "published": None if fitted.published is None else fitted.published.to_dict(),
            **network_facts(fitted.network),
            **backbone_facts(self.backbone),
            **self.account.facts(),
            "guarantee": self.guarantee.to_dict(),
        }

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of a saved file by name."""
        return network_tensors(self.result.network)

    @classmethod
    def restore(cls, stored: Stored, *, backbone: nn.Module | None = None) -> Self:
        """Return what `stored` gave, able to predict; its collection cannot be repeated."""
        facts, tensors = stored.facts, stored.tensors
        method = cls._built_from(facts, backbone)
        network = restored_network(facts, tensors)
        schema = schema_from(facts["schema"])
        require_shapes(network, method.settings, dimension=schema.dimension, **method._network_arguments(schema))
        published = facts.get("published")
        guarantee = None if published is None else Guarantee.from_dict(published)
        several = bool(facts.get("several"))
        notes = tuple(map(assumption_of, facts.get("notes", ())))
        method._fitted = Fitted(schema, facts["void"], facts["fingerprint"], network, guarantee, several, notes)
        method.account = restored_account(facts)
        return method

    @classmethod
    def _built_from(cls, facts: Mapping[str, Any], backbone: nn.Module | None) -> Self:
        """Return the unfitted method with the settings in `facts`."""
        privacy = dict(facts["privacy"])
        for name in ("epsilon_x", "epsilon_y"):
            privacy[name] = stored_number(privacy[name])
        kinds = {name: facts.get(name, usual) for name, usual in _FILE_DEFAULTS.items()}
        # A saved model must load where there is no GPU.
        return cls(**privacy, **kinds, backbone=backbone, **{**facts["settings"], "device": "cpu"})

    def _require_readable(self, schema: GraphSchema) -> None:
        """Refuse a new graph with private edges or other features than in training, or a model without features."""
        if not self.reads_private_edges:
            require_public_edges(schema)
        if not self.privacy.collects_features:
            what = "this model was trained without features, so it cannot predict on a new graph"
            raise InputError(what, where=schema.name)
        require_same_features(schema, self.result.schema)

    def _inputs(self, released: LocalReports, topology: Topology) -> tuple[FeatureMatrix, float]:
        """Return (C, o): what the network reads is C + o, of reports or of what stands in for them."""
        if self.privacy.collects_features or self.stand_in == "normal":
            return features_of(released, self.settings.seed)
        return stand_in_features(self.stand_in, topology, released.schema.dimension, self.settings.seed)

    @property
    def _denoises(self) -> bool:
        # Public features hold no noise, and UPGNet's threshold would set most of them to zero.
        return self.denoising == "upgnet" and self.privacy.epsilon_x not in (None, math.inf)

    def _denoised(
        self,
        centred: FeatureMatrix,
        offset: float,
        schema: GraphSchema,
        topology: Topology,
        reported: Tensor | None,
        settings: NetworkSettings,
    ) -> tuple[FeatureMatrix, float, NetworkSettings]:
        """Return features, offset and settings as the network takes them: unchanged, or smoothed by UPGNet's layers."""
        if not self._denoises:
            return centred, offset, settings
        unit = as_matrix(centred) * (1 / (schema.high - schema.low))
        smooth = upgnet_features(unit, topology.adjacency, settings.steps_x, reported)
        return smooth, 0.0, replace(settings, steps_x=0)

    def _network_arguments(self, schema: GraphSchema) -> dict[str, Any]:
        """Return what the network is built with beside the settings."""
        return {"classes": len(schema.classes), "backbone": self.backbone}

    def _is_own(self, graph: Graph, topology: Topology) -> bool:
        """Whether this is the graph of the run, with its own people as far as ids tell."""
        if topology.fingerprint != self.result.fingerprint:
            return False
        # Without ids the same topology is taken for the same people: nothing of theirs is read, the answer is the old
        # one.
        if node_names(graph) is None or not self.records.has_ids:
            return True
        identified = self.records.identify(graph, None, "", self.account.ledger)
        # In the same rows as well: a permutation of the same people has another prediction in each row.
        return identified is not None and torch.equal(identified.rows, torch.arange(topology.num_nodes))

    def _feature_reports(
        self, graph: Graph, topology: Topology, randomness: Randomness | None, people: Identity | None, engine: Engine
    ) -> Any:
        """Return everybody's feature report: kept, or asked for: the one place where prediction reads private data."""
        schema, group = self.result.schema, f"{graph.schema.name}, {topology.num_nodes} nodes, {topology.fingerprint}"
        spends = [spend for spend in self.privacy.spends(schema) if spend.unit == "features"]

        def read(new: Tensor, source: Randomness) -> dict[str, Tensor]:
            mechanism = self.privacy.features(schema)
            return _as_tensors(randomize_features(graph, mechanism, new, randomness=source, engine=engine))

        who = partial(everybodys_rows, self, graph, people, lambda _: spends, read)
        return reports_from_tensors(who(randomness=randomness, group=group, what="private features"))

    def _handed_in(self, graph: Graph, reports: LocalReports) -> Any:
        """Return the reports that a prediction was given, which nobody is asked for."""
        name, mechanism = graph.schema.name, self.privacy.features(self.result.schema)
        require_reports_for(reports, mechanism, int(graph.num_nodes), name=name)
        # Reports of our own collection need no assumption; of others nobody here can say how they were made.
        note_assumption(
            self, None if reports.digest in self.account.collections else handed_in_assumption(name), reports.void
        )
        return reports.features


def _as_tensors(reports: object) -> dict[str, Tensor]:
    """Return feature reports as tensors; nothing where features are public or not collected."""
    return reports.to_tensors() if hasattr(reports, "to_tensors") else {}
