"""The most that one report at epsilon can reveal, whatever the question and the mechanism.

Information. Let A be any secret, with any prior, and R a report with Pr[r | a] <= e^eps Pr[r | a'] for all a, a'. Then

    I(A; R) <= D - 1 - ln D   nats,    D = eps e^eps / (e^eps - 1),

about eps^2 / 8 for small epsilon. Proof: for a report r let m be the least Pr[r | a], l_a = Pr[r | a] / m, which lies
in [1, e^eps], and L = E l_A. It adds m (E[l ln l] - L ln L) to I(A; R). As l ln l is convex, E[l ln l] is at most its
value on the chord from 1 to e^eps, (L - 1) D. So r adds at most m L ((1 - 1/L) D - ln L). The bracket is largest at L
= D, where it is D - 1 - ln D, and the m L = Pr[r] add up to 1. Sets of classes (subset selection) reach it for many
classes.

Accuracy. Let everything else leave a person's class with probabilities p_1 >= p_2 >= ... . With one more report at
epsilon nobody guesses the class right with a higher probability than

    max over m of  e^eps / (e^eps + m - 1)  (p_1 + ... + p_m),

which randomized response among the m likeliest classes reaches if people know their class. Proof: let u_c be the
probability that c is guessed given class c, and q_c the least given any class. Then q_c >= e^-eps u_c, and u_c <= 1 -
the sum of the other q; so u_c (1 - e^-eps) + e^-eps U <= 1 with U the sum of all u. For a given U the sum of p_c u_c
is largest if the likeliest classes take the most they may. Between the U at which one class more is filled up that is
linear in U, so it is largest at one of them, where m classes have u = e^eps / (e^eps + m - 1). In particular nothing
is gained (m = 1) for a person whose likeliest class is e^eps times as likely as the next.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from graphveil.runtime.checks import require_number

Probabilities = npt.NDArray[np.float64]


def report_information(epsilon: float) -> float:
    """Return the most that one report at a finite, positive epsilon reveals about anything, in nats.

    >>> round(report_information(1.0), 3), round(report_information(2.0), 3)
    (0.123, 0.474)
    """
    require_number("(0, inf)", epsilon=epsilon)
    # e^eps / (e^eps - 1) without overflow, and D - 1 without cancellation for a small epsilon.
    d_minus_1 = epsilon / -math.expm1(-epsilon) - 1 if epsilon > 1e-3 else epsilon / 2 + epsilon**2 / 12
    return d_minus_1 - math.log1p(d_minus_1)


def best_accuracy(posterior: Probabilities, epsilon: float) -> Probabilities:
    """Return the highest probability of a right guess about each person with one more report of that person, [n].

    Args:
        posterior: [n, c], the probability of each class given everything but the report.
        epsilon: of the report, finite and positive.

    Raises:
        InputError: epsilon is not finite and positive.

    >>> best_accuracy(np.array([[0.5, 0.5], [0.9, 0.1]]), 2.0).round(3)
    array([0.881, 0.9  ])
    """
    require_number("(0, inf)", epsilon=epsilon)
    falling = -np.sort(-np.asarray(posterior, np.float64), axis=1)
    m = np.arange(1, falling.shape[1] + 1)
    # e^eps / (e^eps + m - 1), in a form that cannot overflow.
    by_m = falling.cumsum(axis=1) / (1 + (m - 1) * math.exp(-epsilon))
    best: Probabilities = by_m.max(axis=1)
    return best
