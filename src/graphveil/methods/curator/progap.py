"""ProGAP: noisy sums in stages, each of rows that were learned anew on the sums before.

    stage i     train z = Wz unit( h_0 | ... | h_i ) on labels, h_j one layer over X_0, two layers over each noisy sum;
                earlier layers go on training
    hop i + 1   X_{i+1} = A^T unit(h_i) + N(0, sigma^2)                         the one place that reads edges
    prediction  stage K over the features X_0 and the noisy sums X_1..X_K

Its K sums cost what GAP's K sums cost. Where nodes are protected every stage trains by private gradient descent and is
charged. Source: Sajadmanesh, Gatica-Perez, "ProGAP: Progressive Graph Neural Networks with Differential Privacy
Guarantees", WSDM 2024, arXiv 2304.08928.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import nn

from graphveil.graphs import GraphSchema
from graphveil.methods.curator.recipe import CuratorMethod, Learn, Recipe, Sum
from graphveil.methods.curator.settings import CuratorSettings
from graphveil.methods.curator.training import FeatureBlock, blocks
from graphveil.models.perceptrons import Stage


@dataclass(frozen=True)
class ProgapRecipe:
    """K + 1 stages with a noisy sum between each two."""

    kind: str = "progap"

    def networks(self, settings: CuratorSettings, schema: GraphSchema, *, batch_norm: bool) -> list[nn.Module]:
        """Return the stages."""
        hidden = settings.hidden
        widths = [schema.dimension, *([hidden] * settings.hops)]
        return [
            Stage(widths[: stage + 1], hidden, len(schema.classes), batch_norm=batch_norm)
            for stage in range(settings.hops + 1)
        ]

    def start(self, networks: Sequence[nn.Module], which: int) -> None:
        """A stage goes on from the layers of the one before it."""
        if which:
            cast(Stage, networks[which]).go_on(networks[which - 1])

    def columns(self, settings: CuratorSettings) -> int:
        """Return the columns of a summed row."""
        return settings.hidden

    def parts(
        self, networks: Sequence[nn.Module], features: FeatureBlock, hops: int, learn: Learn, add: Sum
    ) -> list[FeatureBlock]:
        """Return the features and X_1..X_K."""
        found: list[FeatureBlock] = [features]
        for number in range(hops):
            stage = cast(Stage, networks[number])
            learn(number, found)
            with torch.no_grad():
                rows = stage.embed(blocks(found))
            found.append(add(rows, number + 1))
        return found


class ProGAP(CuratorMethod):
    """The estimator, see `CuratorMethod`; `publish` trains all stages but the last and gives X_1..X_K."""

    recipe: ClassVar[Recipe] = ProgapRecipe()
