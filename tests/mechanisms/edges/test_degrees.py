"""Noisy degrees: exhaustive audits on three users, the law of the noise, its ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import DegreeReports, NoisyDegree
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.mechanisms import pair_cases, tiny_graphs
from tests.mechanisms.tiny_graphs import MODES, NODES


def table(mechanism: NoisyDegree) -> np.ndarray[Any, Any]:
    """Of all graphs and every level there is, sent by all users at once."""
    lowest, highest = mechanism.ends
    levels = [DegreeReports(torch.full((NODES,), level, dtype=torch.int32)) for level in range(lowest, highest + 1)]
    degrees = [mechanism.count(graph) for graph in tiny_graphs.all_graphs(mechanism.mode)]
    return tiny_graphs.log_table(mechanism, degrees, levels)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_audit_accepts_the_stated_epsilon_and_rejects_half_the_noise(mode: str, epsilon: float) -> None:
    """All graphs that differ in one relationship, all reports, whose probabilities add up to 1."""
    mechanism, weak = (NoisyDegree(epsilon=factor * epsilon, nodes=NODES, mode=mode) for factor in (1, 2))
    claimed, logs = mechanism.guarantee.epsilon, table(mechanism)
    assert claimed == epsilon * (2 if mode == "both" else 1)
    assert np.allclose(np.exp(logs).sum(1), 1.0, atol=1e-12)
    ratio = tiny_graphs.worst_of_independent(logs)
    assert tiny_graphs.is_private(ratio, claimed) and ratio > 0.999999 * claimed
    assert not tiny_graphs.is_private(tiny_graphs.worst_of_independent(table(weak)), claimed)


@pytest.mark.parametrize("far", [-(10**6), 10**6])
def test_reports_end_at_the_public_reach(far: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the noise: a level that only some degrees can reach would tell them."""
    mechanism = NoisyDegree(epsilon=1.0, nodes=NODES, mode="both")
    monkeypatch.setattr(type(mechanism._noise), "draw", lambda me, count, randomness: np.full(count, far))
    sent = mechanism.randomize(torch.arange(NODES), randomness=SeededRandomness(0)).levels
    assert sent.tolist() == [mechanism.ends[far > 0]] * NODES


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_sampler_follows_likelihood(epsilon: float) -> None:
    """Chi-square on 300,000 users in two blocks, false alarms 1e-6; 3% more noise is found."""
    users = 300_000
    mechanism, degrees = NoisyDegree(epsilon=epsilon, nodes=users, mode="directed"), torch.full((users,), 7)
    noise = mechanism.randomize(degrees, randomness=SeededRandomness(2)).levels.numpy() - 7
    assert degrees.unique().tolist() == [7], "the degrees themselves stay as they were"
    assert pair_cases.fits_two_sided(noise, epsilon) and not pair_cases.fits_two_sided(noise, epsilon / 1.03)
    assert noise.var() == pytest.approx(mechanism.variance, rel=0.08)


@pytest.mark.parametrize("mode", MODES)
def test_counts_are_those_of_the_users_own_list(mode: str) -> None:
    graph = tiny_graphs.edge_index([(0, 1), (0, 2)], mode)
    expected = {"lower": [2, 0, 0], "both": [2, 1, 1], "directed": [2, 0, 0]}
    mechanism = NoisyDegree(epsilon=1e9, nodes=NODES, mode=mode)
    counted = mechanism.count(graph)
    assert counted.tolist() == expected[mode]
    sent = mechanism.randomize(counted, randomness=SecureRandomness())
    assert mechanism.estimate(sent).tolist() == expected[mode]
    assert mechanism.randomize(counted.numpy(), randomness=SeededRandomness(1)).levels.dtype == torch.int32


def test_levels_outside_the_public_range_and_small_epsilon_are_refused() -> None:
    mechanism = NoisyDegree(epsilon=1.0, nodes=NODES)
    forged = DegreeReports(torch.full((NODES,), 10_000, dtype=torch.int32))
    with pytest.raises(InputError, match="a degree that no device can send"):
        mechanism.estimate(forged)
    with pytest.raises(InputError, match="as many of both"):
        mechanism.estimate(DegreeReports(torch.zeros(2, dtype=torch.int32)))
    with pytest.raises(InputError, match="above 32 bits"):
        NoisyDegree(epsilon=1e-9, nodes=NODES)
