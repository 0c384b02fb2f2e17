"""CARIBOU: several hops with noise in each, of which the last alone is released, so that depth costs next to nothing.

    encoder     X = unit rows of a perceptron trained on features and labels alone
    chain       x_k = c ( a P clip(x_{k-1}) + (1 - a) mean ) + b X + Z_k,  k = 1..K    the one place that reads edges
    classifier  a perceptron over X and x_K

The chain, its price and the proof are those of `aggregation.contractive`: K hidden steps cost less than
(1 + c) / (1 - c) released ones, however large K is. Where this differs from the authors' code: noise does not follow
the smallest degree of the private graph, but a declared floor under all degrees; and no edge is read after the last
noise. Their code multiplies the noisy state by the graph once more before the classifier, so that predictions show
edges. Unit "edge" of undirected graphs. Shapes: X and x_k [n, hidden].
Source: Zheng, Li, Li, Wang, "Convergent Privacy Framework for Multi-layer GNNs through Contractive Message Passing",
NDSS 2026, arXiv 2506.22727.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Unpack, cast

from graphveil.aggregation.contractive import ContractiveChain
from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.methods.base.method import entry_of
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.curator.privacy import Noise
from graphveil.methods.curator.rivals.dpdgc import MOST_NODES
from graphveil.methods.curator.settings import CaribouOptions, CaribouSettings, CuratorSettings
from graphveil.methods.curator.stages.encoder import (
    encoder_and_classifier,
    encoder_rows,
    require_one_edge,
    require_undirected,
)
from graphveil.methods.curator.stages.recipe import StagedEstimator
from graphveil.methods.curator.stages.stages import AddUp, NodeInputs, Recipe, Steps, Sum, Train
from graphveil.methods.curator.stages.training import EdgeReading, receiver_rows
from graphveil.privacy import ChangedSamples
from graphveil.runtime.late import Tensor, nn, torch

CHAIN: Final = "chain"


@dataclass(frozen=True)
class CaribouRecipe(Recipe):
    """An encoder, a chain that is requested like a sum, and a classifier over the rows before and after it."""

    kind: str = "caribou"

    def networks(self, settings: CuratorSettings, schema: GraphSchema, *, batch_norm: bool) -> list[nn.Module]:
        return encoder_and_classifier(settings, schema, [settings.hidden] * 2, batch_norm=batch_norm)

    def steps(self, networks: Sequence[nn.Module], inputs: NodeInputs, settings: CuratorSettings) -> Steps:
        """Train the encoder, request the last state of the chain, and return it beside the first rows."""
        yield Train(0, [inputs.features])
        rows = encoder_rows(networks[0], inputs.features)
        return [rows, cast(torch.Tensor, (yield AddUp(rows, 1)))]


class Caribou(StagedEstimator):
    """CARIBOU, see `StagedEstimator`; `publish` gives X and x_K. Unit "edge" alone.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import Caribou
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = Caribou(epsilon=4.0, hops=8, epochs=2).fit(graph)
        >>> model.guarantee.epsilon, len(model.published.parts)
        (4.0, 2)
    """

    entry, kind = entry_of("caribou", CURATOR_METHODS), "caribou"
    by_blocks = predicts_by_blocks = False
    recipe: ClassVar[Recipe] = CaribouRecipe()
    settings_type = CaribouSettings
    settings: CaribouSettings

    def __init__(self, *, epsilon: float, unit: str | None = None, **settings: Unpack[CaribouOptions]) -> None:
        options: dict[str, Any] = {**settings}
        super().__init__(epsilon=epsilon, unit=unit, **options)
        require_one_edge(self.kind, self.privacy)
        if (self.settings.weights, self.settings.hop_ratio) != ("uniform", 1.0):
            raise InputError("the chain has neither weights nor a hop_ratio", where="caribou", allowed="their defaults")

    @property
    def chain(self) -> ContractiveChain:
        """The chain with its public parameters."""
        names = ("hops", "contraction", "share", "residual", "floor")
        return ContractiveChain(**{name: getattr(self.settings, name) for name in names})

    def _noise(self, schema: GraphSchema, sizes: Sequence[int], people: int) -> Noise:
        require_undirected(self.kind, schema)
        hops = self.settings.hops
        if self.privacy.unprotected:
            return Noise((0.0,) * hops)
        # One release for one edge: `ChangedSamples` prices a change by two in noise of the multiplier.
        once = ChangedSamples(steps=1, rate=1.0, samples=1, name=CHAIN)
        # Each number is drawn from a table and placed in its cell: two roundings.
        numbers = 2 * self.settings.hidden * hops * MOST_NODES
        calibrated = self.privacy.noise(schema, hops=0, trained={CHAIN: (once, numbers)})
        sigma = self.chain.sigma(calibrated.multipliers[CHAIN] / 2)
        return Noise((sigma,) * hops, {}, calibrated.epsilon, calibrated.delta)

    def _require_drawable(self, schema: GraphSchema, noise: Noise) -> None:
        """Do nothing: the chain's grid follows from its noise."""

    def _ledger_facts(self) -> dict[str, float | int | str]:
        return {
            "states": "the last alone is released",
            **{name: getattr(self.settings, name) for name in ("contraction", "share", "residual", "floor")},
        }

    def _sums(self, reading: EdgeReading) -> Sum:
        """Return what runs the chain to its last state, and so reads edges, behind noise."""
        people = reading.people
        if people is None or people.nodes > MOST_NODES:
            raise InputError("the chain runs on the nodes of the training", allowed=f"at most {MOST_NODES} nodes")

        def add(stage: AddUp) -> Tensor:
            rows = receiver_rows(reading.graph, self.privacy, self.settings, stage.rows)
            return self.chain.released(rows, stage.rows, reading.noise.sigmas[0], reading.randomness)

        return add
