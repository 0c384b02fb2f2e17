"""DP-MLP: a perceptron on features and labels by private gradient descent; no edge is read.

The protection of whole nodes without reading the graph, and the baseline for every method that sums over neighbours.
Source of the descent: see `training.dp_sgd`.
"""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass
from typing import Any, Unpack

from graphveil import models
from graphveil.errors import BudgetError, InputError
from graphveil.graphs import Graph, GraphSchema, Split
from graphveil.methods.base.estimator import FittedEstimator
from graphveil.methods.base.method import entry_of
from graphveil.methods.base.parameters import checked_graph
from graphveil.methods.base.people.account import Account, restored_account
from graphveil.methods.base.people.released import require_same_features
from graphveil.methods.base.storage import Stored, load_weights, number, prefixed, schema_from, without_prefix
from graphveil.methods.curator.entries import CURATOR_HELP, CURATOR_METHODS
from graphveil.methods.curator.nearest import with_nearest
from graphveil.methods.curator.privacy import CuratorPrivacy, Noise, budget_from
from graphveil.methods.curator.settings import CuratorOptions, PerceptronSettings, keeps_later_mean, with_least_steps
from graphveil.methods.curator.stages.queries import no_rows
from graphveil.methods.curator.stages.training import (
    MOST_DENSE,
    FeatureBlock,
    FittedCurator,
    NodeData,
    build_seeded,
    dense_blocks,
    device_of,
    logits_of,
    noise_source,
    parameters_of,
    read_features,
    read_people,
    rows_for,
    train_openly,
    train_with_noise,
    training_rows,
)
from graphveil.models.names import encoder_size
from graphveil.privacy import Guarantee, Randomness, RepeatAndSelect
from graphveil.runtime.late import Tensor, nn, torch
from graphveil.runtime.progress import Progress, ProgressCallback
from graphveil.training import Epoch
from graphveil.training.dp_sgd import linear_layers, refuse_mixed_rows
from graphveil.training.full_batch import Rows

_NAME = "perceptron"


@dataclass(frozen=True, eq=False)
class PaidNodes:
    """The nodes of one paid training, in the curator's hands, and its noise."""

    people: NodeData
    noise: Noise


class LaterWeights:
    """A progress callback that takes the mean of a network's weights over the later half of a private training.
    Post-processing: the price covers the release of the weights after each step.
    """

    def __init__(self, network: nn.Module, progress: ProgressCallback | None = None) -> None:
        self._weights, self._progress = [weight.detach() for weight in network.parameters()], progress
        self._means, self._steps = [torch.zeros_like(weight) for weight in self._weights], 0

    def __call__(self, event: Progress) -> None:
        """Add the weights after a step to the mean, and pass on the progress."""
        if 2 * event.done > event.total:
            self._steps += 1
            for mean, weight in zip(self._means, self._weights, strict=True):
                mean += (weight - mean) / self._steps
        if self._progress is not None:
            self._progress(event)

    def replace_last(self) -> None:
        """Put the means in place of the last weights."""
        for weight, mean in zip(self._weights, self._means, strict=True):
            weight.copy_(mean)


