"""Private gradient descent on targets with all their incoming edges: for attention, and for one row a node.

    g_t = step * ( sum_{v in batch} clip(g_v) + Z ) / expected batch,   Z = round(N(0, (multiplier cap)^2))
    rows    z_t = H relu( sum_{v in N(t)} w_v ),       W [n, k] trained, H [c, k] fixed      (`TopologyDescent`)

g_v is the gradient of the loss of target v, see `models.networks.attention`.  What may change is an edge: one entry of
A changes g_v of its target into another vector of length at most the clipping norm, so the sum moves by up to twice
that norm; an undirected edge does it to both ends.  Targets, labels and rows are public, and a batch has a target with
probability `rate`, independently: `privacy.ChangedSamples` prices it.  Sums inside a step are not released and
cost nothing.  The gradient by W is the outer product of the target's row of A and one delta, the same in the row of
each neighbour: its length is sqrt(degree) |delta|, which is clipped.  After each noisy step the rows are brought to
length 1, which reads no edge.

Formal guarantees, for rows, labels, targets and schedule that are public:

1. What a target adds to a step's sum is an integer vector of length at most `cap`; NaN and infinite ones are zero.
2. Toggling an edge changes what its target adds, and nothing else: not the batch, its size or the divisor.
3. Every step adds noise, an empty batch too, and no more steps are taken than the schedule declares.

Source of the rows: Chien, Chen, Pan, Li, Ozgur, Milenkovic, "Differentially Private Decoupled Graph Convolutions for
Multigranular Topology Protection", NeurIPS 2023, arXiv 2307.06422 (MLP_A); priced here for Poisson batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from graphveil import models
from graphveil.aggregation import ReceiverRows, quantise, unit_rows
from graphveil.errors import InputError
from graphveil.privacy import Randomness
from graphveil.runtime.late import Tensor, nn, torch
from graphveil.runtime.progress import Progress, ProgressCallback
from graphveil.training.clipped_sum import GradientGrid
from graphveil.training.dp_sgd import poisson_batch
from graphveil.training.noisy_updates import LaterMean, NoisyUpdates, PrivateSchedule

# Targets at a time; a public number, so that shapes reveal nothing about edges.
_TARGETS_AT_ONCE: Final = 256
_HEAD_STEPS: Final = 200


class TargetDescent:
    """The private training of parameters on targets, step by step; the result is their mean over the later half.

    Args:
        targets: int64 numbers of the nodes that train; public.
        labels: int64 [len(targets)], none below 0.
        samples: how many targets one protected unit changes.
        protect: False adds no noise and protects nothing.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        targets: Tensor,
        labels: Tensor,
        schedule: PrivateSchedule,
        *,
        samples: int,
        protect: bool,
    ) -> None:
        self._targets, self._labels, self._schedule, self._protect = targets, labels, schedule, protect
        self._updates = NoisyUpdates(parameters, schedule, samples=samples)
        self._mean = LaterMean(parameters, self._updates)

    @property
    def steps_taken(self) -> int:
        """How many noisy gradients were released, counted before they are made."""
        return self._updates.released

    def step(self, randomness: Randomness) -> None:
        """One batch, one noisy gradient, one update. Raises BudgetError where all steps of the schedule are taken."""
        self._updates.count()
        total = self.clipped_sum(poisson_batch(len(self._targets), self._schedule.rate, randomness))
        self._updates.take(total, randomness, protect=self._protect)
        self.settle()
        self._mean.follow()

    def clipped_sum(self, chosen: Tensor) -> Tensor:
        """Return the sum of the clipped gradients of the targets with indices `chosen`, in whole steps, float64 [P]."""
        raise NotImplementedError

    def settle(self) -> None:
        """Bring the parameters back to their form after a step; reads no edge."""

    def run(self, *, randomness: Randomness, progress: ProgressCallback | None) -> None:
        for step in range(1, self._schedule.steps + 1):
            self.step(randomness)
            if progress is not None:
                progress(Progress(step, self._schedule.steps))


class AttentionDescent(TargetDescent):
    """The private training of one attention network. Raises InputError where rows, targets and labels do not match.

    Args:
        network: trained in place.
        x: public rows [n, c] of length at most 1.
        rows: read in steps, behind noise.
        soft: the length of the noise that the final sums will get.
    """

    def __init__(
        self,
        network: models.PairAttention,
        x: Tensor,
        rows: ReceiverRows,
        targets: Tensor,
        labels: Tensor,
        schedule: PrivateSchedule,
        *,
        soft: float = 0.0,
        protect: bool = True,
    ) -> None:
        if len(x) != rows.num_nodes or len(labels) != len(targets) or bool((labels < 0).any()):
            raise InputError(
                f"{len(x)} rows of {rows.num_nodes} nodes, {len(labels)} labels of {len(targets)} targets",
                allowed="one row a node and one known label a target",
            )
        # An undirected edge changes the gradient of the target at either end.
        super().__init__([*network.parameters()], targets, labels, schedule, samples=2, protect=protect)
        self._network, self._x, self._rows, self._soft = network, x.detach().float().contiguous(), rows, soft

    def clipped_sum(self, chosen: Tensor) -> Tensor:
        grid = self._schedule.grid
        total = torch.zeros(sum(p.numel() for p in self._network.parameters()), dtype=torch.float64)
        for places in torch.split(chosen, _TARGETS_AT_ONCE):
            gradients = self._network.target_gradients(
                self._x, self._labels[places], incoming(self._rows, self._targets[places]), self._soft
            )
            # Towards zero: rounding to the nearest could lengthen a gradient past the cap that noise was made for.
            clipped = quantise(gradients, cap=grid.clip, bits=grid.cap.bit_length() - 1, normalise=False)
            total += clipped.values.sum(dim=0, dtype=torch.float64)
        return total

    def finish(self) -> None:
        """Put the mean of the later half of the weights into the network: post-processing of what was released."""
        for parameter, mean in zip(self._network.parameters(), self._mean.values, strict=True):
            parameter.data.copy_(mean)


