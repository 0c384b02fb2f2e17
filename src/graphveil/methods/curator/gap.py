"""GAP: train on sums over neighbours that are noisy once and for all.

    encoder     X_0 = unit rows of a perceptron trained on features and labels alone
    hops        X_k = unit( A^T X_{k-1} + N(0, sigma_k^2) ),  k = 1..K          the one place that reads edges
    classifier  a perceptron over X_0..X_K, trained and asked as often as one likes

Where edges are protected, encoder and classifier cost nothing; where nodes are, both train by private gradient descent
and are charged. Sums, not means: a mean divides by a private degree. Source: Sajadmanesh, Shamsabadi, Bellet,
Gatica-Perez, "GAP", USENIX Security 2023, arXiv 2203.00949; noise is calibrated to the unit that is named, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from graphveil import models
from graphveil.aggregation import unit_rows
from graphveil.graphs import GraphSchema
from graphveil.late import torch
from graphveil.methods.curator.encoder import encoded
from graphveil.methods.curator.recipe import StagedCore
from graphveil.methods.curator.settings import CuratorSettings
from graphveil.methods.curator.stages import AddUp, Known, Recipe, Steps, Train
from graphveil.methods.curator.training import ATTENTION
from graphveil.models.sizes import encoder_size, hop_classifier_size, pair_attention_size

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class GapRecipe(Recipe):
    """An encoder, K noisy sums of its rows, and a classifier over all of them."""

    kind: str = "gap"

    def networks(self, settings: CuratorSettings, schema: GraphSchema, *, batch_norm: bool) -> list[nn.Module]:
        """Return encoder, attention where it weighs the messages, and classifier."""
        hidden, classes = settings.hidden, len(schema.classes)
        return [
            models.Encoder(schema.dimension, hidden, classes, batch_norm=batch_norm),
            *([models.PairAttention(hidden, classes)] if settings.weights == ATTENTION else []),
            models.HopClassifier([hidden] * (settings.hops + 1), hidden, classes, batch_norm=batch_norm),
        ]

    def sizes(self, settings: CuratorSettings, schema: GraphSchema) -> list[int]:
        """Return the numbers of each of them."""
        hidden, classes = settings.hidden, len(schema.classes)
        return [
            encoder_size(schema.dimension, hidden, classes),
            *([pair_attention_size(hidden, classes)] if settings.weights == ATTENTION else []),
            hop_classifier_size([hidden] * (settings.hops + 1), hidden, classes),
        ]

    def steps(self, networks: Sequence[nn.Module], known: Known, hops: int) -> Steps:
        """Train the encoder, sum K times, and return X_0..X_K."""
        yield Train(0, [known.features])
        # At most length 1: the sensitivity that one entry of A has in the sum. `perturb` holds it exactly, on its grid.
        rows = [encoded(networks[0], known.features)]
        for hop in range(1, hops + 1):
            total = yield AddUp(rows[-1], hop)
            # Post-processing of a noisy sum, and what bounds the next one again.
            rows.append(unit_rows(cast(torch.Tensor, total)))
        return list(rows)


class GAPCore(StagedCore):
    """GAP, see `StagedCore`; `publish` gives X_0..X_K.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import GAP
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = GAP(epsilon=2.0, hops=2, epochs=2).fit(graph)
        >>> model.epsilon_relationship, len(model.published.noise.sigmas)
        (2.0, 2)
    """

    kind = "gap"
    recipe: ClassVar[Recipe] = GapRecipe()
