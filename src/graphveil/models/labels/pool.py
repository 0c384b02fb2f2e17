"""Several opinions about everyone's class made one, by the likelihood of released labels that took no part in them.

    z = sum_k w_k z_k,       w = argmax  sum over val of log( softmax(z) T )_{y'}  -  PULL m |w - w0|^2

A log-linear pool: an opinion that is too sure gets a small weight, one that repeats another shares its weight, one that
says nothing gets none.  T is the channel of the labels, m the number of validation nodes, w0 a first guess that holds
where m is small.  Whether a set of opinions is worth more than another is judged by labels that did not choose its
weights: `better_pool`, the one decision of every method that has a pool and something to fall back on.  `fit_weights`
pools scores by noisy reports and has no first guess:

    p(y | v) propto exp( sum_m w_m s_m(v) + b log pi )
    L(w, b)  = sum_v log( p(. | v) T )_{y'_v}                         v sent a report that took no part in s(v)
    start    = sum over experts e of Pr[e] w_e,     Pr[e] propto Pr_0[e] exp(HEED L(w_e, b_e))
    w, b     = argmax L - |log w - log start|^2 / 2 SPREAD_U^2 - (b - b_start)^2 / 2 SPREAD_B^2

The experts are each member alone and all of them evenly, at several sizes, and one that looks at class shares alone:
the majority.  That one is believed unless reports say otherwise (Pr_0 = DOUBT), so a member that knows nothing cannot
lead: it is no likelier than the majority, and weights move from where experts put them as far as reports make them.
Sources: Genest and Zidek, "Combining probability distributions", Statistical Science 1, 1986, section 3; stacking:
Wolpert, "Stacked generalization", Neural Networks 5, 1992; Grunwald, "The safe Bayesian", ALT 2012 (likelihood heeded
in part, where no expert need be right).
Shapes: opinions [k, m, c] log-scores of the validation nodes, likelihood [m, c] = log Pr[y' | class], first w0 [k];
scores [r, c, m] of those who reported, likelihood [r, c] = Pr[y' | class], log pi [c].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphveil.models.labels.label_prior import log_shares_of
from graphveil.models.labels.newton import ChannelLoss, Linear, minimise
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

PULL = 0.02
FOLDS = 5
ERRORS = 2.0
#: With fewer validation nodes a standard error says nothing.
FEWEST_JUDGES = 30


def pool_weights(opinions: Tensor, likelihood: Tensor, first: Tensor) -> Tensor:
    """Return the weights [k] of some opinions.

    Args:
        opinions: [k, m, c].
        likelihood: [m, c].
        first: w0 [k].
    """
    flat = opinions.flatten(1)
    scores = Linear(lambda w: (w @ flat).view_as(likelihood), lambda slopes: flat @ slopes.flatten())
    return minimise(ChannelLoss(scores, likelihood, 2 * PULL * len(likelihood), first), first)


def held_out(opinions: Tensor, likelihood: Tensor, first: Tensor) -> Tensor:
    """Return the log-likelihood [m] of each validation label under weights that the other folds chose.

    Args:
        opinions: [k, m, c].
        likelihood: [m, c].
        first: w0 [k].
    """
    return likelihoods(held_out_scores(opinions, likelihood, first), likelihood)


def held_out_scores(opinions: Tensor, likelihood: Tensor, first: Tensor) -> Tensor:
    """Return the pool's log-probabilities [m, c] of each validation node under weights that the other folds chose.

    Args:
        opinions: [k, m, c].
        likelihood: [m, c].
        first: w0 [k].
    """
    nodes = torch.arange(likelihood.shape[0], device=likelihood.device) % FOLDS
    scores = torch.zeros_like(likelihood)
    for fold in range(min(FOLDS, likelihood.shape[0])):
        rest, here = nodes != fold, nodes == fold
        scores[here] = pooled(opinions[:, here], pool_weights(opinions[:, rest], likelihood[rest], first))
    return scores


@dataclass(frozen=True)
class BetterPool:
    """The weights [k] of a pool that is surely better than its rival, and what it says of each validation node [m, c]
    under weights that the other folds chose.
    """

    weights: Tensor
    scores: Tensor


def better_pool(opinions: Tensor, likelihood: Tensor, first: Tensor, rival: Tensor) -> BetterPool | None:
    """Return the pool where held-out validation labels are surely likelier under it than under its rival, else None:
    then the rival stays.

    Args:
        opinions: [k, m, c].
        likelihood: [m, c].
        first: w0 [k].
        rival: `held_out` log-likelihoods [m] of the opinion, or the pool, that stays otherwise.
    """
    scores = held_out_scores(opinions, likelihood, first)
    if not surely_better(likelihoods(scores, likelihood), rival):
        return None
    return BetterPool(pool_weights(opinions, likelihood, first), scores)


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
    """Return the log-probabilities [m, c] of the pool with weights w [k].

    Args:
        opinions: [k, m, c].
        weights: w [k].
    """
    return log_shares_of(torch.tensordot(weights, opinions, dims=1))


def likelihoods(scores: Tensor, likelihood: Tensor) -> Tensor:
    """Return the log-likelihood [m] of each label.

    Args:
        scores: log-probabilities of the node's classes [m, c].
        likelihood: [m, c].
    """
    return torch.logsumexp(scores + likelihood, dim=1)


#: Spread of a log-weight, and centre and spread of the weight of the class shares.
SPREAD_U, CENTRE_B, SPREAD_B = 1.0, 0.7, 0.3
#: Sizes of an expert's weights; how far from its start, in the logarithm, a weight may go.
SIZES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
FARTHEST = 6.0
#: Belief, before any report, that class shares alone say as much; and how much of the likelihood is heeded.
DOUBT, HEED = 0.9, 0.5
#: What an expert of one member leaves to all: a weight of 0 has no logarithm to move from.
SHARED = 0.02
LEAST = 1e-9


@dataclass(frozen=True)
class Weights:
    members: Tensor  # w [m]
    prior: float  # b
    doubt: float  # Pr[class shares alone say as much]


def fit_weights(scores: Tensor, likelihood: Tensor, log_prior: Tensor) -> Weights:
    """Return the weights of some members.

    Args:
        scores: [r, c, m] of nodes whose own report took no part in them.
        likelihood: [r, c] of that report.
    """
    from scipy.optimize import minimize  # slow to import, and nothing else needs it

    held_out = _HeldOut(scores, likelihood, log_prior)
    first, centre, doubt = _start(held_out)
    members, reports = scores.shape[2], max(len(scores), 1)
    start = first.log()

    def value(at: np.ndarray) -> tuple[float, np.ndarray]:
        z = torch.as_tensor(at, dtype=torch.float32).to(scores.device).requires_grad_()
        u, common, b = z[:members], z[members], z[members + 1 :]
        penalty = ((u / SPREAD_U).square().sum() + common**2 + ((b - centre) / SPREAD_B).square().sum()) / 2
        total = (penalty - held_out.log_likelihood((start + u + common).exp(), b)) / reports
        (slope,) = torch.autograd.grad(total, z)
        return float(total.detach()), slope.cpu().double().numpy()

    origin = np.append(np.zeros(members + 1), centre)
    # A member that does not help has its weight go to 0, whose logarithm would run away.
    box = [(-FARTHEST, FARTHEST)] * (members + 1) + [(centre - FARTHEST, centre + FARTHEST)]
    best = minimize(value, origin, jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": 80, "ftol": 1e-9})
    z = torch.as_tensor(best.x, dtype=torch.float32).to(scores.device)
    return Weights((start + z[:members] + z[members]).exp(), float(z[members + 1]), doubt)


@dataclass(frozen=True)
class _HeldOut:
    scores: Tensor
    likelihood: Tensor
    log_prior: Tensor

    def log_likelihood(self, weights: Tensor, b: Tensor | float) -> Tensor:
        pooled = torch.softmax(self.scores @ weights + b * self.log_prior, dim=1)
        return (pooled * self.likelihood).sum(dim=1).log().sum()


def _start(held_out: _HeldOut) -> tuple[Tensor, float, float]:
    """Return the experts' mean weights [m] and b, and the probability of the one that looks at class shares alone."""
    weights = torch.stack(list(_experts(held_out.scores)))
    gains = torch.stack([held_out.log_likelihood(expert, CENTRE_B) for expert in weights])
    alone = held_out.log_likelihood(torch.zeros_like(weights[0]), 1.0)
    odds = torch.log(weights.new_tensor((1 - DOUBT) / DOUBT / len(weights))) + HEED * (gains - alone)
    shares = torch.softmax(torch.cat([odds, odds.new_zeros(1)]), dim=0)
    doubt = float(shares[-1])
    return (shares[:-1] @ weights).clamp_min(LEAST), doubt + (1 - doubt) * CENTRE_B, doubt


def _experts(scores: Tensor) -> Iterator[Tensor]:
    """Yield the weights [m] of every expert but the one without members."""
    members = scores.shape[2]
    even = torch.full((1, members), 1 / members, device=scores.device)
    single = SHARED * even + (1 - SHARED) * torch.eye(members, device=scores.device)
    for shape in torch.cat([even, single]):
        for size in SIZES:
            yield size * shape
