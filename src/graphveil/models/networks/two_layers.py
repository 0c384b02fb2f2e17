"""Networks of two layers with SELU and dropout between them: the four backbones, and the fusion of features with sums.

    sage    h_v = selu( mean_{u in N(v)} x_u W_n + x_v W_r + b ),      z_v = mean_{u in N(v)} h_u W_n' + h_v W_r' + b'
    gcn     h = selu( Q X W + b ),      z = Q h W' + b',      Q = D^{-1/2} (A + I) D^{-1/2}
    mlp     h = selu( X W + b ),        z = h W' + b'
    fusion  h = selu( X W + Z V + b ),  z = h W' + b'         Z [n, k]: what noisy sums over neighbours say
    gat     e_uv = leaky_relu(a_s . W x_u + a_t . W x_v),   alpha_.v = softmax of e_.v over N(v) + {v}
            h_v = sum_u alpha_uv W x_u + b,   `HEADS` heads side by side in the first layer, one in the second

"gcn" of a directed graph, which its paper leaves open: Q = D_in^{-1/2} (A + I) D_out^{-1/2}, the receiver's in-degree
and the sender's out-degree, each with the self-loop (see `aggregation.normalised`); PyG's `GCNConv` takes the in-degree
at both ends.  "gat" multiplies by edge weights w: alpha_.v = w exp(e) / sum w exp(e), as if log w were added to the
score; self-loops weigh 1.  Fusion learns W and V together, so that a feature which only identifies training nodes does
not drown the evidence of neighbours.
Sources: Hamilton, Ying, Leskovec, NeurIPS 2017, arXiv 1706.02216, Algorithm 1 (GraphSAGE); Kipf and Welling, ICLR 2017,
arXiv 1609.02907, equation 9; Velickovic et al., ICLR 2018, arXiv 1710.10903, equations 1 to 6.
Shapes: X [n, d] as `Inputs`, h [n, hidden], z [n, classes], edges [2, E] with self-loops and grouped by receiver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.aggregation import Inputs, SparseMatrix, Support, WeightedMatrix, adjacency
from graphveil.models.names import HEADS
from graphveil.models.networks.layers import dropout, glorot, uniform

LEAK = 0.2
#: exp of this leaves room for a sum in float32; only an edge of weight below exp(-80) can exceed the rest by so much.
LARGEST_EXPONENT = 80.0


@dataclass(frozen=True)
class Neighbourhoods:
    """The edges of a graph with a self-loop at every node, and weights [entries] of them (None: all 1)."""

    support: Support
    weights: Tensor | None = None

    def to(self, device: torch.device | str) -> Neighbourhoods:
        return Neighbourhoods(self.support.to(device), None if self.weights is None else self.weights.to(device))

    def detach(self) -> Neighbourhoods:
        return Neighbourhoods(self.support, None if self.weights is None else self.weights.detach())


def neighbourhoods(edge_index: Tensor, num_nodes: int, *, weights: Tensor | None = None) -> Neighbourhoods:
    """Return the edges of the graph with self-loops.

    Args:
        edge_index: int64 [2, E], row 0 sends to row 1.
        weights: [E], as in `aggregation.adjacency`.
    """
    a = adjacency(edge_index, num_nodes, weights=weights)
    a.setdiag(np.ones(num_nodes, dtype=np.float32))
    a.has_sorted_indices = False  # SciPy before 1.17 keeps the flag through `setdiag`, and would then sort nothing
    a.sort_indices()  # a support's order
    target = np.repeat(np.arange(num_nodes), np.diff(a.indptr))
    support = Support.of(torch.from_numpy(np.stack([a.indices, target])), num_nodes, self_loops=True)
    return Neighbourhoods(support, None if weights is None else torch.from_numpy(a.data))


def learned_neighbourhoods(support: Support) -> Callable[[Tensor], Neighbourhoods]:
    """Return a function of the weights [E] of a support's entries: the support with self-loops of weight 1."""
    looped = Support.of(support.edge_index, support.num_nodes, self_loops=True).to(support.source.device)
    entries = (looped.source != looped.target).nonzero().flatten()  # in the support's own order
    unit = torch.ones(looped.entries, device=entries.device)
    return lambda weights: Neighbourhoods(looped, unit.index_copy(0, entries, weights))


