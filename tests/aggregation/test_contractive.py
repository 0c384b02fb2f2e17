"""A chain of hidden states: what an edge moves, what steps contract, what the last state costs, its noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from graphveil.aggregation import ReceiverRows
from graphveil.aggregation.contractive import ContractiveChain
from graphveil.errors import InputError
from graphveil.privacy import SeededRandomness

CHAIN: dict[str, Any] = {"hops": 3, "contraction": 0.8, "share": 0.9, "residual": 0.5, "floor": 3}


def chain(**settings: Any) -> ContractiveChain:
    return ContractiveChain(**{**CHAIN, **settings})


def rows_of(matrix: Any) -> ReceiverRows:
    return ReceiverRows.of(torch.from_numpy(np.array(np.nonzero(matrix))), len(matrix))


def with_and_without(rng: np.random.Generator) -> tuple[Any, Any]:
    """A random graph of a few nodes, with an edge between the first two and without it."""
    nodes = int(rng.integers(3, 9))
    upper = np.triu(rng.random((nodes, nodes)) < rng.random(), 1)
    upper[0, 1] = True
    other = upper.copy()
    other[0, 1] = False
    return upper | upper.T, other | other.T


@pytest.mark.parametrize("floor", [1, 2, 5])
def test_no_edge_moves_a_step_by_more_than_is_declared_and_one_reaches_it(floor: int) -> None:
    """Rows of length 1 in one column, pulled to where the edge moves them most."""
    rng, law = np.random.default_rng(floor), chain(floor=floor, share=1.0)
    worst = 0.0
    for _ in range(300):
        first, second = (law.operator(rows_of(matrix)) for matrix in with_and_without(rng))
        moved = (first - second).toarray()
        x = rng.choice([-1.0, 1.0], len(moved))
        for _ in range(8):
            x = np.where(moved @ (moved @ x) < 0, -1.0, 1.0)
        start = torch.from_numpy(x)[:, None]
        worst = max(worst, float((law.step(first, start, start) - law.step(second, start, start)).norm()))
    assert 0.99 * law.sensitivity < worst <= law.sensitivity


def test_a_step_brings_any_two_states_nearer() -> None:
    rng, law = np.random.default_rng(0), chain(residual=2.0)
    for _ in range(50):
        matrix = law.operator(rows_of(with_and_without(rng)[0]))
        x, y, start = (torch.from_numpy(rng.normal(0, 2, (matrix.shape[0], 3))) for _ in range(3))
        apart = (law.step(matrix, x, start) - law.step(matrix, y, start)).norm()
        assert float(apart) <= law.contraction * float((x - y).norm()) * (1 + 1e-12)


@pytest.mark.parametrize(("hops", "contraction"), [(1, 0.5), (2, 0.9), (7, 0.6), (64, 0.95)])
def test_shifts_that_meet_at_the_last_state_cost_what_is_charged(hops: int, contraction: float) -> None:
    """The proof in numbers: distances stay above 0 and end there, and the squares of the shifts add up to `growth`."""
    law = chain(hops=hops, contraction=contraction)
    weights = contraction ** np.arange(hops - 1, -1, -1.0)
    shifts = weights * weights.sum() / (weights**2).sum()
    apart = 0.0
    for shift in shifts:
        apart = contraction * apart + 1.0 - shift
        assert apart >= -1e-9
    assert abs(apart) < 1e-9
    assert (shifts**2).sum() == pytest.approx(law.growth)
    assert law.growth <= min(hops, (1 + contraction) / (1 - contraction)) * (1 + 1e-12)
    assert law.sigma(3.0) == pytest.approx(3.0 * law.sensitivity * math.sqrt(law.growth), rel=1e-3)


@pytest.mark.parametrize(("part", "holds"), [(1.0, True), (0.5, False)])
def test_the_last_state_tells_no_more_of_an_edge_than_was_paid_for(part: float, holds: bool) -> None:
    """40,000 pairs of opposite rows, with their edge and without; half of the noise tells them apart too well.

    Both error rates of the middle threshold are bounded with a false alarm of 1e-6 (Clopper and Pearson).
    """
    law, pairs, mu = chain(hops=2, contraction=0.9, share=1.0, residual=10.0, floor=1), 40_000, 4.0
    start = torch.tensor([1.0, -1.0]).repeat(pairs)[:, None]
    ends = torch.arange(2 * pairs).view(-1, 2).T
    edges, sigma = torch.cat([ends, ends.flip(0)], dim=1), part * law.sigma(1 / mu)
    seen = []
    for seed, graph in enumerate((edges[:, :0], edges)):
        state = law.released(ReceiverRows.of(graph, 2 * pairs), start, sigma, SeededRandomness(seed)).view(-1, 2)
        seen.append(state[:, 0] - state[:, 1])
    middle = (seen[0].mean() + seen[1].mean()) / 2
    wrong = [int((seen[0] <= middle).sum()), int((seen[1] > middle).sum())]
    most = [stats.beta.isf(5e-7, count + 1, pairs - count) for count in wrong]
    assert (-float(stats.norm.ppf(most).sum()) <= mu) == holds


def test_without_noise_states_are_steps_and_with_it_they_lie_on_the_grid() -> None:
    rows, law = rows_of(with_and_without(np.random.default_rng(1))[0]), chain(hops=1)
    start = torch.eye(rows.num_nodes)
    plain = law.released(rows, start, 0.0, SeededRandomness(0))
    assert torch.allclose(plain, law.step(law.operator(rows), start.double(), start.double()).float())
    hidden = law.hide(plain.double(), 2.0, 1, SeededRandomness(0)) / (2.0 / 2**30)
    assert torch.equal(hidden, hidden.round())


@pytest.mark.parametrize("wrong", [{"contraction": 1.0}, {"share": 0.0}, {"residual": -1.0}, {"floor": 0}, {"hops": 0}])
def test_what_has_no_proof_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        chain(**wrong)
    with pytest.raises(InputError):
        chain().sigma(1e6)  # the grid has no room for it


def test_rows_that_are_no_rows_send_nothing() -> None:
    """NaN would go over the edges to others; a long row would move their sums by more than is declared."""
    law, rows = chain(hops=1), rows_of([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    start = torch.tensor([[math.nan, 1.0], [math.inf, 0.0], [30.0, 40.0]])
    tidy = torch.tensor([[0.0, 1.0], [0.0, 0.0], [0.6, 0.8]])
    first, second = (law.released(rows, x, 0.0, SeededRandomness(0)) for x in (start, tidy))
    assert torch.allclose(first, second)
