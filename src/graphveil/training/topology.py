"""One row for each node, learned by private gradient descent on who is connected to whom.

    z_t = H relu( sum_{v in N(t)} w_v ),       W [n, k] trained, H [c, k] fixed,       one target t a sample

The gradient of a target's loss by W is the outer product of its row of A and delta_t: the same delta in the row of each
neighbour. Its length is sqrt(degree) |delta_t|, which is clipped. An entry of A changes what its target adds into
another vector of at most that length; an undirected edge does it at both ends: `privacy.ChangedSamples` prices it, as
for attention (`training.attention`). After each noisy step the rows are brought to length 1, which reads no edge.

1. What a target adds to a step's sum is an integer matrix of length at most `cap`, by the integers themselves.
2. Toggling an edge changes what its targets add, and nothing else: not the batch, its size or the divisor.
3. Every step adds noise to every row, an empty batch too, and no more steps are taken than the schedule declares.

Source: Chien, Chen, Pan, Li, Ozgur, Milenkovic, "Differentially Private Decoupled Graph Convolutions for Multigranular
Topology Protection", NeurIPS 2023, arXiv 2307.06422 (MLP_A); priced here for Poisson batches.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from graphveil.aggregation import ReceiverRows, unit_rows
from graphveil.errors import InputError
from graphveil.runtime.late import torch
from graphveil.training.attention import TargetDescent, incoming
from graphveil.training.clipped_sum import GradientGrid
from graphveil.training.noisy_updates import PrivateSchedule

if TYPE_CHECKING:
    from torch import Tensor


class TopologyDescent(TargetDescent):
    """The private training of rows W. Raises InputError: rows, targets and labels do not match.

    Args:
        start: the first rows [n, k], public; head: H [c, k], public and fixed; rows: no weights; read behind noise.
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
        # Of noisy rows alone, as is their mean: both are post-processing.
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
        steps = clipped_deltas(self._deltas(sums, self._labels[chosen]), degrees, self._schedule.grid)
        # Whole numbers in float64: exact, whatever the order in which neighbours are listed.
        total.index_add_(0, rows.senders.long(), torch.repeat_interleave(steps, degrees, dim=0))
        return total.view(-1)

    def finish(self) -> Tensor:
        """Return the mean of the later half of the rows [n, k]: post-processing of what was released."""
        return unit_rows(self._mean.values[0])

    def _deltas(self, sums: Tensor, labels: Tensor) -> Tensor:
        chances = torch.softmax(torch.relu(sums) @ self._head.T, dim=1)
        chances[torch.arange(len(labels)), labels] -= 1.0
        return (chances @ self._head) * (sums > 0)


def clipped_deltas(deltas: Tensor, degrees: Tensor, grid: GradientGrid) -> Tensor:
    """Return deltas in whole steps, float64 [b, k], so short that delta in each neighbour's row is at most `cap` long.

    Args:
        deltas: float [b, k]; degrees: int64 [b], in how many rows each of them stands.
    """
    exact, copies = deltas.double(), degrees.double()[:, None]
    lengths = (exact.square().sum(dim=1, keepdim=True) * copies).sqrt()
    # Towards zero: rounding to the nearest could lengthen a gradient past the cap that noise was made for.
    steps = (exact / lengths.clamp_min(grid.clip) * grid.cap).trunc()
    # Judged by the integers that are added, and so that NaN fails: a broken target adds nothing.
    valid = steps.square().sum(dim=1, keepdim=True) * copies <= float(grid.cap) ** 2
    return torch.where(valid, steps, 0.0)


def fixed_head(classes: int, columns: int) -> Tensor:
    """Return H [c, k] with rows at right angles where there is room, drawn from torch's generator as it is seeded."""
    square: Tensor = torch.linalg.qr(torch.randn(max(classes, columns), max(classes, columns)))[0]
    head: Tensor = square[:classes, :columns] * math.sqrt(6.0 / columns)
    return head
