"""GAP: train on sums over neighbours that are noisy once and for all.

    encoder     X_0 = unit rows of a perceptron trained on features and labels alone
    hops        S_k = A^T R_{k-1} + N(0, sigma_k^2),  k = 1..K                  the one place that reads edges
                R_0 = unit( X_0 | corner of a public label, or the mean corner that is expected )
                R_k = X_k = unit( unit(S_k) - m ),  m its mean over all nodes
    classifier  a perceptron over E, X_1..X_K, trained and applied any number of times
                E = mean corner by the class probabilities of encoders; a training node's by encoders it did not train
    prediction  the classifier, or its pool with encoders, see `methods.curator.pooled`

Each sum and its noise come from `aggregation.perturbed.PerturbedSum.perturb`. Where edges are protected, encoder and
classifier cost nothing; where nodes are, both train by private gradient descent and are charged. Sums, not means: a
mean divides by a private degree. m is ours, post-processing of the noisy sums: where people have many neighbours all
sums have almost the same direction, which would dominate the next sum. The label in R_0 is ours too; it is public where
edges are the unit, and says what features do not. So is E: X_0 overfits the labels of its training nodes, and a
classifier that learns from it would read little else. As published, and where nodes are protected, m is 0, R_0 = X_0
and E = X_0: a node's row is for that node alone, and a mean would show it to everybody. Source: Sajadmanesh,
Shamsabadi, Bellet, Gatica-Perez, "GAP", USENIX Security 2023, arXiv 2203.00949; noise is calibrated to the unit that is
named, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack, cast

from graphveil import models
from graphveil.aggregation import unit_rows
from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.methods.base.method import entry_of
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.curator.pooled import UNPOOLED, with_pooling_defaults
from graphveil.methods.curator.settings import LITTLE_NOISE, CuratorSettings, GapOptions, GapSettings, default_hops
from graphveil.methods.curator.stages.encoder import encoder_for, encoder_rows, expected_corners, message_rows
from graphveil.methods.curator.stages.recipe import StagedEstimator
from graphveil.methods.curator.stages.stages import AddUp, Expect, NodeInputs, Recipe, Steps, Train
from graphveil.methods.curator.stages.training import ATTENTION, FeatureBlock, logits_of
from graphveil.models.names import encoder_size, hop_classifier_size, pair_attention_size
from graphveil.privacy import require_budget
from graphveil.runtime.late import Tensor, nn, torch


@dataclass(frozen=True)
class GapRecipe(Recipe):
    """An encoder, K noisy sums of its rows, and a classifier over all of them."""

    kind: str = "gap"

    def networks(self, settings: CuratorSettings, schema: GraphSchema, *, batch_norm: bool) -> list[nn.Module]:
        hidden, classes = settings.hidden, len(schema.classes)
        return [
            encoder_for(settings, schema, batch_norm=batch_norm),
            *([models.PairAttention(hidden, classes)] if settings.weights == ATTENTION else []),
            models.HopClassifier(_classifier_widths(settings, schema), hidden, classes, batch_norm=batch_norm),
        ]

    def sizes(self, settings: CuratorSettings, schema: GraphSchema) -> list[int]:
        hidden, classes = settings.hidden, len(schema.classes)
        return [
            encoder_size(schema.dimension, hidden, classes),
            *([pair_attention_size(hidden, classes)] if settings.weights == ATTENTION else []),
            hop_classifier_size(_classifier_widths(settings, schema), hidden, classes),
        ]

    def columns(self, settings: CuratorSettings, schema: GraphSchema) -> int:
        return cast(GapSettings, settings).summed_columns(schema)

    def opinions(
        self, networks: Sequence[nn.Module], features: FeatureBlock, parts: Sequence[FeatureBlock]
    ) -> list[Tensor]:
        return [logits_of(networks[0], [features]), logits_of(networks[-1], parts)]

    def steps(self, networks: Sequence[nn.Module], inputs: NodeInputs, settings: CuratorSettings) -> Steps:
        """Train the encoder, sum K times, and return E, X_1..X_K."""
        yield Train(0, [inputs.features])
        # Of length 1 at most: the sensitivity of the sum to one entry of A. `perturb` keeps it exactly, on its grid.
        gap, encoder = cast(GapSettings, settings), networks[0]
        rows = encoder_rows(encoder, inputs.features)
        row = message_rows(gap, encoder, [inputs.features], rows, inputs.labels)
        if gap.rows == "labelled":
            rows = expected_corners((yield Expect(0, [inputs.features])))
        parts = [rows]
        for hop in range(1, settings.hops + 1):
            total = cast(torch.Tensor, (yield AddUp(row, hop)))
            # Post-processing of a noisy sum, which bounds the rows of the next one.
            row = unit_rows(total)
            if gap.scaling == "standard":
                row = unit_rows(row - row.double().mean(dim=0).float())
            parts.append(row)
        return list(parts)


def _classifier_widths(settings: CuratorSettings, schema: GraphSchema) -> list[int]:
    """Return the columns of the classifier's parts: of a node itself, and of each noisy sum."""
    gap = cast(GapSettings, settings)
    return [gap.own_columns(schema, gap.hidden), *[gap.summed_columns(schema)] * gap.hops]


def width_for(epsilon: float, unit: str | None) -> int:
    """Return the columns that are learned and summed by default, by the budget alone: 16, and 64 where nodes are
    protected at epsilon 20 or more. At 50 these gained 4.3 points on Cora and 0.7 in the mean of five graphs, at 8
    they lost 10 on Johns Hopkins55.
    """
    return 64 if unit == "node" and epsilon >= LITTLE_NOISE else 16


class GAP(StagedEstimator):
    """GAP, a `StagedEstimator` whose `publish` returns E, X_1..X_K. Raises InputError for scaling "standard" or pooling
    "stages" where nodes are protected, and for what `StagedEstimator` refuses.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import GAP
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = GAP(epsilon=2.0, hops=2, epochs=2).fit(graph)
        >>> model.epsilon_relationship, len(model.published.noise.sigmas)
        (2.0, 2)
    """

    entry, kind = entry_of("gap", CURATOR_METHODS), "gap"
    recipe: ClassVar[Recipe] = GapRecipe()
    settings_type = GapSettings
    derived = ("hops", "hidden", "scaling", "pooling", "rows", "least_steps")
    old_file_defaults: ClassVar[Mapping[str, Any]] = {**UNPOOLED, "scaling": "published"}

    def __init__(self, *, epsilon: float, unit: str | None = None, **settings: Unpack[GapOptions]) -> None:
        require_budget("epsilon", epsilon, "no privacy")  # before settings are chosen by it
        if unit == "node" and settings.get("scaling") == "standard":
            raise InputError(
                "scaling standard with unit node: a mean of rows would carry each node's own row to all others",
                allowed="scaling=published",
            )
        if settings.get("hops") is None:
            # One sum gains 7.6 points at epsilon 1 on Caltech36, 0.9 in the mean of ten graphs and 1.2 at 2 in that of
            # five; at 3 it loses 0.2. At node level it gains 1.6 at 2 in the mean of five.
            settings["hops"] = default_hops(epsilon, unit, under_noise=1, little_noise=2)
        if settings.get("hidden") is None:
            settings["hidden"] = width_for(epsilon, unit)
        if settings.get("scaling") is None:
            settings["scaling"] = "published" if unit == "node" else "standard"
        super().__init__(epsilon=epsilon, unit=unit, **with_pooling_defaults(settings, unit))