class DPMLP(FittedEstimator[FittedCurator]):
    """A perceptron trained by private gradient descent; the unit is one node's features and label.

    Args:
        epsilon, delta: what training costs one node; inf trains without noise.
        tuning: see `CuratorPrivacy`.
        backbone: a module of your own in place of the perceptron, rows [b, d] -> scores [b, c]; each row alone, of
            plain linear layers with weights that are public when training begins. It is copied, never trained itself,
            and is given again to load a saved model.
        settings: any field of `PerceptronSettings` but those about hops, which it ignores.

    After fitting: `guarantee`, `ledger`, `history` (empty where training was private).

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import DPMLP
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = DPMLP(epsilon=2.0, passes=1).fit(graph)
        >>> model.guarantee.epsilon <= 2.0, model.guarantee.unit.code, model.history
        (True, 'one-node-without-edges', ())
    """

    further_help = CURATOR_HELP
    entry, kind = entry_of("dp-mlp", CURATOR_METHODS), "dp-mlp"
    fits = ""
    reads_edges = counts_classes = False
    hops, w_max = 0, 1.0
    layers: tuple[int, ...] = (2,)
    settings_type, derived = PerceptronSettings, ("least_steps",)

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 1e-5,
        unit: str = "node",
        tuning: RepeatAndSelect | None = None,
        backbone: nn.Module | None = None,
        **settings: Unpack[CuratorOptions],
    ) -> None:
        if unit != "node":
            raise InputError(
                f"unit {unit!r} does not apply to {self.kind}, which reads no edges",
                allowed="node",
                remedy="train mlp: it uses features and labels as they are",
            )
        self.privacy = CuratorPrivacy(epsilon, delta, "node", tuning=tuning)
        # Such a run would use nothing of this library.
        if backbone is not None and self.privacy.unprotected:
            raise InputError(
                "a backbone of your own with epsilon=inf",
                where=self.kind,
                remedy="train it in torch: nothing is protected",
            )
        options: dict[str, Any] = {**settings}
        self.settings = PerceptronSettings(**with_least_steps(options, epsilon))
        self.backbone = backbone
        self.account = Account(self.privacy.open_ledger())
        self._untrained: PaidNodes | None = None

    def planned_noise(self, schema: GraphSchema, people: int) -> Noise:
        """Return the noise of a training, from public facts alone."""
        return with_nearest(self, lambda method: method._noise(schema, people))

    def collect(
        self, graph: Graph, *, split: Split, randomness: Randomness, progress: ProgressCallback | None = None
    ) -> PaidNodes:
        """Pay for one training, and read the features and labels of `graph`.

        Raises:
            BudgetError: when the ledger cannot pay, before anything is read.
            InputError: for data outside the declared range or classes, or a backbone in which clipping one row's
                gradient would not bound the row's influence; nothing is paid then.
        """
        graph = checked_graph(graph, split, randomness, unreleased=self.name)
        schema, network = graph.schema, self._network(graph.schema)
        # Before paying, and without data: a module that mixes rows would make the price meaningless.
        if self.backbone is not None:
            # The closed form of gradient norms holds for plain linear layers: others cannot be clipped row by row.
            linear_layers(network)
            # With batch normalisation each row's score depends on all rows: clipping one gradient bounds nothing.
            with torch.no_grad(), models.reading_rows(schema.dimension):
                refuse_mixed_rows(network.train(), schema.dimension)
                scores = network.eval()(torch.zeros(2, schema.dimension, device=device_of(network)))
            expected = 2, len(schema.classes)
            if tuple(scores.shape) != expected:
                raise InputError(f"2 rows gave scores {tuple(scores.shape)}", where="backbone", allowed=str(expected))
        noise = self.planned_noise(schema, int(split.train.sum()))
        spends = self.privacy.spend("training", schema, noise)
        self._untrained = self.account.buy(spends, lambda: PaidNodes(read_people(graph, split), noise))
        return self._untrained

    def train(
        self, collected: PaidNodes, *, randomness: Randomness | None = None, progress: ProgressCallback | None = None
    ) -> None:
        """Train on what was paid for: once, unless nothing is protected. Raises BudgetError if that has been done."""
        people, noise = collected.people, collected.noise
        network = self._network(people.schema)
        if self.privacy.unprotected:
            train, val = (rows_for(network, [people.features], people, nodes) for nodes in (people.train, people.val))
            history, void = train_openly(network, train, val, self.settings, progress), None
        else:
            # By identity: a copy of it would train a second time on the same payment.
            if collected is not self._untrained:
                what, remedy = "one budget pays for one training", "fit again with a new budget"
                raise BudgetError(what, where="unit node", remedy=remedy)
            source = noise_source(randomness)
            # Before the first step: a training that fails has used its noise.
            self._untrained = None
            rows = Rows(training_rows(network, [people.features], people.train), people.labels[people.train])
            multiplier = noise.multipliers[_NAME]
            later = LaterWeights(network, progress)
            train_with_noise(network, rows, self.settings, multiplier, randomness=source, progress=later)
            if keeps_later_mean(self.privacy.epsilon, people.schema.dimension):
                later.replace_last()
            # No figures: the loss on the training rows is a query of its own that nobody has paid for.
            history, void = (), source.void
        logits = self._scores(network, people.features)
        self._fitted = FittedCurator(people.schema, people.key, (network,), noise, logits, history, void)

    def probabilities(self, graph: Graph | None = None, *, randomness: Randomness | None = None) -> Tensor:
        """Return class probabilities [n, c], each row from that node's features, and for that node alone. Nodes of
        another graph cost nothing: the weights are released, and no edge is read. Raises InputError for a graph with
        other features, or without a graph in a loaded model.
        """
        fitted = self.result
        # From the graph's own features, even if it seems to be that of the training: a graph of the same name and size
        # may be of other people, and each row is for its node alone.
        if graph is not None:
            require_same_features(graph.schema, fitted.schema)
            return torch.softmax(self._scores(fitted.networks[0], read_features(graph)), dim=1)
        if fitted.logits is None:
            raise no_rows()
        return torch.softmax(fitted.logits, dim=1)

    @property
    def own_rows(self) -> bool:
        """Whether training is private, so that a row of the predictions is for that node's eyes alone."""
        return not self.privacy.unprotected

    def parameters(self) -> dict[str, Any]:
        budget = {"epsilon": self.privacy.epsilon, "delta": self.privacy.delta, "unit": "node"}
        return {**budget, "tuning": self.privacy.tuning, "backbone": self.backbone, **asdict(self.settings)}

    @property
    def mechanism_guarantee(self) -> Guarantee:
        fitted = self.result
        return self.privacy.guarantee(fitted.schema, self.account.ledger, void=fitted.void, edges=False)

    @property
    def history(self) -> tuple[Epoch, ...]:
        return self.result.history

    def stored(self) -> Stored:
        """Return weights, settings, guarantee and ledger; no features, no predictions."""
        fitted = self.result
        facts = {
            "privacy": {
                "epsilon": number(self.privacy.epsilon),
                "delta": self.privacy.delta,
                "tuning": None if self.privacy.tuning is None else asdict(self.privacy.tuning),
            },
            **({} if self.backbone is None else {"backbone": type(self.backbone).__name__}),
            "settings": asdict(self.settings),
            **fitted.facts(),
            **self.account.facts(),
            "guarantee": self.guarantee.to_dict(),
        }
        # Without scores of the training nodes: each depends on that node's own features, which the noise on weights
        # does not cover.
        weights = {name: value.cpu() for name, value in fitted.networks[0].state_dict().items()}
        return Stored(facts, prefixed("network", weights))

    @classmethod
    def restore(cls, stored: Stored, *, backbone: nn.Module | None = None) -> DPMLP:
        """Return what `stored` gave, able to predict on a graph."""
        facts = stored.facts
        settings = {**facts["settings"], "device": "cpu"}
        method = cls(**budget_from(facts["privacy"]), backbone=backbone, **settings)
        schema, open_training = schema_from(facts["schema"]), method.privacy.unprotected
        network = copy.deepcopy(backbone)
        if network is None:
            hidden = method.settings.hidden
            # Without memory and random numbers: every weight comes from the file.
            with torch.device("meta"):
                network = models.Encoder(schema.dimension, hidden, len(schema.classes), batch_norm=open_training)
        load_weights(network, without_prefix("network", stored.tensors))
        stored_noise = facts["noise"]
        noise = Noise((), stored_noise["multipliers"], float(stored_noise["epsilon"]), stored_noise["delta"])
        history = tuple(Epoch(**row) for row in facts["history"])
        method._fitted = FittedCurator(schema, facts["people"], (network,), noise, None, history, facts["void"])
        method.account = restored_account(facts)
        return method

    def _network(self, schema: GraphSchema) -> nn.Module:
        if self.backbone is not None:
            # The user's module is the public start of every run: trained in place, it would carry private data into the
            # next.
            models.require_module(self.backbone)
            return copy.deepcopy(self.backbone).to(self.settings.device)
        settings, open_training = self.settings, self.privacy.unprotected
        perceptron: models.Encoder = build_seeded(
            lambda: models.Encoder(schema.dimension, settings.hidden, len(schema.classes), batch_norm=open_training),
            settings.seed,
        )
        return perceptron.to(settings.device)

    def _scores(self, network: nn.Module, features: FeatureBlock) -> Tensor:
        """Return the scores [n, c] of all nodes on the CPU, each from its own features [n, d]."""
        if self.backbone is None:
            return logits_of(network, [features])
        network.eval()
        with torch.no_grad():
            # A user's own module takes dense tensors, each row by itself.
            nodes = torch.split(torch.arange(features.shape[0]), max(1, MOST_DENSE // features.shape[1]))
            rows = (dense_blocks([features], part, device_of(network)) for part in nodes)
            return torch.cat([network(part) for part in rows]).cpu()

    def _noise(self, schema: GraphSchema, people: int) -> Noise:
        # From widths alone: a plan builds no network.
        if self.backbone is None:
            parameters = encoder_size(schema.dimension, self.settings.hidden, len(schema.classes))
        else:
            parameters = parameters_of(self.backbone)
        trained = {_NAME: (self.settings.descent(_NAME, people), parameters)}
        return self.privacy.noise(schema, hops=0, trained=trained)
