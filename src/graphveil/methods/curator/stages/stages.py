"""What tells one curator's method on noisy sums from another: a `Recipe`, which asks for its stages one by one.

    steps = recipe.steps(networks, inputs, settings)   a generator: `yield Train(0, parts)`, `total = yield AddUp(x, 1)`
    carry_out(steps, train=..., expect=..., add=...)  the run, which trains, pays and adds noise, or only adds

A recipe never sees an edge: it names the rows to be summed, and whoever carries it out sums them behind noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from graphveil import models
from graphveil.aggregation import PerturbedSum, ReceiverRows, unit_rows
from graphveil.aggregation.names import largest_weight
from graphveil.graphs import GraphSchema
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.methods.curator.settings import CuratorSettings
from graphveil.methods.curator.stages.training import (
    ATTENTION,
    EdgeReading,
    FeatureBlock,
    logits_of,
    private_schedule,
    receiver_rows,
)
from graphveil.runtime.late import Tensor, nn, torch
from graphveil.training.attention import train_attention


@dataclass(frozen=True)
class Train:
    """Train one of the networks before the last: its number, and what it reads of every node."""

    which: int
    parts: Sequence[FeatureBlock]


@dataclass(frozen=True)
class Expect:
    """Say which classes a trained network expects of every node, and of a training node networks that it did not train:
    its number, and what it reads of every node. Answered with shares [n, c].
    """

    which: int
    parts: Sequence[FeatureBlock]


@dataclass(frozen=True)
class AddUp:
    """Sum rows [n, c] over neighbours, behind noise; answered with the sums. `hop` counts from 1."""

    rows: Tensor
    hop: int


@dataclass(frozen=True)
class NodeInputs:
    """What a recipe may read of the nodes without a sum.

    Attributes:
        features, labels: [n, d]; int64 [n] of those who train, -1 for all others and everywhere in a query.
        sigmas: the noise of each hop in units of a row's length, public; 0 where nothing is protected.
    """

    features: FeatureBlock
    labels: Tensor
    sigmas: tuple[float, ...]


#: Rows [n, c] and the number of a hop -> noisy sums [n, c].
Sum: TypeAlias = "Callable[[AddUp], torch.Tensor]"
#: Answers: the sums [n, c] of `AddUp`, the shares of `Expect`, None for `Train`; what comes out is what the last
#: network reads of every node.
Steps: TypeAlias = "Generator[Train | Expect | AddUp, torch.Tensor | None, list[FeatureBlock]]"


class Recipe(Protocol):
    """What tells one method from another; recipes inherit what most of them have in common."""

    @property
    def kind(self) -> str: ...

    def networks(self, settings: CuratorSettings, schema: GraphSchema, *, batch_norm: bool) -> list[nn.Module]:
        """Return the networks in the order of their training; the last one predicts."""

    def start(self, networks: Sequence[nn.Module], which: int) -> None:
        """Set the weights from which a network is trained, where they come from the networks before it."""
        return  # each starts from its own initial weights, unless a recipe says otherwise

    def sizes(self, settings: CuratorSettings, schema: GraphSchema) -> list[int]:
        """Return how many numbers private training of each network is charged for, by arithmetic alone; none for most,
        which protect edges and train in the open.
        """
        return []

    def portions(self) -> Sequence[float] | None:
        """Return what each private training gets of the budget beside the sums; None: all alike."""
        return None

    def layers(self, hops: int) -> list[int]:
        """Return the layers over hidden columns of each network, which the time of training follows: those of an
        encoder and of a classifier over K + 1 hops, unless a recipe says otherwise.
        """
        return [2, hops + 1]

    def columns(self, settings: CuratorSettings, schema: GraphSchema) -> int:
        """Return the columns of the widest row that is summed: the hidden width, unless a recipe says otherwise."""
        return settings.hidden

    def opinions(
        self, networks: Sequence[nn.Module], features: FeatureBlock, parts: Sequence[FeatureBlock]
    ) -> list[Tensor]:
        """Return the logits [n, c] of each classifier among trained networks, the last network's last.

        Args:
            networks, features, parts: trained; [n, d]; what the last network reads of every node.
        """
        return [logits_of(networks[-1], parts)]

    def steps(self, networks: Sequence[nn.Module], inputs: NodeInputs, settings: CuratorSettings) -> Steps:
        """Yield the stages in their order, and return what the last network reads of every node."""


def carry_out(
    steps: Steps, *, train: Callable[[Train], None], expect: Callable[[Expect], Tensor], add: Sum
) -> list[FeatureBlock]:
    """Carry out the stages of a recipe, and return what the last network reads of every node.

    Args:
        train: trains a network; does nothing in a query, whose networks are trained.
        expect: returns shares [n, c] of the classes; in a query those of the network itself, which trained on nobody
            in it.
        add: returns noisy sums [n, c] over neighbours.
    """
    answer: Tensor | None = None
    while True:
        try:
            # The first `send` gives None, as a generator that has not begun demands.
            step = steps.send(answer)
        except StopIteration as end:
            parts: list[FeatureBlock] = end.value
            return parts
        if isinstance(step, AddUp):
            answer = add(step)
        elif isinstance(step, Expect):
            answer = expect(step)
        else:
            train(step)
            answer = None


def perturbed_sums(read: EdgeReading, privacy: CuratorPrivacy, settings: CuratorSettings) -> Sum:
    """Return the noisy sums over the graph that is read; with `people` attention is trained first, where it weighs."""
    noise, people = read.noise, read.people
    largest = largest_weight(settings.weights)
    sums: PerturbedSum = privacy.sums(read.schema, noise, w_max=largest, bits=settings.bits)
    attention = next((network for network in read.networks if isinstance(network, models.PairAttention)), None)
    rows: list[Any] = []

    def add(stage: AddUp) -> Tensor:
        if not rows:
            start = unit_rows(stage.rows)
            if attention is not None and people is not None:
                multiplier = None if privacy.public else noise.multipliers[ATTENTION]
                train_attention(
                    attention,
                    start.cpu(),
                    ReceiverRows.of(read.graph.edge_index, int(read.graph.num_nodes)),
                    people.train,
                    people.labels[people.train],
                    private_schedule(settings, len(people.train), multiplier),
                    randomness=read.randomness,
                    # The expected length of the noise in one row: below it a message is not worth its weight.
                    soft=noise.sigmas[0] * math.sqrt(start.shape[1]),
                    protect=not privacy.public,
                    progress=read.progress,
                )
            rows.append(receiver_rows(read.graph, privacy, settings, start, people, attention))
        return sums.perturb(rows[0], stage.rows, stage.hop, read.randomness, engine=read.engine)

    return add
