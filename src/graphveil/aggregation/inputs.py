"""The first linear map of a backbone over K-hop propagated features, without forming them.

    X' = scale * (P^K (C + 1 o^T) - 1 m^T)          C [n, d] the centred estimate (sparse), o [d] its offset
    X' W = scale * (P^K (C W) + (P^K 1)(o^T W) - 1 (m^T W))

Propagation and the linear map commute, so h columns are propagated instead of d, and neither the n x d estimate nor
its propagation is ever built.  Where d is small or K |E| large, the cached dense product is cheaper: the choice is
made by counting operations.

Where some sent no report (a 0 in r [n]), means are over those who did:

    X'_v = s_v (P^K R C)_v + (P^K 1)_v o          s_v = (P^K 1)_v / (P^K r)_v,  0 where nobody in reach answered

It is the ratio estimate of J. Hajek (1971). Where answering has nothing to do with features, its bias is of a smaller
order than its spread, and its variance is, to first order, with W = (P^K)_v, x the mean and rho the share who answer,

    sum_u W_u^2 (noise_u + (1 - rho) (x_u - x)^2) / rho

Weights of 1 / rho are unbiased too, but pay for the distance of x_u from o in place of x; with s left out a person
looks the nearer to the middle of the range the fewer around them answered.

What UPGNet makes of noisy features before a network reads them (`upgnet_features`): small averages set to zero, which
is not linear and needs the n x d matrix, and hops averaged.

    Z = S_C(D^-1 A X*),      S_C(z) = sign(z) max(|z| - C, 0)          node feature regularisation (NFR)
    X' = (P Z + P^2 Z + ... + P^K Z) / K                               high-order aggregator (HOA)

Source: "Going Deeper into Locally Differentially Private Graph Neural Networks", ICML 2025; C = 1 is that of the
authors' code, which after the subtraction also sets to zero what is left within C.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphveil.aggregation.propagation import Adjacency, propagate
from graphveil.aggregation.sparse import SparseMatrix, from_scipy
from graphveil.engine import LOCAL, Blocks, Engine
from graphveil.errors import InputError
from graphveil.runtime.late import sparse as sp
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

#: One multiply-add of a sparse row sum costs about this many of a dense product (benchmarks/kernels.py).
SPARSE_COST = 2.0
#: No dense matrix of more than this many values is formed here (256 MB in float32).
DENSE_VALUES = 64_000_000
#: Except this many columns of all rows: fewer would make rows shorter than a cache line, and products slower.
_FEWEST_PROBES = 32


@dataclass(frozen=True)
class Inputs:
    """Features as an operator: `inputs.linear(weight)` is X' W for a weight [d, h]."""

    matrix: SparseMatrix | Tensor  # C, sparse or dense [n, d]; already propagated when `hops` is 0
    p: SparseMatrix | None  # the propagation matrix [n, n], or None where nothing is left to propagate
    hops: int  # K
    row_sums: Tensor  # P^K 1 [n, 1]
    offset: Tensor | None = None  # o [1, d]
    mean: Tensor | None = None  # m [1, d]
    scale: float = 1.0  # one number
    #: s [n, 1] where some sent no report; None: all reports are there, or `matrix` includes s already.
    answered: Tensor | None = None

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.matrix.shape[1])

    @property
    def num_nodes(self) -> int:
        """n."""
        return int(self.matrix.shape[0])

    def on(self, engine: Engine) -> Inputs:
        """Return the same operator, whose sparse products an engine works on; dense ones stay here."""
        # A dense C is in one product only: handing it to the engine would cost more than it saves.
        matrix = self.matrix if isinstance(self.matrix, torch.Tensor) else self.matrix.on(engine)
        return replace(self, matrix=matrix, p=None if self.p is None else self.p.on(engine))

    def linear(self, weight: Tensor) -> Tensor:
        """Return X' W [n, h] for `weight` [d, h], differentiable in the weight."""
        out = self.matrix @ weight
        if self.p is not None:
            out = self.p.power(out, self.hops)
        if self.answered is not None:
            out = out * self.answered
        if self._shifts is None:
            return out * self.scale if self.scale != 1.0 else out
        columns, rows = self._shifts
        return torch.addmm(out, columns, rows @ weight, beta=self.scale, alpha=self.scale)

    @cached_property
    def _shifts(self) -> tuple[Tensor, Tensor] | None:
        """What is added to P^K C as (columns [n, s], rows [s, d]) of a product, s at most 2."""
        # The constant is propagated as one column, P^K 1, and never as d columns.
        parts = [] if self.offset is None else [(self.row_sums, self.offset)]
        if self.mean is not None:
            parts.append((-torch.ones_like(self.row_sums), self.mean))
        if not parts:
            return None
        columns, rows = zip(*parts, strict=True)
        return torch.cat(columns, dim=1), torch.cat(rows)


