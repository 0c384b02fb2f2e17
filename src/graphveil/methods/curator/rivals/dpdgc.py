"""DPDGC: features and connections apart; each node's connections are one row, learned privately and summed once.

    topology    W [n, k], rows of length 1, learned on labels of sums over neighbours by private gradient descent
    hop         H = A W + N(0, sigma^2)                both read edges, and are charged together
    classifier  a perceptron over features and H, without features of neighbours: also where neighbours are unlike

Features are not summed, so noise covers connections alone. H is released, and only W's training is sampled: an
undirected edge changes the gradients of two targets and the sums of two nodes. Where this differs from the authors'
code: both ends of an edge are charged, in Poisson batches with the exact price of changed samples (they take the
published curve of replacement without), delta is declared, and rows are at most 1 long in whole numbers. Source: Chien,
Chen, Pan, Li, Ozgur, Milenkovic, "Differentially Private Decoupled Graph Convolutions for Multigranular Topology
Protection", NeurIPS 2023, arXiv 2307.06422.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Unpack, cast

from graphveil import models
from graphveil.aggregation import PerturbedSum
from graphveil.aggregation.perturbed import entries_of
from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.methods.base.method import entry_of
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.curator.privacy import Noise
from graphveil.methods.curator.settings import CuratorSettings, StagedOptions
from graphveil.methods.curator.stages.encoder import stage_for
from graphveil.methods.curator.stages.recipe import StagedEstimator
from graphveil.methods.curator.stages.stages import AddUp, NodeInputs, Recipe, Steps, Sum
from graphveil.methods.curator.stages.training import EdgeReading, build_seeded, private_schedule, receiver_rows
from graphveil.runtime.late import Tensor, nn, torch
from graphveil.training.attention import TopologyDescent, fixed_head

TOPOLOGY: Final = "topology"
#: Rows are priced for so many nodes: what drawing their noise from tables adds must be known before they are counted.
MOST_NODES: Final = 1 << 17


@dataclass(frozen=True)
class DpdgcRecipe(Recipe):
    """One noisy sum of learned rows, and a classifier over features and the sum."""

    kind: str = "dpdgc"

    def networks(self, settings: CuratorSettings, schema: GraphSchema, *, batch_norm: bool) -> list[nn.Module]:
        return [stage_for(settings, schema, [schema.dimension, settings.hidden], batch_norm=batch_norm)]

    def steps(self, networks: Sequence[nn.Module], inputs: NodeInputs, settings: CuratorSettings) -> Steps:
        """Request the sum of rows, which `_sums` learns, and return it beside the features."""
        hidden = cast(models.Stage, networks[0]).widths[1]
        total = yield AddUp(torch.zeros(int(inputs.features.shape[0]), hidden), 1)
        return [inputs.features, cast(torch.Tensor, total)]


class DPDGC(StagedEstimator):
    """DPDGC, see `StagedEstimator`; `publish` learns the rows and gives their noisy sums. Unit "edge" or
    "directed-edge".

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import DPDGC
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = DPDGC(epsilon=4.0, batch=1000, passes=3, epochs=2).fit(graph)
        >>> model.guarantee.epsilon, model.ledger.spends[0].mechanism
        (4.0, 'noisy sums and dp-sgd on edges')
    """

    entry, kind = entry_of("dpdgc", CURATOR_METHODS), "dpdgc"
    recipe: ClassVar[Recipe] = DpdgcRecipe()

    derived = ("hops", "least_steps")

    def __init__(self, *, epsilon: float, unit: str | None = None, **settings: Unpack[StagedOptions]) -> None:
        options: dict[str, Any] = {**settings}
        super().__init__(epsilon=epsilon, unit=unit, **{**options, "hops": options.get("hops") or 1})
        if self.privacy.unit in ("node", "k-edges"):
            raise InputError(f"unit {self.privacy.unit!r} does not apply to dpdgc", allowed="edge, directed-edge")
        if self.privacy.tuning is not None:
            raise InputError("dpdgc is priced for one training", allowed="no tuning")
        if self.privacy.queries:
            raise InputError("a row is learned for each node", where="dpdgc", allowed="queries=0")
        if (self.settings.hops, self.settings.weights) != (1, "uniform"):
            raise InputError("dpdgc sums once, without weights", allowed="hops=1, weights=uniform")

    def _noise(self, schema: GraphSchema, sizes: Sequence[int], people: int) -> Noise:
        changed = self.settings.changing(TOPOLOGY, people, entries_of(self.privacy.unit_for(schema)))
        return self.privacy.noise(
            schema,
            hops=1,
            columns=self.settings.hidden,
            trained={TOPOLOGY: (changed, self.settings.hidden * MOST_NODES)},
            share_hops=self.settings.share_hops,
        )

    def _sums(self, reading: EdgeReading) -> Sum:
        """Return what learns rows and sums them, and so reads edges twice, behind noise."""
        noise, people = reading.noise, reading.people
        if people is None:
            raise InputError("rows are learned for the nodes of the training alone", where="predict")
        if people.nodes > MOST_NODES:
            raise InputError(f"{people.nodes} nodes", where="dpdgc", allowed=f"at most {MOST_NODES}")
        sums: PerturbedSum = self.privacy.sums(reading.schema, noise, bits=self.settings.bits)

        def add(stage: AddUp) -> Tensor:
            rows = receiver_rows(reading.graph, self.privacy, self.settings, stage.rows)
            start, head = build_seeded(
                lambda: (torch.randn(stage.rows.shape), fixed_head(people.classes, stage.rows.shape[1])),
                self.settings.seed,
            )
            schedule = private_schedule(self.settings, len(people.train), noise.multipliers.get(TOPOLOGY))
            samples, protect = entries_of(self.privacy.unit_for(reading.schema)), not self.privacy.unprotected
            descent = TopologyDescent(
                start, head, rows, people.train, people.labels[people.train], schedule, samples=samples, protect=protect
            )
            # Learned rows may be summed once: the price covers one training and one sum.
            descent.run(randomness=reading.randomness, progress=reading.progress)
            return sums.perturb(rows, descent.finish(), stage.hop, reading.randomness, engine=reading.engine)

        return add
