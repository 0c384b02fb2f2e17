"""Class shares and homophily of a graph, estimated from noisy labels alone; softmax of short rows.

    f_k = share of reports that say k                 pi_k = (f_k - q) / (p - q)            unbiased class shares
    N_kl = share of edges whose ends report k and l   J = T^-1 N T^-1                       unbiased joint shares
    J is modelled as (1 - h) m m^T + h diag(m), m its margins;   h = (tr J - |m|^2) / (1 - |m|^2)

T = q 1 1^T + (p - q) I is the channel of randomized response: p (`keep`) is the probability that a label is reported as
it is, q (`flip`) that of each other one.  Both estimates are post-processing of reports and cost nothing.  For short
rows torch's own softmax, looping along a row, is several times slower than `shares_of`.
Shapes: labels int64 [n] as reported, -1 for none, edges source, target [E], pi [c].
"""

from __future__ import annotations

from graphveil.runtime.late import Tensor, torch

#: Homophily is kept inside this range: outside it the estimate is noise or leaves nothing to infer.
HOMOPHILY = (0.6, 0.9)
#: No class is estimated to be rarer than this share of an even split (less what adding up to 1 takes: at most a sixth).
LEAST_SHARE = 0.2
#: Public labels are treated as kept with this probability, so that logarithms stay finite.
MOST_KEPT = 1 - 1e-6


def class_shares(labels: Tensor, classes: int, keep: float, flip: float) -> Tensor:
    """Return pi, shrunk towards an even split by its own noise (James-Stein) and floored, float32 [c].

    Args:
        labels: int64 [n], as reported; -1 for none.
        keep, flip: p and q.
    """
    counts = torch.bincount(labels[labels >= 0], minlength=classes).double()
    n = max(float(counts.sum()), 1.0)
    pi = (counts / n - flip) / (keep - flip)
    # One report more of each class: where few have reported, and all the same, they are not free of noise.
    f = (counts + 1) / (counts + 1).sum()
    noise = float((f * (1 - f)).mean()) / n / (keep - flip) ** 2
    spread = float((pi - 1 / classes).square().mean())
    # The positive part: noise larger than the spread shrinks to the even split, never past it.
    pi = 1 / classes + max(0.0, 1 - noise / max(spread, 1e-12)) * (pi - 1 / classes)
    pi = pi.clamp_min(0)
    pi = (pi / pi.sum()).clamp_min(LEAST_SHARE / classes)
    return (pi / pi.sum()).float()


def homophily(
    source: Tensor,
    target: Tensor,
    labels: Tensor,
    classes: int,
    keep: float,
    flip: float,
    *,
    least: float = HOMOPHILY[0],
) -> float:
    """Return h, clipped to HOMOPHILY; 0.75 where no edge has two reports.

    Args:
        source, target: int64 [E], the ends of each edge.
        least: the lower end of the range, from 0.
    """
    labelled = (labels[source] >= 0) & (labels[target] >= 0)
    if not bool(labelled.any()):
        return sum(HOMOPHILY) / 2
    pairs = labels[source[labelled]] * classes + labels[target[labelled]]
    counts = torch.bincount(pairs, minlength=classes**2).view(classes, classes).double()
    # In float64: at small epsilon T is nearly singular, and its inverse enlarges every rounding error.
    inverse = torch.linalg.inv(channel(classes, keep, flip).double()).to(counts.device)
    joint = inverse.T @ (counts / counts.sum()) @ inverse
    # The inverse of a noisy count can leave a class with a negative share.
    margins = joint.sum(dim=1).clamp_min(0.1 / classes)
    square = float((margins / margins.sum()).square().sum())
    return min(max((float(joint.trace()) - square) / (1 - square), least), HOMOPHILY[1])


def channel(classes: int, keep: float, flip: float) -> Tensor:
    """Return T [c, c]: row k holds the probabilities of each report when the label is k."""
    return torch.full((classes, classes), flip) + torch.eye(classes) * (keep - flip)


def log_channel(classes: int, keep: float, flip: float) -> Tensor:
    """Return log T [c, c].

    Args:
        keep, flip: p, `MOST_KEPT` at most, also where labels are public, and q.
    """
    # A certain label would outweigh all other evidence by an infinite amount, and NaN follows from two that disagree.
    keep = min(keep, MOST_KEPT)
    return channel(classes, keep, max(flip, (1 - keep) / (classes - 1))).log()


def shares_of(scores: Tensor) -> Tensor:
    """Return softmax(scores) [n, c]; for numbers that need no gradient."""
    weights = (scores - scores.amax(dim=1, keepdim=True)).exp_()
    return weights.div_(weights.sum(dim=1, keepdim=True))


def log_shares_of(scores: Tensor) -> Tensor:
    """Return log softmax(scores) [n, c]."""
    return scores - torch.logsumexp(scores, dim=1, keepdim=True)


def class_softmax(logits: Tensor) -> Tensor:
    """Return softmax over the classes of logits [n, c], with classes as rows while it is taken; differentiable."""
    return torch.nn.functional.softmax(logits.T.contiguous(), dim=0).T
