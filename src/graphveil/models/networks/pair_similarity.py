"""A similarity of nodes learned from labels: weights of messages that cost no edge.

    e(x) = W x,      Pr[same class] = sigmoid( s cos(e(x_u), e(x_v)) + b )

fitted to random pairs of training nodes, half of them of one class.  No edge is read, so where features and labels are
public (edge-level privacy) the similarity is public, and so are the kernel weights of e.  Ours; the loss is the
logistic one of Chopra, Hadsell, LeCun, "Learning a similarity metric discriminatively", CVPR 2005.
Shapes: x [n, d], labels [n], W [d, width].
"""

from __future__ import annotations

from graphveil.runtime.late import Tensor, torch

STEPS, PAIRS, WIDTH, RATE = 200, 4096, 16, 0.01


def learned_embedding(x: Tensor, labels: Tensor, train: Tensor, *, seed: int) -> Tensor:
    """Return e(x) [n, 16] whose cosine says how likely two nodes share a class.

    Args:
        labels: int64 [n].
        train: int64 numbers of the nodes whose labels may be read (-1 is skipped).
        seed: fixes the pairs and the start.
    """
    generator = torch.Generator().manual_seed(seed)
    # Training nodes alone: otherwise weights would reveal other labels through every message.
    nodes = train[labels[train] >= 0]
    weight = (torch.randn(x.shape[1], WIDTH, generator=generator) / x.shape[1] ** 0.5).requires_grad_()
    slope, offset = torch.tensor(4.0, requires_grad=True), torch.tensor(0.0, requires_grad=True)
    optimiser = torch.optim.Adam([weight, slope, offset], lr=RATE)
    for _ in range(STEPS if len(nodes) > 1 else 0):
        left, right = _pairs(labels, nodes, generator)
        cosine = (
            torch.nn.functional.normalize(x[left] @ weight, dim=1)
            * torch.nn.functional.normalize(x[right] @ weight, dim=1)
        ).sum(dim=1)
        same = (labels[left] == labels[right]).float()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(slope * cosine + offset, same)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    embedded: Tensor = (x @ weight).detach()
    return embedded


def _pairs(labels: Tensor, nodes: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return both ends of random pairs; in every second pair both have the same class."""
    order = nodes[torch.argsort(labels[nodes], stable=True)]
    starts = torch.searchsorted(labels[order], labels[order])
    stops = torch.searchsorted(labels[order], labels[order], right=True)
    left = torch.randint(0, len(order), (PAIRS,), generator=generator)
    anywhere = torch.randint(0, len(order), (PAIRS,), generator=generator)
    share = torch.rand(PAIRS, generator=generator)
    inside = starts[left] + (share * (stops - starts)[left]).long()
    right = torch.where(torch.arange(PAIRS) % 2 == 0, inside, anywhere)
    return order[left], order[right]
