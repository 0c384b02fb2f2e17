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

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.aggregation import Inputs, Support, adjacency
from graphveil.models.dropout import dropout
from graphveil.models.initial import glorot

HEADS = 4
LEAK = 0.2
#: exp of this is a float32 with room for a sum; only an edge of weight below exp(-80) can come so far above the rest.
LARGEST = 80.0


@dataclass(frozen=True)
class Neighbourhoods:
    """Edges with self-loops, by receiver: `source`, `target` [E], `starts` [n + 1], `weights` [E] (None: all 1)."""

    source: Tensor
    target: Tensor
    starts: Tensor
    weights: Tensor | None = None

    def to(self, device: torch.device | str) -> Neighbourhoods:
        """Return the same edges on another device."""
        weights = None if self.weights is None else self.weights.to(device)
        return Neighbourhoods(self.source.to(device), self.target.to(device), self.starts.to(device), weights)


def neighbourhoods(edge_index: Tensor, num_nodes: int, *, weights: Tensor | None = None) -> Neighbourhoods:
    """Return the edges of the graph with self-loops, grouped by receiver; `weights` as in `aggregation.adjacency`."""
    a = adjacency(edge_index, num_nodes, weights=weights)
    a.setdiag(np.ones(num_nodes, dtype=np.float32))
    a = a.tocsr()
    target = np.repeat(np.arange(num_nodes), np.diff(a.indptr))
    source = torch.from_numpy(a.indices.astype(np.int64))
    starts = torch.from_numpy(a.indptr.astype(np.int64))
    given = None if weights is None else torch.from_numpy(a.data)
    return Neighbourhoods(source, torch.from_numpy(target), starts, given)


def learned_neighbourhoods(support: Support) -> Callable[[Tensor], Neighbourhoods]:
    """Return a function of the weights [E] of a support's entries: the support with self-loops of weight 1."""
    looped = Support.of(support.edge_index, support.num_nodes, self_loops=True)
    looped = looped.to(support.source.device)
    source, target = looped.edge_index
    entries = (source != target).nonzero().flatten()  # in the support's own order
    ones = torch.ones(looped.entries, device=source.device)

    def weighted(weights: Tensor) -> Neighbourhoods:
        return Neighbourhoods(source, target, looped.starts.long(), ones.index_copy(0, entries, weights))

    return weighted


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
        """Return the first layer before its activation [n, heads * hidden]."""
        return attend(inputs.linear(self.weight1), self.attention1, edges) + self.bias1

    def rest(self, first: Tensor, edges: Neighbourhoods) -> Tensor:
        """Return the logits [n, classes]."""
        h = dropout(functional.selu(first), self.dropout, self.training)
        return attend(h @ self.weight2, self.attention2, edges) + self.bias2


def attend(x: Tensor, attention: Tensor, edges: Neighbourhoods) -> Tensor:
    """Return the attention-weighted sums of `x` [n, heads * c] for `attention` [2, heads, c]."""
    heads, c = attention.shape[1:]
    by_head = x.view(-1, heads, c)
    sender = (by_head * attention[0]).sum(-1)
    receiver = (by_head * attention[1]).sum(-1)
    scores = functional.leaky_relu(sender[edges.source] + receiver[edges.target], LEAK)
    alpha = _softmax_by_receiver(scores, edges, x.shape[0])
    sums = [
        functional.embedding_bag(
            edges.source,
            by_head[:, head].contiguous(),
            edges.starts,
            mode="sum",
            per_sample_weights=alpha[:, head].contiguous(),
            include_last_offset=True,
        )
        for head in range(heads)
    ]
    return torch.cat(sums, dim=1)


def _softmax_by_receiver(scores: Tensor, edges: Neighbourhoods, num_nodes: int) -> Tensor:
    target, factor = edges.target, edges.weights
    index = target[:, None].expand_as(scores)
    top = scores.new_full((num_nodes, scores.shape[1]), -torch.inf)
    weighed = scores.detach() if factor is None else scores.detach() + factor.detach().log()[:, None]
    top = top.scatter_reduce(0, index, weighed, "amax")
    height = scores - top[target]
    weights = height.exp() if factor is None else height.clamp_max(LARGEST).exp() * factor[:, None]
    total = scores.new_zeros(num_nodes, scores.shape[1]).scatter_add(0, index, weights)
    return weights / total[target]
