"""The settings with which a curator's methods train; checked without torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from graphveil.errors import InputError
from graphveil.methods.base.network.start import require_start
from graphveil.methods.base.settings import require_device, require_ranges
from graphveil.runtime.checks import require_choice, require_whole

if TYPE_CHECKING:
    from graphveil.graphs import GraphSchema
    from graphveil.privacy import ChangedSamples, Descent, RepeatAndSelect
    from graphveil.training.full_batch import FullBatch

#: The share of one sum of classes in a budget with a perceptron and a small head: under much noise, and at most.
LEAST_FOR_VOTES, MOST_FOR_VOTES = 0.05, 0.7
#: Passes of private training by default; over a few hundred people they are 15 steps, too few under noise.
_PASSES = 10
#: Below this epsilon a private step is mostly noise.
_MUCH_NOISE = 3.0
#: From this epsilon on private training fits its nodes nearly as closely as training without noise.
LITTLE_NOISE = 20.0
#: Up to the first epsilon a second sum does not pay; from the second one (of a relationship) on, a third sum does.
_SECOND_SUM, _THIRD_SUM = 2.0, 32.0
#: Columns of features from which on networks have dropout, and its rate (15 graphs: it costs at 50 and 64 columns,
#: and pays from 500 on).
_WIDE, WIDE_DROPOUT = 500, 0.5

#: Whether the networks of a method are pooled, and the content of the rows that it sums.
POOLINGS, ROWS = ("stages", "none"), ("labelled", "published")


class CuratorOptions(TypedDict, total=False):
    """`CuratorSettings` as keywords; hops and least_steps that are None follow from the budget."""

    hops: int | None
    hidden: int
    dropout: float | None
    epochs: int
    learning_rate: float
    weight_decay: float
    patience: int
    weights: str
    sharpness: float
    bits: int | None
    batch: int
    passes: int | None
    clip: float
    share_hops: float | None
    hop_ratio: float
    steps: int | None
    least_steps: int | None
    seed: int
    device: str


class StagedOptions(CuratorOptions, total=False):
    """Keywords of every method on noisy sums, without its budget and unit."""

    delta: float
    degree_bound: int | None
    rule: str
    queries: int
    tuning: RepeatAndSelect | None
    relationships: int | None


class PooledOptions(StagedOptions, total=False):
    """`PooledSettings` as keywords."""

    pooling: str | None
    rows: str | None


class GapOptions(PooledOptions, total=False):
    """`GapSettings` as keywords."""

    hidden: int | None  # type: ignore[misc]

    scaling: str | None


class GconOptions(StagedOptions, total=False):
    """`GconSettings` as keywords."""

    restart: float
    penalty: float


class CaribouOptions(StagedOptions, total=False):
    """`CaribouSettings` as keywords."""

    contraction: float
    share: float
    residual: float
    floor: int


class SumsOptions(TypedDict, total=False):
    """`SumsSettings` as keywords."""

    hidden: int
    dropout: float
    learning_rate: float
    weight_decay: float
    epochs: int
    start: str | None
    seed: int
    device: str


@dataclass(frozen=True)
class CuratorSettings:
    """The settings of training, from which its noise follows; all public.

    Attributes:
        dropout: of networks that are trained without noise; None: `dropout_of` the features.
        weights, sharpness: of messages, see `aggregation.weights`; bits: of the rows' grid; None: by the noise.
        batch, passes, clip: expected batch, passes over the nodes and clipping norm of private training (unit node, or
            of the weights "attention"); passes None: 10, or as many more as a small graph needs for `least_steps`.
        least_steps: where neither passes nor steps is set; methods take those of `least_steps` at their epsilon.
        device: "cpu", or "cuda" for `dp-mlp`, `gap`, `progap` and `node-sums`.
    """

    hops: int = 2
    hidden: int = 16
    dropout: float | None = None
    epochs: int = 100
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    patience: int = 20
    weights: str = "uniform"
    sharpness: float = 1.0
    bits: int | None = None
    batch: int = 1024
    passes: int | None = None
    clip: float = 1.0
    share_hops: float | None = None
    hop_ratio: float = 1.0
    steps: int | None = None
    least_steps: int = 100
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        require_ranges(self)
        if self.steps is not None:
            require_whole(1, 10**9, steps=self.steps)
        require_device(self.device)

    def dropout_of(self, schema: GraphSchema, *, batch_norm: bool) -> float:
        """Return the rate: many columns overfit, few do not. A network without batch norm trains behind noise and has
        no dropout.
        """
        if not batch_norm:
            return 0.0
        if self.dropout is not None:
            return self.dropout
        return WIDE_DROPOUT if schema.dimension >= _WIDE else 0.0

    @property
    def full_batch(self) -> FullBatch:
        from graphveil.training.full_batch import FullBatch

        return FullBatch(self.epochs, self.learning_rate, self.weight_decay, patience=self.patience)

    def descent(self, name: str, people: int) -> Descent:
        """Return one private training on `people` nodes, whose number is public."""
        from graphveil.privacy import Descent

        steps, rate = self._sampling(people)
        return Descent(steps=steps, rate=rate, name=name)

    def changing(self, name: str, people: int, samples: int) -> ChangedSamples:
        """Return the training for a unit of edges, which changes the gradients of so many nodes."""
        from graphveil.privacy import ChangedSamples

        steps, rate = self._sampling(people)
        return ChangedSamples(steps=steps, rate=rate, samples=samples, name=name)

    def _sampling(self, people: int) -> tuple[int, float]:
        rate = min(1.0, self.batch / max(people, 1))
        # From the declared number of training nodes: a rate that followed a private count would reveal it.
        least = 1 if self.passes else self.least_steps
        return self.steps or max(math.ceil((self.passes or _PASSES) / rate), least), rate


def least_steps(epsilon: float) -> int:
    """Return the least number of private steps: under much noise the mean of more steps is worth its price. Chosen on
    Caltech36, Johns Hopkins55, Cora, Reed98 by gender and Twitch ES at epsilon 2, 8 and 50.
    """
    return 200 if epsilon < _MUCH_NOISE else 100


def with_least_steps(options: dict[str, Any], epsilon: float) -> dict[str, Any]:
    """Return options with the least number of private steps at a budget, unless they set it."""
    return options if options.get("least_steps") is not None else {**options, "least_steps": least_steps(epsilon)}


def default_hops(epsilon: float, unit: str | None, *, under_noise: int, little_noise: int) -> int:
    """Return the default number of noisy sums, by the budget alone: 2; `under_noise` up to epsilon 2, where a second
    one costs the first more than it brings; `little_noise` from 32 on for a relationship, where a third one is worth
    its noise.
    """
    if epsilon <= _SECOND_SUM:
        return under_noise
    return little_noise if epsilon >= _THIRD_SUM and unit in (None, "edge", "directed-edge") else 2


def share_of_votes(epsilon: float) -> float:
    """Return the share of one sum of classes in the budget: epsilon / 16, and under much noise next to nothing. There
    votes carry little: with 1/8 of epsilon 2 Cora and Cora-ML lost 0.5 and 1.0 to a perceptron alone, and Johns
    Hopkins55 gained nothing (chosen on these and Caltech36).
    """
    return min(MOST_FOR_VOTES, epsilon / 16) if epsilon >= _MUCH_NOISE else LEAST_FOR_VOTES


def passes_of_votes(epsilon: float) -> int | None:
    """Return the passes of private training beside a vote, None: the default. With little noise, more steps than these
    overfit classes that neighbours would show (Caltech36 and Reed98 by gender +3.6, Cora -1.0 at epsilon 50).
    """
    return 40 if epsilon >= LITTLE_NOISE else None


def trains_head(epsilon: float) -> bool:
    """Return whether a small head over two opinions is trained: under much noise its initial weights are better."""
    return epsilon >= _MUCH_NOISE


def keeps_later_mean(epsilon: float, dimension: int) -> bool:
    """Return whether a private perceptron's weights are the mean over the later half of its steps. With little noise
    its last steps overfit many columns, but not few (Caltech36, Johns Hopkins55, Cora, Reed98 by gender and the digits
    at epsilon 50, the first four at 8, where Cora lost).
    """
    return epsilon >= LITTLE_NOISE and dimension >= _WIDE


@dataclass(frozen=True)
class PooledSettings(CuratorSettings):
    """Settings of a method whose prediction may be a pool of its networks.

    Attributes:
        pooling: "stages" pools them with an encoder of features if validation labels are surely likelier so, see
            `methods.curator.pooled`; "none" leaves the last network's prediction as it is.
        rows: "labelled": a row that is summed holds a training node's class beside what was learned from features, see
            `stages.encoder.message_rows`, and the classifier reads the classes that a node's features lead to expect,
            see `stages.training.unseen_shares`; "published": neither.
    """

    pooling: str = "stages"
    rows: str = "labelled"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, allowed in (("pooling", POOLINGS), ("rows", ROWS)):
            require_choice(allowed, **{name: getattr(self, name)})
        if self.rows == "labelled" and self.weights != "uniform":
            raise InputError(
                f"rows labelled with weights {self.weights}: weights would compare labels and not people",
                allowed="rows=published",
            )

    def summed_columns(self, schema: GraphSchema) -> int:
        """Return the columns of a row that is summed."""
        return self.hidden + (len(schema.classes) if self.rows == "labelled" else 0)

    def own_columns(self, schema: GraphSchema, published: int) -> int:
        """Return the columns of a node's own part beside sums: `published`, or the classes where rows are labelled."""
        return len(schema.classes) if self.rows == "labelled" else published


