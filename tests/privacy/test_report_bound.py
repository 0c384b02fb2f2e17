"""What one report at epsilon can say at most: no mechanism exceeds it, and some reach it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from graphveil.errors import InputError
from graphveil.privacy.accounting.report_bound import best_accuracy, report_information


def information(prior: np.ndarray, channel: np.ndarray) -> float:
    """I(A; R) in nats of Pr[r | a], [inputs, reports]."""
    sent = prior @ channel
    return float((prior[:, None] * channel * np.log(channel / sent)).sum())


def random_channel(source: np.random.Generator, epsilon: float) -> np.ndarray:
    """Any mechanism whose worst ratio is epsilon: random rows between the least and e^eps times the least."""
    inputs, reports = int(source.integers(2, 7)), int(source.integers(2, 40))
    bits = source.random((inputs, reports)) < source.uniform(0.1, 0.9)
    channel = np.exp(epsilon * np.where(source.random() < 0.5, bits, source.random((inputs, reports))))
    # Weights of reports that make all rows add up to 1, if there are any.
    answer = linprog(np.zeros(reports), A_eq=channel, b_eq=np.ones(inputs), bounds=(0, None))
    return channel * answer.x if answer.success else np.empty((0, 0))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_no_mechanism_tells_more(epsilon: float) -> None:
    """Random mechanisms of exactly this epsilon with random priors; half the epsilon would be exceeded by some."""
    source, informations = np.random.default_rng(7), []
    for _ in range(60):
        channel = random_channel(source, epsilon)
        if channel.size and (channel.sum(axis=0) > 1e-9).all():
            informations.append(information(source.dirichlet(np.ones(len(channel))), channel))
    informations += [subset_information(epsilon, 60, sent) for sent in range(1, 60)]
    assert max(informations) <= report_information(epsilon) + 1e-12
    assert max(informations) > report_information(epsilon / 2)


def subset_information(epsilon: float, classes: int, sent: int) -> float:
    """I(class; set) of subset selection with even classes."""
    keep = sent * math.exp(epsilon) / (sent * math.exp(epsilon) + classes - sent)
    within = keep * math.log(keep * classes / sent)
    return within + (1 - keep) * math.log((1 - keep) * classes / (classes - sent))


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_sets_of_many_classes_reach_it(epsilon: float) -> None:
    best = max(subset_information(epsilon, 2000, sent) for sent in range(1, 1000))
    assert best == pytest.approx(report_information(epsilon), rel=1e-3)


def test_small_and_large_epsilons() -> None:
    assert report_information(1e-6) == pytest.approx(1e-12 / 8, rel=1e-3)
    assert report_information(1e-3) == pytest.approx(report_information(1.001e-3), rel=3e-3)
    assert report_information(700.0) == pytest.approx(699 - math.log(700))
    assert math.isfinite(report_information(1e300))
    values = [report_information(epsilon) for epsilon in np.geomspace(1e-3, 50, 200)]
    assert all(b > a for a, b in itertools.pairwise(values))


@pytest.mark.parametrize(("epsilon", "classes"), [(0.2, 2), (1.0, 3), (2.0, 5)])
def test_best_accuracy_is_the_optimum_of_all_mechanisms(epsilon: float, classes: int) -> None:
    """A linear program over Pr[guess r | class c] with every ratio bounded, 8 random posteriors each."""
    source = np.random.default_rng(classes)
    for posterior in source.dirichlet(np.ones(classes), 8):
        gain = -np.diag(posterior).ravel()
        ratios = []
        for guess in range(classes):
            for a, b in itertools.permutations(range(classes), 2):
                row = np.zeros((classes, classes))
                row[a, guess], row[b, guess] = 1.0, -math.exp(epsilon)
                ratios.append(row.ravel())
        rows = np.kron(np.eye(classes), np.ones(classes))
        best = linprog(gain, np.array(ratios), np.zeros(len(ratios)), rows, np.ones(classes), bounds=(0, 1))
        assert best_accuracy(posterior[None], epsilon)[0] == pytest.approx(-best.fun, abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_epsilon_is_refused(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon"):
        report_information(epsilon)
    with pytest.raises(InputError, match="epsilon"):
        best_accuracy(np.array([[0.5, 0.5]]), epsilon)
