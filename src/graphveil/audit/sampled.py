"""Lower bounds on epsilon from samples of two neighbouring inputs, with a stated false-alarm rate.

    events    (epsilon, delta) demands  Pr[E | x] <= e^epsilon Pr[E | x'] + delta  for every event E, so that
              epsilon >= log((TPR - delta) / FPR), and the same of the complement with x and x' exchanged;
              both rates are bounded by Clopper and Pearson, the event is chosen on samples that the bound never sees
    mu        where noise is normal the whole curve is one number, mu = shift / sigma >= Phi^-1(TPR) - Phi^-1(FPR):
              far sharper, as one event at the middle says what happens far out, and delta may be tiny

A score is any number computed from an output; the log-likelihood ratio is the best (Neyman and Pearson). Sources:
C. Clopper, E. Pearson, Biometrika 1934; B. Jayaraman, D. Evans, "Evaluating Differentially Private Machine Learning in
Practice", USENIX Security 2019; M. Nasr et al., "Tight Auditing of Differentially Private Machine Learning", USENIX
Security 2023, https://arxiv.org/abs/2302.07956 (section 4.3: the bound on mu).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import stats
from torch import Tensor

from graphveil.audit.verdict import Audit, judge
from graphveil.errors import InputError
from graphveil.privacy import Guarantee, Randomness, SeededRandomness, gaussian_epsilon

A = TypeVar("A")
Scores = npt.NDArray[np.float64]
#: Scores of outputs drawn for one of two inputs: (is it the first?, how many, noise) -> scores.
Draw = Callable[[bool, int, Randomness], Scores]

#: The probability that a right mechanism gets a bound above its epsilon.
FALSE_ALARM: Final = 1e-6
_CUTS: Final = np.linspace(0.0, 1.0, 401)
# A share of the samples chooses the event, the rest judge it.
_CHOOSING: Final = 0.2


def rate_interval(successes: int, trials: int, miss: float) -> tuple[float, float]:
    """Return Clopper and Pearson's bounds on a probability; InputError for counts that cannot be.

    Args:
        successes, trials: what was counted.
        miss: the probability, at most, with which each bound misses it.
    """
    if not 0 <= successes <= trials or trials == 0:
        raise InputError(f"{successes} successes in {trials} trials", allowed="0 to all of at least one trial")
    low = float(stats.beta.ppf(miss, successes, trials - successes + 1)) if successes else 0.0
    high = float(stats.beta.isf(miss, successes + 1, trials - successes)) if successes < trials else 1.0
    return low, high


def epsilon_of_rates(tpr: tuple[float, float], fpr: tuple[float, float], delta: float) -> float:
    """Return the larger of the event's and its complement's bound, at least 0.

    Args:
        tpr, fpr: intervals of the event's probability under the first and the second input.
        delta: what is claimed.
    """
    # The worst ends of both intervals: the rates themselves would give a bound that is too high half of the time.
    event = _log_ratio(tpr[0] - delta, fpr[1])
    complement = _log_ratio(1.0 - fpr[1] - delta, 1.0 - tpr[0])
    return max(event, complement, 0.0)


def epsilon_bound(first: Scores, second: Scores, delta: float, false_alarm: float = FALSE_ALARM) -> float:
    """Return what epsilon is at least, from scores of two neighbours; InputError for fewer than ten scores of either.

    Args:
        first, second: scores of independent outputs of each.
        delta: what is claimed.
        false_alarm: the probability that the bound is too high.
    """
    _require_scores(first, second)
    # A cut chosen on the samples it is judged by would be the luckiest of 401, and false alarms more frequent.
    choosing, judging = _split_scores(first, second)
    finite = np.concatenate(choosing)
    finite = finite[np.isfinite(finite)]
    cuts = np.unique(np.quantile(finite, _CUTS, method="nearest")) if finite.size else np.zeros(1)

    def bound(samples: tuple[Scores, Scores], cut: float) -> float:
        # Half of the false alarms for each rate: a union bound, as the bound is wrong when either interval is.
        inside, outside = (_rate(scores, cut, false_alarm / 2) for scores in samples)
        return epsilon_of_rates(inside, outside, delta)

    return bound(judging, float(max(cuts, key=lambda cut: bound(choosing, cut))))


def mu_bound(first: Scores, second: Scores, false_alarm: float = FALSE_ALARM) -> float:
    """Return what mu is at least, where the noise of the scores is normal; 0 if nothing is told apart. Errors as above.

    Args:
        first, second: scores of independent outputs of each.
        false_alarm: the probability that the bound is too high.

    Raises:
        InputError: fewer than ten scores of either.
    """
    _require_scores(first, second)
    (choosing_first, choosing_second), (judging_first, judging_second) = _split_scores(first, second)
    # Half-way between both, where normal scores give the sharpest bound on mu; medians, as noise may have outliers.
    cut = (float(np.median(choosing_first)) + float(np.median(choosing_second))) / 2
    low = _rate(judging_first, cut, false_alarm / 2)[0]
    high = _rate(judging_second, cut, false_alarm / 2)[1]
    return max(0.0, float(stats.norm.ppf(low) - stats.norm.ppf(high))) if low > 0.0 and high < 1.0 else 0.0


def audit_events(
    target: str, guarantee: Guarantee, draw: Draw, *, samples: int, false_alarm: float = FALSE_ALARM, seed: int = 0
) -> Audit:
    """Audit by events: nothing is assumed of the mechanism.

    Args:
        target: what is audited, in words.
        guarantee: what is claimed.
        draw: gives scores of one of the two inputs.
        samples: scores of each input.
        false_alarm: how often a true claim is called broken.
        seed: of the noise.
    """
    first, second = _scores_of_both(draw, samples, seed)
    bound = epsilon_bound(first, second, guarantee.delta, false_alarm)
    notes = (f"{len(first):,} and {len(second):,} samples of two neighbours; Clopper-Pearson bounds of one event",)
    return judge(f"{target} (sampled)", guarantee.epsilon, guarantee.delta, bound, false_alarm, notes=notes)


def audit_mu(
    target: str,
    claimed: float,
    delta: float,
    draw: Draw,
    *,
    samples: int,
    false_alarm: float = FALSE_ALARM,
    seed: int = 0,
) -> Audit:
    """Audit by mu: the scores' noise is taken to be normal, as that of the mechanism is.

    Args:
        claimed, delta: the epsilon that is claimed, and its delta. All others as of `audit_events`.
    """
    first, second = _scores_of_both(draw, samples, seed)
    mu = mu_bound(first, second, false_alarm)
    bound = gaussian_epsilon(1.0 / mu, delta) if mu > 0.0 else 0.0
    notes = (f"{len(first):,} and {len(second):,} samples of two neighbours; mu is at least {mu:.4f}",)
    return judge(f"{target} (mu)", claimed, delta, bound, false_alarm, notes=notes)


class Reporting(Protocol[A]):
    """A mechanism of single users that says how likely each report is."""

    def randomize(self, values: Tensor, /, *, randomness: Randomness) -> A: ...

    def log_likelihood(self, reports: A, values: Tensor, /) -> Tensor: ...


def ratio_scores(mechanism: Reporting[A], first: Tensor, second: Tensor) -> Draw:
    """Return the scores of a mechanism of single users: log-likelihood ratios of reports of two inputs.

    Args:
        first, second: one input each: a vector [d] or a label [].
    """

    def draw(is_first: bool, count: int, randomness: Randomness) -> Scores:
        first_inputs, second_inputs = (row[None].expand(count, *row.shape).contiguous() for row in (first, second))
        reports = mechanism.randomize(first_inputs if is_first else second_inputs, randomness=randomness)
        score = mechanism.log_likelihood(reports, first_inputs) - mechanism.log_likelihood(reports, second_inputs)
        scores: Scores = score.numpy()
        return scores

    return draw


def _scores_of_both(draw: Draw, samples: int, seed: int) -> tuple[Scores, Scores]:
    randomness = SeededRandomness(seed)
    # One stream for both: with the same seed twice, both inputs would get the same noise and no bound would hold.
    return draw(True, samples, randomness), draw(False, samples, randomness)


def _split_scores(first: Scores, second: Scores) -> tuple[tuple[Scores, Scores], tuple[Scores, Scores]]:
    places = [math.ceil(_CHOOSING * len(scores)) for scores in (first, second)]
    a, b = places
    return (first[:a], second[:b]), (first[a:], second[b:])


def _rate(scores: Scores, cut: float, miss: float) -> tuple[float, float]:
    # Scores of one output are equal up to the rounding of their logarithms.
    return rate_interval(int((scores >= cut - 1e-9).sum()), len(scores), miss)


def _log_ratio(above: float, below: float) -> float:
    if above <= 0.0:
        return -math.inf
    return math.log(above / below) if below > 0.0 else math.inf


def _require_scores(first: Scores, second: Scores) -> None:
    if min(len(first), len(second)) < 10:
        raise InputError(f"{len(first)} and {len(second)} scores", allowed="at least 10 of each")
