"""The estimator that the curator's methods share; its `Recipe` determines the networks and the noisy sums.

    publish        read nodes and edges, train the networks before the last, release the noisy sums      `publish`
    post-process   train the last network on the sums                                                    `fit_published`

Edges are read by `publish`, and by a query on another graph, through noisy sums; each is a row of the ledger. For unit
"node" the last training is private too and part of the publication's price: it can be done once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack

from graphveil.aggregation.names import largest_weight
from graphveil.aggregation.perturbed import entries_of
from graphveil.engine import LOCAL, Engine
from graphveil.errors import BudgetError, InputError
from graphveil.graphs import Graph, GraphSchema, Split
from graphveil.methods.base.estimator import FittedEstimator
from graphveil.methods.base.parameters import checked_graph, require_published
from graphveil.methods.base.people.account import Account, restored_account
from graphveil.methods.base.people.released import require_same_direction, require_same_features
from graphveil.methods.base.storage import (
    Stored,
    load_weights,
    number,
    prefixed,
    require_classes,
    restoring,
    schema_from,
    without_prefix,
)
from graphveil.methods.curator.entries import CURATOR_HELP
from graphveil.methods.curator.nearest import with_nearest
from graphveil.methods.curator.pooled import Pool, extra_layers, pool_for, scores_of, wide_encoder
from graphveil.methods.curator.privacy import CuratorPrivacy, Noise, budget_from
from graphveil.methods.curator.settings import CuratorOptions, CuratorSettings, with_least_steps
from graphveil.methods.curator.stages.queries import QueryAnswers, is_training_graph, no_room, no_rows, require_queries
from graphveil.methods.curator.stages.stages import Expect, NodeInputs, Recipe, Sum, Train, carry_out, perturbed_sums
from graphveil.methods.curator.stages.training import (
    ATTENTION,
    EdgeReading,
    FeatureBlock,
    FittedCurator,
    NodeData,
    Publication,
    build_seeded,
    noise_source,
    on_cpu,
    on_device,
    progress_of,
    read_features,
    read_people,
    require_usable,
    rows_for,
    shares_of,
    train_openly,
    train_with_noise,
    training_rows,
    unseen_shares,
)
from graphveil.methods.links.collection import people_key
from graphveil.privacy import ChangedSamples, Descent, Guarantee, Randomness, RepeatAndSelect
from graphveil.runtime.late import Tensor, nn, torch
from graphveil.runtime.progress import ProgressCallback
from graphveil.training import Epoch
from graphveil.training.full_batch import Rows


class StagedEstimator(FittedEstimator[FittedCurator]):
    """A curator's method on noisy sums: `fit` is `publish`, then `fit_published`.

    Args:
        epsilon, delta, unit, degree_bound, rule, queries, tuning, relationships: see `CuratorPrivacy`.
        settings: any field of `CuratorSettings`.

    After fitting: `guarantee`, `ledger`, `history`, `published`, and `pool` if the prediction is one.
    """

    kind: ClassVar[str]
    fits = "fit_published"
    recipe: ClassVar[Recipe]
    reads_edges, by_blocks, predicts_by_blocks, counts_classes = True, True, True, False
    settings_type: ClassVar[type[CuratorSettings]] = CuratorSettings
    further_help = CURATOR_HELP
    derived: ClassVar[tuple[str, ...]] = ("least_steps",)
    old_file_defaults: ClassVar[Mapping[str, Any]] = {"dropout": 0.0}  # settings that older files lack

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 1e-5,
        unit: str | None = None,
        degree_bound: int | None = None,
        rule: str = "lists",
        queries: int = 0,
        tuning: RepeatAndSelect | None = None,
        relationships: int | None = None,
        **settings: Unpack[CuratorOptions],
    ) -> None:
        self.privacy = CuratorPrivacy(epsilon, delta, unit, degree_bound, rule, queries, tuning, relationships)
        options: dict[str, Any] = {**settings}
        self.settings = self.settings_type(**with_least_steps(options, epsilon))
        require_usable(self.settings, self.privacy, self.kind)
        self.account = Account(self.privacy.open_ledger())
        self.published: Publication | None = None
        self.pool: Pool | None = None
        self._answers = QueryAnswers()
        self._unfinished: Publication | None = None

    def planned_noise(self, schema: GraphSchema, people: int) -> Noise:
        """Return the noise of a training, from public facts alone. Raises InputError where there is none, naming a
        setting and the nearest value that is possible.
        """
        return with_nearest(self, lambda method: method._checked_noise(schema, people))

    # ---- the curator ----

    def publish(
        self,
        graph: Graph,
        *,
        split: Split,
        randomness: Randomness,
        progress: ProgressCallback | None = None,
        engine: Engine = LOCAL,
    ) -> Publication:
        """Train the networks before the last and release the noisy sums: the one place where edges are read.

        Args:
            graph, split: the private graph, and who trains and validates.

        Raises:
            BudgetError: when the ledger cannot pay, before anything is read.
            InputError: for data outside the declared range or classes, or noise that does not fit the unit.
        """
        graph = checked_graph(graph, split, randomness, unreleased=self.name)
        schema, networks, history = graph.schema, self._new_networks(graph.schema), list[Epoch]()
        # From sizes alone: the noise is fixed, and paid for, before `read` sees the first private value.
        noise = self.planned_noise(schema, int(split.train.sum()))
        spends = self.privacy.spend("training", schema, noise, **self._ledger_facts())
        progress_for = progress_of(progress, len(networks))

        def read() -> Publication:
            people = read_people(graph, split)

            def learn(stage: Train) -> None:
                which = stage.which
                self.recipe.start(networks, which)
                history.extend(
                    self._train(networks[which], which, stage.parts, people, noise, randomness, progress_for(which))
                )

            def expect(stage: Expect) -> Tensor:
                # Trained without noise, as the network itself is: recipes request it only where edges alone are
                # protected.
                def untrained() -> nn.Module:
                    return self._new_networks(schema)[stage.which]

                return unseen_shares(untrained, networks[stage.which], stage.parts, people, self.settings)

            add = self._sums(EdgeReading(graph, schema, noise, randomness, networks, people, progress_for(1), engine))
            inputs = NodeInputs(people.features, people.train_labels, noise.sigmas)
            parts = carry_out(self.recipe.steps(networks, inputs, self.settings), train=learn, expect=expect, add=add)
            void = None if self.privacy.unprotected else randomness.void
            return Publication(on_cpu(parts), tuple(networks), people, self.privacy, noise, tuple(history), void)

        published = self.account.buy(spends, read)
        self._unfinished = published
        if not self.own_rows:
            self.account.remember(published.digest)
        return published

    def fit_published(
        self, published: Publication, *, randomness: Randomness | None = None, progress: ProgressCallback | None = None
    ) -> Self:
        """Train the last network on a publication; where edges are protected, any number of times at no cost. Raises
        BudgetError for another publication than the one that was paid for unless the budget covers two; for unit
        "node", when this publication's last training has been done.

        Args:
            published, progress: of the same budgets, else InputError; called with how far training is.
            randomness: needed for unit "node", whose last training is private and paid for once.
        """
        require_published(published, Publication)
        if published.privacy != self.privacy:
            raise InputError(
                f"the publication was made with {published.privacy}",
                where="fit_published",
                allowed=f"one made with {self.privacy}",
            )
        schema, people, noise = published.people.schema, published.people, published.noise
        untrained = self._new_networks(schema)
        if list(map(_shapes_of, published.networks)) != list(map(_shapes_of, untrained)):
            raise InputError(
                "the publication was made by another method, or for networks of other sizes",
                where="fit_published",
                allowed="what publish of this method returned, with the same settings",
            )
        if self.own_rows:
            if published is not self._unfinished:
                what = "the last training is private too, and a publication pays for one"
                raise BudgetError(what, where="unit node", remedy="publish again with a new budget")
            noise_source(randomness)  # a call without one must not use up the publication
            # Cleared before training, not after: an interrupted training has used its noise.
            self._unfinished = None
        else:
            spends = self.privacy.spend("training", schema, noise, **self._ledger_facts())
            self.account.book_collection(published.digest, spends)
        last = len(published.networks) - 1
        networks = (*published.networks[:last], untrained[last])
        self.recipe.start(networks, last)
        last_progress = progress_of(progress, last + 1)(last)
        history = self._train(networks[last], last, published.parts, people, noise, randomness, last_progress)
        pool = pool_for(self.recipe, networks, published, self.settings)
        logits = scores_of(self.recipe, networks, people.features, published.parts, pool)
        epochs = (*published.history, *history)
        self._fitted = FittedCurator(schema, people.key, networks, noise, logits, epochs, published.void)
        self.published, self.pool = published, pool
        return self

    def collect(
        self,
        graph: Graph,
        *,
        split: Split,
        randomness: Randomness,
        progress: ProgressCallback | None = None,
        engine: Engine = LOCAL,
    ) -> Publication:
        return self.publish(graph, split=split, randomness=randomness, progress=progress, engine=engine)

    def train(
        self, collected: Publication, *, randomness: Randomness | None = None, progress: ProgressCallback | None = None
    ) -> None:
        self.fit_published(collected, randomness=randomness, progress=progress)

    # ---- what comes out ----

    def probabilities(
        self, graph: Graph | None = None, *, randomness: Randomness | None = None, engine: Engine = LOCAL
    ) -> Tensor:
        """Return class probabilities [n, c]. For the nodes of the training (or no graph) they come from the cache: no
        edge is read, nothing is spent. For unit "node" every row is for that node alone and is in no file, so a loaded
        model reads its nodes again like another graph. The edges of another graph are read through fresh noise, which
        needs `randomness` and costs what training cost: a row of the ledger, for which `queries` must have made room.
        The same nodes get the same answer again, also after save and load.
        """
        fitted = self.result
        features = None if self.published is None else self.published.people.features
        own = graph is None or is_training_graph(fitted.people, features, graph, self._answers)
        if own and fitted.logits is not None:
            return torch.softmax(fitted.logits, dim=1)
        if graph is None or (own and not self.privacy.queries):
            raise no_rows(self.privacy.epsilon)
        # The first answer again: new noise on the same edges would average out over queries.
        answer = self._answers.find(graph)
        return self._answers.add(graph, self._query(fitted, graph, randomness, engine)) if answer is None else answer

    def parameters(self) -> dict[str, Any]:
        privacy = {field.name: getattr(self.privacy, field.name) for field in fields(self.privacy)}
        return {**privacy, **asdict(self.settings)}

    @property
    def mechanism_guarantee(self) -> Guarantee:
        fitted = self.result
        return self.privacy.guarantee(fitted.schema, self.account.ledger, void=fitted.void)

    @property
    def epsilon_relationship(self) -> float | None:
        # Two people may be linked in the graph of the training and in that of each query.
        epsilon, readings = self._relationship_once(), len(self.account.ledger.spends)
        return None if epsilon is None else epsilon * max(1, readings)

    def _relationship_once(self) -> float | None:
        """Return what one relationship costs in one reading of edges."""
        fitted = self.result
        return self.privacy.epsilon_relationship(fitted.schema, fitted.noise, w_max=self.w_max)

    @property
    def history(self) -> tuple[Epoch, ...]:
        """The figures of every epoch; none for unit "node", where they would have to be paid for."""
        return self.result.history

    # ---- files ----

    def stored(self) -> Stored:
        """Return what a file holds; no edges, no features, and for unit "node" no predictions: each is for its node
        alone.
        """
        fitted = self.result
        facts = {
            "privacy": {**asdict(self.privacy), "epsilon": number(self.privacy.epsilon)},
            "settings": asdict(self.settings),
            **fitted.facts(),
            **self.account.facts(),
            "guarantee": self.guarantee.to_dict(),
        }
        facts |= {} if self.pool is None else {"pool": self.pool.weights}
        tensors = {} if self.own_rows or fitted.logits is None else {"logits": fitted.logits}
        for which, network in enumerate((*fitted.networks, *(() if self.pool is None else (self.pool.encoder,)))):
            weights = {name: value.cpu() for name, value in network.state_dict().items()}
            tensors |= prefixed(f"network{which}", weights)
        return Stored(facts, tensors)

    def keep(self, model: Path) -> None:
        """Write the answers to queries and what identifies the training's people, for the owner alone."""
        features = None if self.published is None or self.own_rows else self.published.people.features
        self._answers.save(model, self.kind, self.result.people, features)

    def recall(self, model: Path) -> None:
        with restoring(model):
            self._answers = QueryAnswers.read(model, self.kind, self.result.people)

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """Return what `stored` gave, able to predict; what it spent stays spent."""
        facts, tensors = stored.facts, stored.tensors
        method = cls(**budget_from(facts["privacy"]), **{**cls.old_file_defaults, **facts["settings"], "device": "cpu"})
        schema = schema_from(facts["schema"])
        with torch.device("meta"):
            networks = cls.recipe.networks(method.settings, schema, batch_norm=not method.own_rows)
            encoder = wide_encoder(method.settings, schema)
        weights, logits = facts.get("pool"), tensors.get("logits")
        if logits is not None:
            require_classes("logits", logits, len(schema.classes))
        for which, network in enumerate(networks if weights is None else [*networks, encoder]):
            load_weights(network, without_prefix(f"network{which}", tensors))
        if weights is not None:
            method.pool = Pool(encoder, tuple(float(weight) for weight in weights))
        noise, history = Noise.from_dict(facts["noise"]), tuple(Epoch(**row) for row in facts["history"])
        trained = tuple(networks)
        method._fitted = FittedCurator(schema, facts["people"], trained, noise, logits, history, facts["void"])
        method.account = restored_account(facts)
        return method

    # ---- helpers ----

    @property
    def own_rows(self) -> bool:
        """Whether nodes are protected, so that training is private and a node's row is its own."""
        return self.privacy.protects_nodes and not self.privacy.unprotected

    @property
    def hops(self) -> int:
        """K, noisy sums one after the other."""
        return self.settings.hops

    @property
    def layers(self) -> list[int]:
        """The number of hidden layers of each network, and of what is trained beside them."""
        layers = self.recipe.layers(self.settings.hops)
        return [*layers, *extra_layers(self.settings, layers[0])]

    @property
    def w_max(self) -> float:
        """The largest weight of a message."""
        return largest_weight(self.settings.weights)

    def _ledger_facts(self) -> dict[str, float | int | str]:
        """The public facts in a ledger row beside the noise."""
        return {"weights": self.settings.weights, "w_max": self.w_max}

    def _new_networks(self, schema: GraphSchema) -> list[nn.Module]:
        build = self.recipe.networks
        networks = build_seeded(lambda: build(self.settings, schema, batch_norm=not self.own_rows), self.settings.seed)
        return on_device(networks, self.settings.device)

    def _checked_noise(self, schema: GraphSchema, people: int) -> Noise:
        """Return the noise of a training; noise that no table holds is refused before anything is paid."""
        noise = self._noise(schema, self.recipe.sizes(self.settings, schema), people)
        self._require_drawable(schema, noise)
        return noise

    def _require_drawable(self, schema: GraphSchema, noise: Noise) -> None:
        if noise.sigmas and not self.privacy.unprotected:
            sums = self.privacy.sums(schema, noise, w_max=self.w_max, bits=self.settings.bits)
            sums.require_noise(weighted=self.settings.weights != "uniform")

    def _noise(self, schema: GraphSchema, sizes: Sequence[int], people: int) -> Noise:
        trained: dict[str, tuple[Descent | ChangedSamples, int]] = {
            f"network{which}": (self.settings.descent(f"network{which}", people), size)
            for which, size in enumerate(sizes)
        }
        if self.settings.weights == ATTENTION:
            changed = self.settings.changing(ATTENTION, people, entries_of(self.privacy.unit_for(schema)))
            trained[ATTENTION] = changed, sizes[1]
        return self.privacy.noise(
            schema,
            hops=self.settings.hops,
            w_max=self.w_max,
            columns=self.recipe.columns(self.settings, schema),
            trained=trained,
            share_hops=self.settings.share_hops,
            portions=self.recipe.portions(),
            hop_ratio=self.settings.hop_ratio,
        )

    def _sums(self, reading: EdgeReading) -> Sum:
        """Return what sums over the neighbours in a graph, and so reads its edges, behind noise."""
        return perturbed_sums(reading, self.privacy, self.settings)

    def _train(
        self,
        network: nn.Module,
        which: int,
        parts: Sequence[FeatureBlock],
        people: NodeData,
        noise: Noise,
        randomness: Randomness | None,
        progress: ProgressCallback | None,
    ) -> tuple[Epoch, ...]:
        """Train one network: without noise where edges are protected, else privately."""
        if not self.own_rows:
            rows, judges = (rows_for(network, parts, people, nodes) for nodes in (people.train, people.val))
            return train_openly(network, rows, judges, self.settings, progress)
        randomness = noise_source(randomness)
        rows = Rows(training_rows(network, parts, people.train), people.labels[people.train])
        multiplier = noise.multipliers[f"network{which}"]
        train_with_noise(network, rows, self.settings, multiplier, randomness=randomness, progress=progress)
        return ()

    def _query(self, fitted: FittedCurator, graph: Graph, randomness: Randomness | None, engine: Engine) -> Tensor:
        """Predict on another graph: pay, then read its features, and its edges behind fresh noise."""
        schema, noise = fitted.schema, fitted.noise.sums_only
        require_same_features(graph.schema, schema)
        require_same_direction(graph.schema, schema)
        require_queries(self.name, graph)
        if randomness is None and not self.privacy.unprotected:
            raise InputError(
                "reading a new graph's edges needs a source of noise",
                where="predict",
                remedy="pass randomness=SecureRandomness()",
            )
        name = f"query on {graph.schema.name} ({people_key(graph)[:8]})"
        source: Any = randomness

        def read() -> Tensor:
            reading = EdgeReading(graph, schema, noise, source, fitted.networks, engine=engine)
            return self.answer(reading, noise.sigmas)

        spends = self.privacy.spend(name, schema, noise, **self._ledger_facts())
        try:
            self.account.afford(*spends)
        except BudgetError as error:
            raise no_room(self.name, self.privacy, graph) from error
        # Before paying: an answer with known noise must not appear under a guarantee that is not void.
        self._fitted = replace(fitted, void=fitted.void or (None if self.privacy.unprotected else source.void))
        return self.account.buy(spends, read)

    def answer(self, reading: EdgeReading, sigmas: tuple[float, ...]) -> Tensor:
        """Return the class probabilities [n, c] of trained networks for a graph."""
        # Labels are not read, even if a graph has some: no price was stated for them.
        graph, networks = reading.graph, reading.networks
        inputs = NodeInputs(read_features(graph), torch.full((int(graph.num_nodes),), -1), sigmas)
        parts = carry_out(
            self.recipe.steps(networks, inputs, self.settings),
            train=lambda stage: None,
            expect=lambda stage: shares_of(networks[stage.which], stage.parts),
            add=self._sums(reading),
        )
        return torch.softmax(scores_of(self.recipe, networks, inputs.features, parts, self.pool), dim=1)


def _shapes_of(network: nn.Module) -> tuple[type, dict[str, tuple[int, ...]]]:
    """Return the class and the shapes of a network's weights: equal ones can take each other's weights."""
    return type(network), {name: tuple(value.shape) for name, value in network.state_dict().items()}
