"""Newton's method for a softmax behind a known label channel, whose scores are linear in what is searched for.

    f(w) = - sum_i log( softmax(A w)_i T )_{y'_i}  +  sum_j rho_j (w_j - v_j)^2 / 2
    p    = softmax(A w)_i,      r propto p o T_{y'_i}: the class of i before and after its label is heard
    f'   = A^T (p - r) + rho o (w - v),        f'' u = A^T (S_p - S_r) A u + rho o u,      S_p = diag(p) - p p^T

A step is as many conjugate gradients of f'' as its number allows, and is halved until f falls.  Where the channel keeps
f from being convex, a direction that bends downwards ends the step.  A GPU is waited for once a step.
Source: Nocedal and Wright, "Numerical Optimization", 2nd edition, 2006, algorithm 7.1 (line-search Newton-CG).
Shapes: w and v as A takes them, scores A w and log Pr[y' | class] [m, c].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from graphveil.models.labels.label_prior import log_shares_of
from graphveil.runtime.late import Tensor, torch

#: Steps of Newton, conjugate gradients that each may take more than the one before, and the most of them.
STEPS: Final = 100
MORE: Final = 4
MOST: Final = 32
#: The length of f' at which the search ends, over the root of the number of rows; and to what share of it a step goes.
CLOSE: Final = 2e-4
SHARE: Final = 0.03
#: What rounding may add to f, in units of its last digit.
_DIGITS: Final = 32


@dataclass(frozen=True)
class Linear:
    """A and A^T."""

    times: Callable[[Tensor], Tensor]  # w -> [m, c]
    transposed: Callable[[Tensor], Tensor]  # [m, c] -> as w


@dataclass(frozen=True)
class ChannelLoss:
    """f."""

    scores: Linear
    likelihood: Tensor  # log Pr[y' | class] [m, c]
    penalty: Tensor | float  # rho
    centre: Tensor | float = 0.0  # v

    def at(self, w: Tensor) -> Point:
        """Return f and its slopes at some w."""
        log_p = log_shares_of(self.scores.times(w))
        joint = log_p + self.likelihood
        total = torch.logsumexp(joint, dim=1, keepdim=True)
        p, r = log_p.exp_(), joint.sub_(total).exp_()
        away = w - self.centre
        value = (self.penalty * away.square()).sum() / 2 - total.sum()
        return Point(self, w, value, self.scores.transposed(p - r) + self.penalty * away, p, r)


@dataclass(frozen=True)
class Point:
    """What f is at w."""

    loss: ChannelLoss
    w: Tensor
    value: Tensor
    slope: Tensor
    p: Tensor
    r: Tensor

    def curvature(self, u: Tensor) -> Tensor:
        """Return f'' u."""
        z = self.loss.scores.times(u)
        bent = _spread(self.p, z).sub_(_spread(self.r, z))
        return self.loss.scores.transposed(bent) + self.loss.penalty * u


def _spread(p: Tensor, z: Tensor) -> Tensor:
    """Return S_p z, row by row [m, c]."""
    weighted = p * z
    # Sums of short rows as a product: torch adds up a handful of columns several times as slowly.
    return torch.addcmul(weighted, p, weighted @ p.new_ones(p.shape[1], p.shape[1]), value=-1)


def minimise(loss: ChannelLoss, start: Tensor, close: float | None = None) -> Tensor:
    """Return where f is least, as far as rounding lets it be seen.

    Args:
        loss: f.
        start: w where the search begins.
        close: the length of f' at which it ends; None: `CLOSE` times the root of m.
    """
    enough = CLOSE * len(loss.likelihood) ** 0.5 if close is None else close
    here = loss.at(start)
    length = float(here.slope.norm())
    for number in range(STEPS):
        if length <= enough:
            break
        most = min(MORE * (number + 1), MOST)
        lower = _lower(here, length, *_step(here, most, max(enough / 2, SHARE * length)))
        if lower is None:
            break
        here, length = lower
    return here.w


def _lower(here: Point, length: float, step: Tensor, expected: Tensor) -> tuple[Point, float] | None:
    """Return the first point on the way back from a whole step where f is lower, and the length of f' there."""
    for _ in range(12):
        there = here.loss.at(here.w + step)
        facts = torch.stack([here.value, here.value - there.value, expected, there.slope.norm()])
        value, gain, hoped, size = facts.tolist()
        # Near the end the fall of f is lost in rounding, and its slope still tells of it.
        seen = hoped > _DIGITS * torch.finfo(step.dtype).eps * abs(value)
        if gain > 1e-4 * hoped if seen else size < length:
            return there, size
        if not seen:
            break
        step, expected = step / 2, expected / 2
    return None


def _step(here: Point, most: int, close: float) -> tuple[Tensor, Tensor]:
    """Return s with f'' s = -f' up to a rest of length `close`, if `most` gradients lead there, and by how much f falls
    if it is a parabola.
    """
    step, left = torch.zeros_like(here.slope), -here.slope
    way, square = left, left.square().sum()
    up = square > 0
    for number in range(most):
        bent = here.curvature(way)
        curve = (way * bent).sum()
        # Once a direction bends downwards the step stays as it is; the first is walked all the same.
        up = up & (curve > 0)
        far = torch.where(up | (number == 0), square / curve.abs(), 0.0).nan_to_num(0.0, 0.0, 0.0)
        step, left = step + far * way, left - far * bent
        before, square = square, left.square().sum()
        way = left + (square / before).nan_to_num(0.0, 0.0, 0.0) * way
        # A GPU is not asked: it makes some gradients too many while it would be waited for.
        if left.is_cpu and (not up or float(square) <= close**2):
            break
    return step, (step * (left - here.slope)).sum() / 2
