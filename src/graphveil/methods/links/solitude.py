"""Solitude: train on privately collected features, neighbour lists and labels; the server knows no topology.

    devices   x*_v = multi-bit(x_v; eps_x)     N_v = randomized response(neighbours of v; eps_a a bit)   `randomize`
              y'_v = y_v (public, as in the paper) or randomized response(y_v; eps_y)
    server    N = all lists,   X' = P^lx rectify(x*),   Y' = P^ly Y                                      `fit_reports`
              minimise over theta, A:   CE(g(A, X'; theta), Y') + lambda1 |A - N|_F^2 + lambda2 |A|_1        (eq. 14)

A lives on the collected edges (`training.calibration` derives when that is exact).  `denoiser` puts a rival in the
place of the last line, see `methods.links.denoisers`; what epsilon_a buys: see `methods.links.privacy`.  Source: Lin,
Li, Wang, "Towards Private Learning on Decentralized Graphs With Local Differential Privacy", IEEE TIFS 17, 2022.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack, cast

from graphveil import models
from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, node_names
from graphveil.graphs.value.checks import require_one_label
from graphveil.methods.base.method import entry_of
from graphveil.methods.base.network.features import features_of, labels_of, reported_of
from graphveil.methods.base.network.hops import ChosenHops, choose_hops
from graphveil.methods.base.network.network import (
    Network,
    apply_network,
    backbone_facts,
    network_facts,
    network_tensors,
    require_shapes,
    restored_network,
    train_network,
)
from graphveil.methods.base.people.account import Account, restored_account
from graphveil.methods.base.people.asking import everybodys_rows, load_records, save_records
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.people.people import Identity, Records, identity_assumptions, not_other_people
from graphveil.methods.base.people.released import Topology, require_same_direction, require_same_features
from graphveil.methods.base.settings import NUMBERS, NetworkOptions, NetworkSettings
from graphveil.methods.base.storage import Stored, restoring, schema_from
from graphveil.methods.links.collection import (
    LinkReports,
    ListsEstimator,
    options_from,
    people_key,
    randomize_new_people,
    spends_of,
    subgraph,
)
from graphveil.methods.links.denoisers import SoftTopology, denoise
from graphveil.methods.links.entries import DENOISERS, LINK_METHODS
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.privacy import Assumption, Guarantee, Randomness, SecureRandomness, Spend
from graphveil.privacy.statement.texts import assumption_of
from graphveil.runtime.checks import require_choice
from graphveil.runtime.late import Tensor, nn, torch
from graphveil.runtime.progress import ProgressCallback
from graphveil.training import Calibration, Epoch

#: Denoisers that train weights through a named model's layers, or weigh every pair.
_NO_BACKBONE = ("calibration", "blink-soft")


class DenoisedOptions(NetworkOptions, total=False):
    """Keywords of methods with a denoiser of their own, but for the budgets of features and lists."""

    epsilon_y: float
    degree_share: float
    mechanism: str
    delta: float
    sampled: int | None
    queries: int
    backbone: nn.Module | None


@dataclass(frozen=True)
class FittedGraph:
    """What a fitted method keeps of its collection: public facts and the trained network.

    Attributes:
        people: who took part, see `people_key`; None where only reports were seen.
        notes: the facts that predictions for other people lean on.
    """

    schema: GraphSchema
    void: str | None
    people: str | None
    network: Network
    notes: tuple[Assumption, ...] = ()


class Solitude(ListsEstimator[FittedGraph]):
    """Private features and neighbour lists: `fit` is `randomize` (the devices), then `fit_reports` (the server).

    Args:
        backbone: a module of your own in place of `model`, see `LPGNN`; its `forward` may name `edge_index` [2, E] and
            `edge_weight` [E] of the denoised graph. Not with calibration, which learns weights through a named model's
            layers, nor with blink-soft, whose edges are all pairs.

    After fitting: `guarantee`, `ledger`, `history`, `released`, `topology` (the denoised graph).

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import Solitude
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = Solitude(epsilon_x=1.0, epsilon_a=4.0, epochs=2).fit(graph)
        >>> model.guarantee.epsilon, model.epsilon_relationship
        (5.0, 4.0)
    """

    entry, kind = entry_of("solitude", LINK_METHODS), "solitude"
    says_who = ("people",)
    settings_type, derived = NetworkSettings, ("steps_x", "steps_y")
    trains_network = True
    predicts_by_blocks: ClassVar[bool] = True

    def __init__(
        self,
        *,
        epsilon_x: float | None,
        epsilon_a: float,
        epsilon_y: float = math.inf,
        mode: str | None = None,
        denoiser: str = "calibration",
        degree_share: float = 0.1,
        mechanism: str = "multi-bit",
        delta: float = 1e-10,
        sampled: int | None = None,
        queries: int = 0,
        lambda1: float = 1e-4,
        lambda2: float = 1e-5,
        learning_rate_a: float = 0.01,
        complement: int = 0,
        backbone: nn.Module | None = None,
        **settings: Unpack[NetworkOptions],
    ) -> None:
        require_choice(DENOISERS, denoiser=denoiser)
        self.privacy = LocalPrivacy(epsilon_x, epsilon_y, mechanism, delta, sampled)
        self.links = LinkPrivacy(epsilon_a, mode, DENOISERS[denoiser], degree_share)
        self.denoiser = denoiser
        self.calibration = Calibration(lambda1, lambda2, learning_rate_a, complement)
        hops = {
            "steps_x": 4 if epsilon_x is not None and math.isfinite(epsilon_x) and denoiser != "blink-soft" else 0,
            "steps_y": 0 if epsilon_y == math.inf or denoiser == "blink-soft" else 4,
        }
        options: dict[str, Any] = {**settings}
        chosen = {name: value for name, value in options.items() if value is not None or name not in hops}
        self.settings = NetworkSettings(**{**hops, **chosen})
        if denoiser == "blink-soft" and (self.settings.steps_x or self.settings.steps_y):
            raise InputError("blink-soft weighs every pair and does not propagate", allowed="steps_x=0, steps_y=0")
        if denoiser == "blink-soft" and self.settings.model == "gat":
            raise InputError("blink-soft weighs every pair, which model gat cannot read", allowed="sage, gcn, mlp")
        if backbone is not None and denoiser in _NO_BACKBONE:
            raise InputError(
                f"a backbone of your own with denoiser {denoiser}",
                allowed=", ".join(name for name in DENOISERS if name not in _NO_BACKBONE),
            )
        NUMBERS["queries"].require(queries=queries)
        self.queries, self.backbone = queries, backbone
        self._given = {name: options.get(name) for name in hops}
        self.account = Account(self.links.declare(self.privacy.open_ledger(queries), queries))
        self.records = Records()
        self.released: LinkReports | None = None
        self.topology: Topology | SoftTopology | None = None
        self.hops: ChosenHops | None = None

    # ---- the server ----

    @property
    def open_hops(self) -> tuple[str, ...]:
        """Which hops validation labels choose: those that were left open, of features and of private labels."""
        some = {"steps_x": self.privacy.collects_features, "steps_y": math.isfinite(self.privacy.epsilon_y)}
        open_ = self.denoiser != "blink-soft"
        return tuple(name for name, used in some.items() if used and open_ and self._given[name] is None)

    def require_served(self, graph: Graph) -> None:
        """Refuse a graph whose nodes have several labels, or that the backbone does not fit."""
        schema = require_one_label(graph)
        if self.backbone is not None:
            models.require_scores(self.backbone, schema.dimension, len(schema.classes), edges=True)

    def fit_reports(
        self, released: LinkReports, *, exclude_validation: bool = False, progress: ProgressCallback | None = None
    ) -> Self:
        """Train on reports alone, at no privacy cost however often. Raises what `check_and_book` does.

        Args:
            exclude_validation: keep validation reports out of the targets, so that they may choose between trainings.
        """
        # Pairs of the complement are pulled towards no link, of which silence is no evidence.
        if self.calibration.complement and released.heard is not None and not bool(released.heard.all()):
            raise InputError("complement where some people sent no list", where=self.name, remedy="complement=0")
        schema = self.check_and_book(released)
        topology = denoise(released, self.denoiser, self.settings.seed)
        features, offset = features_of(released.people, self.settings.seed)
        labels = labels_of(released.people)
        keywords: dict[str, Any] = {
            "calibration": self._calibration_for(schema),
            "backbone": self.backbone,
            "reported": reported_of(released.people.features),
        }
        if self.open_hops:
            # Never of all pairs: blink-soft leaves no hops open.
            links = cast(Topology, topology)
            self.hops = choose_hops(
                lambda settings: (features, offset, settings),
                labels,
                links,
                self.settings,
                self.open_hops,
                exact=self.privacy.epsilon_x == math.inf,
                **keywords,
            )
            self.settings = replace(self.settings, **{name: getattr(self.hops, name) for name in self.open_hops})
        smooth = math.isinf(self.privacy.epsilon_y) and self.settings.steps_y > 0
        keywords |= {"label_smoothing": smooth, "exclude_validation": exclude_validation, "progress": progress}
        whole = None if self.hops is None else self.hops.whole
        network = whole or train_network(features, offset, labels, topology, self.settings, **keywords)
        if network.learned_links is not None:
            topology = Topology(network.learned_links.edge_index, released.nodes, network.learned_links.weights)
        # Declarations made for earlier predictions stay: the ledger has their spends, and the guarantee leans on them.
        notes = () if self._fitted is None else self._fitted.notes
        self._fitted = FittedGraph(schema, released.void, released.people_key, network, notes)
        answers = {"answers": torch.softmax(network.logits, dim=1)}
        self.records = Records.of_run(released.people.ids, released.nodes, answers, self.account.ledger).with_earlier(
            self.records
        )
        self.released, self.topology = released, topology
        return self

    # ---- what comes out ----

    def probabilities(
        self,
        graph: Graph | None = None,
        *,
        randomness: Randomness | None = None,
        people: Identity | None = None,
        engine: Engine = LOCAL,
    ) -> Tensor:
        """Return class probabilities [n, c].

        For the people of the collection (or no graph) they were computed while fitting and nothing private is read.
        People are known by public facts: all of them by `people_key`, each by its id, see `methods.base.people.people`.
        New ids send features at epsilon_x and a list among themselves at epsilon_a, in rows of the ledger of their own.
        Learned weights belong to their own edges: new lists are read as the denoiser leaves them.

        Args:
            people: what the caller says of people without ids: "same" (row i is the person that row i of the run was)
                or "other" (nobody of them has reported; declared, and stated in the guarantee).
        """
        fitted = self.result
        if graph is None:
            return torch.softmax(fitted.network.logits, dim=1)
        of_run = people_key(graph) == fitted.people
        own = of_run and people != "other"
        # A network that was trained on random numbers has nothing to say of new people.
        if not own and not self.privacy.collects_features:
            raise InputError(
                "this model was trained without features, so it cannot predict on a new graph", where=graph.schema.name
            )
        require_same_features(graph.schema, fitted.schema)
        require_same_direction(graph.schema, fitted.schema)
        # The same people by public facts: they are answered from the fit, and their data is not read again.
        if own:
            return torch.softmax(fitted.network.logits, dim=1)
        if self._new_people_pay:
            # Without ids a name and a number are no proof.
            if of_run and node_names(graph) is not None:
                raise not_other_people(graph)
            return self._predict_others(graph, randomness, people, engine)
        # Nothing private is sent here, so the source is never asked for a word; a mechanism still takes one.
        read = randomize_new_people(graph, self.privacy, self.links, randomness=SecureRandomness(), engine=engine)
        return self._answers(read, engine)

    def parameters(self) -> dict[str, Any]:
        return {**self._options(), "backbone": self.backbone, **asdict(self.settings), **self._given}

    def _options(self) -> dict[str, Any]:
        return {
            **asdict(self.privacy),
            "epsilon_a": self.links.epsilon_a,
            "mode": self.links.mode,
            "denoiser": self.denoiser,
            "degree_share": self.links.degree_share,
            "queries": self.queries,
            "lambda1": self.calibration.lambda1,
            "lambda2": self.calibration.lambda2,
            "learning_rate_a": self.calibration.learning_rate,
            "complement": self.calibration.complement,
        }

    def _network_arguments(self, schema: GraphSchema) -> dict[str, Any]:
        return {"classes": len(schema.classes), "backbone": self.backbone}

    @property
    def mechanism_guarantee(self) -> Guarantee:
        fitted = self.result
        once = self.guarantee_of(fitted.schema, len(fitted.network.logits), fitted.void)
        return replace(once, assumes=(*once.assumes, *identity_assumptions(self.account.ledger), *fitted.notes))

    @property
    def history(self) -> tuple[Epoch, ...]:
        return self.result.network.history

    # ---- files ----

    def stored(self) -> Stored:
        """Return weights, predictions, settings, guarantee and ledger; no reports, no links."""
        fitted = self.result
        facts = {
            **self.collection_facts(self._options(), fitted.schema, fitted.people),
            "settings": asdict(self.settings),
            **network_facts(fitted.network),
            **backbone_facts(self.backbone),
            "notes": [fact.sentence for fact in fitted.notes],
        }
        return Stored(facts, network_tensors(fitted.network))

    def keep(self, model: Path) -> None:
        records = self.records if self._new_people_pay else Records()
        save_records(model, self.kind, records, collection=self.result.people)

    def recall(self, model: Path) -> None:
        with restoring(model):
            self.records = load_records(model, self.kind, collection=self.result.people)

    @classmethod
    def restore(cls, stored: Stored, *, backbone: nn.Module | None = None) -> Self:
        """Return what `stored` gave, able to predict; its collection cannot be repeated."""
        facts, tensors = stored.facts, stored.tensors
        options = options_from(facts)
        # A saved model must load where there is no GPU.
        method = cls(**options, backbone=backbone, **{**facts["settings"], "device": "cpu"})
        network = restored_network(facts, tensors)
        schema = schema_from(facts["schema"])
        require_shapes(network, method.settings, dimension=schema.dimension, **method._network_arguments(schema))
        void = Guarantee.from_dict(facts["guarantee"]).void
        notes = tuple(map(assumption_of, facts.get("notes", ())))
        method._fitted = FittedGraph(schema, void, facts["people"], network, notes)
        method.account = restored_account(facts)
        return method

    # ---- helpers ----

    def _calibration_for(self, schema: GraphSchema) -> Calibration | None:
        """Return how weights are learned; the two entries of a pair that only one end reported move as one."""
        if self.denoiser != "calibration" or self.links.public:
            return None
        # One end reported the pair, so its two entries are one unknown: learning them apart would double its weight.
        return replace(self.calibration, symmetric=self.links.mode_for(schema) == "lower")

    @property
    def _new_people_pay(self) -> bool:
        """Whether people who are only predicted send anything private."""
        return self.privacy.epsilon_x != math.inf or not self.links.public

    def _predict_others(
        self, graph: Graph, randomness: Randomness | None, people: Identity | None, engine: Engine
    ) -> Tensor:
        """Answer people who have reported from that, and ask the others: the one place where prediction reads data."""
        schema = self.result.schema

        def spends(count: int) -> list[Spend]:
            # People who are only predicted send no label.
            return [spend for spend in spends_of(self.privacy, self.links, schema, count) if spend.unit != "labels"]

        def read(mask: Tensor, source: Randomness) -> dict[str, Tensor]:
            keywords: dict[str, Any] = {"randomness": source, "engine": engine}
            sent = randomize_new_people(subgraph(graph, mask), self.privacy, self.links, **keywords)
            return {"answers": self._answers(sent, engine)}

        keywords: dict[str, Any] = {"randomness": randomness, "group": people_key(graph), "what": "private reports"}
        return everybodys_rows(self, graph, people, spends, read, **keywords)["answers"]

    def _answers(self, released: LinkReports, engine: Engine) -> Tensor:
        fitted = self.result
        topology = denoise(released, self.denoiser, self.settings.seed)
        features, offset = features_of(released.people, self.settings.seed)
        network = self._network_arguments(fitted.schema)
        logits = apply_network(fitted.network, features, offset, topology, self.settings, **network, engine=engine)
        return torch.softmax(logits, dim=1)


class _Denoised(Solitude):
    """Solitude with a denoiser of its own; both ends of a relationship report."""

    def __init__(
        self,
        *,
        epsilon_a: float,
        epsilon_x: float | None = math.inf,
        mode: str | None = "both",
        **settings: Unpack[DenoisedOptions],
    ) -> None:
        options: dict[str, Any] = {"mode": mode, **settings, **self.entry.fixed}
        super().__init__(epsilon_x=epsilon_x, epsilon_a=epsilon_a, **options)


class Blink(_Denoised):
    """Private neighbour lists and degrees, denoised by their posterior: the hybrid of the paper."""

    entry = entry_of("blink", LINK_METHODS)


class DPRR(_Denoised):
    """Private neighbour lists, thinned on the device to a noisy degree."""

    entry = entry_of("dprr", LINK_METHODS)
