"""Newton's method for a softmax behind a known label channel, with scores that are linear in the unknowns.

    f(w) = - sum_i log( softmax(A w)_i T )_{y'_i}  +  sum_j rho_j (w_j - v_j)^2 / 2
    p    = softmax(A w)_i,      r propto p o T_{y'_i}: the class of i before and after its label is heard
    f'   = A^T (p - r) + rho o (w - v),        f'' u = A^T (S_p - S_r) A u + rho o u,      S_p = diag(p) - p p^T

A step takes conjugate gradients of f'', more in later steps, and is halved until f falls.  Where the channel makes f
non-convex, a direction of negative curvature ends the step.  It waits for a GPU once a step.
Source: Nocedal and Wright, "Numerical Optimization", 2nd edition, 2006, algorithm 7.1 (line-search Newton-CG).
Shapes: w and v as A takes them, scores A w and log Pr[y' | class] [m, c].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from graphveil.models.labels.label_prior import log_shares_of
from graphveil.runtime.late import Tensor, torch

#: The most Newton steps; how many more conjugate gradients each step may take than the last, and the most of them.
STEPS: Final = 100
MORE_GRADIENTS: Final = 4
MOST_GRADIENTS: Final = 32
#: The length of f' at which the search ends, over the root of the number of rows; the share of f' that a step leaves.
TOLERANCE: Final = 2e-4
RESIDUAL_SHARE: Final = 0.03
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
    """f at w: its value, its slope, and p and r."""

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
    # Sums of short rows as a product, which is several times as fast as torch's sum over a handful of columns.
    return torch.addcmul(weighted, p, weighted @ p.new_ones(p.shape[1], p.shape[1]), value=-1)


def minimise(loss: ChannelLoss, start: Tensor, close: float | None = None) -> Tensor:
    """Return the w that minimises f, up to rounding.

    Args:
        loss: f.
        start: w where the search begins.
        close: the length of f' at which it ends; None: `TOLERANCE` times the root of m.
    """
    enough = TOLERANCE * len(loss.likelihood) ** 0.5 if close is None else close
    current = loss.at(start)
    length = float(current.slope.norm())
    for number in range(STEPS):
        if length <= enough:
            break
        most = min(MORE_GRADIENTS * (number + 1), MOST_GRADIENTS)
        next_point = _line_search(
            current, length, *_newton_step(current, most, max(enough / 2, RESIDUAL_SHARE * length))
        )
        if next_point is None:
            break
        current, length = next_point
    return current.w


def _line_search(current: Point, length: float, step: Tensor, expected: Tensor) -> tuple[Point, float] | None:
    """Return the first point, halving the step, where f is lower, and the length of f' there; None: no such point."""
    for _ in range(12):
        candidate = current.loss.at(current.w + step)
        facts = torch.stack([current.value, current.value - candidate.value, expected, candidate.slope.norm()])
        value, gain, predicted, slope_length = facts.tolist()
        # Near the minimum the decrease of f is lost in rounding, but the length of f' still shows progress.
        visible = predicted > _DIGITS * torch.finfo(step.dtype).eps * abs(value)
        if gain > 1e-4 * predicted if visible else slope_length < length:
            return candidate, slope_length
        if not visible:
            break
        step, expected = step / 2, expected / 2
    return None


def _newton_step(current: Point, most: int, close: float) -> tuple[Tensor, Tensor]:
    """Return s with f'' s = -f' up to a residual of length `close`, if `most` gradients reach it, and the decrease of f
    that a quadratic model predicts.
    """
    step, residual = torch.zeros_like(current.slope), -current.slope
    direction, square = residual, residual.square().sum()
    convex = square > 0
    for number in range(most):
        curvature = current.curvature(direction)
        curve = (direction * curvature).sum()
        # From a direction of negative curvature on the step stays as it is; the first direction is always taken.
        convex = convex & (curve > 0)
        length = torch.where(convex | (number == 0), square / curve.abs(), 0.0).nan_to_num(0.0, 0.0, 0.0)
        step, residual = step + length * direction, residual - length * curvature
        previous, square = square, residual.square().sum()
        direction = residual + (square / previous).nan_to_num(0.0, 0.0, 0.0) * direction
        # Not tested on a GPU: a few gradients too many are quicker than waiting for the test.
        if residual.is_cpu and (not convex or float(square) <= close**2):
            break
    return step, (step * (residual - current.slope)).sum() / 2
