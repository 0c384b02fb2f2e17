"""Graph attention network, two layers (Velickovic et al., ICLR 2018, arXiv 1710.10903, equations 1 to 6).

    e_uv = leaky_relu(a_s . W x_u + a_t . W x_v),   alpha_.v = softmax of e_.v over N(v) + {v}
    h_v = sum_u alpha_uv W x_u + b

Edge weights w multiply: alpha_.v = w exp(e) / sum w exp(e), as if log w were added to the score; self-loops weigh 1.
First layer: `HEADS` heads side by side, then SELU; second layer: one head.
Shapes: x [n, d] as `Inputs`, edges [2, E] with self-loops and grouped by receiver, logits [n, classes].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.aggregation import Inputs, Support, WeightedMatrix, adjacency
from graphveil.models.names import HEADS
from graphveil.models.networks.dropout import dropout
from graphveil.models.networks.initial import glorot

LEAK = 0.2
#: exp of this is a float32 with room for a sum; only an edge of weight below exp(-80) can come so far above the rest.
LARGEST = 80.0


@dataclass(frozen=True)
class Neighbourhoods:
    """The edges of a graph with a self-loop at every node, and weights [entries] of them (None: all 1)."""

    support: Support
    weights: Tensor | None = None

    def to(self, device: torch.device | str) -> Neighbourhoods:
        """Return the same edges on another device."""
        return Neighbourhoods(self.support.to(device), None if self.weights is None else self.weights.to(device))

    def detach(self) -> Neighbourhoods:
        """Return the same edges with weights that take no gradient."""
        return Neighbourhoods(self.support, None if self.weights is None else self.weights.detach())


def neighbourhoods(edge_index: Tensor, num_nodes: int, *, weights: Tensor | None = None) -> Neighbourhoods:
    """Return the edges of the graph with self-loops.

    Args:
        edge_index: int64 [2, E], row 0 sends to row 1; num_nodes: n.
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


class GAT(nn.Module):
    """Two attention layers."""

    def __init__(
        self, dimension: int, hidden: int, classes: int, dropout: float, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.hidden, self.dropout = hidden, dropout
        self.weight1 = glorot((dimension, HEADS * hidden), generator)
        self.attention1 = glorot((2, HEADS, hidden), generator)
        self.bias1 = nn.Parameter(torch.zeros(HEADS * hidden))
        self.weight2 = glorot((HEADS * hidden, classes), generator)
        self.attention2 = glorot((2, 1, classes), generator)
        self.bias2 = nn.Parameter(torch.zeros(classes))

    def first(self, inputs: Inputs, edges: Neighbourhoods) -> Tensor:
        """Return the first layer before its activation [n, heads * hidden].

        Args:
            inputs: the features as an operator [n, d]; edges: who looks at whom.
        """
        return attend(inputs.linear(self.weight1), self.attention1, edges) + self.bias1

    def rest(self, first: Tensor, edges: Neighbourhoods) -> Tensor:
        """Return the logits [n, classes].

        Args:
            first: [n, heads * hidden], what `first` gave; edges: who looks at whom.
        """
        h = dropout(functional.selu(first), self.dropout, self.training)
        return attend(h @ self.weight2, self.attention2, edges) + self.bias2


def attend(x: Tensor, attention: Tensor, edges: Neighbourhoods) -> Tensor:
    """Return the attention-weighted sums over neighbours [n, heads * c].

    Args:
        x: [n, heads * c].
        attention: [2, heads, c], of senders and receivers.
        edges: who looks at whom.
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
        unit = scores.sub_(top.index_select(0, target)).clamp_max_(LARGEST).exp_()
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
