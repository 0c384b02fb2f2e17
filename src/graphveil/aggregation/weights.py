"""Weights of messages between neighbours, from public facts about both ends, and the largest weight of each kind.

    uniform     w = 1                                   w_max = 1
    similarity  w = sigmoid(cos(x_u, x_v))              w_max = sigmoid(1) = 0.731
    kernel      w = exp(sharpness (cos(x_u, x_v) - 1))  w_max = 1, and all of (0, 1] is used
    learned     the kernel of an embedding that was learned from public labels, see `models.networks.pair_similarity`
    attention   a sigmoid that was trained on edges, which costs privacy, see `models.networks.attention`; w_max = 1

A weight may look at its two ends and nothing else: under a softmax over a neighbourhood one edge would change the
weights of all the others.  The noise is calibrated to w_max; "similarity" as published pays for 1 and uses 0.731.
Sources: Shpilevskiy, Mello, Liu, "Investigating Differentially Private GNNs with Weighted Aggregations" (similarity);
the kernel is ours.  Shapes: x [n, c] (rows of any length), edges int64 [2, E], weights float32 [E].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from graphveil.aggregation.names import largest_weight
from graphveil.errors import InputError
from graphveil.runtime.checks import require_number
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


# Edges whose ends are compared at a time.
_CHUNK: Final = 1 << 18
_BLOCK: Final = 1 << 14


def edge_weights(
    kind: str,
    x: Tensor,
    edges: Tensor,
    *,
    sharpness: float = 1.0,
    attention: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> tuple[Tensor | None, float]:
    """Return the weight of every edge [E] (None for uniform) and w_max. Raises InputError for no such kind, a sharpness
    that is negative or not finite, or attention that was not trained.

    Args:
        x: what the ends are compared by; must be public where edges are what is protected.
        edges: row 0 sends to row 1.
        sharpness: of the kernel, learned or not; 0 is uniform.
        attention: a trained function of x and edges with values in [0, 1]; for that kind alone.
    """
    w_max = largest_weight(kind)
    require_number("[0, inf)", sharpness=sharpness)
    if kind == "uniform":
        return None, w_max
    if kind == "attention":
        if attention is None:
            raise InputError("attention was not trained", where="weights")
        return attention(x, edges).clamp_(max=w_max), w_max
    similarity = cosines(x, edges)
    weights = (
        in_blocks(torch.sigmoid, similarity)
        if kind == "similarity"
        else in_blocks(torch.exp, sharpness * (similarity - 1))
    )
    # Rounding may put a weight an ulp above its bound: the clamp makes w_max true in the arithmetic that is used.
    return weights.clamp_(max=w_max), w_max


def in_blocks(function: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    """Return an elementwise function of values, each result to the last bit a function of its value alone.

    Kernels process the last few numbers of an array differently, and may differ in the last bit there: when an edge
    comes or goes, other edges move to other positions, and one near the end could fall on another step of its grid.
    Blocks of one size, too small to be split between threads and a multiple of every vector length, have no such end.

    Args:
        values: any shape.
    """
    flat = values.reshape(-1)
    padded = torch.cat([flat, flat.new_zeros(-len(flat) % _BLOCK)])
    results = torch.cat([function(block) for block in torch.split(padded, _BLOCK)]) if len(padded) else padded
    return results[: len(flat)].view_as(values)


def cosines(x: Tensor, edges: Tensor) -> Tensor:
    """Return cos(x_u, x_v) of both ends of every edge, in [-1, 1], float32 [E]; 0 where an end is zero or not finite.

    Args:
        x: [n, c].
        edges: int64 [2, E].
    """
    lengths = x.float().norm(dim=1, keepdim=True)
    # Each row is scaled by itself: with the mean or largest length of all rows every weight would depend on everybody.
    unit = torch.where((lengths > 0) & lengths.isfinite(), x.float() / lengths.clamp_min(1e-30), torch.zeros(()))
    result = torch.empty(edges.shape[1])
    for start in range(0, edges.shape[1], _CHUNK):
        chunk = edges[:, start : start + _CHUNK]
        result[start : start + _CHUNK] = (unit[chunk[0]] * unit[chunk[1]]).sum(dim=1)
    # float32 cosines overshoot 1 by a few 1e-7, and the kernel of such a number exceeds its largest weight.
    return result.clamp_(-1.0, 1.0)
