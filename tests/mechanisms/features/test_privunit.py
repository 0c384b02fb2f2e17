"""PrivUnit on public random codebooks."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from graphveil.audit import exact
from graphveil.errors import InputError
from graphveil.mechanisms import CodewordReports, PrivUnit
from graphveil.mechanisms.features.privunit import Codebooks
from graphveil.mechanisms.samplers.bits import PRECISION
from graphveil.mechanisms.samplers.caps import cap_law
from graphveil.privacy import SeededRandomness
from tests.mechanisms import conformance


def test_reports_no_device_sends_are_refused_and_what_is_public_is_said() -> None:
    sentence = PrivUnit(epsilon=1.0, dimension=4, radius=0.5).guarantee.sentence()
    assert "public seed" in sentence
    assert "the bound 0.5 on the length" in sentence
    mechanism = PrivUnit(epsilon=1.0, dimension=4)
    for codeword, codebook in ((32, 0), (-1, 0), (0, -1), (0, 2**31)):
        with pytest.raises(InputError, match="no device can send"):
            mechanism.centred(CodewordReports(torch.tensor([codeword]).int(), torch.tensor([codebook])))
    with pytest.raises(InputError, match="2 codewords of 1 codebooks"):
        CodewordReports(torch.zeros(2).int(), torch.zeros(1).long())


@pytest.mark.parametrize("case", [case for case in conformance.CASES if case.info.name == "privunit"], ids=str)
def test_estimates_are_unbiased_with_the_stated_variance(case: conformance.Case) -> None:
    """Over 40,000 users, each with a codebook of its own: 6 deviations; a value 20% too large is found."""
    mechanism, users = case.build(case.epsilon), 40_000
    for place, row in enumerate(case.inputs[[0, -1]]):
        sent = mechanism.randomize(conformance.repeat(row, users), randomness=SeededRandomness(place))
        estimate, variance = mechanism.estimate(sent).double(), mechanism.variance(row[None])[0]
        deviation = torch.sqrt(variance / users)
        assert bool(((estimate.mean(0) - row).abs() < 6 * deviation).all())
        assert bool(((1.2 * (estimate.mean(0) - 1) + 1 - row).abs() > 6 * deviation).any())
        assert estimate.var(0).numpy() == pytest.approx(variance.numpy(), rel=0.06)


@pytest.mark.parametrize(("factor", "exceeds"), [(1.0, False), (1.1, True)])
def test_worst_ratio_by_enumeration(factor: float, exceeds: bool) -> None:
    """All codewords of 10 codebooks, 20 values: never beyond epsilon; a copy with 1.1 epsilon is found out."""
    values = torch.rand(20, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64).round(decimals=1)
    mechanism, worst = PrivUnit(epsilon=factor, dimension=5, codewords=8), 0.0
    for codebook in range(10):
        reports = CodewordReports(torch.arange(8).int(), torch.full((8,), codebook))
        worst = max(worst, exact.worst_ratio(exact.row_table(mechanism, values, reports)))
    assert (worst > 1 + 1e-9) is exceeds


@pytest.mark.parametrize("codewords", [2, 16])
def test_sampler_follows_likelihood(codewords: int) -> None:
    """Each user has another codebook: count how often a codeword at each place of closeness is sent (chi-square)."""
    mechanism = PrivUnit(epsilon=2.0, dimension=6, codewords=codewords)
    values = torch.rand(30_000, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    reports = mechanism.randomize(values, randomness=SeededRandomness(3))
    books = Codebooks(0, codewords // 2, 7)
    ball = (values.numpy() - 0.5) / (0.5 * math.sqrt(6))
    sphere = np.column_stack([ball, np.sqrt(1 - (ball**2).sum(axis=1))])
    scores = (books.matrices(np.arange(len(values))) @ sphere[:, :, None])[:, :, 0]
    scores = np.concatenate([scores, -scores], axis=1)
    sent = np.take_along_axis(scores, reports.codewords.numpy()[:, None].astype(np.int64), axis=1)
    counts = np.bincount((scores > sent).sum(axis=1), minlength=codewords)
    for law, fits in ((mechanism.law, True), (cap_law(3.0, codewords), False)):
        chances = np.full(codewords, law.outside / 2**64)
        chances[: law.closest] = law.inside / 2**64
        p_value = float(stats.chisquare(counts, chances * len(values)).pvalue)
        assert (p_value > conformance.FALSE_ALARM) is fits


@pytest.mark.parametrize("codewords", [None, 2, 32, 1024])
def test_all_outcomes_are_given_out_and_the_ratio_is_exact(codewords: int | None) -> None:
    for epsilon in (1e-12, 0.3, 2.5, 12.0, 49.0, 51.0, 1e300):
        law = cap_law(epsilon, codewords)
        assert law.closest * law.inside + (law.codewords - law.closest) * law.outside == 2**64
        assert law.inside > law.outside > 0
        assert Decimal(law.inside) <= Decimal(min(epsilon, 50.0)).exp(PRECISION) * law.outside
        edges = np.array([0, (law.codewords - law.closest) * law.outside - 1, 2**64 - 1], np.uint64)
        assert law.places(edges).tolist() == [law.closest, law.codewords - 1, law.closest - 1]


def test_public_seed_decides_the_codebooks_and_randomness_the_choice() -> None:
    """The same private stream under two public seeds gives other codewords; one seed always the same codebooks."""
    values = torch.rand(200, 8, dtype=torch.float64)
    reports = [
        PrivUnit(epsilon=1.0, dimension=8, public_seed=seed).randomize(values, randomness=SeededRandomness(1))
        for seed in (0, 0, 1)
    ]
    assert torch.equal(reports[0].codewords, reports[1].codewords)
    assert not torch.equal(reports[0].codewords, reports[2].codewords)
    books = Codebooks(5, 4, 9)
    seven, eight = books.matrices(np.array([7, 8]))
    assert np.array_equal(seven, Codebooks(5, 4, 9).matrices(np.array([7]))[0])
    assert np.array_equal(seven[2], books.vectors(np.array([7]), np.array([2]))[0])
    assert not np.array_equal(seven, eight)


def test_the_likelihood_of_a_report_does_not_depend_on_its_block() -> None:
    values = torch.rand(300, 12, generator=torch.Generator().manual_seed(1)).double()
    mechanism = PrivUnit(epsilon=2.0, dimension=12)
    sent = mechanism.randomize(values, randomness=SeededRandomness(4))
    single = [
        mechanism.log_likelihood(CodewordReports(sent.codewords[[row]], sent.codebooks[[row]]), values[[row]])
        for row in range(50)
    ]
    assert torch.equal(torch.cat(single), mechanism.log_likelihood(sent, values)[:50])


def test_worst_variance_is_the_largest_variance() -> None:
    values = torch.rand(2000, 2, dtype=torch.float64)
    values[:5] = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1], [0.5, 0.5]])
    for epsilon, radius in itertools.product((0.5, 4.0, 9.0, 20.0), (None, 0.5)):
        mechanism = PrivUnit(epsilon=epsilon, dimension=2, radius=radius)
        largest = float(mechanism.variance(values[(values - 0.5).norm(dim=1) <= mechanism.length]).max())
        assert largest <= mechanism.worst_variance * (1 + 1e-12)
        assert epsilon > 1 or radius or largest == pytest.approx(mechanism.worst_variance)
    wide, short = (PrivUnit(epsilon=1.0, dimension=16, low=-1.0, radius=radius) for radius in (None, 1.0))
    assert wide.worst_variance == pytest.approx(16 * short.worst_variance, rel=0.01)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dimension": 2**20 + 1}, "dimension is 1048577"),
        ({"high": 1.7e308}, "overflows"),
        ({"codewords": 3}, "codewords is 3"),
        ({"codewords": 2.0}, "codewords is 2.0"),
        ({"epsilon": 1e-13}, "too small"),
        ({"radius": 0.0}, "radius is 0"),
        ({"radius": 1.0}, "radius is 1.0"),
        ({"public_seed": -1}, "public_seed is -1"),
    ],
)
def test_bad_parameters_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PrivUnit(**({"epsilon": 1.0, "dimension": 3} | settings))
