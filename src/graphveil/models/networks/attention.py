"""Attention that weighs a message by a sigmoid of both ends: no edge changes the weight of another edge.

    w(u, v) = sigmoid( c . tanh(T x_v + S x_u + b) + d )  in (0, 1)                  u sends to v
    r_v     = Y_v / sqrt(|Y_v|^2 + soft^2),   Y_v = sum_u w(u, v) x_u,   scores of v = H r_v + h

The second line is used for training only, and discarded afterwards. `soft` is the length of the noise that the
final sum will get, so that a sum which would drown in it counts for little; 0 is the published network.
`target_gradients` gives the gradient of each target's loss in closed form, one sum over incoming edges for each column:
with p = softmax(scores) - onehot(y_v), g = H^T p and e = (g - r (r . g)) / sqrt(|Y|^2 + soft^2),

    dH = p r^T      ds_u = (e . x_u) w (1 - w)      dz_u = ds_u c * (1 - tanh^2)
    dc = sum_u ds_u tanh(..)      dS = sum_u dz_u x_u^T      dT = (sum_u dz_u) x_v^T

Source: Shpilevskiy, Mello, Liu, "Investigating Differentially Private GNNs with Weighted Aggregations", Algorithm 1
(there without `soft`, and with other activations).  Shapes: x [n, d], labels [b], weights [E].
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, one_hot

from graphveil.aggregation.weights import in_blocks

# How many edges are weighed at a time.
_CHUNK = 1 << 18
# The least `soft`: without noise an empty sum would be divided by 0.
_SHORTEST = 1e-3


@dataclass(frozen=True)
class Incoming:
    """The messages of some targets: target i has `senders[starts[i]:starts[i + 1]]`; all int32."""

    targets: Tensor
    starts: Tensor
    senders: Tensor


class PairAttention(nn.Module):
    """The weights, and the head with which they are trained."""

    def __init__(self, columns: int, classes: int) -> None:
        super().__init__()
        self.target = nn.Linear(columns, columns)
        self.sender = nn.Linear(columns, columns, bias=False)
        self.out = nn.Linear(columns, 1)
        self.head = nn.Linear(columns, classes)
        # Nearly uniform at first, so that noise alone cannot suppress the neighbours.
        nn.init.constant_(self.out.bias, 2.0)

    def weigh(self, x: Tensor, edges: Tensor) -> Tensor:
        """Return w of every edge, in [0, 1], float32 [E]; each looks at its two ends alone.

        Args:
            x: rows [n, c].
            edges: int64 [2, E], row 0 sends to row 1.
        """
        with torch.no_grad():
            to, of = self.target(x), self.sender(x)
            weights = torch.empty(edges.shape[1])
            for start in range(0, edges.shape[1], _CHUNK):
                chunk = edges[:, start : start + _CHUNK]
                hidden = in_blocks(torch.tanh, to[chunk[1]] + of[chunk[0]])
                # In fixed blocks: last bits may depend on how a kernel divides its work, and would reveal other edges.
                weights[start : start + _CHUNK] = in_blocks(torch.sigmoid, self._scores(hidden))
        return weights

    def forward(self, x: Tensor, incoming: Incoming, soft: float) -> Tensor:
        """Return the scores of every target [b, classes], directly by the formulas: slow, but differentiable.

        Args:
            soft: the length of the noise that the sums will get.
        """
        owner = _owner(incoming)
        senders = incoming.senders.long()
        hidden = torch.tanh(self.target(x[incoming.targets.long()])[owner] + self.sender(x[senders]))
        weights = torch.sigmoid(self._scores(hidden))
        sums = x.new_zeros(len(incoming.targets), x.shape[1]).index_add(0, owner, weights[:, None] * x[senders])
        scores: Tensor = self.head(sums / (sums.square().sum(dim=1, keepdim=True) + _squared(soft)).sqrt())
        return scores

    def target_gradients(self, x: Tensor, labels: Tensor, incoming: Incoming, soft: float) -> Tensor:
        """Return the gradient of every target's cross entropy by all parameters, in their order [b, P]. Row i depends
        on target i, its senders and the weights; per edge there are only operations on entries and sums in the order of
        the row, so that other targets' edges cannot change its bits.

        Args:
            labels: int64 [b], the targets' classes.
            soft: the length of the noise that the sums will get.
        """
        with torch.no_grad():
            owner, wide = _owner(incoming), torch.cat([x, x.new_ones(len(x), 1)], dim=1)
            own = x[incoming.targets.long()]
            hidden = in_blocks(torch.tanh, self.target(own)[owner] + self.sender(x)[incoming.senders.long()])
            weights = in_blocks(torch.sigmoid, self._scores(hidden))
            sums = _sums(wide, incoming, weights)[:, :-1]
            lengths = (sums.square().sum(dim=1, keepdim=True) + _squared(soft)).sqrt()
            row = sums / lengths
            scores = self.head(row)
            slope = torch.softmax(scores, dim=1) - one_hot(labels, scores.shape[1])
            to_row = slope @ self.head.weight
            to_sums = (to_row - row * (row * to_row).sum(dim=1, keepdim=True)) / lengths
            to_score = (to_sums[owner] * x[incoming.senders.long()]).sum(dim=1) * weights * (1 - weights)
            to_hidden = to_score[:, None] * self.out.weight * (1 - hidden.square())
            by_sender = torch.stack([_sums(wide, incoming, column.contiguous()) for column in to_hidden.T], dim=1)
            shared = by_sender[:, :, -1]
            numbered = Incoming(incoming.targets, incoming.starts, torch.arange(len(owner), dtype=torch.int32))
            # Row by row, never by a matrix product over all edges, whose order of sums others' edges move.
            ends = _sums(torch.cat([hidden, hidden.new_ones(len(owner), 1)], dim=1), numbered, to_score)
            parts = [_outer(shared, own), shared, by_sender[:, :, :-1].flatten(1), ends, _outer(slope, row), slope]
            return torch.cat(parts, dim=1)

    def _scores(self, hidden: Tensor) -> Tensor:
        scores: Tensor = (hidden * self.out.weight).sum(dim=1) + self.out.bias
        return scores


def _sums(values: Tensor, incoming: Incoming, weights: Tensor) -> Tensor:
    """Return the weighted sums of rows over every target's senders, in their order."""
    if not len(incoming.senders):
        return values.new_zeros(len(incoming.targets), values.shape[1])
    return embedding_bag(
        incoming.senders, values, incoming.starts, mode="sum", per_sample_weights=weights, include_last_offset=True
    )


def _outer(left: Tensor, right: Tensor) -> Tensor:
    return (left[:, :, None] * right[:, None, :]).flatten(1)


def _owner(incoming: Incoming) -> Tensor:
    return torch.repeat_interleave(torch.arange(len(incoming.targets)), torch.diff(incoming.starts).long())


def _squared(soft: float) -> float:
    return max(soft, _SHORTEST) ** 2
