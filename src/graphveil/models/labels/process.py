"""Class scores that vary smoothly along edges and fit noisy labels: a Gaussian process behind a label channel.

    f = B a,   B = (1 - alpha) sum_{k<K} alpha^k Q^k + alpha^K Q^K    (personalised PageRank; Q = D^-1 A or P)
    a = argmin  lambda/2 |a|^2  -  sum_{v reported} log( softmax(SCALE f_v + log pi) T )_{y'_v}

Scores maximise the exact likelihood of the noisy reports.  Several blocks (which reports are used) are solved side by
side by L-BFGS, each with its own steps: a candidate that is no lower is rejected, and the next is a quarter as far.
The number of candidates is fixed, so nothing waits for a GPU.
Source: Nocedal and Wright, "Numerical Optimization", 2nd edition, 2006, algorithm 7.4.
Shapes: likelihood [n, c], used [n, b], a, f and slopes [n, b, c], what is known of a block [b].
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from graphveil.aggregation import SparseMatrix
from graphveil.aggregation.sparse import Rows
from graphveil.models.labels.label_prior import all_classes
from graphveil.runtime.late import Tensor, torch

SCALE: Final = 10.0
#: K, how many candidates are evaluated, how many steps L-BFGS stores, and the root-mean-square of the first step.
DEPTH: Final = 20
POINTS: Final = 8
MEMORY: Final = 5
FIRST: Final = 0.3


class Step(NamedTuple):
    """A step and what it changed in the slope [n, b, c], 1 / (step . change), and the inverse curvature [b]; zero in
    blocks that made no step or found no curvature upwards.
    """

    moved: Tensor
    slope_change: Tensor
    weight: Tensor
    flatness: Tensor


class Point(NamedTuple):
    """A point of a search: a and f [n, b, c], the objective [b] and its slope [n, b, c]."""

    a: Tensor
    f: Tensor
    value: Tensor
    slope: Tensor

    def or_(self, other: Point, where: Tensor) -> Point:
        """Return this point, with another in the blocks where `where` [b] is true."""
        return Point(
            *(torch.where(where if t.dim() == 1 else where[:, None], u, t) for t, u in zip(self, other, strict=True))
        )


@dataclass(frozen=True)
class Process:
    """The objective.

    Attributes:
        q: Q [n, n].
        likelihood: [n, c] of each node's report under each class.
        used: [n, b] whose reports each block uses.
        log_prior: log pi [c].
        alpha: the weight of one more hop.
        penalty: lambda.
    """

    q: SparseMatrix
    likelihood: Tensor
    used: Tensor
    log_prior: Tensor
    alpha: float
    penalty: float

    def at(self, a: Tensor) -> Point:
        """Return the point at a [n, b, c], which adds up to 0 over the classes: so does the slope, and every point of a
        search that begins at 0.
        """
        f = self._propagate(self.q.forward, a)
        # Classes come first between the products: sums over a handful of them are slow along the last dimension.
        expected = torch.softmax((f * SCALE).add_(self.log_prior).permute(2, 0, 1).contiguous(), dim=0)
        joint = expected * self.likelihood.T[:, :, None]
        total = joint.sum(dim=0)
        value = self.penalty / 2 * dot(a, a) - (total.log() * self.used).sum(dim=0)
        pull = expected.addcdiv_(joint, total, value=-1).mul_(self.used)
        slope = self._propagate(self.q.backward, pull.permute(1, 2, 0))
        return Point(a, f, value, slope.mul_(SCALE).add_(a, alpha=self.penalty))

    def _propagate(self, rows: Rows, x: Tensor) -> Tensor:
        """Return B x, or B^T x for the transpose of Q [n, b, c]; sums over the classes stay 0."""
        fewer = x[:, :, :-1]
        return all_classes(rows.walk(fewer.flatten(1), DEPTH, self.alpha).view(fewer.shape))


def fit_process(process: Process) -> Tensor:
    """Return SCALE f where the search ends, before the prior is added [n, b, c]."""
    return SCALE * next(islice(search(process), POINTS - 1, None)).f


def search(process: Process) -> Iterator[Point]:
    """Yield the lowest point so far after each candidate, without end."""
    current = process.at(torch.zeros(*process.used.shape, process.likelihood.shape[1], device=process.used.device))
    steps: deque[Step] = deque(maxlen=MEMORY)
    direction, length = _direction(current.slope, steps), torch.ones_like(current.value)
    while True:
        yield current
        candidate = process.at(current.a + length[:, None] * direction)
        lower = candidate.value <= current.value
        new = current.or_(candidate, lower)
        steps.append(_step(new.a - current.a, new.slope - current.slope))
        current = new
        direction = torch.where(lower[:, None], _direction(current.slope, steps), direction)
        length = torch.where(lower, 1.0, length / 4)


def _step(moved: Tensor, slope_change: Tensor) -> Step:
    along, square = dot(moved, slope_change), dot(slope_change, slope_change)
    up = along > 0
    return Step(moved, slope_change, torch.where(up, 1 / along, 0.0), torch.where(up, along / square, 0.0))


def _direction(slope: Tensor, steps: Iterable[Step]) -> Tensor:
    """Return the next direction [n, b, c]: minus the inverse curvature, estimated from the steps, times the slope."""
    direction, steps = -slope, list(steps)
    shares = []
    for step in reversed(steps):
        shares.append((step.weight * dot(step.moved, direction))[:, None])
        direction = direction - shares[-1] * step.slope_change
    scale = FIRST / slope.square().mean(dim=(0, 2)).sqrt().clamp_min(1e-12)
    for step in steps:
        scale = torch.where(step.flatness > 0, step.flatness, scale)
    direction = direction * scale[:, None]
    for step, share in zip(steps, reversed(shares), strict=True):
        direction = direction + (share - (step.weight * dot(step.slope_change, direction))[:, None]) * step.moved
    return direction


def dot(u: Tensor, v: Tensor) -> Tensor:
    """Return the products of blocks [n, b, c] -> [b]."""
    product: Tensor = (u * v).sum(dim=0).sum(dim=1)
    return product