def build_inputs(
    centred: sp.csr_matrix | np.ndarray | Tensor,
    p: SparseMatrix | None,
    hops: int,
    *,
    width: int,
    offset: float = 0.0,
    reported: Tensor | None = None,
    device: torch.device | str = "cpu",
    engine: Engine = LOCAL,
) -> Inputs:
    """Return the operator for P^hops (centred + offset), in the cheaper of its two forms.

    Args:
        centred: C [n, d], sparse or dense.
        p: P [n, n]; may be None for hops = 0.
        offset: added to all of C.
        width: columns of the first weight (they decide which form is cheaper).
        reported: bool [n], which rows are reports; all other rows are zeros. None: all rows are.
    """
    matrix = _load(centred, device)
    n, d = matrix.shape
    hops = hops if p is not None else 0
    row_sums = torch.ones(n, 1, device=device)
    if p is not None and hops:
        row_sums = propagate(p, row_sums, hops, engine=engine)
    answered = None
    # By exactly as many hops as the features: shares over other hops would leave the mean biased towards 0.
    if p is not None and hops and reported is not None and not bool(reported.all()):
        answered = _answered(row_sums, propagate(p, reported.to(row_sums).unsqueeze(1), hops, engine=engine))
    if p is not None and hops and dense_is_cheaper(matrix, p, hops, width):
        dense = matrix if isinstance(matrix, torch.Tensor) else matrix.on(engine) @ torch.eye(d, device=device)
        matrix, p, hops = propagate(p, dense, hops, engine=engine), None, 0
        matrix, answered = matrix if answered is None else matrix * answered, None
    shift = torch.full((1, d), offset, device=device) if offset else None
    return Inputs(matrix, p if hops else None, hops, row_sums, shift, answered=answered)


def _answered(row_sums: Tensor, reported_sums: Tensor) -> Tensor:
    """Return s [n, 1] of P^K 1 and P^K r; a node that no report reaches stays at the middle of the range."""
    return torch.where(
        reported_sums > 0,
        row_sums / reported_sums.clamp_min(torch.finfo(reported_sums.dtype).tiny),
        torch.zeros_like(row_sums),
    )


def dense_is_cheaper(matrix: SparseMatrix | Tensor, p: SparseMatrix, hops: int, width: int) -> bool:
    """Count multiply-adds of one pass: C W then K hops, against one dense n x d product.

    Args:
        matrix: C [n, d].
        p: the hops' matrix [n, n].
        hops: K.
        width: columns of W.
    """
    n, d = matrix.shape
    if n * d > DENSE_VALUES:
        return False
    first = matrix.numel() * width if isinstance(matrix, torch.Tensor) else SPARSE_COST * matrix.entries * width
    commuted = first + SPARSE_COST * hops * p.entries * width
    return bool(n * d * width < commuted)


