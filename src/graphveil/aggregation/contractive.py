"""A chain of contracting steps over a graph, each with noise; only its last state is released.

    f(x) = c ( a P clip(x) + (1 - a) mean(clip(x)) ) + b x_0,      x_k = round( f(x_{k-1}) ) + Z_k,     out = x_K
    P = D^-1/2 (A + L) D^-1/2,    d_v = max(degree, F),    L_v = max(F - degree, 0) self-loops

`clip` brings rows longer than 1 to length 1. F is public: every d_v is at least F, however few neighbours there are.

1. |f(x) - f(y)| <= c |x - y|: P is symmetric with eigenvalues in [-1, 1], and clip and mean increase no distance.
2. One undirected edge uv moves f(x) by at most s = c a sqrt(8) / F. An end with degree below F keeps its d: its row
   gains x_w / sqrt(F d_w) and loses x_u / F, together at most 2 / F, and no other row moves. An end of degree d >= F
   moves its row by at most (d (d^-1/2 - (d + 1)^-1/2) + (d + 1)^-1/2) / sqrt(F) <= 1.5 / F, and those of its neighbours
   together by at most 1 / (2 F^1.5). In each of the three cases the squares add up to at most 8 / F^2.
3. The last state costs what one release of noise sigma costs that moves by s sqrt(k), where
   k = (1 - c^K) (1 + c) / ((1 + c^K) (1 - c)) < min(K, (1 + c) / (1 - c)). Let x run on one graph with noise Z_k, and y
   on its neighbour with noise Z_k + e_k, where e_k takes t_k off the distance of both, which is at most c z_{k-1} + s
   before. With t_k proportional to c^(K-k) the distance is 0 at K. So x_K is the neighbour's result with shifted noise,
   where each shift depends on earlier noise, and the squares of t_k add up to k s^2: Gaussian releases compose to that,
   and the rest is post-processing. No earlier state may be released.
4. States are whole steps of sigma / 2^30, so that e_k can be. Rounding f and e_k adds at most a step in each of m
   numbers: twice sqrt(m) steps to s, charged in `sigma` for the most numbers allowed.

Source of 3: Bok, Su, Altschuler, "Shifted Interpolation for Differential Privacy", ICML 2024, arXiv 2403.00278; of f:
Zheng, Li, Li, Wang, "Convergent Privacy Framework for Multi-layer GNNs through Contractive Message Passing" (CARIBOU),
NDSS 2026, arXiv 2506.22727. There degrees of the private graph set the noise, and edges are read once more after it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from graphveil.aggregation.exact_sum import ReceiverRows
from graphveil.errors import InputError, NoiseError
from graphveil.mechanisms.samplers.rounded_normal import FineNormal
from graphveil.privacy import Randomness
from graphveil.runtime.checks import require_number, require_whole
from graphveil.runtime.late import sparse as sp
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

#: The most numbers in a state: `sigma` charges the rounding of so many, before their number is known.
MOST_NUMBERS: Final = 1 << 27
#: Steps in a standard deviation.
_STEPS: Final = 1 << 30
_NOISE: Final = FineNormal(float(_STEPS))


@dataclass(frozen=True, kw_only=True)
class ContractiveChain:
    """The public parameters of a chain."""

    hops: int  # K
    contraction: float  # c, in (0, 1)
    share: float  # a, the part of neighbours beside the mean of all, in (0, 1]
    residual: float  # b, of the first rows, in 0..100
    floor: int  # F, in 1..10,000

    def __post_init__(self) -> None:
        require_number("(0, 1)", contraction=self.contraction)
        require_number("(0, 1]", share=self.share)
        require_number("[0, 100]", residual=self.residual)
        require_whole(1, hops=self.hops)
        # A state is then less than 2^53 steps long, so that whole steps are exact.
        require_whole(1, 10_000, floor=self.floor)

    @property
    def sensitivity(self) -> float:
        """s: the most that one undirected edge moves a step."""
        return self.contraction * self.share * math.sqrt(8.0) / self.floor * (1 + 1e-9)

    @property
    def growth(self) -> float:
        """k: the squared cost of K hidden steps over that of one."""
        c, last = self.contraction, self.contraction**self.hops
        return (1 - last) * (1 + c) / ((1 + last) * (1 - c))

    def sigma(self, multiplier: float) -> float:
        """Return the noise of a step with which the whole chain costs what one release of noise `multiplier` times its
        sensitivity costs; 0 gives 0.
        """
        target = multiplier * math.sqrt(self.growth)
        rounding = 2 * math.sqrt(MOST_NUMBERS) / _STEPS
        if target * rounding >= 0.5:
            raise NoiseError(f"noise of {multiplier:g} sensitivities")
        return self.sensitivity * target / (1 - target * rounding)

    def operator(self, rows: ReceiverRows) -> sp.csr_matrix:
        """Return P, float64 [n, n], of edges in both directions; it is private, as they are."""
        degrees = np.diff(rows.starts.numpy()).astype(np.float64)
        root = sp.diags(np.maximum(degrees, self.floor) ** -0.5)
        return sp.csr_matrix(
            root @ (rows.to_scipy().astype(np.float64) + sp.diags(np.maximum(self.floor - degrees, 0))) @ root
        )

    def step(self, matrix: sp.csr_matrix, x: Tensor, start: Tensor) -> Tensor:
        """Return f(x), float64 [n, c].

        Args:
            start: x_0, [n, c].
        """
        short = clip_rows(x)
        around = torch.from_numpy(matrix @ short.numpy())
        spread: Tensor = self.share * around + (1 - self.share) * short.mean(dim=0)
        return self.contraction * spread + self.residual * start

    def released(self, rows: ReceiverRows, start: Tensor, sigma: float, randomness: Randomness) -> Tensor:
        """Return x_K, float32 [n, c], which reads all edges K times, each time with noise. Raises InputError for more
        than MOST_NUMBERS numbers.

        Args:
            rows: the edges, each in both directions, without self-loops.
            sigma: noise of each step; 0 adds none.
            start: x_0, [n, c]; no edge is in it. Rows longer than 1 are shortened, NaN and infinite entries become 0.
        """
        if start.numel() > MOST_NUMBERS:
            raise InputError(f"{start.numel()} numbers", where="caribou", allowed=f"at most {MOST_NUMBERS}")
        # NaN in one row would spread along edges to other rows, which no noise hides.
        matrix, first = self.operator(rows), clip_rows(torch.nan_to_num(start.double(), 0.0, 0.0, 0.0))
        x = first
        for hop in range(1, self.hops + 1):
            x = self.hide(self.step(matrix, x, first), sigma, hop, randomness)
        return x.float()

    def hide(self, exact: Tensor, sigma: float, hop: int, randomness: Randomness) -> Tensor:
        """Return the state after one step, float64 [n, c]: whole steps of the grid, with noise.

        Args:
            exact: f of the previous state; private.
            sigma: of the noise; 0 adds none.
            hop: 1..K; all states before K are private.
        """
        if sigma == 0.0:
            return exact
        grid = sigma / _STEPS
        noise = torch.from_numpy(_NOISE.units(exact.numel(), randomness)).view_as(exact)
        return ((exact / grid).round() + noise) * grid


def clip_rows(x: Tensor) -> Tensor:
    """Return rows [n, c] with rows longer than 1 scaled to length 1."""
    short: Tensor = x / x.norm(dim=1, keepdim=True).clamp_min(1.0)
    return short
