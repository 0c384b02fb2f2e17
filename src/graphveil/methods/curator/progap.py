"""ProGAP: noisy sums in stages, each of rows learned anew on the sums before.

    stage i     train z = Wz unit( h_0 | ... | h_i ) on labels, h_j two layers over X_j; earlier layers train on
                h_0 one layer over the features, from stage 1 on over E, the mean corner that stage 0 expects; for a
                training node as learned from other nodes, see GAP
    hop i + 1   X_{i+1} = A^T R_i + N(0, sigma^2)                               the one place that reads edges
                R_i = unit( h_i | corner of a public label, or the mean corner that stage i expects ), see GAP
    prediction  stage K over E and the noisy sums X_1..X_K, or its pool with the stages before, see
                `methods.curator.pooled`

Its K sums cost what GAP's K sums cost. As published, and where nodes are protected, E is the features; where nodes are
protected every stage trains by private gradient descent and is charged. Source: Sajadmanesh, Gatica-Perez, "ProGAP:
Progressive Graph Neural Networks with Differential Privacy Guarantees", WSDM 2024, arXiv 2304.08928.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack, cast

from graphveil import models
from graphveil.graphs import GraphSchema
from graphveil.methods.base.method import entry_of
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.curator.pooled import UNPOOLED, with_pooling_defaults
from graphveil.methods.curator.settings import CuratorSettings, PooledOptions, ProgapSettings, default_hops
from graphveil.methods.curator.stages.encoder import expected_corners, message_rows, stage_for
from graphveil.methods.curator.stages.recipe import StagedEstimator
from graphveil.methods.curator.stages.stages import AddUp, Expect, NodeInputs, Recipe, Steps, Train
from graphveil.methods.curator.stages.training import FeatureBlock, blocks, device_of, logits_of
from graphveil.models.names import stage_size
from graphveil.privacy import require_budget
from graphveil.runtime.late import Tensor, nn, torch


@dataclass(frozen=True)
class ProgapRecipe(Recipe):
    """K + 1 stages with a noisy sum between each two."""

    kind: str = "progap"

    def networks(self, settings: CuratorSettings, schema: GraphSchema, *, batch_norm: bool) -> list[nn.Module]:
        return [
            stage_for(settings, schema, widths, batch_norm=batch_norm) for widths in _stage_widths(settings, schema)
        ]

    def sizes(self, settings: CuratorSettings, schema: GraphSchema) -> list[int]:
        return [stage_size(widths, settings.hidden, len(schema.classes)) for widths in _stage_widths(settings, schema)]

    def layers(self, hops: int) -> list[int]:
        """Return the layers of each stage: one over features, two over each sum."""
        return [1 + 2 * stage for stage in range(hops + 1)]

    def start(self, networks: Sequence[nn.Module], which: int) -> None:
        """Copy the layers of the stage before that read the same parts."""
        stage, earlier = (cast(models.Stage, networks[number]) for number in (which, which - 1))
        if which and stage.widths[0] == earlier.widths[0]:
            stage.go_on(earlier)

    def columns(self, settings: CuratorSettings, schema: GraphSchema) -> int:
        return cast(ProgapSettings, settings).summed_columns(schema)

    def opinions(
        self, networks: Sequence[nn.Module], features: FeatureBlock, parts: Sequence[FeatureBlock]
    ) -> list[Tensor]:
        parts_of: list[Sequence[FeatureBlock]] = [[features], *(parts[:stage] for stage in range(2, len(networks) + 1))]
        return [logits_of(network, stage_parts) for network, stage_parts in zip(networks, parts_of, strict=True)]

    def steps(self, networks: Sequence[nn.Module], inputs: NodeInputs, settings: CuratorSettings) -> Steps:
        """Train all stages but the last, with a sum after each, and return E (or the features) and X_1..X_K."""
        progap, parts = cast(ProgapSettings, settings), cast("list[FeatureBlock]", [inputs.features])
        for number in range(settings.hops):
            stage = cast(models.Stage, networks[number])
            yield Train(number, parts)
            with torch.no_grad():
                # From features, labels and earlier noisy sums: no edge is read here, so the next sum costs what the
                # first does.
                rows = stage.embed(blocks(parts, device=device_of(stage)))
            rows = message_rows(progap, stage, parts, rows, inputs.labels)
            if number == 0 and progap.rows == "labelled":
                parts = [expected_corners((yield Expect(0, parts)))]
            # The recipe only requests the sum: `carry_out` adds noise and pays, so no method can forget them.
            total = yield AddUp(rows, number + 1)
            parts.append(cast(torch.Tensor, total))
        return parts


def _stage_widths(settings: CuratorSettings, schema: GraphSchema) -> list[list[int]]:
    """Return the widths of the parts of each stage: the features, or the classes that the first stage expects, and one
    noisy sum more than the stage before.
    """
    progap = cast(ProgapSettings, settings)
    first, summed = progap.own_columns(schema, schema.dimension), progap.summed_columns(schema)
    return [[schema.dimension], *([first, *[summed] * stage] for stage in range(1, settings.hops + 1))]


class ProGAP(StagedEstimator):
    """ProGAP, a `StagedEstimator` whose `publish` trains all stages but the last and returns X_1..X_K. Raises
    InputError for pooling "stages" where nodes are protected, and for what `StagedEstimator` refuses.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import ProGAP
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = ProGAP(epsilon=2.0, epochs=2).fit(graph)
        >>> model.guarantee.epsilon <= 2.0, model.guarantee.unit.code
        (True, 'one-undirected-edge')
    """

    entry, kind = entry_of("progap", CURATOR_METHODS), "progap"
    recipe: ClassVar[Recipe] = ProgapRecipe()
    settings_type = ProgapSettings
    derived = ("hops", "pooling", "rows", "least_steps")
    old_file_defaults: ClassVar[Mapping[str, Any]] = UNPOOLED

    def __init__(self, *, epsilon: float, unit: str | None = None, **settings: Unpack[PooledOptions]) -> None:
        require_budget("epsilon", epsilon, "no privacy")  # before settings are chosen by it
        if settings.get("hops") is None:
            # At epsilon 45 a third sum gains 5.3 points on Caltech36 and 0.5 in the mean of ten graphs, at 16 nothing.
            settings["hops"] = default_hops(epsilon, unit, under_noise=2, little_noise=3)
        super().__init__(epsilon=epsilon, unit=unit, **with_pooling_defaults(settings, unit))
