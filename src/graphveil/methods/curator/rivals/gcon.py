"""GCON: a linear head trained on convolved rows, released with noise; predictions read edges once more, behind noise.

    encoder     X = unit rows of a perceptron trained on features and labels alone
    head        T = logistic regression on R X, R a truncated personalised PageRank of the graph; released with noise
    hop         H = A^T unit(X T) + N(0, sigma^2)
    classifier  a perceptron over X, X T and H

Head and hop both read edges and are charged together, as one stack of normal releases. The published method charges the
head alone and predicts with each node's own edges as they are: its epsilon is of the weights, not of the predictions,
which reveal who is connected to whom. Here the price covers everything that is released, so predictions read a noisy
sum. For the price of the head, and the part of the published proof that holds, see `training.convolved`. Unit "edge" of
undirected graphs: the bound on R assumes every edge in both directions.
Source: Wei, Zhu, Xiao, Bao, Yang, Cai, Ooi, "GCON: Differentially Private Graph Convolutional Network via Objective
Perturbation", ICDE 2025, arXiv 2407.05034.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Unpack, cast

from graphveil.aggregation import PerturbedSum, unit_rows
from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.methods.base.method import entry_of
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.curator.privacy import Noise
from graphveil.methods.curator.settings import CuratorSettings, GconOptions, GconSettings
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
from graphveil.training.convolved import ConvolvedRegression

HEAD: Final = "head"
#: The default share of the budget for the sum: the head needs little noise.
SHARE: Final = 0.8


@dataclass(frozen=True)
class GconRecipe(Recipe):
    """An encoder, a head that is requested like a sum, one noisy sum of its scores, and a classifier over all."""

    kind: str = "gcon"

    def networks(self, settings: CuratorSettings, schema: GraphSchema, *, batch_norm: bool) -> list[nn.Module]:
        classes = len(schema.classes)
        return encoder_and_classifier(settings, schema, [settings.hidden, classes, classes], batch_norm=batch_norm)

    def steps(self, networks: Sequence[nn.Module], inputs: NodeInputs, settings: CuratorSettings) -> Steps:
        """Train the encoder, request the head's scores of its rows (1) and their noisy sum (2)."""
        yield Train(0, [inputs.features])
        rows = encoder_rows(networks[0], inputs.features)
        scores = cast(torch.Tensor, (yield AddUp(rows, 1)))
        total = cast(torch.Tensor, (yield AddUp(scores, 2)))
        return [rows, unit_rows(scores), unit_rows(total)]


class GCON(StagedEstimator):
    """GCON, see `StagedEstimator`; `publish` trains the head and gives its scores and their noisy sum. Unit "edge"
    alone.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import GCON
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = GCON(epsilon=4.0, epochs=2).fit(graph)
        >>> model.guarantee.epsilon, len(model.published.noise.sigmas)
        (4.0, 1)
    """

    entry, kind = entry_of("gcon", CURATOR_METHODS), "gcon"
    recipe: ClassVar[Recipe] = GconRecipe()
    settings_type = GconSettings
    settings: GconSettings

    def __init__(self, *, epsilon: float, unit: str | None = None, **settings: Unpack[GconOptions]) -> None:
        options: dict[str, Any] = {**settings}
        super().__init__(epsilon=epsilon, unit=unit, **options)
        require_one_edge(self.kind, self.privacy)
        if self.settings.weights != "uniform":
            raise InputError("gcon sums without weights", allowed="weights=uniform")

    @property
    def hops(self) -> int:
        """One noisy sum; the head's convolution, however deep, is not released."""
        return 1

    def _noise(self, schema: GraphSchema, sizes: Sequence[int], people: int) -> Noise:
        require_undirected(self.kind, schema)
        once = ChangedSamples(steps=1, rate=1.0, samples=1, name=HEAD)
        weights = self.settings.hidden * len(schema.classes)
        calibrated = self.privacy.noise(
            schema,
            hops=1,
            columns=len(schema.classes),
            trained={HEAD: (once, weights)},
            share_hops=self.settings.share_hops or SHARE,
        )
        # One noisy release of weights, not a training on edges in steps.
        return replace(calibrated, changed=None)

    def _ledger_facts(self) -> dict[str, float | int | str]:
        return {"restart": self.settings.restart, "depth": self.settings.hops, "penalty": self.settings.penalty}

    def _sums(self, reading: EdgeReading) -> Sum:
        """Return what gives the head's scores, then their noisy sums, and so reads edges, behind noise."""
        noise, people = reading.noise, reading.people
        if people is None:
            raise InputError("the head is trained for the nodes of the training alone", where="predict")
        sums: PerturbedSum = self.privacy.sums(reading.schema, noise, bits=self.settings.bits)

        def add(stage: AddUp) -> Tensor:
            rows = receiver_rows(reading.graph, self.privacy, self.settings, stage.rows)
            if stage.hop == 2:
                return sums.perturb(rows, stage.rows, 1, reading.randomness, engine=reading.engine)
            convex = ConvolvedRegression(
                restart=self.settings.restart,
                depth=self.settings.hops,
                penalty=self.settings.penalty,
                people=len(people.train),
                columns=stage.rows.shape[1],
                classes=people.classes,
            )
            # Z reads all edges and stays here: the weights are released, whose change the public numbers above bound.
            z = convex.convolved(rows, stage.rows)
            head = convex.minimum(z[people.train], people.labels[people.train])
            return stage.rows @ convex.released(head, noise.multipliers.get(HEAD, 0.0), reading.randomness)

        return add
