"""How likely a report is under the law that its task declares, for any true values.

    a bit of features      1 with probability T / 2^64 to 1 - T / 2^64
    a class                each is sent with probability q to p
    a bit of a list        1 with probability p where there is no link, 1 - p where there is one
    two ends of a pair     differ with probability 2 p (1 - p), link or not

So a count of m answers lies between two binomial ones in the stochastic order, and where both ends report a pair it is
known exactly. Each function returns a probability P such that an honest report has a value of at most P at most that
often: tails of binomial counts are exact, sums of unlike bits are bounded (Bernstein), tests of many counts are joined
by Fisher's chi-square, -2 sum ln P_j, where honest P_j are at least as large as uniform ones.

Sources: W. Hoeffding, "On the distribution of the number of successes in independent trials", Ann. Math. Stat. 27,
1956; R. A. Fisher, "Statistical Methods for Research Workers", 4th edition, 1932, section 21.1; S. Boucheron,
G. Lugosi, P. Massart, "Concentration Inequalities", 2013, corollary 2.11.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from graphveil.device.reports.exact import DIGIT, WORD
from graphveil.device.reports.features import Features
from graphveil.device.reports.label import Label
from graphveil.device.reports.links import Links

Chances = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


def bit_chances(field: Features) -> tuple[float, float]:
    """Return the least and the largest probability of a 1."""
    return field.threshold / WORD, (WORD - field.threshold) / WORD


def class_chances(field: Label) -> tuple[float, float]:
    """Return (q, p): the probabilities of another class and of the true one."""
    return field.share / WORD, (WORD - (len(field.classes) - 1) * field.share) / WORD


def flip_chance(field: Links) -> float:
    """Return p, the probability of a wrong bit."""
    return field.threshold / WORD


def above(counts: Counts, trials: Counts | int, chance: float) -> Chances:
    """Return Pr[Bin(trials, chance) >= counts].

    Args:
        counts: of ones.
        trials: the number of answers.
        chance: the largest probability that one of them is 1.
    """
    chances: Chances = stats.binom.sf(np.asarray(counts) - 1, trials, chance)
    return chances


def below(counts: Counts, trials: Counts | int, chance: float) -> Chances:
    """Return Pr[Bin(trials, chance) <= counts].

    Args:
        counts: of ones.
        trials: the number of answers.
        chance: the least probability that one of them is 1.
    """
    chances: Chances = stats.binom.cdf(counts, trials, chance)
    return chances


def either(first: Chances, second: Chances) -> Chances:
    """Return the probability of something as rare as the rarer of two."""
    chances: Chances = np.minimum(2 * np.minimum(first, second), 1.0)
    return chances


def together(chances: Chances) -> float:
    """Return Fisher's probability of many independent tests, each uniform or larger for honest reports."""
    logs = np.log(np.maximum(chances, np.finfo(np.float64).tiny))
    return float(stats.chi2.sf(-2 * logs.sum(), 2 * len(logs))) if len(logs) else 1.0


def longer(lengths: Counts, trials: Counts, flip: float, most: int) -> Chances:
    """Return a bound of Pr[a list names so many people or more], for people with at most `most` links.

    Args:
        lengths: of the lists.
        trials: for how many people each answers.
        flip: p.
        most: links, a public fact.
    """
    links = np.minimum(most, trials)
    excess = np.maximum(lengths - links * (1 - flip) - (trials - links) * flip, 0.0)
    bound: Chances = np.exp(-(excess**2) / np.maximum(2 * (trials * flip * (1 - flip) + excess / 3), 1e-300))
    return bound


def list_spread(trials: Counts, flip: float, rare: float) -> Chances:
    """Return how far from its mean a list's length is at most with probability 1 - 2 rare, for any links.

    Args:
        trials: for how many people each answers.
        flip: p.
        rare: the probability of more on one side.
    """
    log = -np.log(rare)
    spread: Chances = log / 3 + np.sqrt(log**2 / 9 + 2 * log * trials * flip * (1 - flip))
    return spread


def degree_rate(digits: Sequence[int], overflow: int) -> float:
    """Return r such that a degree's noise exceeds k with probability r^k at most: digit i has odds of r^(2^i) at most.

    Args:
        digits, overflow: of the task.
    """
    # Independent digits, each no likelier to be 1 than in a geometric number: so their sum is no larger than one.
    logs = [np.log(float(digit) / float(DIGIT - digit)) / 2.0**index for index, digit in enumerate(digits)]
    return float(np.exp(max([*logs, np.log(float(overflow) / float(DIGIT)) / 2.0 ** len(digits)])))


def copies(people: int, sizes: Counts, equal: Chances) -> Chances:
    """Return bounds of the logarithm of Pr[any so many of n reports are equal].

    Args:
        people: n.
        sizes: of groups, from 2.
        equal: the logarithm of the largest probability that the reports of a given group are equal.
    """
    ways = special.gammaln(people + 1) - special.gammaln(sizes + 1) - special.gammaln(people - sizes + 1)
    # A share 1 / size^2 for groups of each size: from 2 on these sum to less than 1.
    log_chances: Chances = ways + equal + 2 * np.log(sizes)
    return log_chances


def log_equal(chances: Sequence[float], sizes: Counts) -> Chances:
    """Return the logarithm of the largest probability that so many answers are all the same.

    Args:
        chances: of one answer's outcomes.
        sizes: how many answers.
    """
    # By Hoelder's inequality, people with different true values agree less often than people with the same value.
    log_chances: Chances = special.logsumexp(np.log(chances) * sizes[:, None], axis=1)
    return log_chances
