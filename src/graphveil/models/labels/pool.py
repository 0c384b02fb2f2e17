"""Several opinions about everyone's class combined, by the likelihood of released labels that these do not use.

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
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphveil.models.labels.label_prior import log_shares_of, shares_of
from graphveil.models.labels.newton import ChannelLoss, Linear, minimise
from graphveil.runtime.late import Tensor, torch

PENALTY = 0.02
FOLDS = 5
STANDARD_ERRORS = 2.0
#: With fewer validation nodes a standard error is meaningless.
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
    return minimise(ChannelLoss(scores, likelihood, 2 * PENALTY * len(likelihood), first), first)


def held_out(opinions: Tensor, likelihood: Tensor, first: Tensor) -> Tensor:
    """Return the log-likelihood [m] of each validation label under weights that the other folds chose."""
    return likelihoods(held_out_scores(opinions, likelihood, first), likelihood)


def held_out_scores(opinions: Tensor, likelihood: Tensor, first: Tensor) -> Tensor:
    """Return the pool's log-probabilities [m, c] of each validation node under weights that the other folds chose."""
    nodes = torch.arange(likelihood.shape[0], device=likelihood.device) % FOLDS
    scores = torch.zeros_like(likelihood)
    for fold in range(min(FOLDS, likelihood.shape[0])):
        rest, in_fold = nodes != fold, nodes == fold
        scores[in_fold] = pooled(opinions[:, in_fold], pool_weights(opinions[:, rest], likelihood[rest], first))
    return scores


@dataclass(frozen=True)
class BetterPool:
    """The weights [k] of a pool that is surely better than its rival, and what it says of each validation node [m, c]
    under weights that the other folds chose.
    """

    weights: Tensor
    scores: Tensor


def better_pool(opinions: Tensor, likelihood: Tensor, first: Tensor, rival: Tensor) -> BetterPool | None:
    """Return the pool where held-out validation labels are significantly likelier under it than under its rival, else
    None: then the rival stays.

    Args:
        rival: `held_out` log-likelihoods [m] of the opinion, or the pool, that stays otherwise.
    """
    scores = held_out_scores(opinions, likelihood, first)
    if not surely_better(likelihoods(scores, likelihood), rival):
        return None
    return BetterPool(pool_weights(opinions, likelihood, first), scores)


def surely_better(candidate: Tensor, rival: Tensor) -> bool:
    """Return whether the labels are likelier by more than ERRORS standard errors of the difference, label by label. An
    opinion without information passes in about one of forty cases.

    Args:
        candidate, rival: [m], see `held_out`.
    """
    gain = (candidate - rival).double()
    better: bool = float(gain.sum()) > STANDARD_ERRORS * float(gain.std(correction=0)) * math.sqrt(len(gain))
    return better


def pooled(opinions: Tensor, weights: Tensor) -> Tensor:
    """Return the log-probabilities [m, c] of the pool with weights w [k]."""
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
EXPERT_SIZES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
LARGEST_LOG_CHANGE = 6.0
#: Belief, before any report, that class shares alone say as much; and how much of the likelihood is heeded.
PRIOR_DOUBT, LIKELIHOOD_SHARE = 0.9, 0.5
#: What an expert of one member leaves to all: a weight of 0 has no logarithm to move from.
EVEN_SHARE = 0.02
LEAST_WEIGHT = 1e-9
#: Steps of the search, how far each leads in the logarithm, and the fall of f, over f, at which it ends.
MOST_STEPS, LARGEST_LOG_STEP, RELATIVE_TOLERANCE = 50, 2.0, 2e-7
#: How many reports the experts score at a time, so that scores stay in a core's cache.
_ROWS = 1 << 10


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
    held_out = _HeldOut(torch.cat([scores, log_prior[:, None].expand(*scores.shape[:2], 1)], dim=2), likelihood)
    first, centre, doubt = _start(held_out)
    z = _search(held_out, first.double().cpu().log().numpy(), centre)
    members = len(first)
    weights = first * torch.from_numpy(np.exp(z[:members] + z[members])).to(first)
    return Weights(weights, float(z[members + 1]), doubt)


