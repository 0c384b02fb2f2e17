"""Sparse matrices whose values are learned: a fixed support, and weights on it that take gradients.

    y = A x + diag(b) x,     dL/dx = A^T g + b * g,     dL/dA_e = g_i . x_j,     dL/db_i = g_i . x_i     (e = j -> i)

    mean:  V_e = A_e / d_i              d_i = sum of row i of A (+ 1 with self-loops)
    gcn:   V_e = A_e / sqrt(d_i c_j)    c_j = sum of column j of A (+ 1)

g is the slope dL/dy.  Everything costs O(E) memory and time: no array of nodes x nodes, none of entries x columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from graphveil.aggregation.propagation import Normalisation
from graphveil.aggregation.sparse import Rows
from graphveil.errors import InputError
from graphveil.graphs.quiet import quiet

#: Dot products of rows run fastest over a multiple of this many columns.
LANES = 8


@dataclass(frozen=True)
class Support:
    """Which entries of an [n, n] matrix may differ from 0: E of them, in both orientations.

    Entry e sends from `source[e]` to `target[e]` (it stands in row target, column source); entries are sorted by
    target, then source.  Build one with :meth:`of`.

    Attributes:
        starts: first entry of each row [n + 1]; source, target: [E].
        back_starts, back_target: the transpose's rows, [n + 1] and [E].
        turned: the entry that each entry of the transpose is [E]; where `symmetric`, also each entry's opposite.
        symmetric: every entry's opposite is there too.
        pattern: the support as a torch CSR matrix (its values are not used).

    All indices are int32.
    """

    starts: Tensor
    source: Tensor
    target: Tensor
    back_starts: Tensor
    back_target: Tensor
    turned: Tensor
    symmetric: bool
    pattern: Tensor

    @staticmethod
    def of(edge_index: Tensor, num_nodes: int, *, self_loops: bool = False) -> Support:
        """Return the support of edges; duplicates count once, self-loops are left out.

        Args:
            edge_index: int64 [2, E], row 0 sends to row 1.
            num_nodes: n.
            self_loops: whether every node gets one.

        Raises:
            InputError: when an edge names a node outside 0..n-1, and for 2^31 entries or more.
        """
        source, target = edge_index.cpu().numpy().astype(np.int64)
        if source.size and (min(source.min(), target.min()) < 0 or max(source.max(), target.max()) >= num_nodes):
            raise InputError("an edge names a node that does not exist", allowed=f"node numbers 0..{num_nodes - 1}")
        keep = source != target
        # One number a pair, so that one sort finds duplicates and puts entries into the order of rows.
        codes = target[keep] * num_nodes + source[keep]
        if self_loops:
            codes = np.concatenate([codes, np.arange(num_nodes) * (num_nodes + 1)])
        codes = np.unique(codes)
        if codes.size >= 2**31:
            raise InputError(f"a support of {codes.size} entries", allowed="below 2^31")
        target, source = codes // max(num_nodes, 1), codes % max(num_nodes, 1)
        # Stable, and entries are sorted by target already: within a row of the transpose the order is ascending too.
        turned = np.argsort(source, kind="stable")
        symmetric = bool(np.array_equal(source[turned], target) and np.array_equal(target[turned], source))
        starts, indices, rows = _starts(target, num_nodes), _int32(source), _int32(target)
        with quiet():
            zeros = torch.zeros(codes.size)
            pattern = torch.sparse_csr_tensor(starts, indices, zeros, (num_nodes,) * 2, check_invariants=False)
        back_starts = starts if symmetric else _starts(source[turned], num_nodes)
        back_target = indices if symmetric else _int32(target[turned])
        return Support(starts, indices, rows, back_starts, back_target, _int32(turned), symmetric, pattern)

    @property
    def num_nodes(self) -> int:
        """n."""
        return int(self.starts.numel() - 1)

    @property
    def entries(self) -> int:
        """E."""
        return int(self.source.numel())

    @property
    def edge_index(self) -> Tensor:
        """Return the entries as edges, int64 [2, E], in the order in which weights are given."""
        return torch.stack([self.source, self.target]).long()

    def row_sums(self, values: Tensor) -> Tensor:
        """Return the sums [n] of values [E] over each row."""
        return values.new_zeros(self.num_nodes).index_add_(0, self.target, values)

    def column_sums(self, values: Tensor) -> Tensor:
        """Return the sums [n] of values [E] over each column."""
        return values.new_zeros(self.num_nodes).index_add_(0, self.source, values)

    def dots(self, left: Tensor, right: Tensor) -> Tensor:
        """Return left_i . right_j of every entry j -> i.

        Args:
            left, right: [n, c].

        Returns:
            [E].
        """
        if self.entries == 0:
            return left.new_zeros(0)
        fill = -left.shape[1] % LANES
        if fill:
            left, right = pad(left, (0, fill)), pad(right, (0, fill))
        pattern = self.pattern if left.dtype == self.pattern.dtype else self.pattern.to(left.dtype)
        return cast(Tensor, torch.sparse.sampled_addmm(pattern, left, right.T, beta=0.0).values())

    def to(self, device: torch.device | str) -> Support:
        """Return the same support on another device."""
        moved: dict[str, Any] = {k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        return replace(self, **moved)


@dataclass(frozen=True)
class WeightedMatrix:
    """The matrix with `values` [E] on a support, and optionally `diagonal` [n] added to it.

    `matrix @ x` is differentiable in x, the values and the diagonal (once: slopes of slopes are not offered).
    """

    support: Support
    values: Tensor
    diagonal: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.support.num_nodes, self.support.num_nodes

    def detach(self) -> WeightedMatrix:
        """Return the same matrix as a constant."""
        diagonal = None if self.diagonal is None else self.diagonal.detach()
        return WeightedMatrix(self.support, self.values.detach(), diagonal)

    def __matmul__(self, x: Tensor) -> Tensor:
        """Return the product [n, c] with a dense `x` [n, c].

        Raises:
            InputError: when the shapes do not fit.
        """
        if x.dim() != 2 or x.shape[0] != self.shape[1]:
            raise InputError(f"cannot multiply a {self.shape} matrix with a tensor {tuple(x.shape)}")
        return cast(Tensor, _Product.apply(x, self.values, self.diagonal, self.support))  # type: ignore[no-untyped-call]


class _Kept(Protocol):
    """What torch hands from a forward pass to its backward pass."""

    support: Support
    power: float
    needs_input_grad: tuple[bool, ...]

    @property
    def saved_tensors(self) -> tuple[Any, ...]: ...

    def save_for_backward(self, *tensors: Tensor | None) -> None: ...


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: _Kept, x: Tensor, values: Tensor, diagonal: Tensor | None, support: Support) -> Tensor:
        x = x.contiguous()
        ctx.save_for_backward(x, values, diagonal)
        ctx.support = support
        out = Rows(support.starts, support.source, values).times(x)
        return out if diagonal is None else out.addcmul_(x, diagonal[:, None])

    @staticmethod
    def backward(ctx: _Kept, slope: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        (x, values, diagonal), support = ctx.saved_tensors, ctx.support
        slope, to_x, to_values, to_diagonal = slope.contiguous(), None, None, None
        if ctx.needs_input_grad[0]:
            turned = values.index_select(0, support.turned)
            to_x = Rows(support.back_starts, support.back_target, turned).times(slope)
            if diagonal is not None:
                to_x.addcmul_(slope, diagonal[:, None])
        # Asked for one by one: each costs a pass over all entries, and a constant structure needs only the first.
        if ctx.needs_input_grad[1]:
            to_values = support.dots(slope, x)
        if ctx.needs_input_grad[2]:
            to_diagonal = (slope * x).sum(dim=1)
        return to_x, to_values, to_diagonal, None


def normalised_weights(
    support: Support, weights: Tensor, normalisation: Normalisation = "gcn", *, self_loops: bool = False
) -> WeightedMatrix:
    """Return the normalised matrix of weights [E] >= 0, differentiable in them, degrees included.

    The same as `aggregation.normalised` for the same weights.  A row without weight stays zero, and so does its slope:
    no mean of nothing has a derivative.

    Args:
        self_loops: every node sends itself its own value with weight 1.
    """
    values, diagonal = _Normalised.apply(  # type: ignore[no-untyped-call]
        weights, support, normalisation == "mean", self_loops
    )
    return WeightedMatrix(support, values, diagonal if self_loops else None)


class _Normalised(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: _Kept, weights: Tensor, support: Support, mean: bool, self_loops: bool
    ) -> tuple[Tensor, Tensor | None]:
        power = -1.0 if mean else -0.5
        received = support.row_sums(weights) + float(self_loops)
        # 0 to a negative power is infinite, and infinity times the row's weight 0 would be NaN.
        left = received.pow(power).masked_fill_(received <= 0, 0.0)
        factor, diagonal, right, sent = left.index_select(0, support.target), left, None, None
        if not mean:
            # Row and column sums apart: a support need not be symmetric, and with learned weights hardly any matrix is.
            sent = support.column_sums(weights) + float(self_loops)
            right = sent.pow(power).masked_fill_(sent <= 0, 0.0)
            factor, diagonal = factor.mul_(right.index_select(0, support.source)), left * right
        values = weights * factor
        ctx.save_for_backward(values, factor, diagonal, received, sent)
        ctx.support, ctx.power = support, power
        return values, diagonal if self_loops else None

    @staticmethod
    def backward(ctx: _Kept, slope: Tensor, on_diagonal: Tensor | None) -> tuple[Tensor, None, None, None]:
        (values, factor, diagonal, received, sent), support = ctx.saved_tensors, ctx.support
        weighed = slope * values
        loops = 0.0 if on_diagonal is None else on_diagonal * diagonal

        def through(degrees: Tensor, sums: Tensor) -> Tensor:
            # d v/d degree = power v / degree for every entry of the row: the quotient rule, summed over what hangs on
            # that degree.
            return sums.add_(loops).mul_(ctx.power).div_(degrees).masked_fill_(degrees <= 0, 0.0)

        # The direct part first, each entry by its own factor; then what it adds to both of its degrees.
        found = slope * factor
        found += through(received, support.row_sums(weighed)).index_select(0, support.target)
        if sent is not None:
            found += through(sent, support.column_sums(weighed)).index_select(0, support.source)
        return found, None, None, None


def _starts(rows: np.ndarray, num_nodes: int) -> Tensor:
    counts = np.bincount(rows, minlength=num_nodes)
    return _int32(np.concatenate([[0], np.cumsum(counts)]))


def _int32(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.int32))
