"""What the label holder makes of guesses: opinions on every node's class, weighed by validation labels.

    alone, taught    log-probabilities of its network, trained without and with guesses
    E, S E, S^2 E    E_v = sum_j log L_j[., r_jv], centred: the node's own guesses, and those of its neighbours at the
                     label holder; 0 where nobody is guessed about
    pool             log p = sum_k w_k opinion_k, each opinion of the network first sharpened by one factor

A network learns from guesses of all nodes what its own columns can tell, and forgets the guess of the node at hand,
which columns of others stand behind: the pool adds it again.  It is taken only where held-out validation labels are
likelier under it by two standard errors; with few of them the taught network stays.  All of it is post-processing.
Sources: see `models.pool`.  Shapes: opinions [n, c], S [n, n].
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from graphveil.aggregation import SparseMatrix
from graphveil.models.pool import held_out, pool_weights, surely_better

#: The weights of alone, taught, E, S E and S^2 E where there are few labels to fit them.
FIRST = (0.5, 0.5, 1.0, 1.0, 1.0)
_LEAST = 1e-12
#: With fewer validation nodes a standard error says nothing.
_FEWEST = 30
_FACTORS = torch.logspace(-1, 2, 61)


def evidence_of(reports: Sequence[Tensor], chances: Sequence[Tensor], rows: Tensor, nodes: int) -> Tensor:
    """Return what all holders' reports say of every node's class, centred log-likelihoods, float32 [n, c].

    Args:
        reports: of each holder, int64 [m]. chances: L_j [c, reports] of each. rows: whose they are, int64 [m].
        nodes: n; others get 0.
    """
    each = [chance.clamp_min(_LEAST).log().T[report] for chance, report in zip(chances, reports, strict=True)]
    said = torch.stack(each).sum(dim=0)
    # Zero, which favours no class, and not the mean of others: nothing was said of these nodes.
    evidence = said.new_zeros(nodes, said.shape[1])
    evidence[rows] = said - said.mean(dim=1, keepdim=True)
    return evidence


def pooled(
    alone: Tensor, taught: Tensor, evidence: Tensor, transition: SparseMatrix, val: Tensor, heard: Tensor
) -> Tensor:
    """Return the pool's logits where it is surely better than the taught network, else that network's.

    Args:
        alone, taught: log-probabilities or logits of the label holder's network, [n, c]. evidence: E [n, c].
        transition: S of the label holder's connections. val: who validates, bool [n].
        heard: log Pr[reported label | class] of the m who validate, [m, c].
    """
    # Over the label holder's own connections: it knows no others, and what it averages has been paid for.
    near = transition @ evidence
    networks = [_sharpened(logits, val, heard) for logits in (alone, taught)]
    opinions, first = torch.stack([*networks, evidence, near, transition @ near]), torch.tensor(FIRST)
    at_val, one = opinions[:, val], torch.ones(1)
    if len(heard) < _FEWEST or not surely_better(held_out(at_val, heard, first), held_out(at_val[1:2], heard, one)):
        return taught
    weights: Tensor = pool_weights(at_val, heard, first)
    return (weights[:, None, None] * opinions).sum(dim=0)


def _sharpened(logits: Tensor, val: Tensor, heard: Tensor) -> Tensor:
    """Return log-probabilities raised to the one power that makes validation labels likeliest."""
    # First alone, by one number: a pool starts at fixed weights, and scores of any scale would start it anywhere.
    scores = torch.log_softmax(logits, dim=1)
    likely = [torch.logsumexp(torch.log_softmax(f * scores[val], dim=1) + heard, dim=1).sum() for f in _FACTORS]
    factor = float(_FACTORS[int(torch.stack(likely).argmax())])
    return torch.log_softmax(factor * scores, dim=1)