def standardise(inputs: Inputs, *, generator: torch.Generator, probes: int = 64, engine: Engine = LOCAL) -> Inputs:
    """Return the operator shifted to zero column means and scaled to unit root-mean-square entries. Server-side
    post-processing of released values: it spends nothing. Column means are exact (1^T P^K C); the scale comes from ``E
    |M g|^2 = |M|_F^2`` for standard normal g (Hutchinson).

    Args:
        inputs: the operator M [n, d].
        probes: how many g.
    """
    n, d = inputs.num_nodes, inputs.dimension
    device = inputs.row_sums.device
    on_engine = inputs.on(engine)
    mean = _column_means(on_engine)
    g = torch.randn(d, probes, generator=generator).to(device)
    # The exact norm would need the n x d product that `Inputs` avoids; 64 probes give it up to 10 or 20%.
    width, centred = max(_FEWEST_PROBES, DENSE_VALUES // n), replace(on_engine, mean=mean)
    parts = (g[:, start : start + width] for start in range(0, probes, width))
    square = sum(float(centred.linear(part).square().sum()) for part in parts) / probes
    # Without scaling, training fails at small epsilons because unbiased entries grow like d / epsilon.
    scale = (n * d / square) ** 0.5 if square > 0 else 1.0
    return replace(inputs, mean=mean, scale=scale)


def _column_means(inputs: Inputs) -> Tensor:
    weights = torch.ones_like(inputs.row_sums) if inputs.answered is None else inputs.answered
    if inputs.p is not None:
        for _ in range(inputs.hops):
            # 1^T P^K from the left: K products with one column instead of d columns.
            weights = inputs.p.backward.times(weights)
    matrix = inputs.matrix
    # The engine's blocks are of columns, each with all its rows in order: no sum crosses blocks.
    sums = matrix.T @ weights if isinstance(matrix, torch.Tensor) else matrix.backward.times(weights)
    mean = sums.T / inputs.num_nodes
    return mean if inputs.offset is None else mean + inputs.row_sums.mean() * inputs.offset


def _load(centred: sp.csr_matrix | np.ndarray | Tensor, device: torch.device | str) -> SparseMatrix | Tensor:
    if isinstance(centred, torch.Tensor):
        return centred.to(device=device, dtype=torch.float32)
    if sp.issparse(centred):
        return from_scipy(centred).to(device)
    return torch.from_numpy(np.ascontiguousarray(centred, dtype=np.float32)).to(device)


#: C, and the middle of the range, for features in [0, 1].
THRESHOLD, MIDDLE = 1.0, 0.5
#: Numbers of a dense matrix, at most: 2 GB in float32, of which a sum of hops and a training hold four at once.
MOST_VALUES = 1 << 29


def upgnet_features(
    centred: sp.csr_matrix | np.ndarray, a: Adjacency, hops: int, reported: Tensor | None = None
) -> Tensor:
    """Return X' [n, d].

    Args:
        centred: X* [n, d] less the middle of its range, of length 1.
        a: who is linked to whom.
        hops: K; 0 leaves Z.
        reported: mask [n] of whose row is a report, over whom the averages of Z go; None: everybody's.
    """
    step = torch.from_numpy(regularise(centred, a, None if reported is None else reported.numpy()))
    if not hops:
        return step
    p, total = a.normalised(), torch.zeros_like(step)
    for _ in range(hops):
        step = p @ step
        total += step
    return total / hops


def regularise(centred: sp.csr_matrix | np.ndarray, a: Adjacency, reported: np.ndarray | None = None) -> np.ndarray:
    """Return Z [n, d] float32; zeros where a node has no neighbour."""
    mean, features = a.to_scipy("mean"), np.empty(centred.shape, np.float32)
    for block in Blocks.of(*features.shape):
        rows = mean[block.rows]
        averaged = rows @ centred
        # The average of a constant is the constant, except for nodes without neighbours.
        middle = MIDDLE * np.asarray(rows.sum(axis=1)).reshape(-1, 1)
        dense = averaged.toarray() if sp.issparse(averaged) else averaged
        if reported is not None and not reported.all():
            # Shares of neighbours who answered; where nobody did, the row is zeros and stays so.
            share = np.asarray(rows @ reported.astype(np.float32)).reshape(-1, 1)
            dense = np.where(share > 0, dense / np.maximum(share, np.finfo(np.float32).tiny), 0)
        dense = dense + middle
        features[block.rows] = np.sign(dense) * np.maximum(np.abs(dense) - THRESHOLD, 0)
    return features


def require_dense(nodes: int, dimension: int) -> None:
    """Refuse features that would have more than `MOST_VALUES` numbers as a dense matrix."""
    if nodes * dimension > MOST_VALUES:
        raise InputError(
            f"{nodes:,} nodes with {dimension:,} features",
            where="upgnet",
            allowed=f"{MOST_VALUES:,} numbers in all: its layers need every one of them",
            remedy="train lpgnn, which does not",
        )