class TwoLayers(nn.Module):
    """A `Backbone`: `first` gives the first layer before its activation, `rest` the logits [n, classes]."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout

    def between(self, first: Tensor) -> Tensor:
        """Return the input of the second layer, given the first layer before its activation."""
        return dropout(functional.selu(first), self.dropout, self.training)


class GraphSAGE(TwoLayers):
    """Two GraphSAGE layers; neighbour and root weights of a layer are stored side by side [in, 2 out]."""

    def __init__(
        self, dimension: int, hidden: int, classes: int, dropout: float, *, generator: torch.Generator
    ) -> None:
        super().__init__(dropout)
        self.hidden, self.classes = hidden, classes
        self.weight1 = uniform((dimension, 2 * hidden), dimension, generator)
        self.bias1 = uniform((hidden,), dimension, generator)
        self.weight2 = uniform((hidden, 2 * classes), hidden, generator)
        self.bias2 = uniform((classes,), hidden, generator)

    def first(self, inputs: Inputs, mean: SparseMatrix) -> Tensor:
        near, own = torch.split(inputs.linear(self.weight1), self.hidden, dim=1)
        return mean @ near + own + self.bias1

    def rest(self, first: Tensor, mean: SparseMatrix) -> Tensor:
        near, own = torch.split(self.between(first) @ self.weight2, self.classes, dim=1)
        return mean @ near + own + self.bias2


class GCN(TwoLayers):
    """Two graph convolutions with symmetric normalisation and self-loops."""

    def __init__(
        self, dimension: int, hidden: int, classes: int, dropout: float, *, generator: torch.Generator
    ) -> None:
        super().__init__(dropout)
        self.weight1 = glorot((dimension, hidden), generator)
        self.bias1 = nn.Parameter(torch.zeros(hidden))
        self.weight2 = glorot((hidden, classes), generator)
        self.bias2 = nn.Parameter(torch.zeros(classes))

    def first(self, inputs: Inputs, q: SparseMatrix) -> Tensor:
        return q @ inputs.linear(self.weight1) + self.bias1

    def rest(self, first: Tensor, q: SparseMatrix) -> Tensor:
        return q @ (self.between(first) @ self.weight2) + self.bias2


class MLP(TwoLayers):
    """Two linear layers: the backbone that sees no edges."""

    def __init__(
        self, dimension: int, hidden: int, classes: int, dropout: float, *, generator: torch.Generator
    ) -> None:
        super().__init__(dropout)
        self.weight1 = uniform((dimension, hidden), dimension, generator)
        self.bias1 = uniform((hidden,), dimension, generator)
        self.weight2 = uniform((hidden, classes), hidden, generator)
        self.bias2 = uniform((classes,), hidden, generator)

    def first(self, inputs: Inputs, structure: None) -> Tensor:
        return inputs.linear(self.weight1) + self.bias1

    def rest(self, first: Tensor, structure: None) -> Tensor:
        return self.between(first) @ self.weight2 + self.bias2


class GAT(TwoLayers):
    """Two attention layers."""

    def __init__(
        self, dimension: int, hidden: int, classes: int, dropout: float, *, generator: torch.Generator
    ) -> None:
        super().__init__(dropout)
        self.weight1 = glorot((dimension, HEADS * hidden), generator)
        self.attention1 = glorot((2, HEADS, hidden), generator)
        self.bias1 = nn.Parameter(torch.zeros(HEADS * hidden))
        self.weight2 = glorot((HEADS * hidden, classes), generator)
        self.attention2 = glorot((2, 1, classes), generator)
        self.bias2 = nn.Parameter(torch.zeros(classes))

    def first(self, inputs: Inputs, edges: Neighbourhoods) -> Tensor:
        return attend(inputs.linear(self.weight1), self.attention1, edges) + self.bias1

    def rest(self, first: Tensor, edges: Neighbourhoods) -> Tensor:
        return attend(self.between(first) @ self.weight2, self.attention2, edges) + self.bias2


def attend(x: Tensor, attention: Tensor, edges: Neighbourhoods) -> Tensor:
    """Return the attention-weighted sums over neighbours [n, heads * c].

    Args:
        x: [n, heads * c].
        attention: [2, heads, c], of senders and receivers.
    """
    heads, c = attention.shape[1:]
    by_head = x.view(-1, heads, c)
    sender, receiver = (by_head * attention[0]).sum(-1).T, (by_head * attention[1]).sum(-1).T
    # Detached: `_Softmax` gives the gradient by the weights itself, finite where a weight is 0.
    logs = None if edges.weights is None else edges.weights.detach().log()
    sums = []
    for head in range(heads):
        scores = (sender[head], receiver[head])
        alpha = _Softmax.apply(*scores, edges.weights, logs, edges.support)  # type: ignore[no-untyped-call]
        sums.append(WeightedMatrix(edges.support, alpha) @ by_head[:, head])
    return torch.cat(sums, dim=1) if heads > 1 else sums[0]


class _Softmax(torch.autograd.Function):
    """alpha [E] of one head; with u = exp(e) / sum w exp(e):  alpha = w u,  dL/dw = u (g - sum alpha g) = dL/de / w."""

    @staticmethod
    def forward(
        ctx: Any, sender: Tensor, receiver: Tensor, weights: Tensor | None, logs: Tensor | None, support: Support
    ) -> Tensor:
        source, target = support.source, support.target
        plain = sender.index_select(0, source).add_(receiver.index_select(0, target))
        scores = functional.leaky_relu(plain, LEAK)
        heights = scores if logs is None else scores + logs
        top = torch.segment_reduce(heights, "max", offsets=support.starts)
        # The largest score is taken off before the exponential, which would overflow from 89 on in float32.
        unit = scores.sub_(top.index_select(0, target)).clamp_max_(LARGEST_EXPONENT).exp_()
        alpha = unit if weights is None else unit * weights
        total = support.row_sums(alpha).reciprocal_().index_select(0, target)
        unit, alpha = unit.mul_(total), unit if weights is None else alpha.mul_(total)
        ctx.save_for_backward(plain, unit, alpha)
        ctx.support = support
        return alpha

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None, None]:
        (plain, unit, alpha), support = ctx.saved_tensors, ctx.support
        mean = support.row_sums(alpha * slope)
        beyond = slope - mean.index_select(0, support.target)
        before = torch.ops.aten.leaky_relu_backward(alpha * beyond, plain, LEAK, False)
        to_weights = unit * beyond if ctx.needs_input_grad[2] else None
        return support.column_sums(before), support.row_sums(before), to_weights, None, None


#: How many rows of a large hidden layer are processed at once.
_ROWS: Final = 1 << 16


def beside(sums: Sequence[Tensor], scale: float) -> Tensor:
    """Return Z [n, 2 c times sums]: the amount of each class in each sum, and its proportion, standardised.

    Args:
        sums: H [n, c] each, released.
        scale: the noise of an entry; below 1 counts as 1.
    """
    # Below one deviation a count is mostly noise: asinh is linear there, and logarithmic far above.
    scale = max(scale, 1.0)
    columns = [part for h in sums for part in (torch.asinh(h / scale), h / (h.norm(dim=1, keepdim=True) + 1e-6))]
    # Of released sums, not of the true sums: standardising is post-processing.
    return standardised(torch.cat(columns, dim=1))


def standardised(z: Tensor) -> Tensor:
    """Return columns with mean 0 and deviation 1 over the nodes."""
    standard: Tensor = (z - z.mean(dim=0)) / (z.std(dim=0, correction=0) + 1e-6)
    return standard


class Fusion(TwoLayers):
    """One hidden layer; in `train` the "structure" is Z [n, k], which may have no columns.

    Attributes:
        whole: values of a hidden layer up to which all nodes are worked on at once: 262,144 nodes at 64 columns.
    """

    whole = 1 << 24

    def __init__(
        self, dimension: int, beside: int, hidden: int, classes: int, dropout: float, *, generator: torch.Generator
    ) -> None:
        super().__init__(dropout)
        self.weight1 = glorot((dimension, hidden), generator)
        self.beside = glorot((max(beside, 1), hidden), generator)
        self.bias1 = nn.Parameter(torch.zeros(hidden))
        self.weight2 = glorot((hidden, classes), generator)
        self.bias2 = nn.Parameter(torch.zeros(classes))

    def first(self, inputs: Inputs, z: Tensor) -> Tensor:
        """Return the hidden layer before its activation [n, hidden].

        Args:
            z: [n, k] what stands beside the features, k from 0.
        """
        # In place: the hidden layer of all nodes is the largest array here.
        joined = inputs.linear(self.weight1).add_(self.bias1)
        return joined if z.shape[1] == 0 else joined.addmm_(z, self.beside)

    def rest(self, first: Tensor, z: Tensor) -> Tensor:
        """Return the logits [n, classes]."""
        if first.numel() <= self.whole:
            return self._scores(first)
        scored: Tensor = _ByParts.apply(self._scores, first, self.weight2, self.bias2)  # type: ignore[no-untyped-call]
        return scored

    def _scores(self, first: Tensor) -> Tensor:
        return self.between(first) @ self.weight2 + self.bias2


class _ByParts(torch.autograd.Function):
    """A function of independent rows, part by part: the backward pass computes each part again with the same dropout
    instead of storing what its slope needs.
    """

    @staticmethod
    def forward(ctx: Any, function: Callable[[Tensor], Tensor], rows: Tensor, *weights: Tensor) -> Tensor:
        """Return function(rows) [n, c] for `rows` [n, h]; `weights` are what else it reads and learns."""
        ctx.function, ctx.seed = function, int(torch.randint(1 << 62, ()))
        ctx.save_for_backward(rows, *weights)
        parts = [_with_dropout_of(ctx.seed + part.start, function, rows[part]) for part in _parts(rows)]
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        rows, *weights = ctx.saved_tensors
        to_rows, to_weights = torch.empty_like(rows), [torch.zeros_like(weight) for weight in weights]
        for part in _parts(rows):
            rows_of_part = rows[part].detach().requires_grad_()
            with torch.enable_grad():
                scored = _with_dropout_of(ctx.seed + part.start, ctx.function, rows_of_part)
            to_rows[part], *part_slopes = torch.autograd.grad(scored, (rows_of_part, *weights), slopes[0][part])
            for total, slope in zip(to_weights, part_slopes, strict=True):
                total += slope
        return None, to_rows, *to_weights


def _parts(rows: Tensor) -> list[slice]:
    return [slice(start, start + _ROWS) for start in range(0, len(rows), _ROWS)]


def _with_dropout_of(seed: int, function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return function(rows)