@dataclass(frozen=True)
class GapSettings(PooledSettings):
    """Settings of GAP beside those of every method on noisy sums."""

    scaling: str = "standard"


@dataclass(frozen=True)
class ProgapSettings(PooledSettings):
    """Settings of ProGAP, which are those of every method on noisy sums, and whether its stages are pooled."""

    dropout: float | None = 0.7


@dataclass(frozen=True)
class PerceptronSettings(CuratorSettings):
    """Settings of `dp-mlp` and `node-sums`: no column of their perceptrons is summed, so no noise grows with the width.
    At epsilon 2, 8 and 50 `dp-mlp` gains 8, 6 and 6 points over 16 on digits, 3 on Cora; it loses 1.7 at most
    (Caltech36 at 2).
    """

    hidden: int = 64


@dataclass(frozen=True)
class EclipseSettings(CuratorSettings):
    """Settings of Eclipse, which are those of every method on noisy sums; `hidden` is the rank of its graph too. Three
    products of rank 64 are worth their noise on Caltech36, Cora, CiteSeer and Reed98, where they were chosen.
    """

    hops: int = 3
    hidden: int = 64


@dataclass(frozen=True)
class GconSettings(CuratorSettings):
    """Settings of GCON beside those of every method on noisy sums; `hops` is how deep the convolution goes. 64 columns
    gain 0.5, 0.8 and 1.4 points over 16 at epsilon 1, 4 and 45 in the mean of six graphs.
    """

    hidden: int = 64
    restart: float = 0.5
    penalty: float = 0.1


@dataclass(frozen=True)
class CaribouSettings(CuratorSettings):
    """Settings of CARIBOU beside those of every method on noisy sums; `hops` is the length of the chain."""

    hidden: int = 64
    contraction: float = 0.6
    share: float = 0.95
    residual: float = 0.9
    floor: int = 20


@dataclass(frozen=True)
class SumsSettings:
    """The settings of the network's training, none of which affects the guarantee."""

    hidden: int = 64
    dropout: float = 0.5
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 100
    start: str | None = None
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        require_start(self.start)
        require_ranges(self)
        require_device(self.device)