def incoming(rows: ReceiverRows, targets: Tensor) -> models.Incoming:
    """Return the messages of some targets, int64 [b], in the order of the rows."""
    first, lengths = rows.starts.long()[targets], torch.diff(rows.starts).long()[targets]
    starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    places = torch.repeat_interleave(first - starts[:-1], lengths) + torch.arange(int(starts[-1]))
    return models.Incoming(targets.int(), starts.int(), rows.senders[places])


def train_attention(
    network: models.PairAttention,
    x: Tensor,
    rows: ReceiverRows,
    targets: Tensor,
    labels: Tensor,
    schedule: PrivateSchedule,
    *,
    randomness: Randomness,
    soft: float = 0.0,
    protect: bool = True,
    progress: ProgressCallback | None = None,
) -> int:
    """Train for all steps and return their number; the head is first fitted to public rows alone."""
    _start_head(network.head, x[targets], labels)
    # The head is fitted already, on public rows: noisy steps are then spent on the attention.
    descent = AttentionDescent(network, x, rows, targets, labels, schedule, soft=soft, protect=protect)
    descent.run(randomness=randomness, progress=progress)
    descent.finish()
    return descent.steps_taken


def _start_head(head: nn.Linear, x: Tensor, labels: Tensor) -> None:
    """Fit the head to public rows and labels; no edge is read."""
    optimiser = torch.optim.Adam(head.parameters(), lr=0.1)
    for _ in range(_HEAD_STEPS if len(labels) else 0):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(head(x), labels).backward()  # type: ignore[no-untyped-call]
        optimiser.step()


class TopologyDescent(TargetDescent):
    """The private training of rows W. Raises InputError where rows, targets and labels do not match.

    Args:
        start: the first rows [n, k], public.
        head: H [c, k], public and fixed.
        rows: edges without weights, which are read with noise only.
    """

    def __init__(
        self,
        start: Tensor,
        head: Tensor,
        rows: ReceiverRows,
        targets: Tensor,
        labels: Tensor,
        schedule: PrivateSchedule,
        *,
        samples: int = 2,
        protect: bool = True,
    ) -> None:
        fits = len(start) == rows.num_nodes and len(labels) == len(targets) and rows.weights is None
        if not fits or bool((labels < 0).any()):
            raise InputError(
                f"{len(start)} rows of {rows.num_nodes} nodes, {len(labels)} labels of {len(targets)} targets",
                allowed="one row a node, one known label a target, edges without weights",
            )
        self.current, self._head, self._rows = unit_rows(start).clone(), head, rows
        super().__init__([self.current], targets, labels, schedule, samples=samples, protect=protect)

    def settle(self) -> None:
        # Reads noisy rows alone: post-processing, like their mean.
        self.current.copy_(unit_rows(self.current))

    def clipped_sum(self, chosen: Tensor) -> Tensor:
        total = torch.zeros(self.current.shape, dtype=torch.float64)
        if not len(chosen):
            return total.view(-1)
        rows = incoming(self._rows, self._targets[chosen])
        degrees = torch.diff(rows.starts.long())
        sums = torch.nn.functional.embedding_bag(
            rows.senders, self.current, rows.starts, mode="sum", include_last_offset=True
        )
        chances = torch.softmax(torch.relu(sums) @ self._head.T, dim=1)
        chances[torch.arange(len(chosen)), self._labels[chosen]] -= 1.0
        steps = clipped_deltas((chances @ self._head) * (sums > 0), degrees, self._schedule.grid)
        # Whole numbers in float64: exact, whatever the order in which neighbours are listed.
        total.index_add_(0, rows.senders.long(), torch.repeat_interleave(steps, degrees, dim=0))
        return total.view(-1)

    def finish(self) -> Tensor:
        """Return the mean of the later half of the rows [n, k]: post-processing of what was released."""
        return unit_rows(self._mean.values[0])


def clipped_deltas(deltas: Tensor, degrees: Tensor, grid: GradientGrid) -> Tensor:
    """Return deltas in whole steps, float64 [b, k], clipped so that `degrees` copies of each are at most `cap` long.

    Args:
        deltas: float [b, k].
        degrees: int64 [b], to how many rows each delta is added.
    """
    exact, copies = deltas.double(), degrees.double()[:, None]
    lengths = (exact.square().sum(dim=1, keepdim=True) * copies).sqrt()
    # Towards zero: rounding to the nearest could lengthen a gradient past the cap that noise was made for.
    steps = (exact / lengths.clamp_min(grid.clip) * grid.cap).trunc()
    # Judged by the integers that are added, in a form that fails for NaN: such a target adds nothing.
    valid = steps.square().sum(dim=1, keepdim=True) * copies <= float(grid.cap) ** 2
    return torch.where(valid, steps, 0.0)


def fixed_head(classes: int, columns: int) -> Tensor:
    """Return H [c, k], with orthogonal rows where c <= k, drawn from torch's global generator."""
    square: Tensor = torch.linalg.qr(torch.randn(max(classes, columns), max(classes, columns)))[0]
    head: Tensor = square[:classes, :columns] * math.sqrt(6.0 / columns)
    return head
