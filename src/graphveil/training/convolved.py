"""Logistic regression on convolved rows, released once with noise: what one edge can move, and the release.

    Z = a sum_{j<m} (1 - a)^j P^j X + (1 - a)^m P^m X,        P = D^-1 (A + I), rows of X at most 1 long
    T = argmin J,   J(T) = mean over training nodes of -log softmax(z T)_y + penalty |T|^2 / 2
    out = T + N(0, (multiplier D / 2)^2)

1. One undirected edge uv moves Z by at most S = 2 (1 - a) / a (1 - (1 - a)^m), rows' lengths added up. P^j - P'^j is a
   sum of j terms P^i (P - P') P'^(j-1-i). P - P' has rows u and v alone, with absolute sums 2 / (k + 1) at k neighbours
   before, itself included. The columns of P^i add up to at most max(k / 2, 1) there: d_w P^i_wu = k P^i_uw, so that
   sum_w P^i_wu = sum_w (k / d_w) P^i_uw, and all d_w >= 2 where k >= 2. The product is at most 1 for each end: 2 j.
2. The gradient of one node's loss is z (p - y)^T, |p - y| <= sqrt(2), and p moves by at most |T| |z - z'| / 2. With
   |T| <= L at the minimum, the mean of all gradients there moves by at most S (sqrt(2) + L / 2) / n. J is strongly
   convex, so the minimum moves by at most that over the penalty. L = min(sqrt(2) / penalty, sqrt(2 log(c) / penalty)):
   the gradient is 0 at the minimum, and J is at most what it is at 0.
3. With a gradient of length t left, each of the two minima is off by at most t / penalty. D is the bound of 2 plus
   twice that.

The lemma behind 1 is that of the source, whose objective perturbation needs a minimum without error; the plain release
is priced here by the exact curve of the normal law.
Source: Wei, Zhu, Xiao, Bao, Yang, Cai, Ooi, "GCON: Differentially Private Graph Convolutional Network via Objective
Perturbation", ICDE 2025, arXiv 2407.05034; output perturbation: Chaudhuri, Monteleoni, Sarwate, JMLR 2011.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from graphveil.aggregation import ReceiverRows
from graphveil.errors import GraphveilError
from graphveil.models.labels.newton import ChannelLoss, Linear, minimise
from graphveil.privacy import Randomness
from graphveil.runtime.checks import require_number, require_whole
from graphveil.runtime.late import Tensor, torch
from graphveil.training.noisy_updates import PrivateSchedule

#: The length of a gradient at which the search ends, over the largest that one edge makes.
_TOLERANCE: Final = 1e-3


@dataclass(frozen=True, kw_only=True)
class ConvolvedRegression:
    """The public parameters of one regression."""

    restart: float  # a, in (0, 1]
    depth: int  # m, at least 1
    penalty: float  # on squared weights, above 0
    people: int  # training nodes
    columns: int  # of the weights
    classes: int  # of the weights

    def __post_init__(self) -> None:
        require_number("(0, 1]", restart=self.restart)
        require_number("(0, inf)", penalty=self.penalty)
        require_whole(1, depth=self.depth, people=self.people, columns=self.columns, classes=self.classes)

    @property
    def displacement(self) -> float:
        """S: the most that one undirected edge moves all rows of Z, their lengths added up."""
        rest = 1.0 - self.restart
        return 2 * rest / self.restart * (1.0 - rest**self.depth)

    @property
    def weight_bound(self) -> float:
        """L: the weights at the minimum are at most this long."""
        return min(math.sqrt(2) / self.penalty, math.sqrt(2 * math.log(max(self.classes, 2)) / self.penalty))

    @property
    def gradient_change(self) -> float:
        """The most that one edge changes the gradient at a minimum."""
        # A little longer than at the minimum itself: the search ends near it.
        return self.displacement * (math.sqrt(2) + (1 + _TOLERANCE) * self.weight_bound / 2) / self.people

    @property
    def sensitivity(self) -> float:
        """D: the most that one undirected edge moves the released weights, the search's end and rounding included."""
        exact = self.gradient_change * (1 + 2 * _TOLERANCE) / self.penalty * (1 + 1e-6)
        # Rounding to the grid moves each weight by half a step in either world; a step is D / 2 over at least 2^10.
        return exact / (1 - math.sqrt(self.columns * self.classes) / 2**11)

    def schedule(self, multiplier: float) -> PrivateSchedule:
        """Return the one noisy release as a step whose one sample may turn round: `ChangedSamples` prices it."""
        clip = max(self.sensitivity / 2, 1e-9)
        return PrivateSchedule(steps=1, rate=1.0, expected_batch=1.0, noise_multiplier=multiplier, clip=clip)

    def convolved(self, rows: ReceiverRows, x: Tensor) -> Tensor:
        """Return Z, float64 [n, k]; private, since it reads all edges.

        Args:
            rows: the edges, each in both directions.
            x: [n, k], rows of length at most 1.
        """
        exact = x.double()
        # Normalised here, not by the caller: the bound requires that no row is longer than 1.
        exact = exact / exact.norm(dim=1, keepdim=True).clamp_min(1.0)
        matrix, degrees = rows.to_scipy(), torch.diff(rows.starts).double()[:, None] + 1.0
        power = exact
        total: Tensor = self.restart * exact
        for hop in range(1, self.depth + 1):
            # In float64: rounding would add to what an edge moves, and here it is a billionth of that.
            power = (torch.from_numpy(matrix @ power.numpy()) + power) / degrees
            total = total + (1 - self.restart) ** hop * (1.0 if hop == self.depth else self.restart) * power
        return total

    def minimum(self, z: Tensor, classes: Tensor) -> Tensor:
        """Return T, float64 [k, c], up to a gradient of `_TOLERANCE` times `gradient_change`. Raises GraphveilError
        where the search does not get there, which no known data cause.
        """
        log_one_hot = torch.nn.functional.one_hot(classes, self.classes).double().log()
        # J times the number of people, as a sum.
        loss = ChannelLoss(Linear(z.__matmul__, z.T.__matmul__), log_one_hot, len(z) * self.penalty)
        tolerance = _TOLERANCE * max(self.gradient_change, 1e-12) * len(z)
        weights = minimise(loss, z.new_zeros(z.shape[1], self.classes), tolerance)
        if float(loss.at(weights).slope.norm()) <= tolerance:
            return weights
        raise GraphveilError("the regression did not come to its minimum", remedy="raise the penalty")

    def released(self, weights: Tensor, multiplier: float, randomness: Randomness) -> Tensor:
        """Return the weights with noise, float32 [k, c].

        Args:
            multiplier: deviation of the noise over half of `sensitivity`; 0 adds none.
        """
        if multiplier == 0.0:
            return weights.float()
        schedule = self.schedule(multiplier)
        # Rounded to the grid before the noise, so that last digits reveal nothing; `sensitivity` includes the rounding.
        steps = (weights / schedule.grid.step).round()
        steps += torch.from_numpy(schedule.noise.draw(steps.numel(), randomness)).view_as(steps)
        return (steps * schedule.grid.step).float()