@dataclass(frozen=True)
class _HeldOut:
    """Scores and, as the last of the members, log pi [r, c, m + 1], and the likelihood [r, c] of the reports."""

    scores: Tensor
    likelihood: Tensor

    def gains(self, weights: Tensor) -> Tensor:
        """Return L of each of some weights and b, [m + 1, e] -> [e]."""
        total = weights.new_zeros(weights.shape[1])
        for scores, likelihood in zip(
            torch.split(self.scores, _ROWS), torch.split(self.likelihood, _ROWS), strict=True
        ):
            pooled = scores @ weights
            shares = pooled.sub_(pooled.amax(dim=1, keepdim=True)).exp_()
            total += ((shares * likelihood[:, :, None]).sum(dim=1) / shares.sum(dim=1)).log_().sum(dim=0)
        return total

    def bend(self, weights: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return -L of weights and b [m + 1], its slope and its second derivatives."""
        columns = len(weights)
        p = shares_of(self.scores @ torch.from_numpy(weights).to(self.scores))
        joint = p * self.likelihood
        total = joint.sum(dim=1, keepdim=True)
        r = joint.div_(total)
        flat, difference = self.scores.flatten(0, 1), (p - r).view(-1, 1)
        before, after = ((part[:, None] @ self.scores).squeeze(1) for part in (p, r))
        bend = (flat * difference).T @ flat - before.T @ before + after.T @ after
        # Read together, to wait for a GPU once.
        parts = torch.cat([-total.log().sum()[None], (difference.T @ flat).flatten(), bend.flatten()])
        value, slope, bends = np.split(parts.double().cpu().numpy(), [1, 1 + columns])
        return float(value[0]), slope, bends.reshape(columns, columns)


def _search(held_out: _HeldOut, start: npt.NDArray[np.float64], centre: float) -> npt.NDArray[np.float64]:
    """Return [log w - log start, less its common part; this part; b] at the optimum: Newton's method in a box."""
    members = len(start)
    origin = np.append(np.zeros(members + 1), centre)
    pull = np.append(np.ones(members + 1), SPREAD_B**-2.0)
    pull[:members] /= SPREAD_U**2
    moves = np.eye(members, members + 2)
    moves[:, members] = 1.0

    def at(z: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        weights = np.exp(start + moves @ z)
        value, slope, curvature = held_out.bend(np.append(weights, z[-1]))
        jacobian = np.vstack([weights[:, None] * moves, np.eye(1, members + 2, members + 1)])
        curvature_of_z = (
            jacobian.T @ curvature @ jacobian + (moves.T * (slope[:members] * weights)) @ moves + np.diag(pull)
        )
        return value + pull @ (z - origin) ** 2 / 2, jacobian.T @ slope + pull * (z - origin), curvature_of_z

    z, current = origin, at(origin)
    # A smaller decrease is lost in the rounding of f; the last step is taken all the same.
    enough = RELATIVE_TOLERANCE * max(1.0, abs(current[0]))
    for _ in range(MOST_STEPS):
        step, predicted = _step_in_box(z - origin, *current[1:])
        full_prediction = predicted
        for _ in range(12):
            # The weight of a useless member goes to 0, and its logarithm would diverge.
            candidate_z = np.clip(z + step, origin - LARGEST_LOG_CHANGE, origin + LARGEST_LOG_CHANGE)
            candidate = at(candidate_z)
            if candidate[0] < current[0] or predicted < enough:
                break
            step, predicted = step / 2, predicted / 2
        z, current = candidate_z, candidate
        if full_prediction < enough:
            break
    return z


def _step_in_box(
    offset: npt.NDArray[np.float64], slope: npt.NDArray[np.float64], bend: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], float]:
    """Return a descent step from a point in the box, and the decrease that a quadratic model predicts."""
    free = (np.abs(offset) < LARGEST_LOG_CHANGE) | (slope * offset > 0)
    values, vectors = np.linalg.eigh(bend[np.ix_(free, free)])
    step = np.zeros_like(slope)
    # With absolute values of curvatures: where f is concave, a step as if it were convex by as much.
    step[free] = -(vectors / np.maximum(np.abs(values), 1e-3)) @ (vectors.T @ slope[free])
    step *= min(1.0, LARGEST_LOG_STEP / max(float(np.abs(step).max()), 1e-12))
    return step, float(-slope @ step) / 2


def _start(held_out: _HeldOut) -> tuple[Tensor, float, float]:
    """Return the experts' mean weights [m] and b, and the probability of the one that looks at class shares alone."""
    members = held_out.scores.shape[2] - 1
    even = torch.full((1, members), 1 / members, device=held_out.scores.device)
    single = EVEN_SHARE * even + (1 - EVEN_SHARE) * torch.eye(members, device=held_out.scores.device)
    weights = torch.cat([size * shape[None] for shape in torch.cat([even, single]) for size in EXPERT_SIZES])
    alone = torch.cat([torch.zeros_like(even[0]), even.new_ones(1)])
    experts = torch.cat([weights, weights.new_full((len(weights), 1), CENTRE_B)], dim=1)
    gains = held_out.gains(torch.cat([experts, alone[None]]).T)
    odds = torch.log(weights.new_tensor((1 - PRIOR_DOUBT) / PRIOR_DOUBT / len(weights))) + LIKELIHOOD_SHARE * (
        gains[:-1] - gains[-1]
    )
    shares = torch.softmax(torch.cat([odds, odds.new_zeros(1)]), dim=0)
    doubt = float(shares[-1])
    return (shares[:-1] @ weights).clamp_min(LEAST_WEIGHT), doubt + (1 - doubt) * CENTRE_B, doubt
