"""Eclipse: a network over a graph of low rank, whose bases and values both come from noisy sums.

    bases       M_1 = rows of a fixed random matrix [n, r],   M_i = unit rows of an orthonormal basis of Y_{i-1}
    hop i       Y_i = A^T M_i + Z_i                              the one place that reads edges
    low rank    B = Y_K pinv(M_K),  of rank r = `hidden`: what A^T is on the last basis, noise included
    classifier  a perceptron over X, unit(B X) and unit(B B X),  X = unit rows of a perceptron on features and labels

The published method decomposes A itself, adds noise to r singular values alone and trains on them between the true
singular vectors. Its proof takes the vectors of two neighbouring graphs to be the same. They are not, and vectors
without noise can tell one edge with certainty: no epsilon covers them. Here vectors are found behind noise, by the
power method, and all K products are paid for together, as GAP's sums are. Shapes: X [n, r], M and Y [n, r].
Source: Tang, Niu, Avestimehr, Annavaram, "Edge Private Graph Neural Networks with Singular Value Perturbation", PETS
2024, arXiv 2403.10995; noisy power method: Hardt, Price, NeurIPS 2014, arXiv 1311.2495.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Unpack, cast

from graphveil.aggregation import unit_rows
from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.methods.base.method import entry_of
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.curator.settings import CuratorSettings, EclipseSettings, StagedOptions
from graphveil.methods.curator.stages.encoder import encoder_and_classifier, encoder_rows
from graphveil.methods.curator.stages.recipe import StagedEstimator
from graphveil.methods.curator.stages.stages import AddUp, NodeInputs, Recipe, Steps, Train
from graphveil.runtime.late import Tensor, nn, torch

#: Steps over the low-rank graph, as many as the authors' network has layers.
STEPS: Final = 2


@dataclass(frozen=True)
class EclipseRecipe(Recipe):
    """An encoder, K noisy products that find a basis, and a classifier over the encoder's rows spread by low rank."""

    kind: str = "eclipse"

    def networks(self, settings: CuratorSettings, schema: GraphSchema, *, batch_norm: bool) -> list[nn.Module]:
        return encoder_and_classifier(settings, schema, [settings.hidden] * (STEPS + 1), batch_norm=batch_norm)

    def steps(self, networks: Sequence[nn.Module], inputs: NodeInputs, settings: CuratorSettings) -> Steps:
        """Train the encoder, find a basis in K products, and return X, unit(B X) and unit(B B X)."""
        yield Train(0, [inputs.features])
        rows = [encoder_rows(networks[0], inputs.features)]
        # A fixed seed: the first basis is public, and independent of features, as singular vectors are.
        generator = torch.Generator().manual_seed(0)
        basis = unit_rows(torch.randn(rows[0].shape, generator=generator))
        product = cast(torch.Tensor, (yield AddUp(basis, 1)))
        for hop in range(2, settings.hops + 1):
            basis = unit_rows(torch.linalg.qr(product.double()).Q).float()
            product = cast(torch.Tensor, (yield AddUp(basis, hop)))
        for _ in range(STEPS):
            rows.append(unit_rows(spread(product, basis, rows[-1])))
        return list(rows)


def spread(product: Tensor, basis: Tensor, x: Tensor) -> Tensor:
    """Return B x, float32 [n, c], of the low-rank graph B = product pinv(basis), which is never built.

    Args:
        product, basis, x: [n, r], the noisy product of the graph and the basis; [n, r], of full rank; [n, c].
    """
    coefficients: Tensor = torch.linalg.lstsq(basis.double(), x.double()).solution
    return (product.double() @ coefficients).float()


class Eclipse(StagedEstimator):
    """Eclipse, see `StagedEstimator`; `publish` gives X, unit(B X) and unit(B B X). Units of edges alone.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import Eclipse
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = Eclipse(epsilon=2.0, hops=2, epochs=2).fit(graph)
        >>> model.guarantee.epsilon, len(model.published.noise.sigmas)
        (2.0, 2)
    """

    entry, kind = entry_of("eclipse", CURATOR_METHODS), "eclipse"
    recipe: ClassVar[Recipe] = EclipseRecipe()
    settings_type = EclipseSettings

    def __init__(self, *, epsilon: float, unit: str | None = None, **settings: Unpack[StagedOptions]) -> None:
        options: dict[str, Any] = {**settings}
        super().__init__(epsilon=epsilon, unit=unit, **options)
        if self.privacy.protects_nodes:
            raise InputError(
                "unit 'node' does not apply to eclipse: it reads a node's own features beside its basis",
                allowed="edge, directed-edge, k-edges",
            )
        if self.settings.weights != "uniform":
            raise InputError("eclipse decomposes the graph without weights", allowed="weights=uniform")
