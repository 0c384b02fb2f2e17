"""Counts of neighbours by public class: all graphs of four nodes, the law of the noise, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import ClassCounts, NoisyCounts
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.mechanisms import pair_cases
from tests.mechanisms.pair_cases import ROUNDING

GROUPS = torch.tensor([0, 1, 1, 0])


def small(epsilon: float) -> ClassCounts:
    return ClassCounts(epsilon=epsilon, domain=pair_cases.tiny(), groups=GROUPS, classes=2)


def worst_ratio(mechanism: ClassCounts) -> float:
    """The largest |log ratio| of one edge more or less, over all 32 graphs and tables around some of them."""
    sets = pair_cases.all_sets(mechanism.domain)
    tables = [torch.from_numpy(mechanism.count(one)) + away for one in sets[::8] for away in (-2, 0, 2)]
    logs = np.array([[float(mechanism.log_likelihood(sent, one)) for sent in tables] for one in sets])
    pairs = [(g, g ^ 1 << k) for g in range(len(sets)) for k in range(mechanism.domain.size)]
    return max(float(np.abs(logs[one] - logs[other]).max()) for one, other in pairs)


@pytest.mark.parametrize("epsilon", [0.1, 8.0])
def test_audit_accepts_the_stated_epsilon_and_rejects_half_the_noise(epsilon: float) -> None:
    """All 32 graphs; the ratio of a table is that of its two counts alone, so no other table has a larger one."""
    claimed = small(epsilon)
    assert 0.999999 * epsilon < worst_ratio(claimed) <= claimed.guarantee.epsilon * (1 + ROUNDING)
    assert worst_ratio(small(2 * epsilon)) > epsilon * (1 + ROUNDING)


def test_one_edge_moves_two_counts_of_two_people_by_one() -> None:
    mechanism = small(1.0)
    for one in pair_cases.all_sets(mechanism.domain):
        for rank in range(mechanism.domain.size):
            pair = mechanism.domain.unrank(torch.tensor([rank]))
            moved = np.abs(mechanism.count(torch.cat([one, pair], dim=1)) - mechanism.count(one))
            here = [tuple(column) for column in one.T.tolist()]
            twice = tuple(pair[:, 0].tolist()) in here
            assert moved.sum() == (0 if twice else 2) and moved.max(initial=0) <= 1
            assert (moved.sum(axis=1) > 0).sum() == (0 if twice else 2)


@pytest.mark.parametrize("epsilon", [0.4, 2.0])
def test_noise_is_that_of_counts_at_half_of_epsilon(epsilon: float) -> None:
    """The same draws and the same likelihood as those of `NoisyCounts`, whose law has its own test."""
    mechanism, one = small(epsilon), NoisyCounts(epsilon=epsilon / 2)
    pairs, rows = pair_cases.all_sets(mechanism.domain)[-1], mechanism.domain.ids
    true = mechanism.count(pairs)
    sent = mechanism.randomize(pairs, randomness=SeededRandomness(3))
    drawn = one.randomize(true[rows].reshape(-1), randomness=SeededRandomness(3))
    assert sent.numpy()[rows].reshape(-1).tolist() == drawn.tolist()
    expected = float(one.log_likelihood(drawn, true[rows].reshape(-1)).sum())
    assert float(mechanism.log_likelihood(sent, pairs)) == pytest.approx(expected, rel=1e-12)
    assert mechanism.variance == one.variance


def test_people_without_private_edges_have_rows_of_zeros() -> None:
    """Who may have private edges is declared, and all of those have noise, whether they have an edge or not."""
    domain, pairs = pair_cases.fifty()
    groups = torch.arange(50) % 3
    mechanism = ClassCounts(epsilon=0.05, domain=domain, groups=groups, classes=3)
    sent = mechanism.randomize(pairs, randomness=SecureRandomness())
    others = torch.ones(50, dtype=torch.bool)
    others[torch.from_numpy(domain.ids)] = False
    assert not bool(sent[others].any())
    assert float((sent[~others] != 0).float().mean()) > 0.9
    again = mechanism.randomize(pairs, randomness=SecureRandomness())
    assert not torch.equal(sent, again)


def test_tables_and_groups_that_do_not_fit_are_refused() -> None:
    mechanism = small(1.0)
    sent = mechanism.randomize(torch.tensor([[0], [1]]), randomness=SecureRandomness())
    assert torch.equal(mechanism.estimate(sent), sent.double())
    with pytest.raises(InputError, match="counts are"):
        mechanism.log_likelihood(torch.zeros(3, 2, dtype=torch.int64), torch.zeros(2, 0, dtype=torch.int64))
    for groups, found in ((GROUPS[:3], "3 groups"), (GROUPS + 1, "does not exist"), (GROUPS.double(), "integers")):
        with pytest.raises(InputError, match=found):
            ClassCounts(epsilon=1.0, domain=pair_cases.tiny(), groups=groups, classes=2)
