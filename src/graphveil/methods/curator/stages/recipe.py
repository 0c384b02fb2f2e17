"""The estimator that the curator's methods share; a `Recipe` says which networks train and where noise comes in.

    publish        read people and edges, train what comes before the last sum, release the noisy sums   `publish`
    post-process   train the last network on the sums                                                    `fit_published`

Edges are read by `publish`, and by a query on another graph, through noisy sums; each is a row of the ledger. For unit
"node" the last training is private too and is part of the publication's price: it can be done once.
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
from graphveil.methods.curator.pooled import Pool, layers_beside, pool_for, scores_of, wide_encoder
from graphveil.methods.curator.privacy import CuratorPrivacy, Noise, budget_from
from graphveil.methods.curator.settings import CuratorOptions, CuratorSettings, with_least_steps
from graphveil.methods.curator.stages.queries import Answers, is_of, no_room, no_rows, require_queries
from graphveil.methods.curator.stages.stages import Expect, NodeInputs, Recipe, Sum, Train, carry_out, perturbed_sums
from graphveil.methods.curator.stages.training import (
    ATTENTION,
    EdgeReading,
    FeatureBlock,
    FittedCurator,
    NodeData,
    Published,
    brought_back,
    build_seeded,
    noise_source,
    placed,
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

    After fitting: `guarantee`, `ledger`, `history`, `published`, and `pool` where the prediction is one.
    """

    kind: ClassVar[str]
    fits = "fit_published"
    recipe: ClassVar[Recipe]
    reads_edges, by_blocks, predicts_by_blocks, counts_classes = True, True, True, False
    settings_type: ClassVar[type[CuratorSettings]] = CuratorSettings
    further_help = CURATOR_HELP
    derived: ClassVar[tuple[str, ...]] = ("least_steps",)
    unsaid: ClassVar[Mapping[str, Any]] = {"dropout": 0.0}  # by files from before a setting existed

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
        self.published: Published | None = None
        self.pool: Pool | None = None
        self._answers = Answers()
        self._unfinished: Published | None = None

    def planned_noise(self, schema: GraphSchema, people: int) -> Noise:
        """Return the noise of a training, from public facts alone. Raises InputError where none can be had, naming a
        setting and the nearest value that is taken.
        """
        return with_nearest(self, lambda method: method._drawable(schema, people))

    # ---- the curator ----

    def publish(
        self,
        graph: Graph,
        *,
        split: Split,
        randomness: Randomness,
        progress: ProgressCallback | None = None,
        engine: Engine = LOCAL,
    ) -> Published:
        """Train what comes before the sums and release the noisy sums: the one place where edges are read.

        Args:
            graph, split: the private graph, and who trains and validates.

        Raises:
            BudgetError: when the ledger cannot pay, before anything is read.
            InputError: for data outside the declared range or classes, or noise that does not fit the unit.
        """
        graph = checked_graph(graph, split, randomness, unreleased=self.name)
        schema, networks, history = graph.schema, self._fresh(graph.schema), list[Epoch]()
        # From sizes alone: the noise is fixed, and paid for, before `read` sees the first private value.
        noise = self.planned_noise(schema, int(split.train.sum()))
        spends = self.privacy.spend("training", schema, noise, **self._weighing())
        done = progress_of(progress, len(networks))

        def read() -> Published:
            people = read_people(graph, split)

            def learn(stage: Train) -> None:
                which = stage.which
                self.recipe.start(networks, which)
                history.extend(self._train(networks[which], which, stage.parts, people, noise, randomness, done(which)))

            def expect(stage: Expect) -> Tensor:
                # Trained in the open, as the network itself is: a recipe asks for it where edges alone are protected.
                def fresh() -> nn.Module:
                    return self._fresh(schema)[stage.which]

                return unseen_shares(fresh, networks[stage.which], stage.parts, people, self.settings)

            add = self._sums(EdgeReading(graph, schema, noise, randomness, networks, people, done(1), engine))
            inputs = NodeInputs(people.features, people.taught, noise.sigmas)
            parts = carry_out(self.recipe.steps(networks, inputs, self.settings), train=learn, expect=expect, add=add)
            void = None if self.privacy.public else randomness.void
            return Published(brought_back(parts), tuple(networks), people, self.privacy, noise, tuple(history), void)

        published = self.account.buy(spends, read)
        self._unfinished = published
        if not self.own_rows:
            self.account.remember(published.digest)
        return published

    def fit_published(
        self, published: Published, *, randomness: Randomness | None = None, progress: ProgressCallback | None = None
    ) -> Self:
        """Train the last network on a publication; where edges are protected as often as one likes, for free. Raises
        BudgetError for another publication than the one that was paid for, and no budget for two; for unit "node", when
        this publication's last training has been done.

        Args:
            published, progress: of the same budgets, else InputError; hears how far it is.
            randomness: needed for unit "node", whose last training is private and paid for once.
        """
        require_published(published, Published)
        if published.privacy != self.privacy:
            raise InputError(
                f"the publication was made with {published.privacy}",
                where="fit_published",
                allowed=f"one made with {self.privacy}",
            )
        schema, people, noise = published.people.schema, published.people, published.noise
        fresh = self._fresh(schema)
        if list(map(_form_of, published.networks)) != list(map(_form_of, fresh)):
            raise InputError(
                "the publication was made by another method, or for networks of other sizes",
                where="fit_published",
                allowed="what publish of this method returned, with the same settings",
            )
        if self.own_rows:
            if published is not self._unfinished:
                what = "the last training is private too, and a publication pays for one"
                raise BudgetError(what, where="unit node", remedy="publish again with a new budget")
            noise_source(randomness)  # a call without one must not cost the publication
            # Cleared before training, not after: a training that was cut off has used its noise.
            self._unfinished = None
        else:
            spends = self.privacy.spend("training", schema, noise, **self._weighing())
            self.account.book_collection(published.digest, spends)
        last = len(published.networks) - 1
        networks = (*published.networks[:last], fresh[last])
        self.recipe.start(networks, last)
        counted = progress_of(progress, last + 1)(last)
        history = self._train(networks[last], last, published.parts, people, noise, randomness, counted)
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
    ) -> Published:
        return self.publish(graph, split=split, randomness=randomness, progress=progress, engine=engine)

    def train(
        self, collected: Published, *, randomness: Randomness | None = None, progress: ProgressCallback | None = None
    ) -> None:
        self.fit_published(collected, randomness=randomness, progress=progress)

    # ---- what comes out ----

    def probabilities(
        self, graph: Graph | None = None, *, randomness: Randomness | None = None, engine: Engine = LOCAL
    ) -> Tensor:
        """Return class probabilities [n, c]. For the nodes of the training (or no graph) they come from the cache: no
        edge is read, nothing is spent. For unit "node" every row is for that node alone, no file holds it, and a loaded
        model reads its nodes again as it reads another graph. Another graph has its edges read through fresh noise,
        which needs `randomness` and costs what training cost: a row of the ledger, for which `queries` must have made
        room. Asked again for the same nodes, the first answer is given again, also after save and load.
        """
        fitted = self.result
        features = None if self.published is None else self.published.people.features
        own = graph is None or is_of(fitted.people, features, graph, self._answers)
        if own and fitted.logits is not None:
            return torch.softmax(fitted.logits, dim=1)
        if graph is None or (own and not self.privacy.queries):
            raise no_rows(self.privacy.epsilon)
        # The first answer again: new noise on the same edges would average out over questions.
        answer = self._answers.about(graph)
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
        once, rows = self._relationship_once(), len(self.account.ledger.spends)
        return None if once is None else once * max(1, rows)

    def _relationship_once(self) -> float | None:
        """Return what one relationship costs in one reading of edges."""
        fitted = self.result
        return self.privacy.epsilon_relationship(fitted.schema, fitted.noise, w_max=self.w_max)

    @property
    def history(self) -> tuple[Epoch, ...]:
        """Every epoch's figures, from the cache alone; none for unit "node", where they would have to be paid for."""
        return self.result.history

    # ---- files ----

    def stored(self) -> Stored:
        """Return what a file holds; no edges, no features, and for unit "node" no predictions: each belongs to its node
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
        """Write the answers to queries, and what tells the training's people from others, for the owner alone."""
        features = None if self.published is None or self.own_rows else self.published.people.features
        self._answers.save(model, self.kind, self.result.people, features)

    def recall(self, model: Path) -> None:
        with restoring(model):
            self._answers = Answers.read(model, self.kind, self.result.people)

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """Return what `stored` gave, able to predict; what it spent stays spent."""
        facts, tensors = stored.facts, stored.tensors
        method = cls(**budget_from(facts["privacy"]), **{**cls.unsaid, **facts["settings"], "device": "cpu"})
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
        return self.privacy.nodes and not self.privacy.public

    @property
    def hops(self) -> int:
        """K, noisy sums one after the other."""
        return self.settings.hops

    @property
    def layers(self) -> list[int]:
        """The layers over hidden columns of each network."""
        own = self.recipe.layers(self.settings.hops)
        return [*own, *layers_beside(self.settings, own[0])]

    @property
    def w_max(self) -> float:
        """The largest weight of a message."""
        return largest_weight(self.settings.weights)

    def _weighing(self) -> dict[str, float | int | str]:
        """The public facts that a ledger row names beside the noise."""
        return {"weights": self.settings.weights, "w_max": self.w_max}

    def _fresh(self, schema: GraphSchema) -> list[nn.Module]:
        build = self.recipe.networks
        networks = build_seeded(lambda: build(self.settings, schema, batch_norm=not self.own_rows), self.settings.seed)
        return placed(networks, self.settings.device)

    def _drawable(self, schema: GraphSchema, people: int) -> Noise:
        """Return the noise of a training; one that no table holds is refused now and not once it is paid for."""
        noise = self._noise(schema, self.recipe.sizes(self.settings, schema), people)
        self._require_drawable(schema, noise)
        return noise

    def _require_drawable(self, schema: GraphSchema, noise: Noise) -> None:
        if noise.sigmas and not self.privacy.public:
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

    def _sums(self, read: EdgeReading) -> Sum:
        """Return the noisy sums over the neighbours in a graph: whoever calls them reads its edges, behind noise. With
        `people` they train attention first, where it weighs the messages.
        """
        return perturbed_sums(read, self.privacy, self.settings)

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
        """Train one network: openly where edges are protected, else privately."""
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
        schema, noise = fitted.schema, fitted.noise.of_sums
        require_same_features(graph.schema, schema)
        require_same_direction(graph.schema, schema)
        require_queries(self.name, graph)
        if randomness is None and not self.privacy.public:
            raise InputError(
                "reading a new graph's edges needs a source of noise",
                where="predict",
                remedy="pass randomness=SecureRandomness()",
            )
        name = f"query on {graph.schema.name} ({people_key(graph)[:8]})"
        source: Any = randomness

        def read() -> Tensor:
            return self.answer(EdgeReading(graph, schema, noise, source, fitted.networks, engine=engine), noise.sigmas)

        spends = self.privacy.spend(name, schema, noise, **self._weighing())
        try:
            self.account.afford(*spends)
        except BudgetError as error:
            raise no_room(self.name, self.privacy, graph) from error
        # Before paying: an answer with known noise must not be read under a guarantee that does not say so.
        self._fitted = replace(fitted, void=fitted.void or (None if self.privacy.public else source.void))
        return self.account.buy(spends, read)

    def answer(self, read: EdgeReading, sigmas: tuple[float, ...]) -> Tensor:
        """Return what trained networks say of a graph [n, c]."""
        # Labels are not read, not even where a graph has some: no price was stated for them.
        inputs = NodeInputs(read_features(read.graph), torch.full((int(read.graph.num_nodes),), -1), sigmas)
        stages = self.recipe.steps(read.networks, inputs, self.settings)
        parts = carry_out(
            stages,
            train=lambda stage: None,
            expect=lambda stage: shares_of(read.networks[stage.which], stage.parts),
            add=self._sums(read),
        )
        return torch.softmax(scores_of(self.recipe, read.networks, inputs.features, parts, self.pool), dim=1)


def _form_of(network: nn.Module) -> tuple[type, dict[str, tuple[int, ...]]]:
    """What tells networks apart that cannot take each other's weights."""
    return type(network), {name: tuple(value.shape) for name, value in network.state_dict().items()}
