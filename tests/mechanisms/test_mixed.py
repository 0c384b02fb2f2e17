"""Several questions under one budget: the exact law, estimates, and what is chosen."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.audit.exact import audit_table, row_table
from graphveil.errors import InputError
from graphveil.files.columns import Category, Column, Number, YesNo
from graphveil.mechanisms import best_category
from graphveil.mechanisms.base.mechanism import VectorDomain
from graphveil.mechanisms.mixed import Mixed, MixedReports, best_sample
from graphveil.mechanisms.question import question_from
from graphveil.privacy import SeededRandomness, share_out

COLUMNS = (Column("age", Number(0, 100)), Column("member", YesNo()), Column("team", Category(("red", "blue", "green"))))
DOMAIN = VectorDomain(5, 0.0, 1.0)
TEXTS = ("age>=50", "member", "team")
#: Every combination of answers: 2 x 2 x 3.
PEOPLE = np.array(
    [[age, member, *np.eye(3)[team]] for age, member, team in itertools.product((0.2, 0.7), (0.0, 1.0), range(3))],
    np.float32,
)


def mixed(epsilon: float = 2.0, texts: tuple[str, ...] = TEXTS, **how: Any) -> Mixed:
    return Mixed(epsilon=epsilon, questions=tuple(question_from(t, 1.0, DOMAIN, COLUMNS) for t in texts), **how)


def every_report(mechanism: Mixed) -> MixedReports:
    """Every report that a device can send, one a user."""
    many, parts = len(mechanism.parts), mechanism.parts
    rows = [
        dict(zip(chosen, sent, strict=True))
        for chosen in itertools.combinations(range(many), mechanism.drawn)
        for sent in itertools.product(*(range(len(parts[place].mechanism.every_report())) for place in chosen))
    ]
    assigned = torch.tensor([[place in row for place in range(many)] for row in rows])
    answers = []
    for place, part in enumerate(parts):
        wanted = [row[place] for row in rows if place in row]
        tensors = part.mechanism.every_report()
        picked = {name: tensor[wanted] for name, tensor in tensors.to_tensors().items()}
        answers.append(type(tensors).from_tensors(picked))
    return MixedReports(assigned, tuple(answers))


@pytest.mark.parametrize("how", [{}, {"sampled": 1}, {"sampled": 2}, {"weights": (1.0, 2.0, 3.0)}])
def test_the_audit_accepts_the_epsilon_and_finds_half_the_noise(how: dict[str, Any]) -> None:
    """Exactly: all reports of all combinations of answers, whose probabilities have to add up to 1."""

    def audited(built: float) -> Any:
        mechanism = mixed(built, **how)
        table = row_table(mechanism, torch.from_numpy(PEOPLE), every_report(mechanism))
        return audit_table("mixed", mixed(1.5, **how).guarantee, table)

    right, weak = audited(1.5), audited(3.0)
    assert right.holds and right.lower_bound > 0.97 * 1.5
    assert not weak.holds and weak.lower_bound > 1.9 * 1.5


@pytest.mark.parametrize("how", [{"sampled": 1}, {"sampled": 3}, {"weights": (1.0, 2.0, 3.0)}])
def test_estimates_are_unbiased_with_the_stated_variance(how: dict[str, Any]) -> None:
    """Exactly, by summing over every report."""
    mechanism = mixed(**how)
    reports = every_report(mechanism)
    worth = mechanism.estimate(reports)
    for person in PEOPLE[::5]:
        rows = torch.from_numpy(np.repeat(person[None], len(reports), axis=0))
        chances = mechanism.log_likelihood(reports, rows).exp().numpy()
        spread = mechanism.variance(person[None])
        for part, each, variance in zip(mechanism.parts, worth, spread, strict=True):
            mean = chances @ each
            assert mean == pytest.approx(np.eye(len(part.answers))[part.truth(person[None])[0]], abs=1e-5)
            assert chances @ each**2 - mean**2 == pytest.approx(variance[0], rel=1e-4)


def test_the_sampler_follows_the_likelihood() -> None:
    """40,000 reports of one person, six standard errors for each of 7 answers (one false alarm in 10^7)."""
    mechanism = mixed(sampled=1)
    reports = mechanism.randomize(np.repeat(PEOPLE[:1], 40_000, axis=0), randomness=SeededRandomness(2))
    assert reports.assigned.sum(dim=1).eq(1).all()
    for part, sent, who in zip(mechanism.parts, reports.answers, reports.assigned.T, strict=True):
        assert abs(float(who.double().mean()) - 1 / 3) < 6 * math.sqrt(2 / 9 / 40_000)
        named = part.mechanism.estimate(sent) * part.mechanism.law.lean + part.mechanism.law.flip
        true = int(part.truth(PEOPLE[:1])[0])
        for answer in range(len(part.answers)):
            hoped = part.mechanism.law.keep if answer == true else part.mechanism.law.flip
            assert abs(float(named[:, answer].mean()) - hoped) < 6 * math.sqrt(0.25 / len(sent))


def test_weights_are_published_importance_and_what_has_less_variance_is_chosen() -> None:
    for epsilon in (0.5, 12.0):
        totals = {m: mixed(epsilon, sampled=m).total_variance for m in (1, 2, 3)}
        assert mixed(epsilon).drawn == min(totals, key=lambda m: totals[m])
    assert mixed(0.5).drawn == 1 and mixed(12.0).drawn == 3
    assert best_sample(1.0, (2,)) == 1
    mechanism = mixed(3.0, weights=(1.0, 1.0, 4.0))
    assert [part.epsilon for part in mechanism.parts] == pytest.approx([0.5, 0.5, 2.0])
    assert mechanism.drawn == 3
    assert mechanism.total_variance == pytest.approx(
        sum(best_category(epsilon, k).law.total_variance for epsilon, k in ((0.5, 2), (0.5, 2), (2.0, 3)))
    )


@pytest.mark.parametrize("weights", [(1, 1, 1), (0.1, 0.2, 0.7), (1e-6, 1, 3), (3, 3, 3, 3, 3, 3, 3)])
def test_shares_never_add_up_to_more_than_was_promised(weights: tuple[float, ...]) -> None:
    for epsilon in (0.1, 0.3, 2.2, 7.7):
        shares = share_out(epsilon, weights)
        assert math.fsum(shares) <= epsilon
        assert shares == pytest.approx([epsilon * weight / sum(weights) for weight in weights], rel=1e-15)
    for refused in ((0.0, weights), (math.inf, weights), (1.0, ()), (1.0, (0, *weights)), (1.0, (-1, *weights))):
        with pytest.raises(InputError, match=r"epsilon|weights"):
            share_out(*refused)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"texts": ()}, "no questions"),
        ({"weights": (1.0,)}, "weights do not fit"),
        ({"sampled": 0}, "sampled is 0"),
        ({"sampled": 4}, "sampled is 4"),
        ({"epsilon": math.nan}, "epsilon is nan"),
    ],
)
def test_what_does_not_fit_is_refused(how: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        mixed(**how)


def test_reports_that_do_not_fit_are_refused() -> None:
    reports = mixed(sampled=1).randomize(PEOPLE, randomness=SeededRandomness(1))
    with pytest.raises(InputError, match="answers for"):
        MixedReports(~reports.assigned, reports.answers)
    assert set(reports.to_tensors()) == {"asked", "0.labels", "1.labels", "2.labels"}
    with pytest.raises(InputError, match="as many"):
        mixed(sampled=1).log_likelihood(reports, PEOPLE[:1])
