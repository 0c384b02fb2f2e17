"""Class sums: the curator releases, once, how many neighbours of each class every node has, as noisy sums.

    m_u = u's public class as one of c shares; without a public label what its features lead to expect, or 0
    H   = A^T M + Z,   Z two-sided geometric, see `CountedSum`               the one place that reads edges   `publish`
    p(y | v) = softmax( selu( x_v W + z(H_v) V + b ) W' ),   z(h) = [ asinh(h / max(sigma, 1)) | h / |h| ]

Where edges are protected, labels are not: then the best message about a class is the class itself.  GAP spends its
budget on 16 columns of an embedding for each of K hops; here all of it goes to c columns once.
With noise="normal" m_u is the corner of a regular simplex that stands for the class, and Z is N(0, sigma^2): corners
are as far apart as unit vectors can be, sqrt(2 c / (c - 1)), and cost what one-hot rows cost.  Counts need half of that
noise or less, because a message with one class changes one count (`CountedSum`).
Ours; the normal release is the noisy sum of Sajadmanesh et al., "GAP", USENIX Security 2023, arXiv 2203.00949, section
4.2, at the price of both entries of an undirected edge.  Protects edges alone: the messages hold labels as they are.
Shapes: x [n, d], M and H [n, c], z [n, 2 c].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self, Unpack, cast

from graphveil import models
from graphveil.aggregation import CountedSum, ReceiverRows, build_inputs
from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, Split
from graphveil.methods.base.estimator import FittedEstimator
from graphveil.methods.base.method import entry_of
from graphveil.methods.base.network.network import (
    Network,
    backbone_facts,
    network_facts,
    network_tensors,
    restored_network,
)
from graphveil.methods.base.network.objectives import drop_objective
from graphveil.methods.base.network.start import Reader, read_start, start_name
from graphveil.methods.base.parameters import checked_graph, require_published
from graphveil.methods.base.people.account import Account, restored_account, tensors_digest
from graphveil.methods.base.storage import (
    Stored,
    number,
    require_classes,
    restoring,
    schema_facts,
    schema_from,
    stored_number,
)
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.curator.evidence import (
    FeatureEvidence,
    corners,
    feature_evidence,
    messages,
    named_classes,
    sum_inputs,
)
from graphveil.methods.curator.nearest import with_nearest
from graphveil.methods.curator.privacy import CuratorPrivacy, Noise
from graphveil.methods.curator.settings import SumsOptions, SumsSettings
from graphveil.methods.curator.stages.queries import QueryAnswers, is_training_graph
from graphveil.methods.curator.stages.training import NodeData, read_people
from graphveil.methods.curator.sum_clues import COMMON, OWN, centred, sum_clues
from graphveil.models.labels.label_prior import Channel
from graphveil.models.labels.logistic import choose_logistic
from graphveil.models.labels.pool import pool_weights
from graphveil.privacy import Guarantee, Randomness, Spend
from graphveil.runtime.checks import require_choice
from graphveil.runtime.late import Tensor, nn, torch
from graphveil.runtime.progress import ProgressCallback
from graphveil.training import Epoch, Schedule, train

#: The laws of the noise, and the bits of a share in a message under geometric noise.
NOISES: Final = ("normal", "geometric")
SOFT_BITS: Final = 6
#: The experts on few columns: strengths C of the regression, and the small network.
SMALL_STRENGTHS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
SMALL_HIDDEN, SMALL_DROPOUT = 32, 0.2
#: The least log-probability: one expert alone never rules a class out.
LEAST: Final = -15.0


@dataclass(frozen=True)
class PublishedSums:
    """What the curator publishes: the nodes' public part, the evidence of features alone, and noisy sums H [n, c] with
    `noise`.
    """

    people: NodeData
    sums: Tensor
    evidence: FeatureEvidence
    noise: Noise
    privacy: CuratorPrivacy
    void: str | None

    @property
    def digest(self) -> str:
        """A hash that identifies the publication."""
        return tensors_digest({"sums": self.sums})


@dataclass(frozen=True)
class FittedSums:
    """A fitted method."""

    schema: GraphSchema
    people: str
    guarantee: Guarantee
    epsilon_relationship: float | None
    network: Network


class ClassSums(FittedEstimator[FittedSums]):
    """Noisy sums of neighbours' classes: `fit` is `publish` (the curator), then `fit_published` (anybody). Raises
    InputError for a value outside its range, or unit "node".

    Args:
        epsilon, delta, unit, relationships: see `CuratorPrivacy`; unit "edge", "directed-edge" or "k-edges".
        noise: "geometric": messages are one-hot classes, and the noise needs no delta; or "normal".
        backbone: a module of your own in place of the network: features beside z, rows [n, d + 2 c] -> scores [n, c],
            any layers, since all that it reads is public or released. It is copied, never trained itself, and is
            given again to load a saved model.

    After fitting: `guarantee`, `ledger`, `history`, `published`.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import ClassSums
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = ClassSums(epsilon=2.0, epochs=2).fit(graph)
        >>> model.epsilon_relationship, model.guarantee.unit.code
        (2.0, 'one-undirected-edge')
    """

    entry, kind = entry_of("class-sums", CURATOR_METHODS), "class-sums"
    fits = "fit_published"
    reads_edges = counts_classes = by_blocks = True
    hops, w_max = 1, 1.0
    layers: tuple[int, ...] = ()  # a plan counts the time of its experts separately
    settings_type = SumsSettings

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 1e-5,
        unit: str | None = None,
        relationships: int | None = None,
        noise: str = "geometric",
        backbone: nn.Module | None = None,
        **settings: Unpack[SumsOptions],
    ) -> None:
        # Messages hold labels as they are: noise for one edge does not protect a node in all its neighbours' sums.
        if unit == "node":
            raise InputError(
                "unit 'node' does not apply to class-sums, which uses exact labels",
                allowed="edge, directed-edge, k-edges",
                remedy="train node-sums, which protects nodes",
            )
        require_choice(NOISES, noise=noise)
        self.privacy, self.noise = CuratorPrivacy(epsilon, delta, unit, relationships=relationships), noise
        self.settings, self.backbone = SumsSettings(**settings), backbone
        self.account = Account(self.privacy.open_ledger())
        self.published: PublishedSums | None = None
        self._answers = QueryAnswers()

    def planned_noise(self, schema: GraphSchema, people: int = 0) -> Noise:
        """Return the noise of the sums, from public facts alone; it does not depend on `people`."""
        counted_sum = self._counted_sum(schema)
        if counted_sum is not None:
            return self.privacy.noise_of_counts(counted_sum)

        def normal(method: ClassSums) -> Noise:
            noise = method.privacy.noise(schema, hops=1, columns=len(schema.classes))
            if not method.privacy.unprotected:
                method.privacy.sums(schema, noise).require_noise(weighted=False)
            return noise

        return with_nearest(self, normal)

    def _counted_sum(self, schema: GraphSchema) -> CountedSum | None:
        """Return the sums with geometric noise; None if the noise is normal."""
        return self.privacy.counted_sum(schema, bits=SOFT_BITS) if self.noise == "geometric" else None

    def _spend(self, schema: GraphSchema, noise: Noise) -> tuple[Spend, ...]:
        law = {} if self.noise == "normal" else {"noise_law": f"two-sided {self.noise}"}
        return self.privacy.spend("class sums", schema, noise, columns=len(schema.classes), **law)

    # ---- the curator ----

    def publish(self, graph: Graph, *, split: Split, randomness: Randomness, engine: Engine = LOCAL) -> PublishedSums:
        """Return the noisy sums; the only place that reads edges.

        Args:
            graph, split: the private graph, and who trains and validates.

        Raises:
            BudgetError: when this publication has already been made, before anything is read.
            InputError: for a unit that does not fit the graph, or an unknown label.
        """
        graph = checked_graph(graph, split, randomness, unreleased=self.name)
        schema, columns = graph.schema, len(graph.schema.classes)
        noise = self.planned_noise(schema)
        if self.backbone is not None:
            models.require_scores(self.backbone, schema.dimension + 2 * columns, columns, edges=False)
        # Before paying: the file of the reader may be missing.
        self._reader()

        def read() -> PublishedSums:
            people = read_people(graph, split)
            rows = ReceiverRows.of(graph.edge_index, people.nodes)
            evidence = feature_evidence(people, corners(people.classes))
            counted_sum = self._counted_sum(schema)
            if counted_sum is None:
                normal, sent = self.privacy.sums(schema, noise), messages(people, evidence)
                sums = normal.perturb(rows, sent, 1, randomness, engine=engine)
            else:
                sums = counted_sum.perturb(rows, named_classes(people, evidence), randomness, engine=engine)
            # Without noise nothing was promised that a known seed could void.
            void = None if self.privacy.unprotected else randomness.void
            return PublishedSums(people, sums, evidence, noise, self.privacy, void)

        return self.account.collect(self._spend(schema, noise), read)

    # ---- anybody ----

    def fit_published(self, published: PublishedSums, *, progress: ProgressCallback | None = None) -> Self:
        """Train on a publication, any number of times at no privacy cost. Raises BudgetError for another publication
        than the one that was paid for.
        """
        require_published(published, PublishedSums)
        if published.privacy != self.privacy:
            raise InputError(
                f"the sums were published with {published.privacy}",
                where="fit_published",
                allowed=f"sums published with {self.privacy}",
            )
        people, evidence, noise = published.people, published.evidence, published.noise
        schema, counted_sum = people.schema, self._counted_sum(people.schema)
        self.account.book_collection(published.digest, self._spend(schema, noise))
        extra_scores, reader = [], self._reader()
        if reader is not None:
            # Corners of a simplex add up to 0: the total of their noisy sums would be noise alone.
            sums = centred(published.sums) if counted_sum is None else published.sums
            extra_scores = [reader.scores(*sum_clues(people, evidence, sums, noise.sigmas[0]))]
        z = sum_inputs(published.sums, noise)
        keywords: dict[str, Any] = {"backbone": self.backbone, "extra_scores": extra_scores}
        network = train_experts(people, evidence, z, self.settings, progress, **keywords)
        guarantee = self.privacy.guarantee(schema, self.account.ledger, void=published.void)
        if counted_sum is None:
            epsilon = self.privacy.epsilon_relationship(schema, noise)
        else:
            epsilon = self.privacy.relationship_by_counts(schema, counted_sum)
        epsilon = None if epsilon is None else epsilon * max(1, len(self.account.ledger.spends))
        self._fitted = FittedSums(schema, people.key, guarantee, epsilon, network)
        self.published = published
        return self

    def _reader(self) -> Reader | None:
        return read_start(self.settings.start, self.kind, OWN, COMMON)

    # ---- both ----

    def collect(
        self,
        graph: Graph,
        *,
        split: Split,
        randomness: Randomness,
        progress: ProgressCallback | None = None,
        engine: Engine = LOCAL,
    ) -> PublishedSums:
        return self.publish(graph, split=split, randomness=randomness, engine=engine)

    def train(
        self,
        collected: PublishedSums,
        *,
        randomness: Randomness | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.fit_published(collected, progress=progress)

    # ---- what comes out ----

    def probabilities(self, graph: Graph | None = None, *, randomness: Randomness | None = None) -> Tensor:
        """Return class probabilities [n, c] of the published nodes; no edge is read. Other nodes are refused: their
        edges would have to be summed, which nobody has paid for.
        """
        fitted, published = self.result, self.published
        features = None if published is None else published.people.features
        if graph is not None and not is_training_graph(fitted.people, features, graph, self._answers):
            raise InputError(
                "class-sums predicts only nodes whose sums were published",
                where=graph.schema.name,
                remedy="publish and fit again, with a new budget",
            )
        return torch.softmax(fitted.network.logits, dim=1)

    def parameters(self) -> dict[str, Any]:
        budget = {"epsilon": self.privacy.epsilon, "delta": self.privacy.delta, **self.privacy.unit_settings}
        return {**budget, "noise": self.noise, "backbone": self.backbone, **asdict(self.settings)}

    @property
    def mechanism_guarantee(self) -> Guarantee:
        return self.result.guarantee

    @property
    def epsilon_relationship(self) -> float | None:
        return self.result.epsilon_relationship

    @property
    def history(self) -> tuple[Epoch, ...]:
        return self.result.network.history

    # ---- files ----

    def stored(self) -> Stored:
        """Return weights, predictions, guarantee and ledger; no edges."""
        fitted = self.result
        facts = {
            "options": {
                "epsilon": number(self.privacy.epsilon),
                "delta": self.privacy.delta,
                **self.privacy.unit_settings,
                "noise": self.noise,
            },
            "settings": {**asdict(self.settings), "start": start_name(self.settings.start)},
            "schema": schema_facts(fitted.schema),
            "people": fitted.people,
            "epsilon_relationship": number(fitted.epsilon_relationship),
            **network_facts(fitted.network),
            **backbone_facts(self.backbone),
            **self.account.facts(),
            "guarantee": self.guarantee.to_dict(),
        }
        return Stored(facts, network_tensors(fitted.network))

    def keep(self, model: Path) -> None:
        features = None if self.published is None else self.published.people.features
        self._answers.save(model, self.kind, self.result.people, features)

    def recall(self, model: Path) -> None:
        with restoring(model):
            self._answers = QueryAnswers.read(model, self.kind, self.result.people)

    @classmethod
    def restore(cls, stored: Stored, *, backbone: nn.Module | None = None) -> ClassSums:
        """Return what `stored` gave, able to predict for its own nodes."""
        facts, tensors = stored.facts, stored.tensors
        options = {"noise": "normal", **facts["options"], "epsilon": float(facts["options"]["epsilon"])}
        method = cls(**options, backbone=backbone, **{**facts["settings"], "device": "cpu"})
        network, schema = restored_network(facts, tensors), schema_from(facts["schema"])
        if backbone is not None:
            models.require_weights(models.OwnBackbone(backbone), network.weights)
        require_classes("logits", network.logits, len(schema.classes))
        epsilon, guarantee = stored_number(facts["epsilon_relationship"]), Guarantee.from_dict(facts["guarantee"])
        method._fitted = FittedSums(schema, str(facts["people"]), guarantee, epsilon, network)
        method.account = restored_account(facts)
        return method


def train_experts(
    people: NodeData,
    evidence: FeatureEvidence,
    z: Tensor,
    settings: SumsSettings,
    progress: ProgressCallback | None = None,
    *,
    backbone: nn.Module | None = None,
    extra_scores: Sequence[Tensor] = (),
) -> Network:
    """Return the network on features and z [n, k], its logits pooled with smaller experts by validation labels:
    logistic regression and a small network on [log p(y | x), z]; and log p(y | x) alone, so that the pool is no worse
    than features alone.  With k = 0 they all read features alone.

    Args:
        people, evidence, z, settings, progress, backbone: as in `train_fusion`, and the evidence of features alone.
        extra_scores: [n, c] of other experts, which were not fitted to validation labels.
    """
    network = train_fusion(people, z, settings, progress, backbone=backbone)
    if not len(people.val):
        return network
    small = torch.cat([models.standardised(evidence.log_probabilities), z], dim=1)
    log_channel = Channel(people.classes).logs
    linear, _ = choose_logistic(small, people.labels, people.train, people.val, log_channel, SMALL_STRENGTHS)
    without_features = replace(people, features=torch.zeros(people.nodes, 1))
    joint = train_fusion(without_features, small, replace(settings, hidden=SMALL_HIDDEN, dropout=SMALL_DROPOUT))
    opinions = [
        network.logits,
        linear.log_probabilities(small),
        joint.logits,
        evidence.log_probabilities,
        *extra_scores,
    ]
    experts = torch.stack([torch.log_softmax(scores, dim=1).clamp_min(LEAST) for scores in opinions])
    equal = torch.full((len(opinions),), 1 / len(opinions))
    weights = pool_weights(experts[:, people.val], log_channel[:, people.labels[people.val]].T, equal)
    return replace(network, logits=torch.tensordot(weights, experts, dims=1))


def train_fusion(
    people: NodeData,
    z: Tensor,
    settings: SumsSettings,
    progress: ProgressCallback | None = None,
    *,
    backbone: nn.Module | None = None,
) -> Network:
    """Return the network trained on features and z [n, k]; k = 0 trains on features alone.

    Args:
        backbone: a module of a user's own that reads both side by side, [n, d + k], in place of the network.
    """
    device = settings.device
    inputs = build_inputs(people.features, None, 0, width=settings.hidden, device=device)
    z = z.to(device)
    if backbone is None:
        generator = torch.Generator().manual_seed(settings.seed)
        size = inputs.dimension, z.shape[1], settings.hidden, people.classes
        model: nn.Module = models.Fusion(*size, settings.dropout, generator=generator).to(device)
    else:
        rows = models.as_rows(inputs)
        inputs = replace(rows, matrix=torch.cat([cast(torch.Tensor, rows.matrix), z], dim=1))
        model = models.OwnBackbone(backbone).to(device)
    train_mask, val_mask = (mask_of(nodes, people.nodes).to(device) for nodes in (people.train, people.val))
    labels = people.labels.to(device)
    # Labels are public, and nothing is propagated.
    objective = drop_objective(labels, train_mask, val_mask, None, 0, Channel(people.classes))
    selection = "robust" if len(people.val) else "last"
    schedule = Schedule(settings.epochs, settings.learning_rate, settings.weight_decay, selection)
    trained = train(model, inputs, z, objective, schedule, seed=settings.seed, progress=progress)
    weights = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
    return Network(weights, None, 1.0, trained.epoch, trained.logits.cpu(), trained.history)


def mask_of(numbers: Tensor, nodes: int) -> Tensor:
    """Return the mask [n] of some node numbers."""
    mask = torch.zeros(nodes, dtype=torch.bool)
    mask[numbers] = True
    return mask
