"""Several opinions about everyone's class made one, by how likely each makes released validation labels.

    z = sum_k w_k z_k,       w = argmax  sum over val of log( softmax(z) T )_{y'}  -  PULL m |w - w0|^2

A log-linear pool: an opinion that is too sure gets a small weight, one that repeats another shares its weight, one that
says nothing gets none.  T is the channel of the labels, m the number of validation nodes, w0 a first guess that holds
where m is small.  Whether a set of opinions is worth more than another is judged by labels that did not choose its
weights.  Source: Genest and Zidek, "Combining probability distributions", Statistical Science 1, 1986, section 3;
stacking: Wolpert, "Stacked generalization", Neural Networks 5, 1992.
Shapes: opinions [k, m, c] log-scores of the validation nodes, heard [m, c] = log Pr[y' | class].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from graphveil.models.labels.shares import log_shares_of
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


PULL = 0.02
FOLDS = 5
ITERATIONS = 100
ERRORS = 2.0
#: With fewer validation nodes a standard error says nothing.
FEWEST_JUDGES = 30


def pool_weights(opinions: Tensor, likelihood: Tensor, first: Tensor) -> Tensor:
    """Return the weights [k] of some opinions.

    Args:
        opinions: [k, m, c]; likelihood: [m, c]; first: w0 [k].
    """
    weights = first.clone().requires_grad_()
    search = torch.optim.LBFGS([weights], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def step() -> Tensor:
        search.zero_grad()
        pull = PULL * likelihood.shape[0] * (weights - first).square().sum()
        loss = pull - likelihoods(pooled(opinions, weights), likelihood).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    search.step(step)  # type: ignore[no-untyped-call]
    return weights.detach()


def held_out(opinions: Tensor, likelihood: Tensor, first: Tensor) -> Tensor:
    """Return the log-likelihood [m] of each validation label under weights that the other folds chose.

    Args:
        opinions: [k, m, c]; likelihood: [m, c]; first: w0 [k].
    """
    return likelihoods(held_out_scores(opinions, likelihood, first), likelihood)


def held_out_scores(opinions: Tensor, likelihood: Tensor, first: Tensor) -> Tensor:
    """Return the pool's log-probabilities [m, c] of each validation node under weights that the other folds chose.

    Args:
        opinions: [k, m, c]; likelihood: [m, c]; first: w0 [k].
    """
    nodes = torch.arange(likelihood.shape[0], device=likelihood.device) % FOLDS
    scores = torch.zeros_like(likelihood)
    for fold in range(min(FOLDS, likelihood.shape[0])):
        rest, here = nodes != fold, nodes == fold
        scores[here] = pooled(opinions[:, here], pool_weights(opinions[:, rest], likelihood[rest], first))
    return scores


def surely_better(candidate: Tensor, rival: Tensor) -> bool:
    """Return whether the labels are likelier by more than ERRORS standard errors of the difference, label by label. An
    opinion that says nothing passes in about one case of forty.

    Args:
        candidate, rival: [m], see `held_out`.
    """
    gain = (candidate - rival).double()
    better: bool = float(gain.sum()) > ERRORS * float(gain.std(correction=0)) * math.sqrt(len(gain))
    return better


def pooled(opinions: Tensor, weights: Tensor) -> Tensor:
    """Return the pool's log-probabilities [m, c].

    Args:
        opinions: [k, m, c]; weights: w [k].
    """
    return log_shares_of(torch.tensordot(weights, opinions, dims=1))


def likelihoods(scores: Tensor, likelihood: Tensor) -> Tensor:
    """Return the log-likelihood [m] of each label.

    Args:
        scores: log-probabilities of the node's classes [m, c].
        likelihood: log Pr[y' | class] [m, c].
    """
    return torch.logsumexp(scores + likelihood, dim=1)
