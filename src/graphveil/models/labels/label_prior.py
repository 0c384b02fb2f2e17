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

from dataclasses import dataclass

from graphveil.runtime.late import Tensor, torch

#: Homophily is clamped to this range: outside, the estimate is noise or leaves nothing to infer.
HOMOPHILY_RANGE = (0.6, 0.9)
#: No class is estimated to be rarer than this share of an even split (less what adding up to 1 takes: at most a sixth).
LEAST_SHARE = 0.2
#: Public labels are treated as kept with this probability, so that logarithms stay finite.
LARGEST_KEEP = 1 - 1e-6


@dataclass(frozen=True)
class Channel:
    """The channel of labels: T among so many classes, with p and q; by default the identity."""

    classes: int
    keep: float = 1.0
    flip: float = 0.0

    @property
    def lean(self) -> float:
        """p - q: how much likelier the true label is reported than another."""
        return self.keep - self.flip

    @property
    def matrix(self) -> Tensor:
        """T [c, c]: row k holds the probabilities of each report when the label is k."""
        return torch.full((self.classes, self.classes), self.flip) + torch.eye(self.classes) * self.lean

    @property
    def doubting(self) -> Channel:
        """The same channel with p at most `LARGEST_KEEP`, so that no label is certain."""
        # A certain label would have infinite weight, and two that disagree would give NaN.
        keep = min(self.keep, LARGEST_KEEP)
        return Channel(self.classes, keep, max(self.flip, (1 - keep) / (self.classes - 1)))

    @property
    def logs(self) -> Tensor:
        """log T [c, c] where no label is certain."""
        return self.doubting.matrix.log()


def class_shares(labels: Tensor, channel: Channel) -> Tensor:
    """Return pi, shrunk towards an even split by its own noise (James-Stein) and floored, float32 [c].

    Args:
        labels: int64 [n], as reported; -1 for none.
    """
    classes = channel.classes
    counts = torch.bincount(labels[labels >= 0], minlength=classes).double()
    n = max(float(counts.sum()), 1.0)
    pi = (counts / n - channel.flip) / channel.lean
    # With one more report of each class: a few equal reports still have noise.
    f = (counts + 1) / (counts + 1).sum()
    noise = float((f * (1 - f)).mean()) / n / channel.lean**2
    spread = float((pi - 1 / classes).square().mean())
    # The positive part: noise larger than the spread shrinks to the even split, never past it.
    pi = 1 / classes + max(0.0, 1 - noise / max(spread, 1e-12)) * (pi - 1 / classes)
    pi = pi.clamp_min(0)
    pi = (pi / pi.sum()).clamp_min(LEAST_SHARE / classes)
    return (pi / pi.sum()).float()


def label_pairs(source: Tensor, target: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Return how often the two ends of an edge report each pair of classes, float64 [c, c].

    Args:
        source, target: int64 [E], the ends of each edge; edges with an end that reports nothing are left out.
    """
    first, second = labels[source], labels[target]
    both = (first >= 0) & (second >= 0)
    pairs = first[both] * classes + second[both]
    return torch.bincount(pairs, minlength=classes**2).view(classes, classes).double()


def homophily(pairs: Tensor, channel: Channel, *, least: float = HOMOPHILY_RANGE[0]) -> float:
    """Return h, clipped to HOMOPHILY; 0.75 where no edge has two reports.

    Args:
        pairs: `label_pairs` of the edges [c, c].
        least: the lower end of the range, from 0.
    """
    if not bool(pairs.any()):
        return sum(HOMOPHILY_RANGE) / 2
    classes = channel.classes
    # In float64: at small epsilon T is nearly singular, and its inverse enlarges every rounding error.
    inverse = torch.linalg.inv(channel.matrix.double()).to(pairs.device)
    joint = inverse.T @ (pairs / pairs.sum()) @ inverse
    # The inverse of a noisy count can leave a class with a negative share.
    margins = joint.sum(dim=1).clamp_min(0.1 / classes)
    square = float((margins / margins.sum()).square().sum())
    return min(max((float(joint.trace()) - square) / (1 - square), least), HOMOPHILY_RANGE[1])


def all_classes(scores: Tensor) -> Tensor:
    """Return scores [..., c] that add up to 0 over the classes, given all but those of the last [..., c - 1]."""
    own = scores.shape[-1]
    identity = torch.eye(own, dtype=scores.dtype, device=scores.device)
    return scores @ torch.cat([identity, -identity.sum(dim=1, keepdim=True)], dim=1)


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
