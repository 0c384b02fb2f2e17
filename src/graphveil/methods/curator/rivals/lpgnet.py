"""LPGNet: perceptrons in a row, each reading how many neighbours the one before it put in each class, with noise.

    stage 0   z_0 = perceptron(x),                       g_0 = its guess of every node's class
    hop i     N_i = A^T onehot(g_{i-1}) + Z_i            the one place that reads edges
    stage i   z_i = perceptron(z_0 | asinh N_1 | z_1 | ... | asinh N_i),   g_i = its guess

Guesses, not labels, name the groups, so nodes without a label are counted too. Z_i is two-sided geometric: a guess
moves one count by 1 at either end of an edge, and `hops` counts together cost epsilon, without a delta, as the authors
charge it. Where this differs from their code: noise is drawn exactly and not cut off at 0, and counts are compressed
by asinh before a perceptron reads them. Source: Kolluri, Baluta, Hooi, Saxena, "LPGNet: Link Private Graph Networks for
Node Classification", CCS 2022, arXiv 2205.03105.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack, cast

from graphveil import models
from graphveil.aggregation import CountedSum
from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.methods.base.method import entry_of
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.curator.privacy import Noise
from graphveil.methods.curator.settings import CuratorSettings, StagedOptions, default_hops
from graphveil.methods.curator.stages.encoder import encoder_for
from graphveil.methods.curator.stages.recipe import StagedEstimator
from graphveil.methods.curator.stages.stages import AddUp, NodeInputs, Recipe, Steps, Sum, Train
from graphveil.methods.curator.stages.training import EdgeReading, FeatureBlock, logits_of, receiver_rows
from graphveil.privacy import require_budget
from graphveil.runtime.late import Tensor, nn, torch


@dataclass(frozen=True)
class LpgnetRecipe(Recipe):
    """K + 1 perceptrons, with noisy counts of guesses between each two."""

    kind: str = "lpgnet"

    def networks(self, settings: CuratorSettings, schema: GraphSchema, *, batch_norm: bool) -> list[nn.Module]:
        hidden, classes = settings.hidden, len(schema.classes)
        return [
            encoder_for(settings, schema, batch_norm=batch_norm),
            *(
                models.HopClassifier([classes] * (2 * hop), hidden, classes, batch_norm=batch_norm)
                for hop in range(1, settings.hops + 1)
            ),
        ]

    def columns(self, settings: CuratorSettings, schema: GraphSchema) -> int:
        """Return the number of columns that a guess changes."""
        return 1

    def steps(self, networks: Sequence[nn.Module], inputs: NodeInputs, settings: CuratorSettings) -> Steps:
        """Train, guess, count K times, and return the scores and counts that the last network reads."""
        parts: list[FeatureBlock] = [inputs.features]
        for hop in range(settings.hops):
            yield Train(hop, parts)
            scores = logits_of(networks[hop], parts)
            # Guesses come from features, public labels and earlier noisy counts: a count costs what the first one does.
            counts = yield AddUp(torch.nn.functional.one_hot(scores.argmax(dim=1), scores.shape[1]).float(), hop + 1)
            parts = [*(parts if hop else []), scores, torch.asinh(cast(torch.Tensor, counts))]
        return parts


class LPGNet(StagedEstimator):
    """LPGNet, see `StagedEstimator`; `publish` gives scores and noisy counts. Units of edges alone.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import LPGNet
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = LPGNet(epsilon=2.0, hops=1, epochs=2).fit(graph)
        >>> model.guarantee.epsilon, model.published.noise.sigmas
        (2.0, (1.3569624860030471,))
    """

    entry, kind = entry_of("lpgnet", CURATOR_METHODS), "lpgnet"
    recipe: ClassVar[Recipe] = LpgnetRecipe()
    derived = ("hops", "least_steps")

    def __init__(self, *, epsilon: float, unit: str | None = None, **settings: Unpack[StagedOptions]) -> None:
        require_budget("epsilon", epsilon, "no privacy")  # before settings are chosen by it
        if settings.get("hops") is None:
            # In the mean of five graphs one count gains 0.5 points at epsilon 1, and three gain 1.3 at 45.
            settings["hops"] = default_hops(epsilon, unit, under_noise=1, little_noise=3)
        options: dict[str, Any] = {**settings}
        super().__init__(epsilon=epsilon, unit=unit, **options)
        if self.privacy.protects_nodes:
            raise InputError(
                "unit 'node' does not apply to lpgnet: guesses read a node's own features",
                allowed="edge, directed-edge, k-edges",
            )
        # Weights would stretch a message, and shares of the budget are for sums beside private training.
        if (self.settings.weights, self.settings.hop_ratio) != ("uniform", 1.0):
            raise InputError("counts have neither weights nor a hop_ratio", where="lpgnet", allowed="their defaults")

    def _relationship_once(self) -> float | None:
        schema = self.result.schema
        return self.privacy.relationship_by_counts(schema, self._counted_sum(schema))

    def _counted_sum(self, schema: GraphSchema) -> CountedSum:
        return self.privacy.counted_sum(schema, hops=self.settings.hops)

    def _noise(self, schema: GraphSchema, sizes: Sequence[int], people: int) -> Noise:
        return self.privacy.noise_of_counts(self._counted_sum(schema))

    def _require_drawable(self, schema: GraphSchema, noise: Noise) -> None:
        """Do nothing: counts have no grid."""

    def _ledger_facts(self) -> dict[str, float | int | str]:
        return {"noise_law": "two-sided geometric"}

    def _sums(self, reading: EdgeReading) -> Sum:
        """Return what counts neighbours in a graph, and so reads its edges, behind noise."""
        counted_sum = self._counted_sum(reading.schema)

        def add(stage: AddUp) -> Tensor:
            rows = receiver_rows(reading.graph, self.privacy, self.settings, stage.rows)
            return counted_sum.perturb(rows, stage.rows, reading.randomness, engine=reading.engine)

        return add
