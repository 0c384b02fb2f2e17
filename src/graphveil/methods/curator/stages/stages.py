"""The stages of a curator's method on noisy sums: each method is a `Recipe`, which requests its stages one by one.

    steps = recipe.steps(networks, inputs, settings)   a generator: `yield Train(0, parts)`, `total = yield AddUp(x, 1)`
    carry_out(steps, train=..., expect=..., add=...)   a run, which trains, pays and adds noise, or a query, which sums

A recipe never sees an edge: it yields the rows to be summed, and `carry_out` gets their sums behind noise.
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
    """Train one of the networks before the last: its number, and its input parts for every node."""

    which: int
    parts: Sequence[FeatureBlock]


@dataclass(frozen=True)
class Expect:
    """Return class probabilities [n, c] of a trained network, for training nodes those of networks that did not train
    on them: its number, and its input parts for every node.
    """

    which: int
    parts: Sequence[FeatureBlock]


@dataclass(frozen=True)
class AddUp:
    """Return the noisy sums of rows [n, c] over neighbours. `hop` counts from 1."""

    rows: Tensor
    hop: int


@dataclass(frozen=True)
class NodeInputs:
    """What a recipe may read without a sum.

    Attributes:
        features, labels: [n, d]; int64 [n] of training nodes, -1 for all others and everywhere in a query.
        sigmas: the noise of each hop in units of a row's length, public; 0 where nothing is protected.
    """

    features: FeatureBlock
    labels: Tensor
    sigmas: tuple[float, ...]


#: Takes a requested sum and returns the noisy sums [n, c].
Sum: TypeAlias = "Callable[[AddUp], torch.Tensor]"
#: Gets the sums [n, c] of `AddUp`, the probabilities of `Expect` and None for `Train`; returns the input parts of the
#: last network for every node.
Steps: TypeAlias = "Generator[Train | Expect | AddUp, torch.Tensor | None, list[FeatureBlock]]"


class Recipe(Protocol):
    """What distinguishes one method from another; recipes inherit what most of them share."""

    @property
    def kind(self) -> str: ...

    def networks(self, settings: CuratorSettings, schema: GraphSchema, *, batch_norm: bool) -> list[nn.Module]:
        """Return the networks in the order of their training; the last one predicts."""

    def start(self, networks: Sequence[nn.Module], which: int) -> None:
        """Set initial weights that come from earlier networks; most recipes have none."""
        return

    def sizes(self, settings: CuratorSettings, schema: GraphSchema) -> list[int]:
        """Return the number of parameters of each network that may train privately, from widths alone; most recipes
        protect edges only and have none.
        """
        return []

    def portions(self) -> Sequence[float] | None:
        """Return the share of each private training in the budget beside the sums; None: equal shares."""
        return None

    def layers(self, hops: int) -> list[int]:
        """Return the number of hidden layers of each network, from which the time of training follows: by default of
        an encoder and of a classifier over K + 1 hops.
        """
        return [2, hops + 1]

    def columns(self, settings: CuratorSettings, schema: GraphSchema) -> int:
        """Return the columns of the widest row that is summed, by default the hidden width."""
        return settings.hidden

    def opinions(
        self, networks: Sequence[nn.Module], features: FeatureBlock, parts: Sequence[FeatureBlock]
    ) -> list[Tensor]:
        """Return the logits [n, c] of each classifier among trained networks, the last network's last.

        Args:
            networks, features, parts: trained; [n, d]; the input parts of the last network.
        """
        return [logits_of(networks[-1], parts)]

    def steps(self, networks: Sequence[nn.Module], inputs: NodeInputs, settings: CuratorSettings) -> Steps:
        """Yield the stages in order, and return the input parts of the last network for every node."""


def carry_out(
    steps: Steps, *, train: Callable[[Train], None], expect: Callable[[Expect], Tensor], add: Sum
) -> list[FeatureBlock]:
    """Carry out the stages of a recipe, and return the input parts of the last network for every node.

    Args:
        train: trains a network; does nothing in a query, whose networks are trained.
        expect: returns class probabilities [n, c]; in a query those of the network itself, which trained on none of its
            nodes.
        add: returns noisy sums [n, c] over neighbours.
    """
    result: Tensor | None = None
    while True:
        try:
            # The first `send` passes None, as a fresh generator requires.
            step = steps.send(result)
        except StopIteration as end:
            parts: list[FeatureBlock] = end.value
            return parts
        if isinstance(step, AddUp):
            result = add(step)
        elif isinstance(step, Expect):
            result = expect(step)
        else:
            train(step)
            result = None


def perturbed_sums(reading: EdgeReading, privacy: CuratorPrivacy, settings: CuratorSettings) -> Sum:
    """Return what sums behind noise over a graph; it trains attention first if messages have such weights."""
    noise, people = reading.noise, reading.people
    largest = largest_weight(settings.weights)
    sums: PerturbedSum = privacy.sums(reading.schema, noise, w_max=largest, bits=settings.bits)
    attention = next((network for network in reading.networks if isinstance(network, models.PairAttention)), None)
    edges: list[Any] = []  # read once, at the first sum

    def add(stage: AddUp) -> Tensor:
        if not edges:
            start = unit_rows(stage.rows)
            if attention is not None and people is not None:
                multiplier = None if privacy.unprotected else noise.multipliers[ATTENTION]
                train_attention(
                    attention,
                    start.cpu(),
                    ReceiverRows.of(reading.graph.edge_index, int(reading.graph.num_nodes)),
                    people.train,
                    people.labels[people.train],
                    private_schedule(settings, len(people.train), multiplier),
                    randomness=reading.randomness,
                    # The expected length of the noise in one row: below it a message is not worth its weight.
                    soft=noise.sigmas[0] * math.sqrt(start.shape[1]),
                    protect=not privacy.unprotected,
                    progress=reading.progress,
                )
            edges.append(receiver_rows(reading.graph, privacy, settings, start, people, attention))
        return sums.perturb(edges[0], stage.rows, stage.hop, reading.randomness, engine=reading.engine)

    return add
