"""The noisy sums over the neighbours of a graph: whoever calls them reads its edges, behind noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from graphveil import models
from graphveil.aggregation import PerturbedSum, unit_rows
from graphveil.aggregation.names import largest_weight
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.methods.curator.settings import CuratorSettings
from graphveil.methods.curator.stages.stages import AddUp
from graphveil.methods.curator.stages.training import EdgeReading, receiver_rows, train_attention_weights

if TYPE_CHECKING:
    import torch

#: Rows [n, c] and the number of a hop -> noisy sums [n, c].
Sum: TypeAlias = "Callable[[AddUp], torch.Tensor]"


def perturbed_sums(read: EdgeReading, privacy: CuratorPrivacy, settings: CuratorSettings) -> Sum:
    """Return the noisy sums over the graph that is read; with `people` attention is trained first, where it weighs."""
    noise, people = read.noise, read.people
    largest = largest_weight(settings.weights)
    sums: PerturbedSum = privacy.sums(read.schema, noise, w_max=largest, bits=settings.bits)
    attention = next((network for network in read.networks if isinstance(network, models.PairAttention)), None)
    rows: list[Any] = []

    def add(stage: AddUp) -> torch.Tensor:
        if not rows:
            start = unit_rows(stage.rows)
            if attention is not None and people is not None:
                train_attention_weights(
                    attention, read.graph, start, people, settings, privacy, noise, read.randomness, read.progress
                )
            rows.append(receiver_rows(read.graph, privacy, settings, start, people, attention))
        return sums.perturb(rows[0], stage.rows, stage.hop, read.randomness, engine=read.engine)

    return add
