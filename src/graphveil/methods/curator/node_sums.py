"""Class sums where whole people are protected: one noisy vote of neighbours, between two small private trainings.

    perceptron  p(y | x_v) by private gradient descent on features and labels alone
    messages    m_u = corner of u's label, or the mean corner that the perceptron expects of u
    sum         H = A^T M + N(0, sigma^2),  lists of at most D names               the one place that reads edges
    head        softmax( [ log p_v | asinh( H_v / max(sigma, 1) ) ] W + w ),  W from [ I | I ]^T, privately,
                or for epsilon below 3 as it is, W = [ I | min(1, 0.15 D / sigma) I ]^T, w = 0

A person's label and features are in at most D sums, each as a row of length 1: sensitivity sqrt(D), as in GAP for
nodes.  GAP sums 16 columns of what a network learned under noise; here a row is the class itself, and the head needs
next to no training.  Under much noise it gets none: if m more neighbours have one class than any other, H shifts by m
at noise sigma, so that the log-odds of H_v are H_v m / sigma^2, and the weight of H_v / sigma is m / sigma.  Nobody may
count m: we take 15 in 100 of the D that a list may hold.
Ours; corners and sums as in `methods.curator.class_sums`, price and bounded lists as in `methods.curator.gap`.
Shapes: x [n, d], p, M and H [n, c].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack, cast

from graphveil import models
from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.methods.base.method import entry_of
from graphveil.methods.curator.dp_mlp import LaterWeights
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.curator.evidence import class_shares, corners
from graphveil.methods.curator.privacy import Noise
from graphveil.methods.curator.settings import (
    CuratorSettings,
    PerceptronSettings,
    StagedOptions,
    keeps_later_mean,
    passes_of_votes,
    share_of_votes,
    trains_head,
)
from graphveil.methods.curator.stages.recipe import StagedEstimator
from graphveil.methods.curator.stages.stages import AddUp, NodeInputs, Recipe, Steps, Train
from graphveil.methods.curator.stages.training import FeatureBlock, NodeData, apply_by_blocks, device_of
from graphveil.models.names import encoder_size, vote_head_size
from graphveil.privacy import Randomness, require_budget
from graphveil.runtime.late import nn, torch
from graphveil.runtime.progress import ProgressCallback
from graphveil.training import Epoch

#: No class is ruled out by the perceptron alone.
_LEAST = 1e-4
#: m / D: the expected majority of a node's own class among its neighbours, by the most that a list may hold.
_AGREEING = 0.15


@dataclass(frozen=True)
class VoteRecipe(Recipe):
    """A perceptron, one noisy sum of classes, and a linear head."""

    kind: str = "node-sums"
    trains_head: bool = True

    def networks(self, settings: CuratorSettings, schema: GraphSchema, *, batch_norm: bool) -> list[nn.Module]:
        classes = len(schema.classes)
        encoder = models.Encoder(schema.dimension, settings.hidden, classes, batch_norm=batch_norm)
        return [encoder, models.VoteHead(classes)]

    def sizes(self, settings: CuratorSettings, schema: GraphSchema) -> list[int]:
        """Return the sizes of the perceptron, and of the head if it is trained."""
        classes = len(schema.classes)
        trained = [encoder_size(schema.dimension, settings.hidden, classes), vote_head_size(classes)]
        return trained if self.trains_head else trained[:1]

    def portions(self) -> Sequence[float]:
        """Return the perceptron's share and the head's, whose initial weights are nearly right."""
        return (0.9, 0.1) if self.trains_head else (1.0,)

    def columns(self, settings: CuratorSettings, schema: GraphSchema) -> int:
        return len(schema.classes)

    def steps(self, networks: Sequence[nn.Module], inputs: NodeInputs, settings: CuratorSettings) -> Steps:
        """Train the perceptron, sum once, and return both opinions of every node [n, c]."""
        yield Train(0, [inputs.features])
        with torch.no_grad():
            p = torch.softmax(apply_by_blocks(networks[0], [inputs.features], device_of(networks[0])), dim=1)
        # A node's message is not in its own sum: no row depends on its node's label.
        messages = class_shares(inputs.labels.to(p.device), p) @ corners(p.shape[1]).to(p.device)
        total = cast(torch.Tensor, (yield AddUp(messages, 1)))
        log_p = p.clamp_min(_LEAST).log()
        # Scaled by the noise and not by the data: standardising would be a statistic of private rows.
        votes = torch.asinh(total.float() / max(inputs.sigmas[0], 1.0))
        return [log_p - log_p.mean(dim=1, keepdim=True), votes]


class NodeSums(StagedEstimator):
    """Class sums that protect whole nodes: a `StagedEstimator` whose `publish` returns both opinions of every node.
    Raises InputError for another unit, or more hops than one.

    Args:
        epsilon, delta, degree_bound, rule, queries, tuning: see `CuratorPrivacy`.
        settings: any other field of `PerceptronSettings`; hops is 1.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import NodeSums
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = NodeSums(epsilon=8.0, degree_bound=10, batch=200, passes=2).fit(graph)
        >>> model.guarantee.epsilon <= 8.0, model.guarantee.unit.code
        (True, 'one-node-own-list')
    """

    entry, kind = entry_of("node-sums", CURATOR_METHODS), "node-sums"
    recipe: ClassVar[Recipe] = VoteRecipe()
    settings_type = PerceptronSettings
    derived = ("hops", "share_hops", "passes", "least_steps")

    def __init__(self, *, epsilon: float, unit: str = "node", **settings: Unpack[StagedOptions]) -> None:
        require_budget("epsilon", epsilon, "no privacy")  # before settings are chosen by it
        if unit != "node":
            raise InputError(
                f"unit {unit!r} does not apply to {self.kind}",
                allowed="node",
                remedy="train class-sums, where labels are public",
            )
        if settings.get("hops") not in (None, 1) or settings.get("weights", "uniform") != "uniform":
            raise InputError(
                "node-sums sums once, and every neighbour counts alike",
                allowed="hops=1, weights=uniform",
                remedy="train gap or progap",
            )
        if settings.get("share_hops") is None:
            settings["share_hops"] = share_of_votes(epsilon)
        if all(settings.get(name) is None for name in ("passes", "steps", "least_steps")):
            settings["passes"] = passes_of_votes(epsilon)
        options: dict[str, Any] = {**settings, "hops": 1}
        super().__init__(epsilon=epsilon, unit=unit, **options)
        # From the declared epsilon alone, like the noise.
        self.recipe = VoteRecipe(trains_head=trains_head(epsilon))  # type: ignore[misc]

    def _train(
        self,
        network: nn.Module,
        which: int,
        parts: Sequence[FeatureBlock],
        people: NodeData,
        noise: Noise,
        randomness: Randomness | None,
        progress: ProgressCallback | None,
    ) -> tuple[Epoch, ...]:
        """Train one network; a head that nothing was paid for gets its weights by formula."""
        if self.own_rows and f"network{which}" not in noise.multipliers:
            votes = cast(models.VoteHead, network).head.weight.detach()[:, len(people.schema.classes) :]
            votes.mul_(min(1.0, _AGREEING * (self.privacy.degree or 0) / noise.sigmas[0]))
            return ()
        later = LaterWeights(network, progress)
        history = super()._train(network, which, parts, people, noise, randomness, later)
        if self.own_rows and which == 0 and keeps_later_mean(self.privacy.epsilon, people.schema.dimension):
            later.replace_last()
        return history
