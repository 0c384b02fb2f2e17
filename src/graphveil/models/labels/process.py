"""Class scores that vary smoothly along edges, pulled at by noisy labels: a Gaussian process behind a label channel.

    f = B a,   B = (1 - alpha) sum_{k<K} alpha^k Q^k + alpha^K Q^K    (personalised PageRank; Q = D^-1 A or P)
    a = argmin  lambda/2 |a|^2  -  sum_{v reported} log( softmax(SCALE f_v + log pi) T )_{y'_v}

The exact likelihood of each noisy report pulls at the scores.  Several blocks (which reports are used) are solved side
by side by L-BFGS, each with steps of its own: a point that is no lower is not moved to, and the next one tried is a
quarter as far.  A fixed number of points is looked at, so a GPU is never waited for.
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
#: K, how many points are looked at, how many steps are remembered, and the first one's root-mean-square.
DEPTH: Final = 20
POINTS: Final = 8
MEMORY: Final = 5
FIRST: Final = 0.3


class Step(NamedTuple):
    """A step and what it changed in the slope [n, b, c], 1 / (step . change), and the inverse curvature [b]; zero in
    blocks that made no step or found no curvature upwards.
    """

    moved: Tensor
    bent: Tensor
    weight: Tensor
    flatness: Tensor


class Point(NamedTuple):
    """Where a search is: a and f [n, b, c], what is minimised [b] and its slope [n, b, c]."""

    a: Tensor
    f: Tensor
    value: Tensor
    slope: Tensor

    def or_(self, other: Point, where: Tensor) -> Point:
        """Return this point, and another in some blocks [b]."""
        return Point(
            *(torch.where(where if t.dim() == 1 else where[:, None], u, t) for t, u in zip(self, other, strict=True))
        )


@dataclass(frozen=True)
class Process:
    """What is minimised.

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
        f = self._walked(self.q.forward, a)
        # Classes come first between the products: sums over a handful of them are slow along the last dimension.
        expected = torch.softmax((f * SCALE).add_(self.log_prior).permute(2, 0, 1).contiguous(), dim=0)
        joint = expected * self.likelihood.T[:, :, None]
        total = joint.sum(dim=0)
        value = self.penalty / 2 * dot(a, a) - (total.log() * self.used).sum(dim=0)
        pull = expected.addcdiv_(joint, total, value=-1).mul_(self.used)
        slope = self._walked(self.q.backward, pull.permute(1, 2, 0))
        return Point(a, f, value, slope.mul_(SCALE).add_(a, alpha=self.penalty))

    def _walked(self, rows: Rows, x: Tensor) -> Tensor:
        """Return B x, or with the transpose of Q that of B [n, b, c]: what adds up to 0 over the classes still does."""
        fewer = x[:, :, :-1]
        return all_classes(rows.walk(fewer.flatten(1), DEPTH, self.alpha).view(fewer.shape))


def fit_process(process: Process) -> Tensor:
    """Return SCALE f where the search ends, before the prior is added [n, b, c]."""
    return SCALE * next(islice(search(process), POINTS - 1, None)).f


def search(process: Process) -> Iterator[Point]:
    """Yield the lowest point so far, after each one that is looked at, without end."""
    here = process.at(torch.zeros(*process.used.shape, process.likelihood.shape[1], device=process.used.device))
    steps: deque[Step] = deque(maxlen=MEMORY)
    way, length = _way(here.slope, steps), torch.ones_like(here.value)
    while True:
        yield here
        there = process.at(here.a + length[:, None] * way)
        lower = there.value <= here.value
        after = here.or_(there, lower)
        steps.append(_step(after.a - here.a, after.slope - here.slope))
        here = after
        way = torch.where(lower[:, None], _way(here.slope, steps), way)
        length = torch.where(lower, 1.0, length / 4)


def _step(moved: Tensor, bent: Tensor) -> Step:
    along, square = dot(moved, bent), dot(bent, bent)
    up = along > 0
    return Step(moved, bent, torch.where(up, 1 / along, 0.0), torch.where(up, along / square, 0.0))


def _way(slope: Tensor, steps: Iterable[Step]) -> Tensor:
    """Return where to go next [n, b, c]: minus the inverse curvature, as far as steps know it, times the slope."""
    way, steps = -slope, list(steps)
    shares = []
    for step in reversed(steps):
        shares.append((step.weight * dot(step.moved, way))[:, None])
        way = way - shares[-1] * step.bent
    scale = FIRST / slope.square().mean(dim=(0, 2)).sqrt().clamp_min(1e-12)
    for step in steps:
        scale = torch.where(step.flatness > 0, step.flatness, scale)
    way = way * scale[:, None]
    for step, share in zip(steps, reversed(shares), strict=True):
        way = way + (share - (step.weight * dot(step.bent, way))[:, None]) * step.moved
    return way


def dot(u: Tensor, v: Tensor) -> Tensor:
    """Return the products of blocks [n, b, c] -> [b]."""
    product: Tensor = (u * v).sum(dim=0).sum(dim=1)
    return product
