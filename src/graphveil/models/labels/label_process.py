"""Maximum a posteriori of a Gaussian process over a graph, observed through randomized response.

    f = B a,   B = (1 - alpha) sum_{k<K} alpha^k Q^k + alpha^K Q^K    (personalised PageRank; Q = D^-1 A or P)
    a = argmax  sum_{v reported} log( softmax(SCALE f_v + log pi) T )_{y'_v}  -  lambda/2 |a|^2

so class scores vary smoothly along edges, and the exact likelihood of each noisy report pulls at them.  Solved by a
fixed number of Adam steps with exact gradients.  Several blocks (which reports are used) are solved side by side.
Shapes: likelihood [n, c] (of each node's report under each class), used [n, b], scores [n, b, c].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.aggregation import SparseMatrix
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


SCALE = 10.0
STEPS = 40
DEPTH = 20
RATE = 0.3


def diffuse(q: SparseMatrix, x: Tensor, alpha: float, depth: int, *, transposed: bool = False) -> Tensor:
    """Return B x, or B^T x, by repeated products [n, c].

    Args:
        q: the normalised adjacency [n, n]; x: [n, c]; alpha: the weight of one more hop.
        depth: how many products; transposed: whether B^T is meant.
    """
    return (q.backward if transposed else q.forward).walk(x, depth, alpha)


def fit_process(
    q: SparseMatrix, likelihood: Tensor, used: Tensor, log_prior: Tensor, *, alpha: float, penalty: float
) -> Tensor:
    """Return SCALE f at the optimum, before the prior is added [n, b, c].

    Args:
        q: the normalised adjacency [n, n].
        likelihood: [n, c] of each node's report under each class.
        used: [n, b] whose reports each block uses; log_prior: log pi [c]; alpha: the weight of one more hop.
        penalty: lambda.
    """
    (n, blocks), c = used.shape, likelihood.shape[1]
    a = torch.zeros(n, blocks * c, device=used.device)
    mean, square = torch.zeros_like(a), torch.zeros(blocks, 1, device=used.device)
    for step in range(1, STEPS + 1):
        slope = gradient(q, a, likelihood, used, log_prior, alpha=alpha, penalty=penalty)
        mean = 0.9 * mean + 0.1 * slope
        # One scale a block and not one an entry: Adam's own would blow up entries whose gradient is nearly 0.
        square = 0.99 * square + 0.01 * slope.view(n, blocks, c).square().mean(dim=(0, 2))[:, None]
        rate = RATE / (1 - 0.9**step) / ((square / (1 - 0.99**step)).sqrt() + 1e-8)
        a = a - (mean.view(n, blocks, c) * rate).view(n, -1)
    return SCALE * diffuse(q, a, alpha, DEPTH).view(n, blocks, c)


def gradient(
    q: SparseMatrix, a: Tensor, likelihood: Tensor, used: Tensor, log_prior: Tensor, *, alpha: float, penalty: float
) -> Tensor:
    """Return the gradient of what is minimised [n, b * c]: the negative of the second formula.

    Args:
        q: the normalised adjacency [n, n]; a: [n, b * c], where it is asked for.
        likelihood, used, log_prior, alpha, penalty: as in `fit_process`.
    """
    (n, blocks), c = used.shape, likelihood.shape[1]
    # Classes come first between the products: sums over a handful of them are slow along the last dimension.
    scores = diffuse(q, a, alpha, DEPTH).view(n, blocks, c).permute(2, 0, 1).contiguous()
    expected = torch.softmax(scores.mul_(SCALE).add_(log_prior[:, None, None]), dim=0)
    joint = expected * likelihood.T[:, :, None]
    slope = expected.addcdiv_(joint, joint.sum(dim=0), value=-1).mul_(used)
    pulled = diffuse(q, slope.permute(1, 2, 0).reshape(n, -1), alpha, DEPTH, transposed=True)
    return pulled.mul_(SCALE).add_(a, alpha=penalty)
